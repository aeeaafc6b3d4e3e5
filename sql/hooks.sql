-- name: select_token(user_id uuid, session_id uuid, method text, provider text, raises boolean,
--                     mfa_required text, audience text) -> row?
-- The claims of a user's next token, for the hook. The session exists, or a browser's session opens it, or it
-- is new; `raises` if `method` is a second step. Returns nothing for a banned user.
SELECT with_audience(copy.object, :audience) AS user_object,
       CASE WHEN :raises THEN 'aal2' ELSE known.level END AS aal,
       CASE WHEN :raises THEN with_second_step(known.amr, :method) ELSE known.amr END AS amr,
       NOT :raises AND lacks_step(u, known.level, :mfa_required, has_second_step(u.id)) AS lacks_step,
       floor(extract(epoch FROM now()))::bigint AS issued_at,
       what_decides(copy.object, s) AS decides
  FROM users AS u
  JOIN user_objects AS copy ON copy.user_id = u.id
  LEFT JOIN sessions AS s ON s.id = :session_id AND s.user_id = u.id
 CROSS JOIN LATERAL (
   SELECT coalesce(s.aal, 'aal1'),
          CASE WHEN s.id IS NULL
               THEN jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
                      'method', :method, 'provider', :provider,
                      'timestamp', floor(extract(epoch FROM now()))::bigint)))
               ELSE methods_of(s) END
 ) AS known (level, amr)
 WHERE u.id = :user_id AND NOT is_banned(u);

-- name: lock_what_decides(user_id uuid, session_id uuid) -> row (decides?)
SELECT locked_what_decides(:user_id, :session_id) AS decides;

-- name: select_what_decides(session_id uuid) -> row
-- What decides about the next token of a session.
SELECT what_decides(copy.object, s) AS decides
  FROM sessions AS s
  JOIN user_objects AS copy ON copy.user_id = s.user_id
 WHERE s.id = :session_id;

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
