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

-- The id is what a token hook was told, if there is one.
CREATE OR REPLACE FUNCTION open_session(
  owner uuid, method text, ip inet, network text, user_agent text,
  most integer, lifetime integer, timebox integer
) RETURNS SETOF sessions
  LANGUAGE sql VOLATILE ROWS 1
AS $$
  SELECT *
    FROM begin_session(coalesce(nullif(current_setting('latchkey.session_id', true), '')::uuid,
                               gen_random_uuid()),
                      owner, method, ip, network, user_agent, most, lifetime, timebox)
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

-- An undo removes what was added since the session that made the change began, and in the week before it.
CREATE OR REPLACE FUNCTION undone_since(acting_session uuid, changed_at timestamptz) RETURNS timestamptz
  LANGUAGE sql STABLE
AS $$
  SELECT least(changed_at - interval '7 days', (SELECT created_at FROM sessions WHERE id = acting_session))
$$;

-- Whether a user had no address when something was added at a moment, so that no notice could be mailed.
CREATE OR REPLACE FUNCTION had_no_address(owner uuid, moment timestamptz) RETURNS boolean
  LANGUAGE sql STABLE
AS $$
  SELECT NOT EXISTS (SELECT
                       FROM identities AS i
                      WHERE i.user_id = owner AND i.provider IN ('email', 'phone')
                        -- An OAuth sign-up writes the email a microsecond later.
                        AND i.created_at <= greatest(moment + interval '1 microsecond',
                                                     now() - interval '7 days'))
$$;

-- When a user who then had no address got the passkey or identity that proved this session within 15 minutes.
-- Null if there is none. What was added later can be taken back with it.
CREATE OR REPLACE FUNCTION proved_with_older(s sessions) RETURNS timestamptz
  LANGUAGE sql STABLE
AS $$
  SELECT known.since
    FROM (SELECT i.created_at
            FROM identities AS i
           WHERE i.id = s.identity_id AND i.user_id = s.user_id AND s.opened_by IS NULL
             AND s.created_at > now() - interval '15 minutes'
           UNION ALL
          SELECT f.verified_at
            FROM factors AS f
           CROSS JOIN jsonb_array_elements(methods_of(s)) AS given
           WHERE f.id = s.factor_id AND f.user_id = s.user_id AND f.factor_type = 'passkey'
             AND given ->> 'method' = 'webauthn'
             AND to_timestamp((given ->> 'timestamp')::bigint) > now() - interval '15 minutes'
         ) AS known (since)
   WHERE had_no_address(s.user_id, known.since)
   ORDER BY known.since
   LIMIT 1
$$;

-- What an undo link removes was added since this moment: never what is older than the address that the link
-- was sent to. Otherwise a thief who adds the first address could remove the passkey from before by it.
CREATE OR REPLACE FUNCTION undone_by(t one_time_tokens) RETURNS timestamptz
  LANGUAGE sql STABLE
AS $$
  SELECT greatest(undone_since(t.session_id, t.created_at),
                  -- The identity that brought the address is a microsecond older.
                  (SELECT i.created_at - interval '1 microsecond'
                     FROM identities AS i
                    WHERE i.user_id = t.user_id AND i.provider IN ('email', 'phone')
                      AND i.identity_data ->> i.provider = t.target))
$$;

CREATE OR REPLACE FUNCTION refusal_of_act(
  actor text, u users, s sessions, aal text, required text, given text, proof_age integer, change_age integer,
  act text, kind text, added_at timestamptz, since timestamptz
) RETURNS text
  LANGUAGE sql STABLE
AS $$
  SELECT CASE WHEN actor <> 'undo_link'
              THEN refusal_of_act(actor, u, s, aal, required, given, proof_age, change_age, act, kind,
                                  added_at)
              WHEN (act = 'remove' AND added_at >= since) IS NOT TRUE THEN 'undo.insufficient_aal' END
$$;

