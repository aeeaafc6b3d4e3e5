-- Locks the counts in the order of begin_password_attempt, to avoid deadlocks.
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

-- Counts in one window after the other until one refuses: `seconds_left` is then above 0. The other columns
-- describe the window that refused, or else the one with the least remaining.
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

-- Whether wrong codes of a user's second step count for a network alone. The numbers are those in
-- docs/security.md.
CREATE OR REPLACE FUNCTION has_own_tries(owner uuid, here text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT here = ANY (ARRAY(SELECT n.network
                             FROM known_networks AS n
                            WHERE n.user_id = owner AND n.passed_at > now() - interval '365 days'
                            ORDER BY n.passed_at DESC
                            LIMIT 10))
         OR EXISTS (SELECT
                      FROM known_networks AS n
                     WHERE n.user_id = owner AND n.network = here
                       AND n.mail_proved_at > now() - interval '1 day')
$$;

-- Call it with the user's row locked.
CREATE OR REPLACE FUNCTION pass_second_step(owner uuid, here text) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  INSERT INTO known_networks (user_id, network, passed_at) VALUES (owner, here, now())
  ON CONFLICT (user_id, network) DO UPDATE SET seen_at = now(), passed_at = now()
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
