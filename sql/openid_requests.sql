-- name: insert_oauth_request(id_hash bytea, client_id uuid, browser_hash bytea, redirect_uri text,
--                            state text, scopes text[], resource text, nonce text, code_challenge text,
--                            prompts text[], max_age integer, login_hint text, hinted_id uuid,
--                            lifetime integer)
-- Inserts nothing if the client is deleted. Locks the client first, as acts do.
WITH client AS (
  SELECT c.id, c.redirect_uris FROM oauth_clients AS c WHERE c.id = :client_id FOR KEY SHARE
), hinted AS (
  SELECT u.id FROM users AS u WHERE u.id = :hinted_id AND EXISTS (SELECT FROM client) FOR KEY SHARE OF u
)
INSERT INTO oauth_requests (id_hash, client_id, browser_hash, redirect_uri, state, scopes, resource, nonce,
                            code_challenge, prompts, max_age, login_hint, user_id, expires_at,
                            client_redirect_uris)
SELECT :id_hash, client.id, :browser_hash, :redirect_uri, :state, :scopes, :resource, :nonce,
       :code_challenge, :prompts, :max_age, :login_hint,
       (SELECT hinted.id FROM hinted), now() + make_interval(secs => :lifetime), client.redirect_uris
  FROM client;

-- name: take_oauth_request(id_hash bytea)
--   -> row? (state?, resource?, nonce?, code_challenge?, max_age?, login_hint?, hinted_id?)
-- A request that a form began, bound to its own id instead of a browser.
DELETE FROM oauth_requests
 WHERE id_hash = :id_hash AND browser_hash = :id_hash AND approval_hash IS NULL AND expires_at > now()
RETURNING client_id, redirect_uri, state, scopes, resource, nonce, code_challenge, prompts, max_age, login_hint,
          user_id AS hinted_id;

-- name: find_oauth_request(id_hash bytea) -> row?
SELECT r.id, r.client_id FROM oauth_requests AS r WHERE r.id_hash = :id_hash;

-- name: select_oauth_request(id_hash bytea, user_id uuid, with_organizations boolean)
--   -> row? (state?, resource?, max_age?, login_hint?, user_id?, grant_scopes?, granted_at?,
--     grant_redirect_uris?, client_redirect_uris?)
-- A browser's request, the user's grant to its client, and the user's memberships. `opened_scopes` are the
-- scopes that the grant's sessions, even ended ones, have for the resource since the client last changed.
SELECT r.id, r.client_id, r.browser_hash, r.redirect_uri, r.state, r.scopes, r.resource, r.prompts, r.max_age,
       r.login_hint, r.user_id, r.client_redirect_uris, r.approval_hash IS NULL AS is_pending,
       r.created_at, r.expires_at,
       g.scopes AS grant_scopes, g.granted_at, g.redirect_uris AS grant_redirect_uris,
       ARRAY(SELECT unnest(opened.scopes)
               FROM sessions AS opened
              WHERE opened.grant_id = g.id AND with_path(opened.resource) = with_path(r.resource)
                AND opened.created_at >= c.updated_at) AS opened_scopes,
       memberships.member AS memberships, clock_timestamp() AS now
  FROM oauth_requests AS r
  JOIN oauth_clients AS c ON c.id = r.client_id
  LEFT JOIN oauth_grants AS g ON g.user_id = :user_id AND g.client_id = r.client_id
 CROSS JOIN memberships_of(:user_id, :with_organizations) AS memberships
 WHERE r.id_hash = :id_hash;

-- name: bind_oauth_request(id uuid, user_id uuid, session_id uuid)
-- A device's request is bound to the session too.
UPDATE oauth_requests SET user_id = :user_id, session_id = :session_id WHERE id = :id;

-- name: approve_oauth_request(id uuid, user_id uuid, session_id uuid, organization_id uuid, approval_hash bytea)
UPDATE oauth_requests
   SET user_id = :user_id, session_id = :session_id, organization_id = :organization_id,
       approval_hash = :approval_hash
 WHERE id = :id;

-- name: give_oauth_code(id_hash bytea, browser_hash bytea, approval_hash bytea, code_hash bytea,
--                       code_lifetime integer, lifetime integer) -> row? (state?)
-- Works once. The row outlives the code, to detect a second use.
UPDATE oauth_requests AS r
   SET code_hash = :code_hash, code_expires_at = now() + make_interval(secs => :code_lifetime),
       expires_at = greatest(r.expires_at, now() + make_interval(secs => :lifetime))
  FROM oauth_clients AS c
 WHERE r.id_hash = :id_hash AND r.browser_hash = :browser_hash AND r.approval_hash = :approval_hash
   AND r.code_hash IS NULL AND r.expires_at > now() AND c.id = r.client_id
RETURNING r.redirect_uri, r.state, c.is_dynamic;

-- name: delete_oauth_request(id uuid)
DELETE FROM oauth_requests WHERE id = :id;
