-- One function decides whether a token is valid now. Every statement that issues, refreshes, accepts or
-- introspects a token calls it through one of three: caller_state for sessions, client_state for those of
-- clients, api_key_state for API keys. It uses each argument once, so that the planner inlines it and looks
-- up a factor last.

-- Why a session has ended, as an error_code, or null.
CREATE OR REPLACE FUNCTION end_of(s sessions, lifetime integer, timebox integer) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN s.id IS NULL OR s.ended_at IS NOT NULL THEN 'session_not_found'
              WHEN session_expired(s, lifetime, timebox) THEN 'session_expired' END
$$;

CREATE OR REPLACE FUNCTION end_of_key(k api_keys) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN k.id IS NULL OR k.expires_at <= now() THEN 'api_key_not_found' END
$$;

-- Returns `live` or an error_code. `expires_at` is the exp of the access token, or null for a refresh token
-- or a key; `ended` is why the row has ended, or null; `is_below` is whether its level is below the required
-- one.
CREATE OR REPLACE FUNCTION gives_token(u users, expires_at bigint, ended text, is_below boolean) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE
    WHEN to_timestamp(expires_at) <= now() THEN 'bad_jwt'
    WHEN is_banned(u) THEN 'user_banned'
    ELSE coalesce(ended, CASE WHEN is_below THEN 'insufficient_aal' ELSE 'live' END)
  END
$$;

-- A digest of the inputs that decide about a token: role, ban, addresses, app metadata and factors in the
-- copy of the user's object, and the token's session, or the one that opens it, which may be null; not the
-- counter of the refresh token. The token hook is called between two transactions. The second one writes only
-- if the digest is unchanged.
CREATE OR REPLACE FUNCTION what_decides(object text, s sessions) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT encode(sha256(convert_to(concat(
           object::jsonb - '{user_metadata,identities,new_email,new_phone,confirmation_sent_at}'::text[]
             - '{invited_at,email_change_sent_at,phone_change_sent_at,last_sign_in_at,updated_at}'::text[],
           ROW(s.id, s.ended_at, s.aal, s.amr, s.factor_id)), 'UTF8')), 'hex')
$$;

-- It is VOLATILE to see the commits of the previous holder of the user's lock. Null if the user is deleted.
CREATE OR REPLACE FUNCTION locked_what_decides(owner uuid, session_id uuid) RETURNS text
  LANGUAGE sql VOLATILE
AS $$
  SELECT FROM users AS u WHERE u.id = owner FOR UPDATE;
  SELECT what_decides(copy.object, s)
    FROM user_objects AS copy
    LEFT JOIN sessions AS s ON s.id = locked_what_decides.session_id AND s.user_id = owner
   WHERE copy.user_id = owner
$$;

-- A session of the user. `aal` is the access token's, and `level` that of the route
-- (auth/web/declarations.py): a session that lacks a step may still enrol a factor. `required` is
-- AUTH_MFA_REQUIRED.
CREATE OR REPLACE FUNCTION caller_state(
  u users, s sessions, expires_at bigint, lifetime integer, timebox integer,
  aal text, level text, required text
) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT gives_token(u, expires_at, end_of(s, lifetime, timebox), lacks_level(u, s, aal, level, required))
$$;

-- A session of an OAuth client. It has ended if the user may no longer use the client.
CREATE OR REPLACE FUNCTION client_state(
  u users, s sessions, c oauth_clients, expires_at bigint, lifetime integer, timebox integer, required text
) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT gives_token(u, expires_at,
                     CASE WHEN c.id IS NULL OR NOT may_use(u, c, s.resource) THEN 'session_not_found'
                          ELSE end_of(s, lifetime, timebox) END,
                     lacks_step(u, s.aal, required, has_second_step(u.id)))
$$;

-- An API key, which has the level of the session that made it.
CREATE OR REPLACE FUNCTION api_key_state(u users, k api_keys, token_expires_at bigint, required text)
  RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT gives_token(u, token_expires_at, end_of_key(k),
                     lacks_step(u, k.aal, required, has_second_step(u.id)))
$$;
