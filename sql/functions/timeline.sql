-- Orders the rows of one transaction, which share a timestamp.
CREATE OR REPLACE FUNCTION place_in_moment(name text) RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE name WHEN 'user_created' THEN 0 WHEN 'signed_in' THEN 2 WHEN 'ended' THEN 3 ELSE 1 END
$$;

-- Omits events that are also in the audit log; one transaction writes both, with one timestamp. Returns at
-- most `most` sessions that began and `most` that ended, the newest since `since` and before the cursor of
-- `timeline_of`.
CREATE OR REPLACE FUNCTION timeline_of_sessions(
  owner uuid, lifetime integer, timebox integer, most bigint, since timestamptz, before timestamptz,
  place integer, last_id uuid
)
  RETURNS TABLE (at timestamptz, id uuid, name text, reason text, count bigint, ip inet,
                 user_agent text, details jsonb)
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  (SELECT s.created_at, s.id, 'began', NULL::text, 1::bigint, s.ip, s.user_agent,
          jsonb_build_object('method', s.method)
     FROM sessions AS s
    WHERE s.user_id = owner AND s.created_at BETWEEN since AND before
      AND (s.created_at, place_in_moment('began'), s.id) < (before, place, last_id)
      AND NOT EXISTS (SELECT
                        FROM audit_log AS a
                       WHERE a.user_id = owner AND a.at = s.created_at AND a.action = 'signed_in')
    ORDER BY s.created_at DESC, s.id DESC
    LIMIT most)
   UNION ALL
  (SELECT s.ended_at, min(s.id::text)::uuid, 'ended', s.end_reason, count(*), NULL, NULL, '{}'
     FROM sessions AS s
    WHERE s.user_id = owner AND s.ended_at BETWEEN since AND before
      AND NOT EXISTS (SELECT
                        FROM audit_log AS a
                       WHERE a.user_id = owner AND a.at = s.ended_at
                         AND a.action IN ('session_ended', 'signed_out', 'refresh_token_reused',
                                          'authorization_code_reused'))
    GROUP BY s.ended_at, s.end_reason
   HAVING (s.ended_at, place_in_moment('ended'), min(s.id::text)::uuid) < (before, place, last_id)
    ORDER BY s.ended_at DESC, min(s.id::text) DESC
    LIMIT most)
   UNION ALL
  SELECT least(s.refreshed_at + make_interval(secs => lifetime),
               s.created_at + make_interval(secs => timebox)),
         s.id, 'expired', NULL, 1, NULL, NULL, '{}'
    FROM sessions AS s
   WHERE s.user_id = owner AND s.ended_at IS NULL AND session_expired(s, lifetime, timebox)
$$;

-- The `most` newest entries of the audit log, of the `wanted` kind or any, before the cursor (`before`,
-- `place`, `last_id`), and the other entries before it; with `most` of the log, only those that are newer.
CREATE OR REPLACE FUNCTION timeline_of(
  owner uuid, lifetime integer, timebox integer, most bigint, wanted text DEFAULT NULL,
  before timestamptz DEFAULT 'infinity', place integer DEFAULT 0, last_id uuid DEFAULT NULL
)
  RETURNS TABLE (at timestamptz, id uuid, kind text, name text, reason text, count bigint, actor text,
                 actor_id uuid, ip inet, user_agent text, request_id text, details jsonb)
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  WITH logged AS MATERIALIZED (
    SELECT a.at, a.id, entry.kind, a.action AS name, a.reason, a.count::bigint, a.actor, a.actor_id, a.ip,
           a.user_agent, a.request_id, a.details
      FROM audit_log AS a
     CROSS JOIN LATERAL (SELECT CASE WHEN a.reason IS NULL THEN 'act' ELSE 'refusal' END) AS entry (kind)
     WHERE a.user_id = owner AND a.at <= before
       AND (a.at, place_in_moment(a.action), a.id) < (before, place, last_id)
       AND (wanted IS NULL OR wanted IN ('act', 'refusal') AND entry.kind = wanted)
     ORDER BY a.at DESC, place_in_moment(a.action) DESC, a.id DESC
     LIMIT most
  ), reach AS MATERIALIZED (
    SELECT CASE WHEN count(*) < most THEN '-infinity' ELSE min(logged.at) END AS since FROM logged
  )
  SELECT item.*
    FROM (
      SELECT * FROM logged
       UNION ALL
      SELECT s.at, s.id, 'session', s.name, s.reason, s.count, NULL, NULL, s.ip, s.user_agent, NULL, s.details
        FROM reach
       CROSS JOIN timeline_of_sessions(owner, lifetime, timebox, most, reach.since, before, place, last_id)
               AS s
       WHERE wanted IS NULL OR wanted = 'session'
       UNION ALL
      SELECT coalesce(m.finished_at, m.created_at), m.id,
             CASE m.channel WHEN 'webhook' THEN 'event' ELSE 'message' END, m.kind,
             NULL, 1, NULL, NULL, NULL, NULL, NULL,
             message_details(m, coalesce(origin_of(w.url), m.recipient))
        FROM reach
        JOIN outbox AS m ON m.user_id = owner AND coalesce(m.finished_at, m.created_at) >= reach.since
        LEFT JOIN webhooks AS w ON m.channel = 'webhook' AND w.id::text = m.recipient
       WHERE m.channel IS NOT NULL
         AND (wanted IS NULL OR wanted = CASE m.channel WHEN 'webhook' THEN 'event' ELSE 'message' END)
    ) AS item
   WHERE (item.at, place_in_moment(item.name), item.id) < (before, place, last_id)
$$;
