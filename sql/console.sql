-- name: count_hours() -> row
-- Counts in the audit log: if each sign-in incremented a counter, all of them would wait for one row.
-- Recounts from an hour before the last time, because a row has the time at which its transaction began.
-- Counts at most six hours at once, to keep the first runs short.
WITH past AS (
  SELECT date_trunc('hour', coalesce((SELECT at FROM last_done WHERE task = 'counts'),
                                     now() - interval '31 days') - interval '1 hour', 'UTC') AS since
), span AS MATERIALIZED (
  SELECT since, least(now(), since + interval '6 hours') AS until FROM past
), counts AS (
  SELECT date_trunc('hour', entry.at, 'UTC') AS hour, entry.action AS name, sum(entry.count) AS count
    FROM span
    JOIN audit_log AS entry
      ON entry.at >= span.since AND entry.at < span.until
     AND (entry.reason IS NOT NULL OR entry.action IN ('user_created', 'signed_in', 'refresh_token_reused'))
   GROUP BY 1, 2
   UNION ALL
  SELECT date_trunc('hour', m.finished_at, 'UTC'), 'messages_' || m.outcome, count(*)
    FROM span
    JOIN outbox AS m
      ON m.finished_at >= span.since AND m.finished_at < span.until
     AND m.outcome IN ('sent', 'failed', 'expired') AND m.channel <> 'webhook'
   GROUP BY 1, 2
), written AS (
  INSERT INTO hourly_counts (hour, name, count) SELECT hour, name, count FROM counts
  ON CONFLICT (hour, name) DO UPDATE SET count = excluded.count
), forgotten AS (
  DELETE FROM hourly_counts WHERE hour < now() - interval '400 days'
), noted AS (
  INSERT INTO last_done (task, at) SELECT 'counts', until FROM span
  ON CONFLICT (task) DO UPDATE SET at = excluded.at
)
SELECT until = now() AS is_complete FROM span;

-- name: count_active_users()
-- Run once an hour, because it reads all sessions: a session refreshes too often for an index on that time.
INSERT INTO hourly_counts (hour, name, count)
SELECT date_trunc('hour', now(), 'UTC'), 'active_users', count(DISTINCT s.user_id)
  FROM sessions AS s
 WHERE s.refreshed_at > now() - interval '30 days'
ON CONFLICT (hour, name) DO UPDATE SET count = excluded.count;

-- name: list_daily_counts(days integer) -> rows
-- One row for each day in UTC, oldest first, preceded by the same number of days of the previous period. Only
-- the end of its first day counts, so that both periods have the same length.
WITH chart AS (
  SELECT now() AT TIME ZONE 'UTC' AS until,
         date_trunc('day', now() AT TIME ZONE 'UTC') - make_interval(days => :days - 1) AS since
)
SELECT to_char(day, 'YYYY-MM-DD') AS day,
       coalesce(sum(c.count) FILTER (WHERE c.name = 'signed_in'), 0)::bigint AS sign_ins,
       coalesce(sum(c.count) FILTER (WHERE c.name = 'user_created'), 0)::bigint AS sign_ups,
       coalesce(sum(c.count) FILTER (WHERE c.name = 'sign_in_refused'), 0)::bigint AS refused
  FROM chart
 CROSS JOIN generate_series(since - make_interval(days => :days), until, '1 day') AS day
  LEFT JOIN hourly_counts AS c
    ON c.hour >= greatest(day, since - (until - since)) AT TIME ZONE 'UTC'
   AND c.hour < (day + interval '1 day') AT TIME ZONE 'UTC'
   AND c.name IN ('signed_in', 'user_created', 'sign_in_refused')
 GROUP BY day
 ORDER BY day;

-- name: list_failures() -> rows
SELECT name,
       coalesce(sum(count) FILTER (WHERE hour > now() - interval '24 hours'), 0)::bigint AS today,
       coalesce(sum(count) FILTER (WHERE hour <= now() - interval '24 hours'), 0)::bigint AS before
  FROM hourly_counts
 WHERE hour > now() - interval '48 hours'
   AND name NOT IN ('signed_in', 'user_created', 'messages_sent', 'active_users')
 GROUP BY name
 ORDER BY today DESC, before DESC, name;

-- name: select_health(most integer, heartbeat_limit integer, backup_limit integer, late_limit integer)
--   -> row (delivered_at?, is_delivering?, backed_up_at?, is_backed_up?, counted_at?, waiting_since?,
--     is_late?, active_users?)
-- Counts stop at `most`. A larger number of users is the planner's estimate. The number of active users is
-- that of the last hour: see count_active_users.
SELECT current_setting('server_version') AS postgres,
       (SELECT max(version) FROM schema_version) AS schema_version,
       (SELECT iso_8601(at) FROM last_done WHERE task = 'delivery') AS delivered_at,
       (SELECT extract(epoch FROM now() - at) < :heartbeat_limit FROM last_done WHERE task = 'delivery')
         AS is_delivering,
       (SELECT iso_8601(at) FROM last_done WHERE task = 'backup') AS backed_up_at,
       (SELECT extract(epoch FROM now() - at) < :backup_limit FROM last_done WHERE task = 'backup')
         AS is_backed_up,
       (SELECT iso_8601(at) FROM last_done WHERE task = 'counts') AS counted_at,
       (SELECT count(*)
          FROM (SELECT FROM outbox WHERE outcome IS NULL AND channel <> 'webhook' LIMIT :most) AS messages)
         AS waiting_messages,
       (SELECT count(*)
          FROM (SELECT FROM outbox WHERE outcome IS NULL AND channel = 'webhook' LIMIT :most) AS events)
         AS waiting_events,
       late.since AS waiting_since, late.is_late,
       (SELECT count(*)
          FROM webhooks
         WHERE failing_since IS NOT NULL OR disabled_reason IN ('gone', 'failing')) AS failing_webhooks,
       (SELECT CASE WHEN reltuples < :most THEN (SELECT count(*) FROM (SELECT FROM users LIMIT :most) AS few)
                    ELSE reltuples::bigint END
          FROM pg_class
         WHERE oid = 'users'::regclass) AS users,
       active.is_counted_hourly,
       CASE WHEN active.is_counted_hourly THEN
         (SELECT count
            FROM hourly_counts
           WHERE name = 'active_users' AND hour > now() - interval '1 day'
           ORDER BY hour DESC
           LIMIT 1)
       ELSE
         (SELECT count(DISTINCT user_id)
            FROM (SELECT user_id FROM sessions WHERE refreshed_at > now() - interval '30 days' LIMIT :most) AS s)
       END AS active_users
  FROM (SELECT iso_8601(min(created_at)) AS since,
               min(created_at) < now() - make_interval(secs => :late_limit) AS is_late
          FROM (SELECT created_at
                  FROM outbox
                 WHERE outcome IS NULL AND channel <> 'webhook' AND NOT waits_for_others(outbox)
                 LIMIT :most) AS waiting) AS late
 CROSS JOIN (SELECT reltuples >= :most AS is_counted_hourly
               FROM pg_class
              WHERE oid = 'sessions'::regclass) AS active;
