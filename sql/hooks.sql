-- name: select_token(user_id uuid, session_id uuid, audience text, with_organizations boolean)
--   -> row? (banned_until?, converted_at?, oldest_factor_at?, aal?, authenticated_at?)
-- What the hook gets about a user's next token. The session is the token's, opens it, or is null.
SELECT u.role, u.made_by, u.converted_at, u.banned_until,
       own.oldest AS oldest_factor_at, own.has_second_step,
       s.aal, methods_of(s) AS methods, authenticated_at(s) AS authenticated_at,
       object.user_object, memberships.member AS memberships,
       clock_timestamp() AS now
  FROM users AS u
 CROSS JOIN factors_of(u.id) AS own
 CROSS JOIN user_object_of(u, :audience, false) AS object
 CROSS JOIN memberships_of(u.id, :with_organizations) AS memberships
  LEFT JOIN sessions AS s ON s.id = :session_id AND s.user_id = u.id
 WHERE u.id = :user_id;

-- name: select_deciding(user_id uuid, session_id uuid)
--   -> row? (email?, email_confirmed_at?, phone?, phone_confirmed_at?, banned_until?, converted_at?,
--            session_id?, aal?, ended_at?, factor_id?, amr?)
-- The inputs of a decision that must not change while the hook is asked.
SELECT u.id, u.role, u.email, u.email_confirmed_at, u.phone, u.phone_confirmed_at, u.app_metadata::jsonb,
       u.banned_until, u.made_by, u.converted_at, u.created_at,
       ARRAY(SELECT i.provider FROM identities AS i WHERE i.user_id = u.id
              ORDER BY i.created_at, i.provider) AS providers,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
                 'id', f.id, 'factor_type', f.factor_type, 'friendly_name', f.friendly_name,
                 'is_verified', f.verified_at IS NOT NULL, 'created_at', f.created_at,
                 'updated_at', f.updated_at) ORDER BY f.created_at, f.id), '[]')
          FROM factors AS f WHERE f.user_id = u.id AND f.factor_type <> 'passkey') AS factors,
       (SELECT coalesce(jsonb_object_agg(o.id, jsonb_build_array(m.role, requirement_of(o))), '{}')
          FROM memberships AS m JOIN organizations AS o ON o.id = m.organization_id
         WHERE m.user_id = u.id AND o.ended_at IS NULL) AS memberships,
       s.id AS session_id, s.aal, end_of(s) AS ended_at, s.factor_id, s.amr, clock_timestamp() AS now
  FROM users AS u
  LEFT JOIN sessions AS s ON s.id = :session_id AND s.user_id = u.id
 WHERE u.id = :user_id;

-- name: bound_hook() -> row
-- Limits the operator's function, which the transaction calls next, to a second.
SELECT set_config('statement_timeout', '1s', true) AS timeout;

-- name: select_function(schema text, name text) -> row (is_allowed?)
SELECT format('GRANT USAGE ON SCHEMA %1$I TO %3$I; GRANT EXECUTE ON FUNCTION %1$I.%2$I TO %3$I',
              :schema, :name, current_user) AS remedy,
       bool_or(has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE'))
         AS is_allowed
  FROM pg_proc AS p
  JOIN pg_namespace AS n ON n.oid = p.pronamespace
 WHERE n.nspname = :schema AND p.proname = :name
   AND p.proargtypes[0] IN ('jsonb'::regtype, 'json'::regtype) AND p.pronargs - p.pronargdefaults <= 1;
