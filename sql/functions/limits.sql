-- Takes back the count of a try whose password was right, and no other (see begin_password_attempt).
CREATE OR REPLACE FUNCTION take_back_attempt(address text, network text, is_stranger boolean) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  UPDATE failure_counts
     SET count = greatest(count - 1, 0)
   WHERE key = ANY (ARRAY(SELECT counter.key
                            FROM failure_counts AS counter
                           WHERE counter.key = 'login ' || address || ' ' || network
                              OR (is_stranger AND counter.key = 'account ' || address)
                           -- First the one that begin_password_attempt counts first: two that count the same can't wait for each other.
                           ORDER BY counter.key DESC
                             FOR UPDATE))
$$;

-- Counts in the window of a key, which begins with the first and lasts so many seconds; no row for no key.
CREATE OR REPLACE FUNCTION count_up(counted_key text, seconds integer) RETURNS TABLE (count bigint, seconds_left double precision)
  LANGUAGE sql VOLATILE
AS $$
  INSERT INTO failure_counts AS counter (key, count, expires_at)
  SELECT counted_key, 1, now() + make_interval(secs => seconds) WHERE counted_key IS NOT NULL
  ON CONFLICT (key) DO UPDATE
     SET count = CASE WHEN counter.expires_at <= now() THEN 1 ELSE counter.count + 1 END,
         expires_at = CASE WHEN counter.expires_at <= now() THEN excluded.expires_at ELSE counter.expires_at END
  RETURNING counter.count, extract(epoch FROM counter.expires_at - now())::double precision
$$;

-- Counts in several windows, one after the other. `seconds_left` is 0 where all allow one more, else how long the first does not that
-- refuses; the rest tells of that one, or of the one with the least left. What one has refused does not count in those after it:
-- nobody can use up another's messages, or everybody's, by asking in vain.
CREATE OR REPLACE FUNCTION take_from_quota(keys text[], amounts integer[], seconds integer[])
  RETURNS TABLE (seconds_left double precision, amount integer, remaining integer, resets_in double precision)
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  counted record;
BEGIN
  seconds_left := 0;
  FOR place IN 1 .. coalesce(array_length(keys, 1), 0) LOOP
    SELECT * INTO counted FROM count_up(keys[place], seconds[place]);
    -- One that refuses has less than nothing left.
    IF remaining IS NULL OR amounts[place] - counted.count < remaining THEN
      amount := amounts[place];
      remaining := amounts[place] - counted.count;
      resets_in := counted.seconds_left;
    END IF;
    IF remaining < 0 THEN
      remaining := 0;
      seconds_left := resets_in;
      EXIT;
    END IF;
  END LOOP;
  RETURN NEXT;
END
$$;
