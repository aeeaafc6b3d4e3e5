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

-- The user's own sessions, without those of OAuth clients.
CREATE OR REPLACE FUNCTION live_sessions(owner uuid, lifetime integer, timebox integer) RETURNS SETOF sessions
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT *
    FROM sessions AS s
   WHERE s.user_id = owner AND s.grant_id IS NULL AND end_of(s, lifetime, timebox) IS NULL
$$;

CREATE OR REPLACE FUNCTION live_client_sessions(owner uuid, lifetime integer, timebox integer)
  RETURNS SETOF sessions
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT *
    FROM sessions AS s
   WHERE s.user_id = owner AND s.grant_id IS NOT NULL AND end_of(s, lifetime, timebox) IS NULL
$$;

-- Returns an error_code, or null.
CREATE OR REPLACE FUNCTION sign_in_refusal(
  u users, provider text, email_required boolean, phone_required boolean, admin_only boolean
) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE
    WHEN is_banned(u) THEN 'user_banned'
    WHEN provider = 'email' AND email_required AND u.email_confirmed_at IS NULL THEN 'email_not_confirmed'
    WHEN provider = 'phone' AND phone_required AND u.phone_confirmed_at IS NULL THEN 'phone_not_confirmed'
    WHEN admin_only AND u.role <> 'admin' THEN 'not_admin'
  END
$$;

-- When the session's user last authenticated. An application's session is as old as the proof of the browser
-- that opened it, or a stolen cookie could open fresh sessions. A `sign_up` that continues in its window does
-- not authenticate: the password was typed before. Neither does a provider where the user is signed in.
CREATE OR REPLACE FUNCTION authenticated_at(s sessions) RETURNS timestamptz
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN s.opened_by IS NOT NULL OR s.method = 'sign_up'
              THEN coalesce(s.reauthenticated_at, 'epoch')
              WHEN s.method = 'oauth'
              THEN coalesce(s.reauthenticated_at, s.created_at)
              ELSE greatest(s.created_at, s.reauthenticated_at) END
$$;

-- When the session's user last gave a proof. Null for an anonymous sign-in.
CREATE OR REPLACE FUNCTION proved_at(s sessions) RETURNS timestamptz
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN s.method = 'anonymous' THEN s.reauthenticated_at ELSE authenticated_at(s) END
$$;

-- Call it with the user's row locked, so that concurrent sign-ins cannot exceed `most`. `network` is null if
-- a browser passes on its session, perhaps a thief with the cookie: this makes no network known.
CREATE OR REPLACE FUNCTION begin_session(
  id uuid, owner uuid, method text, ip inet, network text, user_agent text,
  most integer, lifetime integer, timebox integer
) RETURNS SETOF sessions
  LANGUAGE sql VOLATILE ROWS 1
AS $$
  SELECT know_network(owner, begin_session.network)
   WHERE begin_session.network IS NOT NULL AND NOT has_second_step(owner);
  SELECT end_access(owner, s.id, 'too_many_sessions') FROM (
    SELECT * FROM live_sessions(owner, lifetime, timebox) ORDER BY created_at DESC OFFSET most - 1) AS s;
  INSERT INTO sessions (id, user_id, method, ip, user_agent)
  VALUES (begin_session.id, owner, method, ip, user_agent) RETURNING *
$$;
