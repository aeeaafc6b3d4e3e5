-- name: insert_browser_session(token_hash bytea, session_id uuid)
INSERT INTO browser_sessions (token_hash, user_id, session_id)
SELECT :token_hash, user_id, id FROM sessions WHERE id = :session_id;

-- name: know_browser(session_id uuid, browser text)
-- Call it after the user has passed all their steps.
SELECT know_network(user_id, :browser)
  FROM sessions
 WHERE id = :session_id AND (aal = 'aal2' OR NOT has_second_step(user_id));

-- name: select_browser_session(token_hash bytea)
--   -> row? (converted_at?, banned_until?, oldest_factor_at?, email?, phone?, name?, ended_at?,
--     reauthenticated_at?, first_passkey_at?, opened_by?)
SELECT s.id AS session_id, s.method, s.aal, s.created_at AS session_created_at, s.refreshed_at, s.ended_at,
       s.reauthenticated_at, s.first_passkey_at, s.opened_by,
       u.id AS user_id, u.role, u.made_by, u.converted_at, u.banned_until, u.email, u.phone,
       name_of(u.user_metadata) AS name,
       verified.oldest AS oldest_factor_at, verified.has_second_step, clock_timestamp() AS now
  FROM browser_sessions AS browser
  JOIN sessions AS s ON s.id = browser.session_id
  JOIN users AS u ON u.id = browser.user_id
 CROSS JOIN LATERAL (
         SELECT min(f.verified_at), coalesce(bool_or(f.factor_type <> 'passkey'), false)
           FROM factors AS f
          WHERE f.user_id = u.id AND f.verified_at IS NOT NULL
       ) AS verified (oldest, has_second_step)
 WHERE browser.token_hash = :token_hash;

-- name: keep_session(session_id uuid)
UPDATE sessions SET refreshed_at = greatest(refreshed_at, now()) WHERE id = :session_id;

-- name: select_end_of_browser_session(token_hash bytea) -> row? (reason?)
SELECT s.end_reason AS reason
  FROM browser_sessions AS browser
  JOIN sessions AS s ON s.id = browser.session_id
 WHERE browser.token_hash = :token_hash;

-- name: mark_opened_by(session_id uuid, opened_by uuid, mfa_required text) -> row
-- The application's session gets the level and the proof of the browser's.
UPDATE sessions AS s
   SET opened_by = opener.id, aal = opener.aal, amr = methods_of(opener), factor_id = opener.factor_id,
       reauthenticated_at = authenticated_at(opener), factor_proved_at = opener.factor_proved_at
  FROM sessions AS opener
  JOIN users AS u ON u.id = opener.user_id
 WHERE s.id = :session_id AND opener.id = :opened_by
RETURNING s.aal, s.amr, lacks_step(u, s.aal, :mfa_required, has_second_step(u.id)) AS lacks_step;

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

-- name: select_session_method(session_id uuid) -> row
SELECT method FROM sessions WHERE id = :session_id;

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
