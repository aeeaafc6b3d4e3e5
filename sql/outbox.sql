-- name: claim_message(channel text, lease integer, give_up integer, slow_targets text[], from_slow boolean,
--                     is_notice boolean, notices_total integer, notices_seconds integer)
--   -> row? (secret?, expires_at?, outcome?, last_error?)
-- Leases the message that has been due for longest, or finishes it if it must not be sent anymore. A notice
-- by SMS beyond the total `waits` for the next window, and is not leased.
WITH due AS (
  SELECT m.id, target.name AS target,
         CASE
           WHEN m.expires_at <= now() THEN 'expired'
           WHEN m.one_time_token_id IS NOT NULL AND (t.id IS NULL OR t.spent_at IS NOT NULL) THEN 'void'
           WHEN m.expires_at IS NULL AND m.created_at <= now() - make_interval(secs => :give_up) THEN 'failed'
         END AS outcome
    FROM outbox AS m
    LEFT JOIN one_time_tokens AS t ON t.id = m.one_time_token_id
   CROSS JOIN LATERAL (SELECT CASE m.channel WHEN 'email' THEN split_part(m.recipient, '@', -1)
                                             WHEN 'logout' THEN m.recipient ELSE m.channel END) AS target (name)
   WHERE m.channel = :channel AND m.channel <> 'webhook' AND m.outcome IS NULL AND m.next_attempt_at <= now()
     AND m.is_notice = :is_notice AND (target.name = ANY (:slow_targets)) = :from_slow
   ORDER BY m.next_attempt_at
   LIMIT 1
     FOR UPDATE OF m SKIP LOCKED
), counted AS (
  SELECT due.id, due.target, due.outcome, coalesce(sms.count > :notices_total, false) AS waits, sms.seconds_left
    FROM due
    LEFT JOIN LATERAL add_to_count((CASE WHEN :is_notice AND :channel = 'sms' AND due.outcome IS NULL
           THEN 'notices_sms' END, NULL, NULL, NULL, :notices_seconds)::failure_limit, 1) AS sms ON true
)
UPDATE outbox AS m
   SET outcome = counted.outcome,
       finished_at = CASE WHEN counted.outcome IS NOT NULL THEN now() END,
       secret = CASE WHEN counted.outcome IS NULL THEN m.secret END,
       attempts = m.attempts + (counted.outcome IS NULL AND NOT waits)::integer,
       next_attempt_at = now() + make_interval(secs => CASE WHEN waits THEN seconds_left ELSE :lease END)
  FROM counted
 WHERE m.id = counted.id
RETURNING m.id, m.channel, m.kind, m.recipient, m.variables, m.secret, m.attempts, m.created_at, m.expires_at,
          m.outcome, m.last_error, counted.target, waits;

-- name: select_message_for_hook(id uuid, audience text) -> row? (user_object?)
SELECT m.variables, object.user_object
  FROM outbox AS m
  LEFT JOIN (users AS u CROSS JOIN user_object_of(u, :audience, false) AS object) ON u.id = m.user_id
 WHERE m.id = :id;

-- name: finish_message(id uuid, outcome text, reason text, response text)
UPDATE outbox
   SET outcome = :outcome, finished_at = now(), secret = NULL, last_error = coalesce(:reason, last_error),
       response = :response
 WHERE id = :id AND outcome IS NULL;

-- name: defer_message(id uuid, attempts integer, delay double precision, reason text)
-- `attempts` has changed if another process has claimed the message since.
UPDATE outbox
   SET next_attempt_at = least(now() + make_interval(secs => :delay), expires_at), last_error = :reason
 WHERE id = :id AND attempts = :attempts AND outcome IS NULL;

-- name: expire_messages()
UPDATE outbox
   SET outcome = 'expired', finished_at = now(), secret = NULL
 WHERE outcome IS NULL AND expires_at <= now() AND next_attempt_at <= now();

-- name: keep_in_dev_inbox(id uuid, sealed bytea, keep integer)
WITH kept AS (
  INSERT INTO dev_inbox (id, sealed) VALUES (:id, :sealed)
  ON CONFLICT (id) DO UPDATE SET sealed = excluded.sealed
)
DELETE FROM dev_inbox
 WHERE id = ANY (ARRAY(SELECT id FROM dev_inbox WHERE id <> :id ORDER BY kept_at DESC OFFSET :keep - 1));