-- Such a node counts before it compares, and takes back what was right.
CREATE OR REPLACE FUNCTION take_back_attempt(address text, network text, is_stranger boolean) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  WITH attempt AS (
    SELECT ARRAY['login ' || address || ' ' || network]
             || CASE WHEN is_stranger THEN ARRAY['account ' || address] END
             || ARRAY['user ' || u.id || ' ' || network]
             || CASE WHEN is_stranger THEN ARRAY['user ' || u.id] END AS keys
      FROM users AS u
     WHERE u.email = address OR u.phone = address
  )
  UPDATE failure_counts
     SET count = greatest(count - 1, 0)
   WHERE key = ANY (ARRAY(SELECT f.key
                            FROM attempt
                            JOIN failure_counts AS f ON f.key = ANY (attempt.keys)
                           ORDER BY array_position(attempt.keys, f.key)
                             FOR UPDATE OF f))
$$;

CREATE OR REPLACE FUNCTION has_own_tries(owner uuid, here text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT is_known_network(owner, here)
$$;

CREATE OR REPLACE FUNCTION pass_second_step(owner uuid, here text) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  SELECT know_network(owner, here)
$$;

CREATE OR REPLACE FUNCTION spend_code(address text, macs bytea[], purposes text[], browser bytea)
  RETURNS SETOF one_time_tokens
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  IF cardinality(macs) = 0 OR (SELECT count FROM count_up('code ' || address, 86400)) > 20 THEN
    RETURN;
  END IF;
  PERFORM FROM users AS u
    WHERE u.id = ANY (ARRAY(SELECT t.user_id FROM one_time_tokens AS t
                             WHERE t.target = address AND t.code_mac IS NOT NULL))
    ORDER BY u.id
      FOR UPDATE;
  RETURN QUERY
    WITH tried AS (
      UPDATE one_time_tokens AS t
         SET tries = t.tries + 1,
             spent_at = CASE WHEN t.code_mac = ANY (macs) THEN now() END
       WHERE t.target = address AND t.purpose = ANY (purposes) AND t.code_mac IS NOT NULL
         AND (t.browser_hash IS NULL OR t.browser_hash = browser)
         AND t.tries < 5 AND t.spent_at IS NULL AND t.code_expires_at > now()
         AND NOT EXISTS (SELECT FROM one_time_tokens AS newer
                          WHERE newer.target = t.target AND newer.code_mac IS NOT NULL
                            AND (newer.browser_hash IS NULL OR newer.browser_hash = browser)
                            AND newer.created_at > t.created_at)
      RETURNING t.*
    )
    SELECT * FROM tried WHERE tried.spent_at IS NOT NULL;
  IF FOUND THEN
    UPDATE failure_counts AS c SET count = greatest(c.count - 1, 0) WHERE c.key = 'code ' || address;
  END IF;
END
$$;

CREATE OR REPLACE FUNCTION count_up(counted_key text, seconds integer)
  RETURNS TABLE (count bigint, seconds_left double precision)
  LANGUAGE sql VOLATILE
AS $$
  INSERT INTO failure_counts AS f (key, count, expires_at)
  SELECT counted_key, 1, now() + make_interval(secs => seconds) WHERE counted_key IS NOT NULL
  ON CONFLICT (key) DO UPDATE
     SET count = CASE WHEN f.expires_at <= now() THEN 1 ELSE f.count + 1 END,
         expires_at = CASE WHEN f.expires_at <= now() THEN excluded.expires_at ELSE f.expires_at END
  RETURNING f.count, extract(epoch FROM f.expires_at - now())::double precision
$$;

CREATE OR REPLACE FUNCTION take_from_quota(keys text[], amounts integer[], seconds integer[])
  RETURNS TABLE (seconds_left double precision, amount integer, remaining integer, resets_in double precision)
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE counted record;
BEGIN
  seconds_left := 0;
  FOR i IN 1 .. coalesce(cardinality(keys), 0) LOOP
    SELECT amounts[i] - c.count AS rest, c.seconds_left INTO counted FROM count_up(keys[i], seconds[i]) AS c;
    IF remaining IS NULL OR counted.rest < remaining THEN
      SELECT amounts[i], greatest(0, counted.rest), counted.seconds_left INTO amount, remaining, resets_in;
    END IF;
    seconds_left := CASE WHEN counted.rest < 0 THEN counted.seconds_left ELSE 0 END;
    EXIT WHEN seconds_left > 0;
  END LOOP;
  RETURN NEXT;
END
$$;

-- Such a node writes a key and no columns.
CREATE OR REPLACE FUNCTION fill_failure_count() RETURNS trigger
  LANGUAGE plpgsql
AS $$
DECLARE
  parts text[] := string_to_array(NEW.key, ' ');
BEGIN
  IF parts[1] = ANY (message_kinds()) THEN
    NEW.seconds := parts[cardinality(parts)];
    parts := trim_array(parts, 1);
  END IF;
  SELECT parts[1], parts[2], parts[3] INTO NEW.kind, NEW.subject, NEW.network;
  RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER failure_counts_without_columns BEFORE INSERT OR UPDATE ON failure_counts
  FOR EACH ROW WHEN (NEW.kind IS NULL) EXECUTE FUNCTION fill_failure_count();
UPDATE failure_counts SET key = key WHERE kind IS NULL;

-- Such a node replaces the secret of a client, and knows no previous one that it has to end.
CREATE OR REPLACE FUNCTION end_previous_secret() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  NEW.previous_secret_hash := NULL;
  NEW.previous_secret_expires_at := NULL;
  RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER oauth_clients_previous_secret BEFORE UPDATE ON oauth_clients
  FOR EACH ROW
  WHEN (NEW.secret_hash <> OLD.secret_hash AND NEW.previous_secret_hash = OLD.previous_secret_hash)
  EXECUTE FUNCTION end_previous_secret();

CREATE OR REPLACE FUNCTION void_one_time_tokens(owner uuid) RETURNS bigint
  LANGUAGE sql VOLATILE
AS $$
  SELECT void_tokens(owner);
  SELECT 0::bigint
$$;

CREATE OR REPLACE FUNCTION is_listed(
  entry audit_log, subject uuid, wanted_action text, since timestamptz, until timestamptz,
  wanted_request_id text
) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT entry_is_listed(entry, subject, wanted_action, since, until, wanted_request_id)
$$;

-- identities_of for a statement that has written one identity (or null) itself, which it cannot see yet.
CREATE OR REPLACE FUNCTION identities_with(written identities, owner uuid)
  RETURNS TABLE (objects json, providers text[])
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT coalesce(json_agg(identity_object(i) ORDER BY (i).created_at, (i).provider), '[]'::json),
         coalesce(array_agg((i).provider ORDER BY (i).created_at, (i).provider), '{}')
    FROM (SELECT written AS i WHERE written.id IS NOT NULL
           UNION ALL
          SELECT i FROM identities AS i WHERE i.user_id = owner AND i.id IS DISTINCT FROM written.id) AS every
$$;

CREATE OR REPLACE FUNCTION user_object(u users, identities json, providers text[]) RETURNS json
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT (user_object(u)::jsonb || jsonb_build_object(
    'app_metadata', u.app_metadata || jsonb_build_object('provider', providers[1], 'providers', providers),
    'identities', identities))::json
$$;

CREATE OR REPLACE FUNCTION user_object(u users, identities json, providers text[], audience text)
  RETURNS json
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT with_audience(user_object(u, identities, providers)::text, audience)::json
$$;

-- Functions of earlier releases that nothing calls. Dropped here rather than by a migration, because they are
-- in use until the others are replaced.
DROP FUNCTION IF EXISTS added_to(uuid, timestamptz);
DROP FUNCTION IF EXISTS caller_state(users, sessions, bigint, integer, integer);
DROP FUNCTION IF EXISTS locked_caller_state(uuid, uuid, bigint, integer, integer, boolean, integer);
DROP FUNCTION IF EXISTS locked_caller_state(
  uuid, uuid, bigint, integer, integer, boolean, integer, text, text, text, boolean
);
DROP FUNCTION IF EXISTS refusal_of_acts(
  users, sessions, text, text, text, integer, integer, text[], text[], text[]
);
DROP FUNCTION IF EXISTS page_of_users(text, text, text, text, boolean, integer, bigint);
DROP FUNCTION IF EXISTS spend_code(text, bytea, text[]);
DROP FUNCTION IF EXISTS spend_code(text, bytea[], text[]);
DROP FUNCTION IF EXISTS timeline_of(uuid, integer, integer, bigint);
DROP FUNCTION IF EXISTS timeline_of_sessions(uuid, integer, integer);
