-- name: mark_gate(id uuid, gate_origin text)
UPDATE oauth_clients SET gate_origin = :gate_origin WHERE id = :id;

-- name: select_gate(host text) -> row?
-- By the host and the port that a browser sends. One host has one gate.
SELECT c.id, c.name, c.gate_origin, c.require_pkce
  FROM oauth_clients AS c
 WHERE c.gate_origin IN ('https://' || :host, 'http://' || :host)
 ORDER BY c.gate_origin DESC
 LIMIT 1;

-- name: list_gates() -> rows
SELECT c.id, c.name, c.gate_origin, c.allowed_roles, c.is_blocked
  FROM oauth_clients AS c
 WHERE c.gate_origin IS NOT NULL
 ORDER BY c.gate_origin;

-- name: list_gates_closed_to(user_id uuid) -> rows
SELECT c.name, c.gate_origin, c.allowed_roles, c.is_blocked
  FROM oauth_clients AS c
  JOIN users AS u ON u.id = :user_id
 WHERE c.gate_origin IS NOT NULL AND NOT may_use(u, c)
 ORDER BY c.gate_origin;

-- name: has_gate(gate_origin text) -> row
SELECT EXISTS (SELECT FROM oauth_clients AS c WHERE c.gate_origin = :gate_origin) AS is_so;

-- name: visit_gate(token_hash bytea, gate_origin text, refresh_token_lifetime integer,
--                  session_timebox integer, mfa_required text) -> row? (email?, name?, groups?)
-- The session of a cookie at the gate that it is for.
SELECT client_state(u, s, c, NULL, :refresh_token_lifetime, :session_timebox, :mfa_required) AS state,
       s.id::text AS session_id, u.id::text AS user_id,
       CASE WHEN is_proved(u, 'email') THEN u.email END AS email,
       left(coalesce(u.user_metadata ->> 'name', u.user_metadata ->> 'full_name'), 255) AS name,
       u.role, u.app_metadata -> 'groups' AS groups,
       is_stale_at_gate(s, :refresh_token_lifetime) AS is_stale
  FROM gate_sessions AS browser
  JOIN sessions AS s ON s.id = browser.session_id
  JOIN users AS u ON u.id = browser.user_id
  JOIN oauth_clients AS c ON c.id = browser.client_id
 WHERE browser.token_hash = :token_hash AND c.gate_origin = :gate_origin;

-- name: is_admitted_at_gate(token_hash bytea, gate_origin text) -> row?
-- Whether the user of a session that gives nothing now may have another one.
SELECT may_use(u, c) AS is_so
  FROM gate_sessions AS browser
  JOIN users AS u ON u.id = browser.user_id
  JOIN oauth_clients AS c ON c.id = browser.client_id
 WHERE browser.token_hash = :token_hash AND c.gate_origin = :gate_origin;

-- name: keep_gate_session(session_id uuid, refresh_token_lifetime integer)
-- With the sign-in that opened it. SKIP LOCKED, because the other requests of a page need not write too.
UPDATE sessions AS s
   SET refreshed_at = now()
 WHERE s.id IN (SELECT kept.id
                  FROM sessions AS own
                  JOIN sessions AS kept ON kept.id IN (own.id, own.opened_by)
                 WHERE own.id = :session_id AND is_stale_at_gate(kept, :refresh_token_lifetime)
                   FOR NO KEY UPDATE OF kept SKIP LOCKED);

-- name: insert_gate_session(token_hash bytea, session_id uuid, client_id uuid)
-- It is as old as the sign-in that opened it, and ends with the timebox of that.
WITH opened AS (
  UPDATE sessions AS s
     SET created_at = opener.created_at
    FROM sessions AS opener
   WHERE s.id = :session_id AND opener.id = s.opened_by
  RETURNING s.id, s.user_id
)
INSERT INTO gate_sessions (token_hash, user_id, session_id, client_id)
SELECT :token_hash, opened.user_id, opened.id, :client_id FROM opened;

-- name: sign_out_of_gate(token_hash bytea, gate_origin text, origin jsonb) -> row? (recorded?)
WITH owner AS (
  SELECT u.id, u.email, s.id AS session_id, c.id AS client_id
    FROM gate_sessions AS browser
    JOIN sessions AS s ON s.id = browser.session_id
    JOIN oauth_clients AS c ON c.id = browser.client_id AND c.gate_origin = :gate_origin
    JOIN users AS u ON u.id = s.user_id
   WHERE browser.token_hash = :token_hash
     FOR UPDATE OF u
), ended AS (
  SELECT owner.*, end_access(owner.id, owner.session_id, 'logout') AS found FROM owner
)
SELECT CASE WHEN ended.found
            THEN record_acts(:origin, ended.id, ended.email, '{session_ended}', '{auth.logout}',
                             jsonb_build_object('session_id', ended.session_id,
                                                'client_id', ended.client_id))
       END AS recorded
  FROM ended;
