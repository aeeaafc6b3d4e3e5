-- name: record_refusal(user_id uuid, address text, token_hash bytea, action text, reason text, details jsonb,
--                      origin jsonb) -> row?
SELECT record_refused(:origin,
                      coalesce(:user_id,
                               (SELECT id FROM users WHERE email = :address OR phone = :address),
                               (SELECT user_id FROM one_time_tokens WHERE token_hash = :token_hash)),
                      :action, :reason,
                      :details || jsonb_strip_nulls(jsonb_build_object('administrator',
                                                                       :origin ->> 'administrator'))) AS recorded;

-- name: record_acts(user_id uuid, email text, acts text[], events text[], details jsonb, origin jsonb,
--                   acted_at timestamptz)
SELECT record_acts_at(:acted_at, :origin, :user_id, :email, :acts, :events, :details);

-- name: list_audit(subject uuid, action text, since timestamptz, until timestamptz, request_id text,
--                  organization text, page_size integer, page_offset bigint) -> row
-- A custom plan drops the filters that are null, and an index gives the order.
SELECT coalesce(jsonb_agg(entry_object(entry.listed) ORDER BY entry.at DESC, entry.id DESC),
                '[]')::text AS entries
  FROM (SELECT at, id, audit_log AS listed
          FROM audit_log
         WHERE entry_is_listed(audit_log, :subject, :action, :since, :until, :request_id)
           AND (:organization IS NULL OR is_of_organization(audit_log, :organization))
         ORDER BY at DESC, id DESC
         LIMIT :page_size OFFSET :page_offset) AS entry;

-- name: take_minute_of_audit() -> row?
-- The entries of the next minute without lines, a minute after its end: by then refusals are counted, and
-- transactions that began in it are committed. The first call starts with the last such minute.
WITH taken AS (
  INSERT INTO last_done (task, at)
  SELECT 'audit_lines', span.since + interval '1 minute'
    FROM (SELECT coalesce((SELECT at FROM last_done WHERE task = 'audit_lines'),
                          date_trunc('minute', now() - interval '2 minutes')) AS since) AS span
   WHERE span.since <= now() - interval '2 minutes'
  ON CONFLICT (task) DO UPDATE SET at = excluded.at
  RETURNING at
)
SELECT coalesce(jsonb_agg(entry_object(entry) ORDER BY entry.at, entry.id)
                  FILTER (WHERE entry.id IS NOT NULL), '[]')::text AS entries
  FROM taken
  LEFT JOIN audit_log AS entry ON entry.at >= taken.at - interval '1 minute' AND entry.at < taken.at
 GROUP BY taken.at;

-- name: list_activity(user_id uuid, most integer) -> row
-- The user's own copy of the log, newest first. It does not reveal the networks of administrators.
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
--                   organization text, most integer) -> row
SELECT count(*) AS total
  FROM (SELECT
          FROM audit_log
         WHERE entry_is_listed(audit_log, :subject, :action, :since, :until, :request_id)
           AND (:organization IS NULL OR is_of_organization(audit_log, :organization))
         LIMIT :most) AS entries;

-- name: search_audit(first_subject uuid, first_done_by text, first_action text, first_request_id text,
--                    first_organization text, subject uuid, done_by text, action text, organization text,
--                    since timestamptz, until timestamptz, before_at timestamptz, before_id uuid, reach integer,
--                    most integer)
--   -> rows (reason?, user_id?, actor_id?, address?, actor_address?)
-- One filter is also the `first`, which reads at most `reach` rows from its index. Otherwise filters that
-- rarely match the same row would read all rows.
SELECT entry.id, iso_8601(entry.at) AS at,
       CASE WHEN entry.reason IS NULL THEN 'act' ELSE 'refusal' END AS kind, entry.action AS name,
       entry.reason, entry.count, entry.user_id, entry.actor, entry.actor_id,
       host(entry.ip) AS ip, entry.user_agent, entry.request_id, entry.details,
       coalesce(u.email, u.phone) AS address, coalesce(by.email, by.phone) AS actor_address,
       by.id IS NOT NULL AS has_actor, u.id IS NOT NULL AS has_user
  FROM (SELECT a.*
          FROM entries_before(:first_subject, :first_done_by, :first_action, :first_organization, :since, :until,
                              :first_request_id, :before_at, :before_id, :reach) AS a
         WHERE (:subject IS NULL OR a.user_id = :subject)
           AND (:done_by IS NULL OR coalesce(a.actor_id::text, a.actor) = :done_by)
           AND (:action IS NULL OR a.action = :action)
           AND (:organization IS NULL OR is_of_organization(a, :organization))
         ORDER BY a.at DESC, a.id DESC
         LIMIT :most) AS entry
  LEFT JOIN users AS u ON u.id = entry.user_id
  LEFT JOIN users AS by ON by.id = entry.actor_id
 ORDER BY entry.at DESC, entry.id DESC;

-- name: select_reach_of_audit(first_subject uuid, first_done_by text, first_action text,
--                             first_request_id text, first_organization text, since timestamptz,
--                             until timestamptz, before_at timestamptz, before_id uuid, reach integer) -> row?
-- The last row that search_audit has read, if there may be more after it.
SELECT iso_8601(a.at) AS at, a.id
  FROM entries_before(:first_subject, :first_done_by, :first_action, :first_organization, :since, :until,
                      :first_request_id, :before_at, :before_id, :reach) AS a
 ORDER BY a.at DESC, a.id DESC
 LIMIT 1 OFFSET :reach - 1;

-- name: list_audit_actions() -> rows
-- Jumps from one action to the next in its index.
WITH RECURSIVE actions (action) AS (
  (SELECT a.action FROM audit_log AS a ORDER BY a.action LIMIT 1)
   UNION ALL
  SELECT (SELECT a.action FROM audit_log AS a WHERE a.action > actions.action ORDER BY a.action LIMIT 1)
    FROM actions
   WHERE actions.action IS NOT NULL
)
SELECT action FROM actions WHERE action IS NOT NULL;

-- name: list_organizations_called(text text, lower_text text, most integer) -> rows
-- An organization with a short name, also one that has ended, else those with a name. In a Turkish collation,
-- lower('I') is another letter than in a short name.
SELECT o.id::text, o.slug, o.name, iso_8601(o.created_at) AS created_at, o.slug = :lower_text AS has_slug
  FROM organizations AS o
 WHERE o.slug = :lower_text
    OR words_of_organization(o) @@ query_of(:text) AND lower(o.name) = lower(:text)
 ORDER BY o.slug = :lower_text DESC, o.created_at, o.id
 LIMIT :most;
