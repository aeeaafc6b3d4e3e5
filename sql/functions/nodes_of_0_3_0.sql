-- What nodes of 0.3.0 call while they run next to this release: they demand no level of clients and API keys,
-- and end what they ended before. tests/sql/test_schema.py prepares their statements. In the release after
-- 0.4.0, delete this file, and drop these functions in a migration.

CREATE OR REPLACE FUNCTION session_state(
  u users, s sessions, expires_at bigint, lifetime integer, timebox integer
) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT gives_token(u, expires_at, end_of(s, lifetime, timebox), false)
$$;

CREATE OR REPLACE FUNCTION client_state(
  u users, s sessions, c oauth_clients, expires_at bigint, lifetime integer, timebox integer
) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN c.id IS NULL OR NOT may_use(u, c) THEN 'session_not_found'
              ELSE session_state(u, s, expires_at, lifetime, timebox) END
$$;

CREATE OR REPLACE FUNCTION api_key_state(u users, k api_keys, token_expires_at bigint) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT gives_token(u, token_expires_at, end_of_key(k), false)
$$;

-- An authorization code is a session that has not begun, also that of an OAuth client: those of clients stay
-- when a factor is added. API keys are no sessions: they end by a ban, and by a password that a recovery or
-- an administrator sets. Call it with the user's row locked.
CREATE OR REPLACE FUNCTION end_sessions(owner uuid, kept uuid, reason text) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  DELETE FROM authorization_codes WHERE user_id = owner AND session_id IS NULL;
  DELETE FROM oauth_requests
   WHERE user_id = owner AND session_id IS NOT NULL AND opened_session_id IS NULL
     AND reason <> 'factor_added';
  DELETE FROM api_keys
   WHERE user_id = owner
     AND (reason = 'banned'
          OR reason = 'password_changed'
             AND NOT EXISTS (SELECT FROM sessions WHERE id = kept AND method <> 'recovery'));
  UPDATE sessions
     SET ended_at = now(), end_reason = reason
   WHERE user_id = owner AND ended_at IS NULL AND id IS DISTINCT FROM kept
     AND (grant_id IS NULL OR reason <> 'factor_added')
$$;

-- Ends a session and those that it opened for applications. Call it with the user's row locked.
CREATE OR REPLACE FUNCTION end_session_and_opened(owner uuid, session uuid, reason text) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  DELETE FROM authorization_codes WHERE user_id = owner AND opened_by = session AND session_id IS NULL;
  DELETE FROM oauth_requests AS r
   WHERE r.user_id = owner AND r.session_id = session AND r.opened_session_id IS NULL;
  UPDATE sessions
     SET ended_at = now(), end_reason = reason
   WHERE user_id = owner AND ended_at IS NULL AND session IN (id, opened_by)
$$;

CREATE OR REPLACE FUNCTION signed_up_by_phone(u users) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT u.made_by = 'signup'
     AND EXISTS (SELECT FROM identities
                  WHERE user_id = u.id AND provider = 'phone' AND created_at = u.created_at)
$$;

CREATE OR REPLACE FUNCTION refresh_token_is_stolen(s sessions, token_counter bigint, reuse_interval integer)
  RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT token_counter < s.counter
     AND NOT (token_counter = s.counter - 1
              AND s.refreshed_at > now() - make_interval(secs => reuse_interval))
$$;

CREATE OR REPLACE FUNCTION refreshes_used_up(s sessions, most integer) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT coalesce(s.refreshes >= most, false) AND s.counted_until > now()
$$;
