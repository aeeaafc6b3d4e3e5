-- name: record_refusal(user_id uuid, address text, token_hash bytea, action text, reason text, details jsonb,
--                      origin jsonb)
-- Commits asynchronously: the row acknowledges nothing, and a flood must not keep the disk busy.
SELECT set_config('synchronous_commit', 'off', true) AS setting,
       record_refusal(:origin,
                      coalesce(:user_id,
                               (SELECT id FROM users WHERE email = :address OR phone = :address),
                               (SELECT user_id FROM one_time_tokens WHERE token_hash = :token_hash)),
                      :action, :reason, :details) AS recorded;

-- name: record_acts(user_id uuid, email text, acts text[], events text[], details jsonb, origin jsonb)
SELECT record_acts(:origin, :user_id, :email, :acts, :events, :details);

-- name: list_audit(subject uuid, action text, since timestamptz, until timestamptz, request_id text,
--                  page_size integer, page_offset bigint)
-- A custom plan drops the filters that are null, and an index gives the order.
SELECT coalesce(jsonb_agg(jsonb_build_object(
         'id', entry.id,
         'at', iso_8601(entry.at),
         'action', entry.action,
         'reason', entry.reason,
         'count', entry.count,
         'user_id', entry.user_id,
         'actor', entry.actor,
         'actor_id', entry.actor_id,
         'ip', host(entry.ip),
         'user_agent', entry.user_agent,
         'request_id', entry.request_id,
         'details', entry.details
       ) ORDER BY entry.at DESC, entry.id DESC), '[]')::text AS entries
  FROM (SELECT *
          FROM audit_log
         WHERE is_listed(audit_log, :subject, :action, :since, :until, :request_id)
         ORDER BY at DESC, id DESC
         LIMIT :page_size OFFSET :page_offset) AS entry;

-- name: list_activity(user_id uuid, most integer)
-- The user's own copy of the log, newest first. It does not tell from where administrators work.
SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
         'at', iso_8601(entry.at),
         'action', entry.action,
         'reason', entry.reason,
         'count', entry.count,
         'by', CASE WHEN entry.is_own THEN 'you' WHEN entry.actor = 'anonymous' THEN 'anybody'
                    WHEN entry.actor = 'service' THEN 'service' ELSE 'administrator' END,
         'ip', CASE WHEN entry.is_own OR entry.actor = 'anonymous' THEN host(entry.ip) END,
         'user_agent', CASE WHEN entry.is_own OR entry.actor = 'anonymous' THEN entry.user_agent END
       )) ORDER BY entry.at DESC, entry.id DESC), '[]')::text AS entries
  FROM (SELECT id, at, action, reason, count, actor, ip, user_agent,
               actor = 'user' AND actor_id = user_id AS is_own
          FROM audit_log
         WHERE user_id = :user_id
         ORDER BY at DESC, id DESC
         LIMIT :most) AS entry;

-- name: count_audit(subject uuid, action text, since timestamptz, until timestamptz, request_id text,
--                   most integer)
SELECT count(*) AS total
  FROM (SELECT
          FROM audit_log
         WHERE is_listed(audit_log, :subject, :action, :since, :until, :request_id)
         LIMIT :most) AS found;
