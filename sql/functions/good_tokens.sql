-- What gives a token now, in one function. Statements that read for a token return `user_facts` or
-- `caller_facts`, and auth/rules/tokens.py decides. Every statement that issues or refreshes a token, or
-- writes for one, calls one of three: caller_state for sessions, client_state for those of clients,
-- api_key_state for API keys. They use each argument once: the planner inlines them, and a factor is looked up
-- last.

-- What auth/rules/tokens.py reads about a user.
CREATE OR REPLACE FUNCTION user_facts(owner uuid) RETURNS TABLE (
  role text, made_by text, converted_at timestamptz, banned_until timestamptz,
  oldest_factor_at timestamptz, has_second_step boolean, now timestamptz
)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT u.role, u.made_by, u.converted_at, u.banned_until, verified.oldest, verified.has_second_step, now()
    FROM users AS u
   CROSS JOIN factors_of(u.id) AS verified
   WHERE u.id = owner
$$;

-- And about a session, which is null if the user has none of this id.
CREATE OR REPLACE FUNCTION caller_facts(owner uuid, session_id uuid) RETURNS TABLE (
  role text, made_by text, converted_at timestamptz, banned_until timestamptz,
  oldest_factor_at timestamptz, has_second_step boolean, now timestamptz,
  method text, aal text, session_created_at timestamptz, refreshed_at timestamptz, ended_at timestamptz,
  first_passkey_at timestamptz
)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT u.*, s.method, s.aal, s.created_at, s.refreshed_at, s.ended_at, s.first_passkey_at
    FROM user_facts(owner) AS u
    LEFT JOIN sessions AS s ON s.id = caller_facts.session_id AND s.user_id = owner
$$;

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
-- or a key; `ended` is why the row has ended, or null; `is_below` is whether its level is below the one that
-- is demanded now.
CREATE OR REPLACE FUNCTION gives_token(u users, expires_at bigint, ended text, is_below boolean) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE
    WHEN to_timestamp(expires_at) <= now() THEN 'bad_jwt'
    WHEN is_banned(u) THEN 'user_banned'
    ELSE coalesce(ended, CASE WHEN is_below THEN 'insufficient_aal' ELSE 'live' END)
  END
$$;

-- A digest of what decides about a token: what the copy of the user's object has of role, ban, addresses, app
-- metadata and factors, and the session of the token, or the one that opens it, which may be null; not the
-- counter of the refresh token. The token hook is asked between two transactions, and the second one writes
-- only if the digest is still the same.
CREATE OR REPLACE FUNCTION what_decides(object text, s sessions) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT encode(sha256(convert_to(concat(
           object::jsonb - '{user_metadata,identities,new_email,new_phone,confirmation_sent_at}'::text[]
             - '{invited_at,email_change_sent_at,phone_change_sent_at,last_sign_in_at,updated_at}'::text[],
           ROW(s.id, s.ended_at, s.aal, s.amr, s.factor_id)), 'UTF8')), 'hex')
$$;

-- It is VOLATILE, to see what the previous holder of the user's lock committed. Null if the user is gone.
CREATE OR REPLACE FUNCTION locked_what_decides(owner uuid, session_id uuid) RETURNS text
  LANGUAGE sql VOLATILE
AS $$
  SELECT FROM users AS u WHERE u.id = owner FOR UPDATE;
  SELECT what_decides(copy.object, s)
    FROM user_objects AS copy
    LEFT JOIN sessions AS s ON s.id = locked_what_decides.session_id AND s.user_id = owner
   WHERE copy.user_id = owner
$$;

-- A session of the user. `aal` is the access token's, and `level` what the route demands
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

-- A session of an OAuth client. To a client that the user may no longer use, it has ended.
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
