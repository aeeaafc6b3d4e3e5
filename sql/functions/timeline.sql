-- What one statement has done is of one moment; in which order the timeline tells it.
CREATE OR REPLACE FUNCTION place_in_moment(name text) RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE name WHEN 'user_created' THEN 0 WHEN 'signed_in' THEN 2 WHEN 'ended' THEN 3 ELSE 1 END
$$;

-- All that is known to have happened to a user: the newest of what the audit log has, so many; what became of sessions as far as it does
-- not tell that; and messages and events, where they are finished with or else were written.
CREATE OR REPLACE FUNCTION timeline_of(owner uuid, lifetime integer, timebox integer, most bigint)
  RETURNS TABLE (at timestamptz, id uuid, kind text, name text, reason text, count bigint, actor text, actor_id uuid, ip inet,
                 user_agent text, request_id text, details jsonb)
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  (SELECT act.at, act.id, CASE WHEN act.reason IS NULL THEN 'act' ELSE 'refusal' END, act.action, act.reason, act.count::bigint,
          act.actor, act.actor_id, act.ip, act.user_agent, act.request_id, act.details
     FROM audit_log AS act
    WHERE act.user_id = owner
    ORDER BY act.at DESC, place_in_moment(act.action) DESC, act.id DESC
    LIMIT most)
   UNION ALL
  -- One transaction has one now(), so what a statement has done and what it has written down of that are of the same moment.
  SELECT session.created_at, session.id, 'session', 'began', NULL::text, 1::bigint, NULL::text, NULL::uuid, session.ip, session.user_agent,
         NULL::text, jsonb_build_object('method', session.method)
    FROM sessions AS session
   WHERE session.user_id = owner
     AND NOT EXISTS (SELECT FROM audit_log AS act WHERE act.user_id = owner AND act.at = session.created_at AND act.action = 'signed_in')
   UNION ALL
  SELECT ended.at, ended.id, 'session', 'ended', ended.reason, ended.count, NULL::text, NULL::uuid, NULL::inet, NULL::text, NULL::text,
         '{}'::jsonb
    FROM (SELECT session.ended_at AS at, min(session.id::text)::uuid AS id, session.end_reason AS reason, count(*) AS count
            FROM sessions AS session
           WHERE session.user_id = owner AND session.ended_at IS NOT NULL
           GROUP BY session.ended_at, session.end_reason) AS ended
   WHERE NOT EXISTS (SELECT
                       FROM audit_log AS act
                      WHERE act.user_id = owner AND act.at = ended.at
                        AND act.action IN ('session_ended', 'signed_out', 'refresh_token_reused', 'authorization_code_reused'))
   UNION ALL
  SELECT least(session.refreshed_at + make_interval(secs => lifetime), session.created_at + make_interval(secs => timebox)), session.id,
         'session', 'expired', NULL::text, 1::bigint, NULL::text, NULL::uuid, NULL::inet, NULL::text, NULL::text, '{}'::jsonb
    FROM sessions AS session
   WHERE session.user_id = owner AND session.ended_at IS NULL AND session_expired(session, lifetime, timebox)
   UNION ALL
  SELECT coalesce(message.finished_at, message.created_at), message.id, 'message', message.kind, NULL::text, 1::bigint, NULL::text, NULL::uuid,
         NULL::inet, NULL::text, NULL::text, message_details(message, message.recipient)
    FROM outbox AS message
   WHERE message.user_id = owner AND message.channel IN ('email', 'sms')
   UNION ALL
  SELECT coalesce(message.finished_at, message.created_at), message.id, 'event', message.kind, NULL::text, 1::bigint, NULL::text, NULL::uuid,
         NULL::inet, NULL::text, NULL::text, message_details(message, coalesce(webhook.url, message.recipient))
    FROM outbox AS message
    LEFT JOIN webhooks AS webhook ON webhook.id::text = message.recipient
   WHERE message.user_id = owner AND message.channel = 'webhook'
$$;