-- name: select_dev_inbox(recipient text) -> rows (channel?, recipient?, outcome?, last_error?, response?)
SELECT d.id, d.sealed, m.channel, m.kind, m.recipient, m.outcome, m.last_error, m.response,
       iso_8601(m.created_at) AS created_at
  FROM dev_inbox AS d
  JOIN outbox AS m ON m.id = d.id
 WHERE :recipient IS NULL OR m.recipient = :recipient
 ORDER BY m.created_at DESC, d.kept_at DESC;

-- name: select_dev_inbox_message(id uuid) -> row?
SELECT id, sealed FROM dev_inbox WHERE id = :id;

-- name: list_sealed_messages(newest bytea, after uuid, batch integer) -> rows
SELECT m.id::text, m.secret AS sealed
  FROM outbox AS m
 WHERE m.outcome IS NULL AND m.channel <> 'webhook' AND substr(m.secret, 1, 4) <> :newest
   AND (m.id > :after) IS NOT FALSE
 ORDER BY m.id
 LIMIT :batch;

-- name: reseal_message(id uuid, old bytea, sealed bytea)
UPDATE outbox SET secret = :sealed WHERE id = :id AND secret = :old;

-- name: measure_outbox(most integer) -> rows
-- Two parts, for the two indexes on waiting rows.
SELECT channel,
       count(*) AS waiting,
       extract(epoch FROM now() - min(created_at))::double precision AS oldest_seconds,
       greatest(0, extract(epoch FROM now() - min(next_attempt_at)))::double precision AS overdue_seconds
  FROM (
    (SELECT channel, created_at, next_attempt_at
       FROM outbox
      WHERE outcome IS NULL AND channel <> 'webhook' AND NOT waits_for_others(outbox)
      LIMIT :most)
    UNION ALL
    (SELECT channel, created_at, next_attempt_at
       FROM outbox
      WHERE outcome IS NULL AND channel = 'webhook'
      LIMIT :most)
  ) AS waiting
 GROUP BY channel;

-- name: measure_totals(names text[], seconds integer[]) -> rows
SELECT total.name, coalesce(f.count, 0) AS count
  FROM unnest(:names, :seconds) AS total (name, seconds)
  LEFT JOIN failure_counts AS f ON f.kind = total.name AND f.subject IS NULL AND f.seconds = total.seconds
                              AND f.expires_at > now();

-- name: measure_upkeep() -> row (backup_age?, backup_verified_age?)
-- Ages are in seconds, null before the first backup.
SELECT (SELECT count(*)
          FROM webhooks
         WHERE failing_since IS NOT NULL OR disabled_reason IN ('gone', 'failing')) AS failing_webhooks,
       (SELECT extract(epoch FROM now() - at)::double precision FROM last_done WHERE task = 'backup')
         AS backup_age,
       (SELECT extract(epoch FROM now() - at)::double precision FROM last_done WHERE task = 'verified_backup')
         AS backup_verified_age;

-- name: search_messages(states text[], recipient text, before_at timestamptz, before_id uuid, most integer)
--   -> rows (user_id?)
-- For each state, a custom plan reads one range of the index of states, or that of a recipient.
SELECT m.id, m.user_id, m.kind, message_details(m, m.recipient) AS details, u.id IS NOT NULL AS has_user
  FROM unnest(:states) AS wanted (state)
 CROSS JOIN LATERAL (
         SELECT *
           FROM outbox
          WHERE channel <> 'webhook' AND coalesce(outcome, 'waiting') = wanted.state
            AND (:recipient IS NULL OR recipient = :recipient)
            AND (:before_at IS NULL OR (created_at, id) < (:before_at, :before_id))
          ORDER BY created_at DESC, id DESC
          LIMIT :most
       ) AS m
  LEFT JOIN users AS u ON u.id = m.user_id
 ORDER BY m.created_at DESC, m.id DESC
 LIMIT :most;

-- name: count_messages(states text[], most integer) -> rows
SELECT wanted.state,
       (SELECT count(*)
          FROM (SELECT
                  FROM outbox
                 WHERE channel <> 'webhook' AND coalesce(outcome, 'waiting') = wanted.state
                 LIMIT :most) AS messages) AS total
  FROM unnest(:states) AS wanted (state);
