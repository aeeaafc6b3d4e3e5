-- name: move_session(session_id uuid, counter bigint, used_counter bigint, successor_counter bigint,
--                     refreshed_at timestamptz, refreshes integer, counted_until timestamptz, echoes jsonb)
-- Writes the columns that a refresh changes. Run it with the session locked.
UPDATE sessions
   SET counter = :counter, used_counter = :used_counter, successor_counter = :successor_counter,
       refreshed_at = :refreshed_at, refreshes = :refreshes, counted_until = :counted_until, echoes = :echoes
 WHERE id = :session_id;

-- name: count_refresh(session_id uuid, refreshes integer, counted_until timestamptz)
UPDATE sessions SET refreshes = :refreshes, counted_until = :counted_until WHERE id = :session_id;

-- name: select_sessions(caller_id uuid, caller_session_id uuid, refresh_token_lifetime integer,
--                       session_timebox integer, page_size integer, page_offset bigint)
--   -> row? (banned_until?, converted_at?, oldest_factor_at?, method?, aal?,
--            session_created_at?, refreshed_at?, ended_at?, first_passkey_at?)
WITH live AS (
  SELECT * FROM own_sessions(:caller_id, :refresh_token_lifetime, :session_timebox)
)
SELECT caller.*,
       (SELECT count(*) FROM live) AS total,
       (SELECT coalesce(jsonb_object_agg(id, opened_by), '{}')
          FROM live WHERE opened_by IS NOT NULL) AS openers,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
                 'id', page.id,
                 'created_at', iso_8601(page.created_at),
                 'refreshed_at', iso_8601(page.refreshed_at),
                 -- The user agent of the browser, not of the application's backend, which redeemed the code.
                 'user_agent', coalesce(opener.user_agent, page.user_agent),
                 'ip', host(coalesce(opener.ip, page.ip)),
                 'current', page.id = :caller_session_id
               ) ORDER BY page.created_at DESC, page.id), '[]')::text
          FROM (SELECT * FROM live ORDER BY created_at DESC, id LIMIT :page_size OFFSET :page_offset) AS page
          LEFT JOIN sessions AS opener ON opener.id = page.opened_by
       ) AS sessions
  FROM caller_facts(:caller_id, :caller_session_id) AS caller;

-- name: select_earlier_sign_ins(user_id uuid, network text, browser text) -> row
-- The user's own sessions that no act has ended, and whether every step was passed on this network or browser.
SELECT (SELECT coalesce(jsonb_agg(jsonb_build_object('id', s.id, 'method', s.method, 'aal', s.aal,
                                                     'created_at', s.created_at,
                                                     'refreshed_at', s.refreshed_at)), '[]')
          FROM sessions AS s
         WHERE s.user_id = :user_id AND s.grant_id IS NULL AND end_of(s) IS NULL) AS sessions,
       EXISTS (SELECT
                 FROM known_networks AS n
                WHERE n.user_id = :user_id AND n.network IN (:network, :browser) AND n.passed_at IS NOT NULL)
         AS is_known;

-- name: record_sign_in(user_id uuid, identity text, password_hash text, network text, acted_at timestamptz)
-- Writes the user's row once. `password_hash` is another hash of the same password, and `network` is where
-- every step was passed; each may be null.
WITH own_identity AS (
  UPDATE identities SET last_sign_in_at = :acted_at WHERE user_id = :user_id AND provider = :identity
), networks AS (
  INSERT INTO known_networks (user_id, network, seen_at, passed_at)
  SELECT :user_id, :network, :acted_at, :acted_at WHERE :network IS NOT NULL
  ON CONFLICT (user_id, network) DO UPDATE SET seen_at = :acted_at, passed_at = :acted_at
)
UPDATE users
   SET last_sign_in_at = :acted_at, password_hash = coalesce(:password_hash, password_hash)
 WHERE id = :user_id;

-- name: select_administrator(id uuid) -> row? (admin_since?)
SELECT iso_8601(admin_since) AS admin_since FROM users WHERE id = :id;

-- name: insert_session(session_id uuid, user_id uuid, method text, aal text, amr jsonb, factor_id uuid,
--                      opened_by uuid, reauthenticated_at timestamptz, factor_proved_at timestamptz, by_key boolean,
--                      provider_term uuid, ip inet, user_agent text, audience text, with_organizations boolean, acted_at timestamptz) -> row
INSERT INTO sessions AS s (id, user_id, method, aal, amr, factor_id, opened_by, reauthenticated_at,
                      factor_proved_at, by_key, provider_term, ip, user_agent, created_at, refreshed_at, counted_until)
