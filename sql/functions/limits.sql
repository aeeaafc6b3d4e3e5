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
DECLARE
  counted record;
BEGIN
  seconds_left := 0;
  FOR i IN 1 .. coalesce(array_length(keys, 1), 0) LOOP
    SELECT * INTO counted FROM count_up(keys[i], seconds[i]);
    IF remaining IS NULL OR amounts[i] - counted.count < remaining THEN
      amount := amounts[i];
      remaining := amounts[i] - counted.count;
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
