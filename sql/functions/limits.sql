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
-- limit, is not null, the verdict must not be revealed. `refused_for` is in seconds, of that limit; the
-- count is the first one's. Locks the counts in their order. A refused right password counts as wrong: an
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