VALUES (:session_id, :user_id, :method, :aal, :amr, :factor_id, :opened_by, :reauthenticated_at,
        :factor_proved_at, :by_key, :provider_term, :ip, :user_agent, :acted_at, :acted_at, :acted_at)
RETURNING s.counter, authenticated_at(s) AS authenticated_at,
          (SELECT object.user_object
             FROM users AS u
            CROSS JOIN user_object_of(u, :audience, false) AS object
            WHERE u.id = :user_id) AS user_object,
          (SELECT memberships.member
             FROM memberships_of(:user_id, :with_organizations) AS memberships) AS memberships;

-- name: raise_session(session_id uuid, method text, factor_id uuid, network text, audience text, with_organizations boolean,
--                     acted_at timestamptz) -> row
-- Skips a counter, which voids all earlier refresh tokens: a thief may have them.
WITH networks AS (
  INSERT INTO known_networks (user_id, network, seen_at, passed_at)
  SELECT s.user_id, :network, :acted_at, :acted_at FROM sessions AS s WHERE s.id = :session_id
  ON CONFLICT (user_id, network) DO UPDATE SET seen_at = :acted_at, passed_at = :acted_at
)
UPDATE sessions AS s
   SET aal = 'aal2',
       amr = jsonb_path_query_array(methods_of(s), '$[*] ? (@.method <> $method)',
                                    jsonb_build_object('method', :method))
             || jsonb_build_object('method', :method, 'timestamp', floor(extract(epoch FROM :acted_at))::bigint),
       factor_id = :factor_id, reauthenticated_at = :acted_at, factor_proved_at = :acted_at, first_passkey_at = NULL,
       counter = s.counter + 2, refreshed_at = :acted_at
  FROM users AS u
 WHERE s.id = :session_id AND u.id = s.user_id
RETURNING s.id AS session_id, s.counter, s.aal, false AS lacks_step, methods_of(s) AS amr,
          floor(extract(epoch FROM :acted_at))::bigint AS issued_at,
          (SELECT object.user_object FROM user_object_of(u, :audience, false) AS object) AS user_object,
          (SELECT memberships.member
             FROM memberships_of(u.id, :with_organizations) AS memberships) AS memberships;

-- name: record_reauthentication(session_id uuid, is_by_code boolean, is_by_factor boolean,
--                               acted_at timestamptz)
UPDATE sessions
   SET reauthenticated_at = :acted_at,
       code_given_at = CASE WHEN :is_by_code THEN :acted_at ELSE code_given_at END,
       factor_proved_at = CASE WHEN :is_by_factor THEN :acted_at ELSE factor_proved_at END
 WHERE id = :session_id;

-- name: renew_session_credentials(user_id uuid, session_id uuid, token_hash bytea, acted_at timestamptz)
-- Voids the unused codes of a session that gains a level or a proof: they would give what the session did not
-- have when it gave them. A device learns that its code has expired, and begins again. A browser's session
-- gets another cookie.
WITH codes AS (
  DELETE FROM authorization_codes
   WHERE user_id = :user_id AND opened_by = :session_id AND session_id IS NULL
), approvals AS (
  DELETE FROM oauth_requests
   WHERE user_id = :user_id AND session_id = :session_id AND opened_session_id IS NULL AND approval_hash IS NOT NULL
), devices AS (
  UPDATE oauth_requests
     SET code_expires_at = :acted_at
   WHERE user_id = :user_id AND session_id = :session_id AND opened_session_id IS NULL AND decision = 'approved'
)
UPDATE browser_sessions
   SET token_hash = :token_hash
 WHERE session_id = :session_id AND :token_hash IS NOT NULL;

-- name: end_holdings(user_id uuid, session_id uuid, reason text, reach text, keys_up_to text,
--                    with_grants boolean, voids boolean, forgets boolean, known_here text[], acted_at timestamptz)
--   -> row (voided?)
-- `forgets` where the user has passed every step, except on the networks and browsers `known_here`.
WITH forgotten AS (
  UPDATE known_networks SET passed_at = NULL
   WHERE user_id = :user_id AND :forgets AND passed_at IS NOT NULL AND network <> ALL (:known_here)
)
SELECT end_held(:user_id, :session_id, :reason, :reach, :keys_up_to, :with_grants, :acted_at) AS ended,
       CASE WHEN :voids THEN void_tokens(:user_id) END AS voided;
