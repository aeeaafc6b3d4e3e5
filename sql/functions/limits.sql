-- Every kind of count. Verdicts count for a user, an address or a code, each for one network and for all
-- unknown networks together. A verdict locks its counts in this order.
CREATE OR REPLACE FUNCTION verdict_kinds() RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT ARRAY['login', 'account', 'user', 'nobody', 'try', 'code', 'totp', 'recovery', 'api_key', 'device']
$$;

-- Messages count for a recipient, a network's tenth of a total, or the total itself.
CREATE OR REPLACE FUNCTION message_kinds() RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT ARRAY['message', 'invite', 'mail', 'mail_tenth', 'mail_over', 'sms', 'sms_tenth', 'sms_over',
               'notices_sms']
$$;

-- The text of a limit's columns. Messages have several windows, and seconds in their keys.
CREATE OR REPLACE FUNCTION failure_key(counted failure_limit) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT concat_ws(' ', counted.kind, counted.subject, counted.network,
                   CASE WHEN counted.kind = ANY (message_kinds()) THEN counted.seconds END)
$$;

-- Counts nothing without a kind.
CREATE OR REPLACE FUNCTION add_to_count(counted failure_limit, tries integer)
  RETURNS TABLE (count bigint, seconds_left double precision)
  LANGUAGE sql VOLATILE ROWS 1
AS $$
  INSERT INTO failure_counts AS f (key, count, expires_at, kind, subject, network, seconds)
  SELECT failure_key(counted), tries, now() + make_interval(secs => counted.seconds),
         counted.kind, counted.subject, counted.network, counted.seconds
   WHERE counted.kind IS NOT NULL
  ON CONFLICT (key) DO UPDATE
     SET count = CASE WHEN f.expires_at <= now() THEN excluded.count ELSE f.count + excluded.count END,
         expires_at = CASE WHEN f.expires_at <= now() THEN excluded.expires_at ELSE f.expires_at END
  RETURNING f.count, extract(epoch FROM f.expires_at - now())::double precision
$$;

-- Records a verdict on a password or code before it is revealed. If `refused_by`, the kind of a used-up
-- limit, is not null, the verdict must not be revealed. `refused_for` are the seconds of that limit; the
-- count is the first one's. Locks the counts in their order. Lock the user's row after that, even for a wrong
-- password: otherwise the lock would reveal the verdict. A refused right password counts as wrong: an
-- unchanged count would reveal it.
CREATE OR REPLACE FUNCTION record_verdict(limits failure_limit[], tries integer, is_right boolean)
  RETURNS TABLE (refused_by text, refused_for double precision, count bigint, seconds_left double precision)
  LANGUAGE plpgsql VOLATILE ROWS 1
AS $$
DECLARE
  l failure_limit;
  counted record;
BEGIN
  FOREACH l IN ARRAY coalesce(limits, '{}') LOOP
    SELECT c.* INTO counted FROM add_to_count(l, tries) AS c;
    count := coalesce(count, counted.count);
    seconds_left := coalesce(seconds_left, counted.seconds_left);
    IF counted.count > l.amount THEN
      refused_by := l.kind;
      refused_for := counted.seconds_left;
      EXIT;
    END IF;
  END LOOP;
  IF is_right AND refused_by IS NULL THEN
    PERFORM add_to_count(given::failure_limit, -tries) FROM unnest(limits) AS given;
  END IF;
  RETURN NEXT;
END
$$;

-- Wrong ones count for the subject and network, and for the subject alone if the network is unknown, so that
-- no attacker on another network can lock a user out. `failures` has the amount and seconds of both.
CREATE OR REPLACE FUNCTION limits_of(
  kind text, kind_of_all text, subject text, owner uuid, here text, failures integer[]
) RETURNS failure_limit[]
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT ARRAY[(kind, subject, here, failures[1], failures[2])::failure_limit]
      || CASE WHEN NOT is_known_network(owner, here)
              THEN ARRAY[(kind_of_all, subject, NULL, failures[3], failures[4])::failure_limit] END
$$;

-- Wrong passwords count for the address and for its user. Only the limits of the address reveal that they are
-- used up: strangers must not learn that an email and a phone belong together. Without `failures` there is no
-- limit.
CREATE OR REPLACE FUNCTION password_limits(address text, owner uuid, here text, failures integer[])
  RETURNS failure_limit[]
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT limits_of('login', 'account', address, owner, here, failures)
      || limits_of(holder, holder, coalesce(owner::text, address), owner, here, failures)
    FROM (VALUES (CASE WHEN owner IS NULL THEN 'nobody' ELSE 'user' END)) AS owned (holder)
   WHERE failures IS NOT NULL
$$;

-- Locks the user out.
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

-- A known network: one of the last ten where the user passed every step, or one where a mailed link or code
-- was used within a day.
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

-- Whether a sign-in is from a network and a browser, `here` and `browser` of `known_networks`, where this
-- user has never passed every step. False for a user's first sign-in.
CREATE OR REPLACE FUNCTION is_new_sign_in(u users, here text, browser text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT here IS NOT NULL AND u.last_sign_in_at IS NOT NULL
     AND NOT EXISTS (SELECT FROM known_networks AS n
                      WHERE n.user_id = u.id AND n.network IN (here, browser) AND n.passed_at IS NOT NULL)
$$;

-- Call it with the user's row locked, after the user has passed every step.
CREATE OR REPLACE FUNCTION know_network(owner uuid, here text) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  INSERT INTO known_networks (user_id, network, passed_at) VALUES (owner, here, now())
  ON CONFLICT ON CONSTRAINT known_networks_pkey DO UPDATE SET seen_at = now(), passed_at = now()
$$;

-- Gives a network where a mailed link or code was spent its own tries. At most three networks a day, because
-- a thief of the mailbox can use links from anywhere. Call it with the user's row locked.
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

-- Counts in one window after the other until one refuses: `remaining` is then below 0. Returns that window,
-- or else the one with the least remaining.
CREATE OR REPLACE FUNCTION take_from_windows(windows jsonb)
  RETURNS TABLE (amount integer, remaining integer, resets_in double precision)
  LANGUAGE plpgsql VOLATILE ROWS 1
AS $$
DECLARE
  l failure_limit;
  counted record;
BEGIN
  FOR l IN SELECT * FROM jsonb_populate_recordset(NULL::failure_limit, windows) LOOP
    SELECT l.amount - c.count AS rest, c.seconds_left INTO counted FROM add_to_count(l, 1) AS c;
    IF remaining IS NULL OR counted.rest < remaining THEN
      SELECT l.amount, counted.rest, counted.seconds_left INTO amount, remaining, resets_in;
    END IF;
    EXIT WHEN remaining < 0;
  END LOOP;
  RETURN NEXT;
END
$$;
