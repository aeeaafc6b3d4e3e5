CREATE OR REPLACE FUNCTION converted_at(owner uuid) RETURNS timestamptz
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT u.converted_at FROM users AS u WHERE u.id = owner $$;

-- `lifetime` and `timebox`, which may be null, are seconds. The timebox of an anonymous user's session begins
-- when the user becomes permanent: before, the user could not sign in again.
CREATE OR REPLACE FUNCTION session_expired(s sessions, lifetime integer, timebox integer) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT s.refreshed_at <= now() - make_interval(secs => lifetime)
      OR coalesce(s.created_at <= now() - make_interval(secs => timebox)
                  AND (s.method <> 'anonymous'
                       OR converted_at(s.user_id) <= now() - make_interval(secs => timebox)), false)
$$;

-- The home of this fact for sets: auth/rules/sessions.py has that for one session.
CREATE OR REPLACE FUNCTION is_live(s sessions, lifetime integer, timebox integer) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT end_of(s) IS NULL AND session_expired(s, lifetime, timebox) IS NOT TRUE
$$;

CREATE OR REPLACE FUNCTION is_live(k api_keys) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT coalesce(end_of(k) > now(), true)
$$;

-- The user's own live sessions, without those of applications.
CREATE OR REPLACE FUNCTION own_sessions(owner uuid, lifetime integer, timebox integer) RETURNS SETOF sessions
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT * FROM sessions AS s WHERE s.user_id = owner AND s.grant_id IS NULL AND is_live(s, lifetime, timebox)
$$;

-- `authenticated_at` of auth/rules/sessions.py, for statements that read memberships: one column instead of four.
CREATE OR REPLACE FUNCTION authenticated_at(s sessions) RETURNS timestamptz
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN s.opened_by IS NOT NULL OR s.method = 'sign_up' THEN coalesce(s.reauthenticated_at, 'epoch')
              WHEN s.method = 'oauth' THEN coalesce(s.reauthenticated_at, s.created_at)
              ELSE greatest(s.created_at, s.reauthenticated_at) END
$$;
