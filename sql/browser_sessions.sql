-- name: insert_browser_session(token_hash bytea, session_id uuid)
INSERT INTO browser_sessions (token_hash, user_id, session_id)
SELECT :token_hash, user_id, id FROM sessions WHERE id = :session_id;

-- name: know_browser(session_id uuid, browser text)
-- Call it after the user has passed all their steps.
SELECT know_network(user_id, :browser)
  FROM sessions
 WHERE id = :session_id AND (aal = 'aal2' OR NOT has_second_step(user_id));

-- name: use_browser_session(token_hash bytea, level text, mfa_required text, refresh_token_lifetime integer,
--                           session_timebox integer) -> row? (email?, phone?, name?)
-- Keeps the session alive, with one write in five minutes.
WITH used AS (
  SELECT s.id AS session_id, s.user_id, s.method, s.aal, u.email, u.phone, name_of(u.user_metadata) AS name,
         u.role = 'admin' AS is_admin,
         lacks_level(u, s, s.aal, :level, :mfa_required) AS lacks_level,
         has_verified_factor(u.id) AS has_factor,
         extract(epoch FROM now() - proved_at(s))::float AS proof_age
    FROM browser_sessions AS browser
    JOIN sessions AS s ON s.id = browser.session_id
    JOIN users AS u ON u.id = browser.user_id
   WHERE browser.token_hash = :token_hash
     AND caller_state(u, s, NULL, :refresh_token_lifetime, :session_timebox,
                      s.aal, 'session', :mfa_required) = 'live'
), kept AS (
  UPDATE sessions AS s
     SET refreshed_at = now()
    FROM used
   WHERE s.id = used.session_id AND s.refreshed_at < now() - interval '5 minutes'
)
SELECT * FROM used;

-- name: select_end_of_browser_session(token_hash bytea) -> row? (reason?)
SELECT s.end_reason AS reason
  FROM browser_sessions AS browser
  JOIN sessions AS s ON s.id = browser.session_id
 WHERE browser.token_hash = :token_hash;

-- name: renew_browser_session(session_id uuid, token_hash bytea)
UPDATE browser_sessions SET token_hash = :token_hash WHERE session_id = :session_id;

-- name: expect_site(session_id uuid, lifetime integer)
UPDATE browser_sessions
   SET site_expected_until = now() + make_interval(secs => :lifetime)
 WHERE session_id = :session_id;

-- name: meet_site(session_id uuid)
-- Returns a row only once.
UPDATE browser_sessions
   SET site_expected_until = NULL
 WHERE session_id = :session_id AND site_expected_until > now();

-- name: select_opener(session_id uuid) -> row (factor_id?)
-- What a session gives those that it opens.
SELECT methods_of(s) AS methods, s.factor_id FROM sessions AS s WHERE s.id = :session_id;

-- name: select_second_steps(user_id uuid, added_before timestamptz, mfa_required text) -> row
SELECT (SELECT must_have_step(users, :mfa_required) FROM users WHERE id = :user_id) AS is_required,
       coalesce(jsonb_agg(step.object ORDER BY f.created_at, f.id) FILTER (WHERE f.factor_type = 'totp'),
                '[]') AS apps,
       coalesce(jsonb_agg(step.object ORDER BY f.created_at, f.id) FILTER (WHERE f.factor_type = 'webauthn'),
                '[]') AS keys,
       coalesce(bool_or(f.factor_type = 'passkey'), false) AS has_passkey,
       (SELECT count(*)
          FROM recovery_codes AS c
         WHERE c.user_id = :user_id AND c.used_at IS NULL
           AND c.created_at < coalesce(:added_before, 'infinity'))
         AS recovery_codes
  FROM factors AS f
 CROSS JOIN LATERAL (SELECT jsonb_build_object('id', f.id, 'friendly_name', f.friendly_name,
                                               'created_at', iso_8601(f.verified_at),
                                               'last_used_at', iso_8601(f.last_used_at))) AS step (object)
 WHERE f.user_id = :user_id AND f.verified_at < coalesce(:added_before, 'infinity');
