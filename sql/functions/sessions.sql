-- Whether a session has lived too long: unrefreshed for `lifetime` seconds, or `timebox` (may be null) seconds in all.
CREATE OR REPLACE FUNCTION session_expired(session sessions, lifetime integer, timebox integer) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT session.refreshed_at <= now() - make_interval(secs => lifetime)
      OR coalesce(session.created_at <= now() - make_interval(secs => timebox), false)
$$;

-- Whether a refresh token of ours has been used again after its session moved on: it is behind, and neither the one before the
-- newest nor still within the seconds in which two requests of one client may cross.
CREATE OR REPLACE FUNCTION refresh_token_is_stolen(session sessions, token_counter bigint, reuse_interval integer) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT token_counter < session.counter
     AND NOT (token_counter = session.counter - 1 AND session.refreshed_at > now() - make_interval(secs => reuse_interval))
$$;

-- Whether a session has used up its refreshes in the window that has not ended; `most` is null where there is no limit.
CREATE OR REPLACE FUNCTION refreshes_used_up(session sessions, most integer) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT coalesce(session.refreshes >= most, false) AND session.counted_until > now()
$$;

-- Why a user may not sign in with a password (an error_code), or null.
CREATE OR REPLACE FUNCTION sign_in_refusal(
  u users, provider text, email_required boolean, phone_required boolean, admin_only boolean
) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE
    WHEN u.banned_until > now() THEN 'user_banned'
    WHEN provider = 'email' AND email_required AND u.email_confirmed_at IS NULL THEN 'email_not_confirmed'
    WHEN provider = 'phone' AND phone_required AND u.phone_confirmed_at IS NULL THEN 'phone_not_confirmed'
    WHEN admin_only AND u.role <> 'admin' THEN 'not_admin'
  END
$$;

-- Whether an access token still speaks for its user: `live`, or the error_code that says why not. Every statement that
-- serves a request with an access token asks this. `expires_at` is the token's exp: the clock is this one, not a node's.
CREATE OR REPLACE FUNCTION caller_state(caller users, session sessions, expires_at bigint, lifetime integer, timebox integer) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE
    WHEN to_timestamp(expires_at) <= now() THEN 'bad_jwt'
    WHEN caller.banned_until > now() THEN 'user_banned'
    WHEN session.id IS NULL OR session.ended_at IS NOT NULL THEN 'session_not_found'
    WHEN session_expired(session, lifetime, timebox) THEN 'session_expired'
    ELSE 'live'
  END
$$;

-- caller_state as it is now, for a statement that has waited for the user's row: what ended the session meanwhile is seen.
CREATE OR REPLACE FUNCTION caller_state_now(caller_id uuid, caller_session_id uuid, expires_at bigint, lifetime integer, timebox integer) RETURNS text
  LANGUAGE sql VOLATILE
AS $$
  SELECT caller_state(account, session, expires_at, lifetime, timebox)
    FROM users AS account
    LEFT JOIN sessions AS session ON session.id = caller_session_id AND session.user_id = account.id
   WHERE account.id = caller_id
$$;

-- Whether a session began so many seconds ago (null: no matter) that something sensitive needs more than its token.
CREATE OR REPLACE FUNCTION session_is_old(session_id uuid, age integer) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT coalesce((SELECT created_at <= now() - make_interval(secs => age) FROM sessions WHERE id = session_id), false)
$$;

-- caller_state_now for what is sensitive: a session that is too old for it, and was not reauthenticated, has to be.
CREATE OR REPLACE FUNCTION sensitive_state_now(
  caller_id uuid, caller_session_id uuid, expires_at bigint, lifetime integer, timebox integer, reauthenticated boolean, age integer
) RETURNS text
  LANGUAGE sql VOLATILE
AS $$
  SELECT CASE WHEN state = 'live' AND NOT reauthenticated AND session_is_old(caller_session_id, age) THEN 'reauthentication_needed' ELSE state END
    FROM caller_state_now(caller_id, caller_session_id, expires_at, lifetime, timebox) AS state
$$;

-- Ends a user's live sessions but `kept` (may be null), and says how many.
CREATE OR REPLACE FUNCTION end_sessions(owner uuid, kept uuid, reason text) RETURNS bigint
  LANGUAGE sql VOLATILE
AS $$
  WITH ended AS (
    UPDATE sessions
       SET ended_at = now(), end_reason = reason
     WHERE user_id = owner AND ended_at IS NULL AND id IS DISTINCT FROM kept
    RETURNING id
  )
  SELECT count(*) FROM ended
$$;

-- Ends the oldest sessions of a user who is about to get one more than `most`, and says how many.
CREATE OR REPLACE FUNCTION end_excess_sessions(owner uuid, most integer, lifetime integer, timebox integer) RETURNS bigint
  LANGUAGE sql VOLATILE
AS $$
  WITH ended AS (
    UPDATE sessions
       SET ended_at = now(), end_reason = 'too_many_sessions'
     WHERE ended_at IS NULL
       AND id = ANY (ARRAY(SELECT session.id
                             FROM sessions AS session
                            WHERE session.user_id = owner AND session.ended_at IS NULL AND NOT session_expired(session, lifetime, timebox)
                            ORDER BY session.created_at DESC
                           OFFSET most - 1))
    RETURNING id
  )
  SELECT count(*) FROM ended
$$;

-- Inserts a session for a user whose row is locked, remembers the network, and ends the oldest session beyond `most`.
CREATE OR REPLACE FUNCTION open_session(
  owner uuid, method text, ip inet, network text, user_agent text, most integer, lifetime integer, timebox integer
) RETURNS SETOF sessions
  LANGUAGE sql VOLATILE ROWS 1
AS $$
  INSERT INTO known_networks AS known (user_id, network) VALUES (owner, network)
  ON CONFLICT ON CONSTRAINT known_networks_pkey DO UPDATE SET seen_at = now() WHERE known.seen_at < now() - interval '1 day';
  SELECT end_excess_sessions(owner, most, lifetime, timebox);
  INSERT INTO sessions (user_id, method, ip, user_agent) VALUES (owner, method, ip, user_agent) RETURNING *;
$$;
