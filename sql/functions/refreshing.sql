-- Which refresh tokens of a session are valid, and the changes of a refresh. The newest used token is valid
-- until its successor is used: the response with the successor may be lost. `used_counter` is its counter,
-- and `successor_counter` that of the successor. If the session's counter differs, a step-up or release 0.3.0
-- has moved it; then the used one is `counter - 1`. `sent` is the counter of the client's token; `reuse_for`
-- and `count_for` are seconds.

-- Whether a token is an echo, which a late tab sends: it was used before the one of `used_counter`, within
-- the reuse interval. `echoes` has, by `counter`, the counters of such tokens and when they stop being
-- echoes. It no longer applies once a step-up, or a node of 0.5.1, which does not write it, has moved
-- `counter`.
CREATE OR REPLACE FUNCTION is_echo(s sessions, sent bigint) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT coalesce((s.echoes -> s.counter::text ->> sent::text)::timestamptz > now(), false)
$$;

-- Returns an error_code, or null. If a token was skipped, or its successor was used and it is not an echo,
-- then two clients have a copy: it is dead for good. This comes before the limit, or a thief could use up the
-- limit to hide the theft. A token ahead of the session is valid: the database was restored from a backup.
CREATE OR REPLACE FUNCTION refresh_refusal(s sessions, sent bigint, most integer) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN sent < s.counter
                   AND sent <> CASE WHEN s.successor_counter = s.counter THEN s.used_counter
                                    ELSE s.counter - 1 END
                   AND NOT is_echo(s, sent) THEN 'refresh_token_already_used'
              WHEN s.refreshes >= most AND s.counted_until > now() THEN 'over_request_rate_limit' END
$$;

-- The window of refreshes of a session or API key after another one. Without `seconds`, the length of the
-- window, the refresh is counted already.
CREATE OR REPLACE FUNCTION refresh_window(so_far integer, until timestamptz, seconds integer)
  RETURNS TABLE (refreshes integer, counted_until timestamptz)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT CASE WHEN until > now() THEN so_far + (seconds IS NOT NULL)::integer ELSE 1 END,
         CASE WHEN until > now() THEN until ELSE now() + make_interval(secs => coalesce(seconds, 0)) END
$$;

-- The changes by an accepted token. A used token first returns the newest one, because requests of a client
-- may cross. After `reuse_for`, the response was lost, and the newest is skipped. Call it in the SET of an
-- UPDATE, which sees the row as the previous request left it: N concurrent requests with one token move the
-- counter once and get the same token. `count_for` is null for a refresh that is counted already.
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

-- `echoes` after the same refresh: the remaining ones, and the token that was used before this one.
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

-- The entry of the audit log for a refresh, from the session after the refresh, or null.
CREATE OR REPLACE FUNCTION refresh_act(s sessions, sent bigint, rotates boolean, origin jsonb) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN s.refreshed_at = now()
              THEN CASE WHEN s.counter > sent + rotates::integer THEN 'refresh_answer_lost' END
              WHEN (s.ip, s.user_agent) IS DISTINCT FROM ((origin ->> 'ip')::inet, origin ->> 'user_agent')
              THEN 'refresh_token_repeated' END
$$;
