-- Only nodes of 0.5.2 call these functions, which have its text, or read what these triggers write. They go with the
-- release after this one.
-- `python -m tests.support.previous_release` writes this file.

-- Whether the user has proved the address of a kind: confirmed is also what AUTH_AUTOCONFIRM or an
-- administrator vouched for.
CREATE OR REPLACE FUNCTION is_proved(u users, kind text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE kind WHEN 'email' THEN u.email_proved WHEN 'phone' THEN u.phone_proved END
$$;

CREATE OR REPLACE FUNCTION has_proved(u users, address text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT u.email = address AND is_proved(u, 'email') OR u.phone = address AND is_proved(u, 'phone')
$$;

-- The password of a user, or before the first proof, of the newest of several sign-ups.
CREATE OR REPLACE FUNCTION own_hash(u users) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT coalesce(u.password_hash, u.sign_up_hash)
$$;

-- Whether the code of a sign-up leaves the user a password: its own, or one that an operator vouches for.
CREATE OR REPLACE FUNCTION keeps_password(u users) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT u.password_hash IS NOT NULL AND (u.made_by IN ('signup', 'link') OR u.password_vouched IS TRUE)
$$;

-- The only writer of `users.password_hash`. `sign_in` stores another hash of the same password.
CREATE OR REPLACE FUNCTION set_password(owner uuid, hash text) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  UPDATE users SET password_hash = hash, sign_up_hash = NULL, password_leaked_at = NULL,
                   password_vouched = NULL, updated_at = now()
   WHERE id = owner
$$;

-- Makes an address the user's. An address is as old as the last change of its identity.
CREATE OR REPLACE FUNCTION set_address(
  owner uuid, kind text, address text, is_confirmed boolean, is_proved boolean
) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  -- An operator vouches for a password at the addresses that the user has then.
  UPDATE users SET password_vouched = NULL
   WHERE id = owner AND address <> CASE kind WHEN 'email' THEN email ELSE phone END;
  UPDATE users SET email = address, new_email = NULL, email_change_sent_at = NULL, email_proved = is_proved,
                   updated_at = now(), email_confirmed_at = CASE WHEN is_confirmed THEN coalesce(
                     CASE WHEN email = address THEN email_confirmed_at END, now()) END
   WHERE id = owner AND kind = 'email';
  UPDATE users SET phone = address, new_phone = NULL, phone_change_sent_at = NULL, phone_proved = is_proved,
                   updated_at = now(), phone_confirmed_at = CASE WHEN is_confirmed THEN coalesce(
                     CASE WHEN phone = address THEN phone_confirmed_at END, now()) END
   WHERE id = owner AND kind = 'phone';
  INSERT INTO identities AS i (user_id, provider, subject, identity_data)
  VALUES (owner, kind, owner, jsonb_build_object('sub', owner, kind, address))
  ON CONFLICT (user_id, provider) DO UPDATE SET identity_data = excluded.identity_data, updated_at = now()
   WHERE i.identity_data ->> kind IS DISTINCT FROM address
$$;

-- The first proof of an address keeps what it proved and removes everything else that the user holds: a
-- stranger may have set it. No first proof is that of an address that the user did not have, or that was
-- added when the other one was proved. `proof` is the purpose of a link or code, `provider`, or
-- `administrator`, who vouches for what no sign-up has set. Returns whether everything else was removed.
CREATE OR REPLACE FUNCTION prove_address(owner uuid, kind text, address text, proof text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  u users := (SELECT users FROM users WHERE users.id = owner);
  added_at timestamptz := coalesce((SELECT i.updated_at FROM identities AS i
                                     WHERE i.user_id = owner AND i.provider = kind), u.created_at);
  is_first boolean := NOT (proof = 'administrator' AND u.made_by <> 'signup') AND CASE
    WHEN address = u.email
    THEN NOT (is_proved(u, 'email') OR is_proved(u, 'phone') AND u.phone_confirmed_at <= added_at)
    WHEN address = u.phone
    THEN NOT (is_proved(u, 'phone') OR is_proved(u, 'email') AND u.email_confirmed_at <= added_at)
    ELSE proof = 'administrator' AND NOT (is_proved(u, 'email') OR is_proved(u, 'phone')) END;
BEGIN
  IF is_first THEN
    DELETE FROM identities WHERE user_id = owner AND provider <> kind;
    DELETE FROM factors WHERE user_id = owner;
    DELETE FROM recovery_codes WHERE user_id = owner;
    UPDATE known_networks SET passed_at = NULL, mail_proved_at = NULL WHERE user_id = owner;
    UPDATE users SET email = NULL, email_confirmed_at = NULL, email_proved = false, first_factor_at = NULL
     WHERE id = owner AND kind <> 'email';
    UPDATE users SET phone = NULL, phone_confirmed_at = NULL, phone_proved = false, first_factor_at = NULL
     WHERE id = owner AND kind <> 'phone';
    PERFORM end_access(owner, NULL, 'address_proved');
    PERFORM void_tokens(owner);
    DELETE FROM one_time_tokens WHERE user_id = owner AND purpose = 'undo';
    PERFORM set_password(owner, CASE WHEN proof IN ('signup', 'sms_signup') AND keeps_password(u)
                                     THEN u.password_hash END);
  END IF;
  PERFORM set_address(owner, kind, address, true, true);
  RETURN is_first;
END
$$;

-- Skips nulls in the arrays. Call it where it certainly runs: in RETURNING, or in the final SELECT.
CREATE OR REPLACE FUNCTION record_acts(
  origin jsonb, subject uuid, email text, acts text[], events text[], details jsonb DEFAULT '{}'
) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  -- A request that signs a user in has no access token yet, so that user is the actor.
  signs_in CONSTANT boolean := origin ->> 'actor' = 'anonymous' AND acts && '{signed_in, api_key_used}';
BEGIN
  INSERT INTO audit_log (action, user_id, actor, actor_id, ip, network, user_agent, request_id, details)
  SELECT act, subject,
         CASE WHEN signs_in THEN 'user' ELSE origin ->> 'actor' END,
         CASE WHEN signs_in THEN subject ELSE (origin ->> 'actor_id')::uuid END,
         (origin ->> 'ip')::inet, origin ->> 'network', origin ->> 'user_agent', origin ->> 'request_id',
         jsonb_strip_nulls(details || jsonb_build_object('administrator', origin ->> 'administrator',
                                                         'system_user', origin ->> 'system_user'))
    FROM unnest(acts) AS act
   WHERE act IS NOT NULL;

  WITH event AS MATERIALIZED (
    SELECT kind, gen_random_uuid() AS id FROM unnest(events) AS kind WHERE kind IS NOT NULL
  )
  INSERT INTO outbox (id, user_id, channel, kind, recipient, variables)
  SELECT gen_random_uuid(), subject, 'webhook', event.kind, w.id,
         jsonb_build_object('event_id', event.id, 'timestamp', iso_8601(now()),
                            'data', jsonb_build_object(
                              'user', jsonb_build_object('id', subject, 'email', email)))
    FROM event
    JOIN webhooks AS w ON event.kind = ANY (w.events) AND w.disabled_at IS NULL;
END
$$;

REVOKE ALL ON FUNCTION record_acts FROM PUBLIC;

-- How many users signed in or refreshed a session in the last 30 days; of at most `most` such sessions.
CREATE OR REPLACE FUNCTION active_users(most integer) RETURNS bigint
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT count(DISTINCT user_id)
    FROM (SELECT user_id FROM sessions WHERE refreshed_at > now() - interval '30 days' LIMIT most) AS found
$$;

-- Each reason to end, with its size:
--   alone       the session, which has only run out
--   this        the session, and those that it opened for applications, or that these opened in turn
--   others      all but those
--   everything  all but the session itself; API keys and grants too
CREATE OR REPLACE FUNCTION end_sizes() RETURNS TABLE (size text, reason text)
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT 'alone', 'too_many_sessions' UNION ALL
  SELECT 'this', unnest('{logout, ended_by_user, ended_by_admin, refresh_token_reused, access_lost,
                          authorization_code_reused}'::text[]) UNION ALL
  SELECT 'others', unnest('{others_signed_out, password_changed, email_changed, phone_changed, factor_added,
                            identity_linked, way_to_sign_in_removed}'::text[]) UNION ALL
  SELECT 'everything', unnest('{recovered, change_undone, email_restored, reset_by_admin, banned, restored,
                                address_proved, provider_disabled}'::text[])
$$;

-- Ends what the size of a reason says, and returns whether a session has ended. Without a `session`, `this`
-- and `others` are all sessions. A code, and an authorization request that the user has approved, are
-- sessions that have not begun. A first factor also ends what is below its level: API keys, and what this
-- session has opened. Call it with the user's row locked.
CREATE OR REPLACE FUNCTION end_access(owner uuid, session uuid, reason text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  size text NOT NULL := (SELECT s.size FROM end_sizes() AS s WHERE s.reason = end_access.reason);
  is_deep boolean := session IS NULL OR size = 'everything' OR reason = 'factor_added';
  own uuid[] := CASE WHEN size = 'alone' THEN ARRAY[session] ELSE ARRAY(
    WITH RECURSIVE opened (id) AS (
      SELECT session UNION
      SELECT s.id FROM sessions AS s JOIN opened ON s.opened_by = opened.id WHERE s.user_id = owner)
    SELECT id FROM opened) END;
BEGIN
  DELETE FROM authorization_codes WHERE user_id = owner AND session_id IS NULL
     AND (is_deep OR coalesce(opened_by = ANY (own), false) = (size <> 'others'));
  DELETE FROM oauth_requests WHERE user_id = owner AND session_id IS NOT NULL AND opened_session_id IS NULL
     AND (is_deep OR (session_id = ANY (own)) = (size <> 'others'));
  DELETE FROM api_keys
   WHERE user_id = owner AND (size = 'everything' OR reason = 'factor_added' AND aal = 'aal1');
  DELETE FROM oauth_grants WHERE user_id = owner AND size = 'everything';
  DELETE FROM identity_provider_adoptions WHERE user_id = owner AND size = 'everything';
  UPDATE sessions SET ended_at = now(), end_reason = reason
   WHERE user_id = owner AND ended_at IS NULL
     AND CASE WHEN is_deep THEN id IS DISTINCT FROM session ELSE (id = ANY (own)) = (size <> 'others') END;
  RETURN FOUND;
END
$$;

-- Ends the sessions of clients that do not admit the user, so that they stay ended when a role comes back.
-- Call it with the user's row locked, also before a role changes: what a change of the client has yet to end
-- must not come back with the new one.
CREATE OR REPLACE FUNCTION end_lost_access(u users) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  SELECT end_access(u.id, s.id, 'access_lost')
    FROM oauth_grants AS g
    JOIN oauth_clients AS c ON c.id = g.client_id
    JOIN sessions AS s ON s.grant_id = g.id
   WHERE g.user_id = u.id AND s.ended_at IS NULL AND NOT may_use(u, c, s.resource);
  DELETE FROM oauth_requests AS r
   USING oauth_clients AS c
   WHERE r.user_id = u.id AND r.session_id IS NOT NULL AND r.opened_session_id IS NULL
     AND c.id = r.client_id AND NOT may_use(u, c, r.resource)
$$;

-- Ends everything of all users of a restored database, which may have ended since the backup, by the list of
-- `end_access`.
CREATE OR REPLACE FUNCTION end_all_access() RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  SELECT end_access(u.id, NULL, 'restored') FROM users AS u WHERE has_access(u.id)
$$;

-- Whether a user needs `aal2` for sensitive operations.
CREATE OR REPLACE FUNCTION has_verified_factor(owner uuid) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT EXISTS (SELECT FROM factors WHERE user_id = owner AND verified_at IS NOT NULL)
$$;

-- The second steps of a user. A passkey is another way to sign in.
CREATE OR REPLACE FUNCTION second_steps(owner uuid) RETURNS SETOF factors
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT * FROM factors WHERE user_id = owner AND verified_at IS NOT NULL AND factor_type <> 'passkey'
$$;

CREATE OR REPLACE FUNCTION has_second_step(owner uuid) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT EXISTS (SELECT FROM second_steps(owner))
$$;

-- Call it with the user's row locked. It is VOLATILE, to see what the previous holder of the lock committed;
-- if the planner could inline its body, it would not.
CREATE OR REPLACE FUNCTION locked_has_second_step(owner uuid) RETURNS boolean
  LANGUAGE sql VOLATILE
AS $$
  SELECT EXISTS (SELECT FROM second_steps(owner))
$$;

-- An anonymous user cannot enrol a factor, because it cannot give the proof for that.
CREATE OR REPLACE FUNCTION must_have_step(u users, required text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT required = 'all' AND NOT is_anonymous(u) OR required = 'admins' AND u.role = 'admin'
$$;

-- Whether a session at `aal` lacks a step that its user has, or must have. A refresh and a sign-in look up
-- `has_step` in different ways.
CREATE OR REPLACE FUNCTION lacks_step(u users, aal text, required text, has_step boolean) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT aal < 'aal2' AND (must_have_step(u, required) OR has_step)
$$;

-- The level of a request, by its access token's: a token from before the session was raised keeps its level.
-- For 15 minutes after the session has registered its user's first factor, a passkey, its tokens count as
-- `aal2`: clients keep them, and without the passkey their holders could do the same.
CREATE OR REPLACE FUNCTION level_of(s sessions, aal text) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN aal <> 'aal0' AND s.first_passkey_at > now() - fresh_age() THEN 'aal2'
              ELSE least(s.aal, aal) END
$$;

-- `aal` is the access token's, `level` one of `Level` (auth/web/declarations.py), `required` is
-- AUTH_MFA_REQUIRED. A token of the audience `second_step` is at `aal0`, even if the session no longer lacks
-- the step.
CREATE OR REPLACE FUNCTION lacks_level(u users, s sessions, aal text, level text, required text)
  RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT level_of(s, aal) < 'aal2'
     AND (level = 'second_factor'
          OR level NOT IN ('session', 'enrol') AND aal = 'aal0'
          OR level IN ('aal1', 'aal2', 'proof')
             AND lacks_step(u, level_of(s, aal), required, has_second_step(u.id))
          OR level IN ('aal2', 'proof', 'enrol') AND has_verified_factor(u.id))
$$;

CREATE OR REPLACE FUNCTION with_second_step(amr jsonb, method text) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_path_query_array(amr, '$[*] ? (@.method <> $method)', jsonb_build_object('method', method))
         || jsonb_build_object('method', method, 'timestamp', floor(extract(epoch FROM now()))::bigint)
$$;

CREATE OR REPLACE FUNCTION methods_with(s sessions, provider text) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_set(methods_of(s), '{0,provider}', to_jsonb(provider))
$$;

-- `{}` for a user without factors. Not part of user_object, which the planner could then not inline.
CREATE OR REPLACE FUNCTION factors_member(owner uuid) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN count(*) = 0 THEN '{}'
              ELSE jsonb_build_object('factors', jsonb_agg(factor_object(f) ORDER BY f.created_at, f.id)) END
    FROM factors AS f
   WHERE f.user_id = owner AND f.factor_type <> 'passkey'
$$;

-- Sessions whose level came from a removed factor fall to `aal1`. Recovery codes go with the last factor.
-- A thief may have passed the second step with a removed factor, so no network keeps tries of its own. The
-- links of notices ask for old ones for seven days: see `asked_factors`. Call it with the user's row locked.
CREATE OR REPLACE FUNCTION remove_factors(owner uuid, ids uuid[]) RETURNS SETOF factors
  LANGUAGE sql VOLATILE
AS $$
  UPDATE sessions SET aal = 'aal1', factor_id = NULL, first_passkey_at = NULL
   WHERE user_id = owner AND factor_id = ANY (ids);
  UPDATE known_networks
     SET passed_at = NULL
   WHERE user_id = owner AND passed_at IS NOT NULL
     AND EXISTS (SELECT FROM factors
                  WHERE user_id = owner AND verified_at IS NOT NULL AND id = ANY (ids));
  DELETE FROM recovery_codes
   WHERE user_id = owner
     AND NOT EXISTS (SELECT FROM factors
                      WHERE user_id = owner AND verified_at IS NOT NULL AND id <> ALL (ids));
  INSERT INTO one_time_tokens (id, user_id, purpose, target, restores, expires_at)
  SELECT gen_random_uuid(), owner, 'undo', '', to_jsonb(f) || '{"provider": "factor"}',
         now() + recent_age()
    FROM factors AS f
   WHERE f.user_id = owner AND f.id = ANY (ids) AND f.verified_at <= now() - recent_age();
  DELETE FROM factors WHERE user_id = owner AND id = ANY (ids) RETURNING *
$$;

CREATE OR REPLACE FUNCTION factor_has_changed() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM FROM users WHERE id = coalesce(NEW.user_id, OLD.user_id) FOR NO KEY UPDATE;
  UPDATE users SET first_factor_at = NEW.verified_at
   WHERE id = NEW.user_id AND NEW.verified_at < coalesce(first_factor_at, 'infinity');
  PERFORM write_user_object(id) FROM users WHERE id = coalesce(NEW.user_id, OLD.user_id);
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER factors_object
  AFTER INSERT OR DELETE OR UPDATE OF friendly_name, verified_at, updated_at ON factors
  FOR EACH ROW EXECUTE FUNCTION factor_has_changed();

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

-- Statements on users or sessions that have waited for a lock for a second, whether on the table, or on a row
-- that another transaction has changed.
CREATE OR REPLACE FUNCTION count_lock_waits() RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT count(DISTINCT waiting.pid)
    FROM pg_locks AS waiting
    JOIN pg_locks AS held ON held.pid = waiting.pid
     AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
     AND held.relation IN (to_regclass('users'), to_regclass('sessions'))
   WHERE NOT waiting.granted AND waiting.waitstart < now() - interval '1 second'
$$;

-- The beginning of a statement without its quoted values, which may be tokens and addresses, and without the
-- isolation level with which those begin that are not prepared.
CREATE OR REPLACE FUNCTION statement_without_values(query text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT left(regexp_replace(regexp_replace(regexp_replace(query, '^SET TRANSACTION [A-Z ]+; ?', ''),
                                            '''[^'']*(''|$)', '''…''', 'g'), '\s+', ' ', 'g'), 80)
$$;

CREATE OR REPLACE FUNCTION identities_of(owner uuid) RETURNS TABLE (objects json, providers text[])
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT coalesce(json_agg(identity_object(i) ORDER BY i.created_at, i.provider), '[]'::json),
         coalesce(array_agg(i.provider ORDER BY i.created_at, i.provider), '{}')
    FROM identities AS i
   WHERE i.user_id = owner
$$;

-- What the users of a disabled provider have from before this moment ends. Nodes of 0.5.1 do not write
-- `disabled_at`.
CREATE OR REPLACE FUNCTION ended_before(p identity_providers) RETURNS timestamptz
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT coalesce(p.disabled_at, p.updated_at)
$$;

-- Wrong ones count for the subject and network, and for the subject alone if the network is not known: nobody
-- elsewhere can lock a user out. `failures` has the amount and seconds of both.
CREATE OR REPLACE FUNCTION limits_of(
  kind text, kind_of_all text, subject text, owner uuid, here text, failures integer[]
) RETURNS failure_limit[]
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT ARRAY[(kind, subject, here, failures[1], failures[2])::failure_limit]
      || CASE WHEN NOT is_known_network(owner, here)
              THEN ARRAY[(kind_of_all, subject, NULL, failures[3], failures[4])::failure_limit] END
$$;

-- Wrong passwords count for the address, and for its user: nobody may learn that an email and a phone belong
-- together, so only the limits of the address tell that they are used up. Without `failures` there is none.
CREATE OR REPLACE FUNCTION password_limits(address text, owner uuid, here text, failures integer[])
  RETURNS failure_limit[]
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT limits_of('login', 'account', address, owner, here, failures)
      || limits_of(holder, holder, coalesce(owner::text, address), owner, here, failures)
    FROM (VALUES (CASE WHEN owner IS NULL THEN 'nobody' ELSE 'user' END)) AS owned (holder)
   WHERE failures IS NOT NULL
$$;

-- Locks the user.
CREATE OR REPLACE FUNCTION record_password_verdict(
  sent_email text, sent_phone text, here text, is_right boolean, failures integer[]
) RETURNS TABLE (
  refused_by text, refused_for double precision, tries bigint, seconds_left double precision, known users
)
  LANGUAGE plpgsql VOLATILE ROWS 1
AS $$
BEGIN
  SELECT v.* INTO refused_by, refused_for, tries, seconds_left
    FROM (VALUES (coalesce(sent_email, sent_phone))) AS sent (address)
    LEFT JOIN users AS u ON u.email = sent_email OR u.phone = sent_phone
   CROSS JOIN record_verdict(password_limits(address, u.id, here, failures), 1, is_right) AS v;
  SELECT u.* INTO known FROM users AS u
   WHERE u.email = sent_email OR u.phone = sent_phone FOR NO KEY UPDATE;
  RETURN NEXT;
END
$$;

-- One of the last ten networks where the user passed every step, or one where a mailed link or code was used
-- within a day.
CREATE OR REPLACE FUNCTION is_known_network(owner uuid, here text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT here = ANY (ARRAY(SELECT n.network FROM known_networks AS n
                            WHERE n.user_id = owner AND n.passed_at IS NOT NULL
                              AND n.network NOT LIKE 'browser %'
                            ORDER BY n.passed_at DESC LIMIT 10)
                     || ARRAY(SELECT n.network FROM known_networks AS n
                               WHERE n.user_id = owner AND n.mail_proved_at > now() - interval '1 day'))
$$;

-- Whether a sign-in is from a network and from a browser where this user never passed every step, `here` and
-- `browser` of `known_networks`. A user's first sign-in is not.
CREATE OR REPLACE FUNCTION is_new_sign_in(u users, here text, browser text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT here IS NOT NULL AND u.last_sign_in_at IS NOT NULL
     AND NOT EXISTS (SELECT FROM known_networks AS n
                      WHERE n.user_id = u.id AND n.network IN (here, browser) AND n.passed_at IS NOT NULL)
$$;

-- Call it with the user's row locked, once every step that the user has is passed.
CREATE OR REPLACE FUNCTION know_network(owner uuid, here text) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  INSERT INTO known_networks (user_id, network, passed_at) VALUES (owner, here, now())
  ON CONFLICT ON CONSTRAINT known_networks_pkey DO UPDATE SET seen_at = now(), passed_at = now()
$$;

-- Gives a network from which a mailed link or code was spent tries of its own, and no more than three in a
-- day, because a thief of the mailbox can use links from anywhere. Call it with the user's row locked.
CREATE OR REPLACE FUNCTION record_mail_proof(owner uuid, here text) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  INSERT INTO known_networks (user_id, network, mail_proved_at)
  SELECT owner, here, now()
   WHERE 3 > (SELECT count(*)
                FROM known_networks AS n
               WHERE n.user_id = owner AND n.network <> here AND n.passed_at IS NULL
                 AND n.mail_proved_at > now() - interval '1 day')
  ON CONFLICT (user_id, network) DO UPDATE SET seen_at = now(), mail_proved_at = now()
$$;

-- The factors that the link of a notice asks for: those older than seven days, and those that were this old
-- when they were removed in the last seven days, of which rows without a link keep copies.
CREATE OR REPLACE FUNCTION asked_factors(owner uuid) RETURNS SETOF factors
  LANGUAGE sql STABLE
AS $$
  SELECT * FROM factors WHERE user_id = owner AND verified_at <= now() - recent_age()
   UNION ALL
  SELECT kept.*
    FROM one_time_tokens AS t
   CROSS JOIN LATERAL jsonb_populate_record(NULL::factors, t.restores) AS kept
   WHERE t.user_id = owner AND t.purpose = 'undo' AND t.restores ->> 'provider' = 'factor'
     AND t.expires_at > now() AND kept.verified_at <= t.created_at - recent_age()
     AND NOT EXISTS (SELECT FROM factors WHERE id = kept.id)
$$;

-- Whether the address that a link was sent to can be the user's again: no other user has proved it since.
CREATE OR REPLACE FUNCTION comes_back(t one_time_tokens) RETURNS boolean
  LANGUAGE sql STABLE
AS $$
  SELECT NOT EXISTS (SELECT
                       FROM users AS u
                      WHERE u.id <> t.user_id AND has_proved(u, t.target))
$$;

CREATE OR REPLACE FUNCTION spend_link(hash bytea, purposes text[]) RETURNS SETOF one_time_tokens
  LANGUAGE sql VOLATILE
AS $$
  SELECT FROM users AS u JOIN one_time_tokens AS t ON t.user_id = u.id
   WHERE t.token_hash = hash
     FOR UPDATE OF u;
  UPDATE one_time_tokens AS t
     SET spent_at = now()
   WHERE t.token_hash = hash AND t.purpose = ANY (purposes) AND is_good_link(t)
  RETURNING t.*
$$;

-- A code that a page asked for works in its `browser` alone. Of those for this browser or for any only the
-- newest works, for all purposes; otherwise a guess could hit any of them. `macs` are those of the code under
-- each key. After the numbers of `limits_of`, `failures` has the tries of a network for each code.
CREATE OR REPLACE FUNCTION use_code(
  address text, macs bytea[], purposes text[], browser bytea, here text, failures integer[]
) RETURNS SETOF one_time_tokens
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  code one_time_tokens;
  guessed uuid;
  refused boolean;
BEGIN
  IF cardinality(macs) = 0 THEN RETURN; END IF;
  SELECT t.* INTO code FROM one_time_tokens AS t
   WHERE t.target = address AND t.code_mac IS NOT NULL
     AND (t.browser_hash IS NULL OR t.browser_hash = browser)
   ORDER BY t.created_at DESC LIMIT 1;
  guessed := CASE WHEN code.purpose = ANY (purposes) THEN code.id END;
  SELECT v.refused_by IS NOT NULL INTO refused
    FROM record_verdict(ARRAY[('try', coalesce(guessed::text, address), here, failures[5],
                               failures[6])::failure_limit]
                          || limits_of('code', 'code', address, code.user_id, here, failures), 1,
                        coalesce(is_open_code(code, macs, purposes), false)) AS v;
  PERFORM FROM users AS u
    WHERE u.id = ANY (ARRAY(SELECT t.user_id FROM one_time_tokens AS t
                             WHERE t.target = address AND t.code_mac IS NOT NULL))
    ORDER BY u.id FOR UPDATE;
  RETURN QUERY UPDATE one_time_tokens AS t SET spent_at = now()
                WHERE t.id = code.id AND NOT refused AND is_open_code(t, macs, purposes) RETURNING t.*;
END
$$;

CREATE OR REPLACE FUNCTION is_open_code(t one_time_tokens, macs bytea[], purposes text[]) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT t.code_mac = ANY (macs) AND t.purpose = ANY (purposes) AND t.spent_at IS NULL
     AND t.code_expires_at > now()
$$;

-- What a spent link or code to an address of its user makes of the two. If several people have signed up,
-- messages look alike: only the page (`is_shown`) tells whose sign-up it is. An administrator's recovery link
-- may set a password. On nodes of 0.3.1, which do not always `open` a session, the browser of a sign-up goes
-- on by what that has set. A session of the method `recovery` ends everything with its new password. Call it
-- with the user's row locked.
CREATE OR REPLACE FUNCTION confirm_address(token uuid, kind text, is_shown boolean, opens boolean, here text)
  RETURNS TABLE (is_first boolean, sets_password boolean)
  LANGUAGE plpgsql VOLATILE ROWS 1
AS $$
DECLARE
  t one_time_tokens := (SELECT spent FROM one_time_tokens AS spent WHERE spent.id = token);
  is_sign_up boolean := t.purpose IN ('signup', 'sms_signup');
  is_own boolean;
BEGIN
  is_first := prove_address(t.user_id, kind, t.target, t.purpose);
  is_own := is_first AND is_shown AND t.user_metadata IS NOT NULL;
  sets_password := t.password_hash IS NOT NULL AND (is_own OR NOT is_sign_up);
  IF sets_password THEN
    PERFORM set_password(t.user_id, t.password_hash);
  END IF;
  UPDATE one_time_tokens SET password_hash = NULL WHERE id = token AND is_sign_up AND opens;
  UPDATE identities SET last_sign_in_at = now() WHERE user_id = t.user_id AND provider = kind;
  UPDATE users
     SET last_sign_in_at = now(),
         user_metadata = CASE WHEN is_own THEN merge_metadata('{}', t.user_metadata) ELSE user_metadata END
   WHERE id = t.user_id;
  PERFORM record_mail_proof(t.user_id, here);
  IF t.purpose = 'recovery' AND method_of(t) <> 'recovery' THEN
    PERFORM end_access(t.user_id, NULL, 'recovered');
  END IF;
  PERFORM void_tokens(t.user_id);
  RETURN NEXT;
END
$$;

-- Until when the secret before the current one is accepted too; null if it is not.
CREATE OR REPLACE FUNCTION previous_secret_end(c oauth_clients) RETURNS timestamptz
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN c.previous_secret_expires_at > now() THEN c.previous_secret_expires_at END
$$;

-- Null if these are the credentials of a client; otherwise why not, or the method that it must use. `method`
-- is how they were sent. A wrong secret is refused like an unknown client, whichever way it came.
-- Hashes of random secrets: how long a comparison takes tells nothing about them.
CREATE OR REPLACE FUNCTION client_refusal(c oauth_clients, method text, hash bytea) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE
    WHEN c.is_blocked THEN 'blocked'
    WHEN c.secret_hash IS NULL AND method <> 'none' THEN 'public'
    WHEN c.secret_hash IS NULL THEN NULL
    WHEN method = 'none' THEN 'secret_missing'
    WHEN c.secret_hash IS DISTINCT FROM hash
         AND (c.previous_secret_hash = hash AND previous_secret_end(c) IS NOT NULL) IS NOT TRUE THEN 'unknown'
    WHEN c.token_endpoint_auth_method <> method AND NOT c.accepts_either_method
      THEN c.token_endpoint_auth_method
  END
$$;

-- Whether a device's request waits for its code to be entered, or for the decision of the session where that
-- was done first.
CREATE OR REPLACE FUNCTION is_open_to(r oauth_requests, session uuid) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT r.user_code_mac IS NOT NULL AND r.decision IS NULL AND r.code_expires_at > now()
     AND coalesce(r.session_id = session, true)
$$;

-- Binds a device's request to the session whose user is the first to enter its code. `macs` are those of the
-- code under each key.
CREATE OR REPLACE FUNCTION enter_user_code(
  macs bytea[], owner uuid, session uuid, here text, failures integer[]
) RETURNS TABLE (refused_for double precision, tries bigint, request_id uuid)
  LANGUAGE plpgsql VOLATILE ROWS 1
AS $$
DECLARE
  entered oauth_requests;
BEGIN
  SELECT r.* INTO entered FROM oauth_requests AS r WHERE r.user_code_mac = ANY (macs);
  SELECT v.refused_for, v.count INTO refused_for, tries
    FROM record_verdict(limits_of('device', 'device', owner::text, owner, here, failures), 1,
                        coalesce(is_open_to(entered, session), false)) AS v;
  PERFORM FROM users AS u WHERE u.id = owner FOR UPDATE;
  UPDATE oauth_requests AS r
     SET user_id = owner, session_id = session
   WHERE r.id = entered.id AND refused_for IS NULL AND is_open_to(r, session)
  RETURNING r.id INTO request_id;
  RETURN NEXT;
END
$$;

-- The target that may be slow: the recipient's mail host, the SMS provider, or an application.
CREATE OR REPLACE FUNCTION outbox_target(channel text, recipient text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE channel WHEN 'email' THEN split_part(recipient, '@', -1)
                      WHEN 'logout' THEN recipient
                      ELSE channel END
$$;

-- Writes an email or SMS, in the transaction that makes it true. Without an address nothing is sent: it makes
-- a request for an unknown address take as long as any other. The first notice of a kind is due at once, the
-- next ones ten minutes or, by SMS, an hour after the one before, so that `join_notice` can add to them.
CREATE OR REPLACE FUNCTION write_message(
  message_id uuid, owner uuid, message_kind text, address text, given jsonb, sealed bytea = NULL,
  token uuid = NULL, expiry timestamptz = NULL, delay float = 0, is_notice boolean = false
) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  INSERT INTO outbox (id, user_id, kind, channel, recipient, variables, secret, one_time_token_id, expires_at,
                      is_notice, next_attempt_at, outcome, finished_at)
  SELECT message_id, owner, message_kind,
         CASE WHEN address LIKE '%@%' THEN 'email' WHEN address IS NOT NULL THEN 'sms' END, address,
         given || jsonb_build_object('locale', user_metadata ->> 'locale'), sealed, token, expiry, is_notice,
         greatest(now(), due_at + make_interval(mins => CASE WHEN address LIKE '%@%' THEN 10 ELSE 60 END))
           + make_interval(secs => delay),
         CASE WHEN address IS NULL THEN 'none' END, CASE WHEN address IS NULL THEN now() END
    FROM (SELECT max(coalesce(finished_at, next_attempt_at)) AS due_at
            FROM outbox AS m
           WHERE recipient = address AND user_id = owner AND kind = message_kind
             AND m.is_notice AND write_message.is_notice) AS last
    LEFT JOIN users ON users.id = owner
$$;

-- How long a proof is fresh. `PROOF_AGE` in auth/domain/sign_in/reauthentication.py is the same.
CREATE OR REPLACE FUNCTION fresh_age() RETURNS interval
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT interval '15 minutes' $$;

-- How long what was added is recent, and what a thief may have added: see `additions_to` and `asked_factors`.
CREATE OR REPLACE FUNCTION recent_age() RETURNS interval
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT interval '7 days' $$;

-- A user who changed an address within a week may be a thief: codes that go there do not add the first
-- factor of an administrator.
CREATE OR REPLACE FUNCTION is_recent_address(owner uuid, address text) RETURNS boolean
  LANGUAGE sql STABLE
AS $$
  SELECT EXISTS (SELECT
                   FROM additions_to(owner, now() - recent_age()) AS added
                  WHERE added.type IN ('email', 'phone') AND added.label = address)
$$;

-- The method of the session that a link or code opens. Only a recovery that we mailed to the user's own
-- address is a `recovery`: a generated link proves nothing about the mailbox.
CREATE OR REPLACE FUNCTION method_of(t one_time_tokens) RETURNS text
  LANGUAGE sql STABLE
AS $$
  SELECT CASE WHEN t.purpose = 'recovery'
                   AND EXISTS (SELECT FROM outbox AS o
                                WHERE o.user_id = t.user_id AND o.one_time_token_id = t.id)
              THEN 'recovery' ELSE 'otp' END
$$;

-- Whether a session below `aal2` may remove what a thief may have added: what is younger than seven days and
-- older than the session, while no factor is older than that. A session that has been raised shows that its
-- user holds a factor, so a token from before does not count.
CREATE OR REPLACE FUNCTION may_take_back(s sessions, added_at timestamptz) RETURNS boolean
  LANGUAGE sql STABLE
AS $$
  SELECT added_at > now() - recent_age() AND added_at < s.created_at
     AND s.aal = 'aal1' AND s.opened_by IS NULL AND s.method = 'recovery'
     AND NOT EXISTS (SELECT
                       FROM factors AS f
                      WHERE f.user_id = s.user_id AND f.verified_at <= now() - recent_age())
$$;

-- When a session was last proved to be its user's: with a factor, if the user has one. A thief of an old
-- session may know the password, or read the mail.
CREATE OR REPLACE FUNCTION proved_at(u users, s sessions) RETURNS timestamptz
  LANGUAGE sql STABLE
AS $$
  SELECT CASE WHEN has_verified_factor(u.id) THEN s.factor_proved_at ELSE proved_at(s) END
$$;

-- Whether a recovery was just proved: within the time of a code, which is the proof for the new password, also
-- with AUTH_REAUTHENTICATION_AGE=always. `PAGE_CODE_LIFETIME` in auth/core/promises.py is the same.
CREATE OR REPLACE FUNCTION is_fresh_recovery(s sessions) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT s.method = 'recovery' AND s.opened_by IS NULL AND s.created_at > now() - interval '10 minutes'
$$;

-- The key of the error that refuses an act, or null.
--   actor     `session`, `administrator` (in the console or by an access token), `service_role` (the key, and
--             commands)
--   s, aal    the session and the level of its access token
--   required  AUTH_MFA_REQUIRED
--   given     what the request itself brought: `factor` for the code of an app, `code` for one from the
--             user's mailbox, else `proof`; or `begun` if the act began with the proof
--   proof_age, change_age   how many seconds a proof, and a sign-in, count; null for ever
--   added_at  when the credential was added; null for one that the user was created with, and for a factor
--             that is not verified
CREATE OR REPLACE FUNCTION refusal_of_act(
  actor text, u users, s sessions, aal text, required text, given text, proof_age integer, change_age integer,
  act text, kind text, added_at timestamptz
) RETURNS text
  LANGUAGE sql STABLE
AS $$
  SELECT CASE
    WHEN actor = 'service_role' THEN NULL
    WHEN actor = 'administrator' THEN CASE WHEN u.role = 'admin' THEN 'target.insufficient_permissions' END
    WHEN lacks_level(u, s, aal,
                     CASE WHEN kind = 'metadata' THEN 'aal1'
                          -- A factor that AUTH_MFA_REQUIRED asks for need not come first.
                          WHEN kind IN ('grant', 'api_key') AND act = 'remove'
                          THEN CASE WHEN has_verified_factor(u.id) THEN 'aal1' ELSE 'session' END
                          WHEN kind = 'recovery_codes' THEN 'second_factor'
                          WHEN act = 'add' AND kind IN ('factor', 'passkey') THEN 'enrol'
                          WHEN act = 'remove' AND kind = 'factor' AND added_at IS NULL THEN 'session'
                          -- What a thief added goes without the factor that AUTH_MFA_REQUIRED asks for.
                          WHEN act = 'remove' AND added_at > now() - recent_age() THEN 'enrol'
                          ELSE 'aal2' END, required)
         AND NOT (act = 'remove' AND coalesce(may_take_back(s, added_at), false))
    THEN 'insufficient_aal'
    WHEN kind IN ('metadata', 'grant')
         OR act = 'remove' AND (kind = 'api_key' OR kind = 'factor' AND added_at IS NULL)
    THEN NULL
    WHEN given IN ('begun', 'factor') THEN NULL
    -- The first factor of an administrator opens the console, so a password alone does not do.
    WHEN act = 'add' AND kind IN ('factor', 'passkey') AND u.role = 'admin' AND NOT has_verified_factor(u.id)
    THEN CASE WHEN given IS DISTINCT FROM 'code'
                   AND (s.code_given_at > now() - fresh_age()) IS NOT TRUE
              THEN 'code.reauthentication_needed' END
    WHEN has_verified_factor(u.id) AND NOT coalesce(may_take_back(s, added_at), false)
    -- A passkey cannot be sent with the change, so it counts for five minutes at least.
    THEN CASE WHEN (proved_at(u, s) > now() - make_interval(secs => greatest(proof_age, 300))) IS NOT TRUE
              THEN 'mfa.reauthentication_needed' END
    WHEN given IS NOT NULL OR kind = 'password' AND is_fresh_recovery(s) THEN NULL
    WHEN kind IN ('password', 'account')
    THEN CASE WHEN authenticated_at(s) <= now() - make_interval(secs => change_age)
              THEN 'reauthentication_needed' END
    WHEN act = 'add' AND kind IN ('email', 'phone', 'identity', 'passkey') AND is_anonymous(u) THEN NULL
    WHEN (proved_at(s) > now() - make_interval(secs => proof_age)) IS NOT TRUE THEN 'reauthentication_needed'
  END
$$;

-- The state of a caller who wants to do something, each act on a credential by its id, or by its kind. Call
-- it with the user's row locked. It is VOLATILE, to see what the previous holder of the lock committed.
CREATE OR REPLACE FUNCTION locked_caller_state(
  user_id uuid, session_id uuid, expires_at bigint, lifetime integer, timebox integer, aal text, level text,
  required text, given text, proof_age integer, change_age integer, acts text[], kinds text[], ids text[]
) RETURNS text
  LANGUAGE sql VOLATILE
AS $$
  SELECT CASE WHEN state = 'live' THEN coalesce(refused.key, state) ELSE state END
    FROM users AS u
    LEFT JOIN sessions AS s ON s.id = locked_caller_state.session_id AND s.user_id = u.id
   CROSS JOIN caller_state(u, s, expires_at, lifetime, timebox, locked_caller_state.aal, level, required)
           AS state
   CROSS JOIN LATERAL (
     -- `insufficient_aal` comes before `reauthentication_needed`.
     SELECT min(refusal_of_act('session', u, s, locked_caller_state.aal, required, given, proof_age,
                               change_age, wanted.act, coalesce(added.kind, wanted.kind), added.added_at))
       FROM unnest(acts, kinds, ids) AS wanted (act, kind, id)
       LEFT JOIN (SELECT a.id, a.added_at,
                         CASE WHEN a.type IN ('totp', 'webauthn') THEN 'factor' ELSE a.type END AS kind
                    FROM additions_to(u.id, '-infinity') AS a
                   WHERE 'remove' = ANY (acts)) AS added
         ON wanted.act = 'remove'
        AND (added.id::text = wanted.id OR wanted.id IS NULL AND added.kind = wanted.kind)
   ) AS refused (key)
   WHERE u.id = locked_caller_state.user_id
$$;

-- Whether a token was used before the one of `used_counter`, and within the reuse interval: a late tab shows
-- it. `echoes` has, by `counter`, the counters of such tokens and when they stop being echoes. So it counts no
-- more once a step-up has moved `counter`, or a node of 0.5.1, which does not write it.
CREATE OR REPLACE FUNCTION is_echo(s sessions, sent bigint) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT coalesce((s.echoes -> s.counter::text ->> sent::text)::timestamptz > now(), false)
$$;

-- Returns an error_code, or null. Of a token that was skipped, or whose successor was used and that is no
-- echo, two clients have a copy: it is dead for good. That comes before the limit, or a thief could hide the
-- theft by using it up. A token ahead of the session is good: the database was restored from a backup.
CREATE OR REPLACE FUNCTION refresh_refusal(s sessions, sent bigint, most integer) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN sent < s.counter
                   AND sent <> CASE WHEN s.successor_counter = s.counter THEN s.used_counter
                                    ELSE s.counter - 1 END
                   AND NOT is_echo(s, sent) THEN 'refresh_token_already_used'
              WHEN s.refreshes >= most AND s.counted_until > now() THEN 'over_request_rate_limit' END
$$;

-- The window of refreshes of a session or API key after one more. Without `seconds`, which are those of the
-- window, the refresh is counted already.
CREATE OR REPLACE FUNCTION refresh_window(so_far integer, until timestamptz, seconds integer)
  RETURNS TABLE (refreshes integer, counted_until timestamptz)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT CASE WHEN until > now() THEN so_far + (seconds IS NOT NULL)::integer ELSE 1 END,
         CASE WHEN until > now() THEN until ELSE now() + make_interval(secs => coalesce(seconds, 0)) END
$$;

-- What a token that is not refused changes. A used one first returns the newest, because requests of one
-- client may cross; after `reuse_for`, the response was lost, and the newest is skipped. Call it in the SET
-- of an UPDATE, which sees the row as the previous request left it: N concurrent requests with one token move
-- the counter once and get the same token. `count_for` is null for a refresh that is counted already.
CREATE OR REPLACE FUNCTION refreshed(
  s sessions, sent bigint, rotates boolean, reuse_for integer, count_for integer
) RETURNS TABLE (counter bigint, used_counter bigint, successor_counter bigint, refreshed_at timestamptz,
                 refreshes integer, counted_until timestamptz)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT coalesce(new.counter, s.counter), CASE WHEN is_echo(s, sent) THEN s.used_counter ELSE sent END,
         coalesce(new.counter, s.counter),
         CASE WHEN new.counter IS NULL THEN s.refreshed_at ELSE now() END,
         counted.refreshes, counted.counted_until
    FROM (SELECT CASE WHEN sent >= s.counter OR NOT is_echo(s, sent)
                           AND s.refreshed_at <= now() - make_interval(secs => reuse_for)
                      THEN greatest(sent, s.counter) + rotates::integer END) AS new (counter)
   CROSS JOIN refresh_window(s.refreshes, s.counted_until, count_for) AS counted
$$;

-- `echoes` after the same refresh: those that still are, and the token that was used before this one.
CREATE OR REPLACE FUNCTION refreshed_echoes(s sessions, sent bigint, rotates boolean, reuse_for integer)
  RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN sent < s.counter THEN s.echoes
              ELSE (SELECT jsonb_build_object(sent + rotates::integer, jsonb_object_agg(used, until))
                      FROM (SELECT used, until::timestamptz
                              FROM jsonb_each_text(s.echoes -> s.counter::text) AS earlier (used, until)
                             UNION ALL
                            SELECT s.used_counter::text, s.refreshed_at + make_interval(secs => reuse_for)
                             WHERE s.successor_counter = s.counter) AS uses
                     WHERE until > now()
                    HAVING count(*) > 0) END
$$;

-- What the audit log says of a refresh, from the session as the refresh left it, or null.
CREATE OR REPLACE FUNCTION refresh_act(s sessions, sent bigint, rotates boolean, origin jsonb) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN s.refreshed_at = now()
              THEN CASE WHEN s.counter > sent + rotates::integer THEN 'refresh_answer_lost' END
              WHEN (s.ip, s.user_agent) IS DISTINCT FROM ((origin ->> 'ip')::inet, origin ->> 'user_agent')
              THEN 'refresh_token_repeated' END
$$;

-- Those of the user, without those of OAuth clients.
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
-- that opened it, or a stolen cookie could open fresh sessions. A `sign_up` that goes on in its window
-- authenticates nobody: the password was typed before. Nor does a provider where the user is signed in.
CREATE OR REPLACE FUNCTION authenticated_at(s sessions) RETURNS timestamptz
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN s.opened_by IS NOT NULL OR s.method = 'sign_up'
              THEN coalesce(s.reauthenticated_at, 'epoch')
              WHEN s.method = 'oauth'
              THEN coalesce(s.reauthenticated_at, s.created_at)
              ELSE greatest(s.created_at, s.reauthenticated_at) END
$$;

-- When the session's user last proved who they are. Null for an anonymous sign-in, which proves nothing.
CREATE OR REPLACE FUNCTION proved_at(s sessions) RETURNS timestamptz
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN s.method = 'anonymous' THEN s.reauthenticated_at ELSE authenticated_at(s) END
$$;

-- Call it with the user's row locked, so that concurrent sign-ins cannot exceed `most`. `network` is null
-- for a browser's session that is handed over, perhaps by a thief of the cookie: it makes no network known.
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

-- In seconds: without them there is no ban, and an infinite one is shown as the last year of ISO 8601.
CREATE OR REPLACE FUNCTION end_of_ban(seconds double precision) RETURNS timestamptz
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN seconds = 'infinity' THEN timestamptz '9999-12-31 23:59:59+00'
              WHEN seconds > 0 THEN now() + make_interval(secs => seconds) END
$$;

CREATE OR REPLACE FUNCTION user_object(u users) RETURNS json
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT (jsonb_build_object(
    'id', u.id,
    'role', u.role,
    'email', u.email,
    'email_confirmed_at', iso_8601(u.email_confirmed_at),
    'phone', u.phone,
    'phone_confirmed_at', iso_8601(u.phone_confirmed_at),
    'confirmed_at', iso_8601(least(u.email_confirmed_at, u.phone_confirmed_at)),
    'confirmation_sent_at', iso_8601(u.confirmation_sent_at),
    'invited_at', iso_8601(u.invited_at),
    'last_sign_in_at', iso_8601(u.last_sign_in_at),
    'app_metadata', u.app_metadata || jsonb_build_object(
      'provider', linked.providers[1], 'providers', linked.providers),
    'user_metadata', u.user_metadata,
    'identities', linked.objects,
    'new_email', u.new_email,
    'email_change_sent_at', iso_8601(u.email_change_sent_at),
    'new_phone', u.new_phone,
    'phone_change_sent_at', iso_8601(u.phone_change_sent_at),
    'banned_until', CASE WHEN is_banned(u) THEN iso_8601(u.banned_until) END,
    'is_anonymous', is_anonymous(u),
    'created_at', iso_8601(u.created_at),
    'updated_at', iso_8601(u.updated_at)
  ) || factors_member(u.id))::json
    FROM identities_of(u.id) AS linked
$$;

-- With the identities that the calling statement has written: PL/pgSQL takes a new snapshot; a function in
-- SQL would be inlined. Only for a locked row: otherwise the columns may be older than the identities.
CREATE OR REPLACE FUNCTION written_user_object(u users) RETURNS json
  LANGUAGE plpgsql VOLATILE
AS $$ BEGIN RETURN user_object(u); END $$;

-- Of a copy from during a ban. Metadata that contains the text costs the comparison, nothing else.
CREATE OR REPLACE FUNCTION without_ended_ban(object text) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN object LIKE '%"banned_until": "%'
              THEN CASE WHEN (object::jsonb ->> 'banned_until')::timestamptz <= now()
                        THEN (object::jsonb || '{"banned_until": null}')::text ELSE object END
              ELSE object END
$$;

CREATE OR REPLACE FUNCTION with_audience(object text, audience text) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT '{"aud": ' || to_json(audience) || ', ' || substr(without_ended_ban(object), 2)
$$;

CREATE OR REPLACE FUNCTION is_unused_sign_up(u users) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT u.made_by = 'signup' AND gives_way(u)
$$;

-- How many of a thousand users a search finds; 0 in a small table. Ids are random. The two functions below
-- plan by this: Postgres guesses the same for every beginning of a word, and new rows have no statistics.
CREATE OR REPLACE FUNCTION found_in_sample(prefix text) RETURNS bigint
  LANGUAGE plpgsql STABLE
  SET plan_cache_mode = force_custom_plan
  SET enable_indexscan = on
AS $$
BEGIN
  IF prefix IS NULL OR pg_relation_size('users') < 16 * 1024 * 1024 THEN
    RETURN 0;
  END IF;
  RETURN (SELECT count(*)
            FROM (SELECT * FROM users ORDER BY id LIMIT 1000) AS u
           WHERE is_listed(u, NULL, NULL, prefix));
END
$$;

-- Up to `most`. To collect the users with a common word from the index takes longer than to read some of all.
CREATE OR REPLACE FUNCTION total_of_users(
  wanted_email text, wanted_role text, prefix text, anonymous boolean, most integer
) RETURNS bigint
  LANGUAGE plpgsql STABLE
  SET plan_cache_mode = force_custom_plan
  SET enable_seqscan = on
  SET enable_indexscan = on
  SET enable_bitmapscan = on
AS $$
BEGIN
  IF prefix IS NOT NULL THEN
    PERFORM set_config('enable_indexscan', 'off', true),
            set_config(CASE WHEN most IS NOT NULL AND found_in_sample(prefix) > 50
                            THEN 'enable_bitmapscan' ELSE 'enable_seqscan' END, 'off', true);
  END IF;
  RETURN (SELECT count(*)
            FROM (SELECT
                    FROM users
                   WHERE is_listed(users, wanted_email, wanted_role, prefix)
                     AND (anonymous IS NULL OR is_anonymous(users) = anonymous)
                   LIMIT most) AS found);
END
$$;

-- plpgsql plans with the parameters' values: each CASE becomes a column, which an index may sort, or nothing.
CREATE OR REPLACE FUNCTION page_of_users(
  wanted_email text, wanted_role text, prefix text, sort text, descending boolean, page_size integer,
  page_offset bigint, anonymous boolean
) RETURNS SETOF uuid
  LANGUAGE plpgsql STABLE ROWS 20
  SET plan_cache_mode = force_custom_plan
  SET enable_seqscan = on
  SET enable_indexscan = on
  SET enable_bitmapscan = on
AS $$
BEGIN
  IF prefix IS NOT NULL THEN
    -- Either read users in the order of the page, or sort all that the index of words finds.
    PERFORM set_config('enable_seqscan', 'off', true),
            set_config(CASE WHEN sort = 'created_at' AND found_in_sample(prefix) >= 5
                            THEN 'enable_bitmapscan' ELSE 'enable_indexscan' END, 'off', true);
  END IF;
  RETURN QUERY
    SELECT id
      FROM users
     WHERE is_listed(users, wanted_email, wanted_role, prefix)
       AND (anonymous IS NULL OR is_anonymous(users) = anonymous)
     ORDER BY CASE WHEN sort = 'created_at' AND NOT descending THEN created_at
                   WHEN sort = 'updated_at' AND NOT descending THEN updated_at END,
              CASE WHEN sort = 'created_at' AND descending THEN created_at
                   WHEN sort = 'updated_at' AND descending THEN updated_at END DESC,
              CASE WHEN sort = 'last_sign_in_at' AND NOT descending THEN last_sign_in_at END,
              CASE WHEN sort = 'last_sign_in_at' AND descending THEN last_sign_in_at END DESC NULLS LAST,
              CASE WHEN sort = 'email' AND NOT descending THEN email END,
              CASE WHEN sort = 'email' AND descending THEN email END DESC NULLS LAST,
              CASE WHEN NOT descending THEN id END,
              CASE WHEN descending THEN id END DESC
     LIMIT page_size OFFSET page_offset;
END
$$;

-- Call it with the user's row locked. It is VOLATILE, to see what earlier transactions committed.
CREATE OR REPLACE FUNCTION write_user_object(owner uuid) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  INSERT INTO user_objects (user_id, object, last_sign_in_at)
  SELECT u.id, user_object(u)::text, coalesce(u.last_sign_in_at, '-infinity')
    FROM users AS u
   WHERE u.id = owner
  ON CONFLICT (user_id) DO UPDATE
     SET object = excluded.object, last_sign_in_at = excluded.last_sign_in_at
$$;

CREATE OR REPLACE FUNCTION user_has_changed() RETURNS trigger
  LANGUAGE plpgsql
AS $$ BEGIN PERFORM write_user_object(NEW.id); RETURN NULL; END $$;

CREATE OR REPLACE TRIGGER users_object
  AFTER INSERT OR UPDATE ON users FOR EACH ROW EXECUTE FUNCTION user_has_changed();

CREATE OR REPLACE FUNCTION identity_has_changed() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM FROM users WHERE id IN (OLD.user_id, NEW.user_id) ORDER BY id FOR NO KEY UPDATE;
  PERFORM write_user_object(id) FROM users WHERE id IN (OLD.user_id, NEW.user_id);
  RETURN NULL;
END
$$;

-- Not for last_sign_in_at alone: what writes it writes the user's too, and a sign-in would copy twice.
CREATE OR REPLACE TRIGGER identities_object
  AFTER INSERT OR DELETE OR UPDATE OF user_id, provider, subject, identity_data, created_at, updated_at
  ON identities FOR EACH ROW EXECUTE FUNCTION identity_has_changed();

-- After an upgrade: writes missing and outdated copies. Locks nothing that a refresh needs.
INSERT INTO user_objects (user_id, object, last_sign_in_at)
SELECT u.id, user_object(u)::text, coalesce(u.last_sign_in_at, '-infinity')
  FROM users AS u
  LEFT JOIN user_objects AS copy ON copy.user_id = u.id
 WHERE copy.object IS DISTINCT FROM user_object(u)::text
    OR copy.last_sign_in_at <> coalesce(u.last_sign_in_at, '-infinity')
ON CONFLICT (user_id) DO UPDATE
   SET object = excluded.object, last_sign_in_at = excluded.last_sign_in_at;

-- What can sign in and was added to a user since a moment, with the applications that the user allowed and
-- the user's API keys, which work without a session of the user. Everything that a thief may add belongs in
-- this list. The identity of an address is as old as the address. What the user was created with does not
-- count; an OAuth sign-up writes the email a microsecond later.
CREATE OR REPLACE FUNCTION additions_to(owner uuid, since timestamptz)
  RETURNS TABLE (id uuid, type text, added_at timestamptz, label text)
  LANGUAGE sql STABLE ROWS 1
AS $$
  SELECT i.id, CASE WHEN is_address THEN i.provider ELSE 'identity' END, moment,
         CASE WHEN is_address THEN i.identity_data ->> i.provider
              ELSE concat_ws(' ', i.provider, i.identity_data ->> 'email') END
    FROM identities AS i
    JOIN users AS u ON u.id = i.user_id
   CROSS JOIN LATERAL (SELECT i.provider IN ('email', 'phone')) AS kind (is_address)
   CROSS JOIN LATERAL (SELECT CASE WHEN is_address THEN i.updated_at ELSE i.created_at END) AS added (moment)
   WHERE i.user_id = owner AND moment >= since AND moment > u.created_at + interval '1 microsecond'
   UNION ALL
  SELECT f.id, f.factor_type, f.verified_at, f.friendly_name
    FROM factors AS f
   WHERE f.user_id = owner AND f.verified_at >= since
   UNION ALL
  SELECT o.id, 'grant', o.granted_at, c.name
    FROM oauth_grants AS o
    JOIN oauth_clients AS c ON c.id = o.client_id
   WHERE o.user_id = owner AND o.granted_at >= since
   UNION ALL
  SELECT k.id, 'api_key', k.created_at, k.name
    FROM api_keys AS k
   WHERE k.user_id = owner AND k.created_at >= since
$$;

-- `usable`: the configured providers, and email, phone and passkey if they are enabled. A second factor is
-- not a way to sign in. If `usable` contains `password`, one is, with an address that is confirmed and not
-- proved.
CREATE OR REPLACE FUNCTION can_sign_in(owner uuid, usable text[]) RETURNS boolean
  LANGUAGE sql STABLE
AS $$
  SELECT EXISTS (
    SELECT
      FROM identities AS i
      JOIN users AS u ON u.id = i.user_id
     CROSS JOIN LATERAL (SELECT 'password' = ANY (usable) AND u.password_hash IS NOT NULL)
             AS own (has_password)
     WHERE i.user_id = owner AND i.provider = ANY (usable)
       AND CASE i.provider
             WHEN 'email' THEN is_proved(u, 'email') OR u.email_confirmed_at IS NOT NULL AND has_password
             WHEN 'phone' THEN is_proved(u, 'phone') OR u.phone_confirmed_at IS NOT NULL AND has_password
             ELSE true
           END
  ) OR 'passkey' = ANY (usable)
       AND EXISTS (SELECT FROM factors WHERE user_id = owner AND factor_type = 'passkey')
$$;

-- Two administrators who leave at once must not both count the other. Call it with the user's row locked. It
-- is VOLATILE, to see what the previous holder of its lock committed.
CREATE OR REPLACE FUNCTION lock_administrators() RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  SELECT pg_advisory_xact_lock(7239004121)
$$;

CREATE OR REPLACE FUNCTION is_last_administrator(u users) RETURNS boolean
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  IF u.role <> 'admin' THEN
    RETURN false;
  END IF;
  PERFORM lock_administrators();
  RETURN NOT EXISTS (SELECT
                       FROM users AS other
                      WHERE other.role = 'admin' AND other.id <> u.id
                        AND NOT is_banned(other));
END
$$;

-- The lock makes concurrent requests count correctly.
CREATE OR REPLACE FUNCTION has_room_for_webhook(most integer) RETURNS boolean
  LANGUAGE sql VOLATILE
AS $$
  SELECT pg_advisory_xact_lock(7239004118);
  SELECT count(*) < most FROM webhooks
$$;

CREATE OR REPLACE FUNCTION tell_administrators(webhook_url text, most integer) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  SELECT write_message(gen_random_uuid(), id, 'webhook_disabled', email,
                       jsonb_build_object('webhook_url', webhook_url))
    FROM users
   WHERE role = 'admin' AND is_proved(users, 'email') AND NOT is_banned(users)
   ORDER BY created_at, id
   LIMIT most
$$;
