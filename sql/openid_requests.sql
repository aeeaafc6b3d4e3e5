-- name: insert_oauth_request(id_hash bytea, client_id uuid, browser_hash bytea, redirect_uri text,
--                            state text, scopes text[], resource text, nonce text, code_challenge text,
--                            prompts text[], max_age integer, login_hint text, hinted_id uuid,
--                            lifetime integer)
-- Inserts nothing if the client is deleted. Locks the user first, like a deletion of the client.
WITH hinted AS (
  SELECT u.id FROM users AS u WHERE u.id = :hinted_id FOR KEY SHARE
), client AS (
  SELECT c.id
    FROM oauth_clients AS c
   WHERE c.id = :client_id AND (SELECT count(*) FROM hinted) < 2
     FOR KEY SHARE
)
INSERT INTO oauth_requests (id_hash, client_id, browser_hash, redirect_uri, state, scopes, resource, nonce,
                            code_challenge, prompts, max_age, login_hint, user_id, expires_at)
SELECT :id_hash, client.id, :browser_hash, :redirect_uri, :state, :scopes, :resource, :nonce,
       :code_challenge, :prompts, :max_age, :login_hint,
       (SELECT hinted.id FROM hinted), now() + make_interval(secs => :lifetime)
  FROM client;

-- name: take_oauth_request(id_hash bytea)
--   -> row? (state?, resource?, nonce?, code_challenge?, max_age?, login_hint?, hinted_id?)
-- A request that a form began, bound to its own id instead of a browser.
DELETE FROM oauth_requests
 WHERE id_hash = :id_hash AND browser_hash = :id_hash AND approval_hash IS NULL AND expires_at > now()
RETURNING client_id, redirect_uri, state, scopes, resource, nonce, code_challenge, prompts, max_age, login_hint,
          user_id AS hinted_id;

-- name: lock_client_of_request(id_hash bytea)
--   -> row? (secret_hash?, token_lifetime?, previous_secret_hash?, previous_secret_expires_at?,
--     metadata_url?, fetched_until?, gate_origin?)
-- Locks the client before the request, like a deletion of the client.
SELECT c.*
  FROM oauth_clients AS c
  JOIN oauth_requests AS r ON r.client_id = c.id
 WHERE r.id_hash = :id_hash
   FOR KEY SHARE OF c;

-- name: lock_oauth_request(id_hash bytea, browser_hash bytea, is_by_token boolean, user_id uuid,
--                          session_id uuid, mfa_required text)
--   -> row? (state?, resource?, login_hint?, user_id?, may_use?)
-- Returns the inputs for the consent of this user in this session. Access tokens do not identify the browser.
SELECT r.id, r.redirect_uri, r.state, r.scopes, r.resource, r.prompts, r.login_hint, r.user_id,
       r.approval_hash IS NULL AS is_pending,
       may_use(u, c, r.resource) AS may_use,
       -- A user who takes long to agree need not sign in again. A session that a first passkey has not raised
       -- yet would give the client nothing.
       coalesce(NOT lacks_step(u, s.aal, :mfa_required, has_second_step(u.id)), true)
       AND coalesce(authenticated_at(s) > r.created_at - CASE WHEN 'login' = ANY (r.prompts) THEN interval '0'
                                                              ELSE make_interval(secs => r.max_age) END,
                    true) AS is_fresh,
       -- A changed document is another application. Resources of a client that no administrator created are
       -- allowed one by one: those of the grant's sessions, even ended ones.
       coalesce(g.scopes @> r.scopes AND (c.metadata_url IS NULL OR g.granted_at >= c.updated_at)
                AND (r.resource IS NULL OR NOT c.is_dynamic
                     OR r.scopes <@ ARRAY(SELECT unnest(opened.scopes)
                                            FROM sessions AS opened
                                           WHERE opened.grant_id = g.id AND opened.resource = r.resource
                                             AND opened.created_at >= c.updated_at)),
                false) AS is_granted
  FROM oauth_requests AS r
  JOIN oauth_clients AS c ON c.id = r.client_id
  LEFT JOIN users AS u ON u.id = :user_id
  LEFT JOIN sessions AS s ON s.id = :session_id AND s.user_id = u.id
  LEFT JOIN oauth_grants AS g ON g.user_id = u.id AND g.client_id = c.id
 WHERE r.id_hash = :id_hash AND r.expires_at > now()
   AND (:is_by_token OR r.browser_hash = :browser_hash)
   FOR UPDATE OF r;

-- name: bind_oauth_request(id uuid, user_id uuid)
UPDATE oauth_requests SET user_id = :user_id WHERE id = :id;

-- name: approve_oauth_request(id uuid, user_id uuid, session_id uuid, approval_hash bytea)
UPDATE oauth_requests
   SET user_id = :user_id, session_id = :session_id, approval_hash = :approval_hash
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
