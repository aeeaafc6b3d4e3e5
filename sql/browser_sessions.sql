-- name: insert_browser_session(token_hash bytea, session_id uuid)
INSERT INTO browser_sessions (token_hash, user_id, session_id)
SELECT :token_hash, user_id, id FROM sessions WHERE id = :session_id;

-- name: know_browser(session_id uuid, browser text)
-- Call it after the user has passed every step. An act that ends the session meanwhile has forgotten its browser, so
-- this waits for the act, which has the user's row locked, and reads the session again.
INSERT INTO known_networks (user_id, network, passed_at)
SELECT s.user_id, :browser, now()
  FROM sessions AS s
  JOIN users AS u ON u.id = s.user_id
 WHERE s.id = :session_id AND end_of(s) IS NULL
   FOR KEY SHARE OF u FOR SHARE OF s
ON CONFLICT (user_id, network) DO UPDATE SET seen_at = now(), passed_at = now();

-- name: select_browser_session(token_hash bytea)
--   -> row? (converted_at?, banned_until?, oldest_factor_at?, email?, phone?, name?, ended_at?,
--     reauthenticated_at?, first_passkey_at?, opened_by?)
SELECT s.id AS session_id, s.method, s.aal, s.created_at AS session_created_at, s.refreshed_at, end_of(s) AS ended_at,
       s.reauthenticated_at, s.first_passkey_at, s.opened_by, methods_of(s) AS amr,
       u.id AS user_id, u.role, u.made_by, u.converted_at, u.banned_until, u.email, u.phone,
       name_of(u.user_metadata) AS name,
       verified.oldest AS oldest_factor_at, verified.has_second_step, clock_timestamp() AS now
  FROM browser_sessions AS browser
  JOIN sessions AS s ON s.id = browser.session_id
  JOIN users AS u ON u.id = browser.user_id
 CROSS JOIN factors_of(u.id) AS verified
 WHERE browser.token_hash = :token_hash;

-- name: keep_session(session_id uuid)
UPDATE sessions SET refreshed_at = greatest(refreshed_at, now()) WHERE id = :session_id;

-- name: select_end_of_browser_session(token_hash bytea) -> row? (reason?)
SELECT s.end_reason AS reason
  FROM browser_sessions AS browser
  JOIN sessions AS s ON s.id = browser.session_id
 WHERE browser.token_hash = :token_hash;

-- name: select_is_current_cookie(session_id uuid, token_hash bytea) -> row
-- Whether a cookie is still that of a browser's session.
SELECT EXISTS (SELECT FROM browser_sessions WHERE session_id = :session_id AND token_hash = :token_hash) AS is_current;

-- name: expect_site(session_id uuid, lifetime integer)
UPDATE browser_sessions
   SET site_expected_until = now() + make_interval(secs => :lifetime)
 WHERE session_id = :session_id;

-- name: meet_site(session_id uuid)
UPDATE browser_sessions
   SET site_expected_until = NULL
 WHERE session_id = :session_id AND site_expected_until > now();

-- name: select_opener(session_id uuid) -> row (factor_id?, provider_term?)
-- The methods, the factor and the term that a session passes on to the sessions that it opens.
SELECT methods_of(s) AS methods, s.factor_id, s.provider_term FROM sessions AS s WHERE s.id = :session_id;

-- name: select_second_steps(user_id uuid, added_before timestamptz) -> row
-- `has_passkey` says that one can be asked for, so not of one that was not used yet.
SELECT coalesce(jsonb_agg(step.object ORDER BY f.created_at, f.id) FILTER (WHERE f.factor_type = 'totp'),
                '[]') AS apps,
       coalesce(jsonb_agg(step.object ORDER BY f.created_at, f.id) FILTER (WHERE f.factor_type = 'webauthn'),
                '[]') AS keys,
       coalesce(bool_or(f.factor_type = 'passkey' AND f.verified_at IS NOT NULL), false) AS has_passkey,
       coalesce(bool_or(f.verified_at IS NULL), false) AS has_unused_passkey,
       (SELECT count(*)
          FROM recovery_codes AS c
         WHERE c.user_id = :user_id AND c.used_at IS NULL
           AND c.created_at < coalesce(:added_before, 'infinity'))
         AS recovery_codes
  FROM factors AS f
 CROSS JOIN LATERAL (SELECT jsonb_build_object('id', f.id, 'friendly_name', f.friendly_name,
                                               'created_at', iso_8601(f.verified_at),
                                               'last_used_at', iso_8601(f.last_used_at))) AS step (object)
 WHERE f.user_id = :user_id
   AND (f.verified_at < coalesce(:added_before, 'infinity') OR f.verified_at IS NULL AND f.factor_type = 'passkey');
