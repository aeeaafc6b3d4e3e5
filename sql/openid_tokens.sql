-- name: select_time() -> row
SELECT floor(extract(epoch FROM now()))::bigint AS seconds;

-- name: find_owner_of_code(code_hash bytea) -> rows
SELECT r.user_id FROM oauth_requests AS r WHERE r.code_hash = :code_hash AND r.user_id IS NOT NULL;

-- name: select_oauth_code(code_hash bytea, client_id uuid, with_organizations boolean)
--   -> row? (redirect_uri?, resource?, nonce?, code_challenge?, session_id?, opened_session_id?, decision?,
--     grant_id?, for_organization_id?, organization_id?)
-- Run it with the owner locked, so that a second use sees the session of the first.
SELECT r.id, r.redirect_uri, r.resource, r.nonce, r.code_challenge, r.user_id, r.session_id,
       r.opened_session_id, r.decision, r.code_expires_at, r.user_code_mac IS NOT NULL AS is_of_device,
       r.scopes, c.id AS client_id, c.grant_types, c.scopes AS client_scopes,
       g.id AS grant_id, c.allowed_roles, c.resources, c.is_dynamic, refuses_all(c) AS is_blocked,
       c.organization_id, r.organization_id AS for_organization_id, memberships.member AS memberships,
       clock_timestamp() AS now
  FROM oauth_requests AS r
  JOIN oauth_clients AS c ON c.id = r.client_id
  LEFT JOIN oauth_grants AS g ON g.user_id = r.user_id AND g.client_id = r.client_id
 CROSS JOIN memberships_of(r.user_id, :with_organizations) AS memberships
 WHERE r.code_hash = :code_hash AND r.client_id = :client_id AND r.user_id IS NOT NULL;

-- name: list_sessions_of_grant(grant_id uuid) -> rows
SELECT s.id, s.created_at FROM sessions AS s WHERE s.grant_id = :grant_id AND end_of(s) IS NULL;

-- name: open_client_session(request_id uuid, grant_id uuid, auth_time timestamptz, ip inet, user_agent text,
--                           with_organizations boolean, origin jsonb, acted_at timestamptz)
--   -> row? (resource?, token_lifetime?, for_organization_id?)
-- Run it with the user locked, so that concurrent requests cannot exceed the sessions of a grant.
WITH opened AS (
  INSERT INTO sessions (user_id, method, ip, user_agent, aal, amr, factor_id, opened_by, provider_term,
                        grant_id, scopes, resource, organization_id, auth_time, created_at, refreshed_at)
  SELECT r.user_id, 'oauth_client', :ip, :user_agent, s.aal, methods_of(s), s.factor_id, s.id, s.provider_term, :grant_id,
         r.scopes, r.resource, r.organization_id, :auth_time, :acted_at, :acted_at
    FROM oauth_requests AS r
    JOIN sessions AS s ON s.id = r.session_id
   WHERE r.id = :request_id
  RETURNING *
), marked AS (
  UPDATE oauth_requests AS r
     SET opened_session_id = opened.id
    FROM opened
   WHERE r.id = :request_id
  RETURNING r.client_id
)
SELECT opened.id AS session_id, opened.user_id, opened.counter, opened.scopes, opened.resource, opened.aal,
       opened.amr, floor(extract(epoch FROM opened.auth_time))::bigint AS auth_time,
       coalesce(c.metadata_url, c.id::text) AS client_id, c.token_lifetime, c.id_token_signed_response_alg,
       'refresh_token' = ANY (c.grant_types) AS refreshes_tokens,
       floor(extract(epoch FROM :acted_at))::bigint AS issued_at, :acted_at AS now,
       object.user_object, opened.organization_id AS for_organization_id, memberships.member AS memberships,
       u.email_proved, u.phone_proved,
       record_acts_at(:acted_at, :origin, u.id, u.email, '{signed_in}', '{auth.login}',
                   jsonb_build_object('method', opened.method, 'client_id', c.id, 'client', c.name,
                                      'session_id', opened.id)) AS recorded
  FROM opened
 CROSS JOIN marked
  JOIN oauth_clients AS c ON c.id = marked.client_id
  JOIN users AS u ON u.id = opened.user_id
 CROSS JOIN user_object_of(u, NULL, false) AS object
 CROSS JOIN memberships_of(u.id, :with_organizations) AS memberships;

-- name: select_client_caller(user_id uuid, session_id uuid, client_id uuid, with_organizations boolean)
--   -> row? (banned_until?, converted_at?, oldest_factor_at?, method?, aal?,
--            session_created_at?, refreshed_at?, ended_at?, first_passkey_at?, resource?, scopes?,
--            allowed_roles?, resources?, is_dynamic?, is_blocked?, organization_id?, for_organization_id?, amr?,
--            auth_time?)
-- The session that a user gave a client, and the client.
SELECT owner.*, u.app_metadata::jsonb,
       s.method, s.aal, s.created_at AS session_created_at, s.refreshed_at, end_of(s) AS ended_at, s.first_passkey_at,
       s.resource, s.scopes, s.amr, floor(extract(epoch FROM s.auth_time))::bigint AS auth_time,
       c.allowed_roles, c.resources, c.is_dynamic, refuses_all(c) AS is_blocked,
       c.organization_id, s.organization_id AS for_organization_id, memberships.member AS memberships,
       u.email_proved, u.phone_proved, object.user_object
  FROM user_facts(:user_id) AS owner
  JOIN users AS u ON u.id = :user_id
 CROSS JOIN user_object_of(u, NULL, false) AS object
 CROSS JOIN memberships_of(u.id, :with_organizations) AS memberships
  LEFT JOIN (sessions AS s
             JOIN oauth_grants AS g ON g.id = s.grant_id
             JOIN oauth_clients AS c ON c.id = g.client_id)
    ON s.id = :session_id AND s.user_id = :user_id AND c.id = :client_id;

-- name: find_client_session(session_id uuid, client_id uuid) -> rows
-- The user who gave a client this session.
SELECT s.user_id
  FROM sessions AS s
  JOIN oauth_grants AS g ON g.id = s.grant_id
 WHERE s.id = :session_id AND g.client_id = :client_id;

-- name: select_client_session(session_id uuid) -> row? (email?, ended_at?)
SELECT s.user_id, u.email, end_of(s) AS ended_at, clock_timestamp() AS now
  FROM sessions AS s
  JOIN users AS u ON u.id = s.user_id
 WHERE s.id = :session_id;
