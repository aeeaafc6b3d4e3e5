-- name: lock_webhooks()
-- The second of two requests counts the webhook that the first has created.
SELECT pg_advisory_xact_lock(7239004118);

-- name: count_webhooks() -> row
SELECT count(*) AS total FROM webhooks;

-- name: create_webhook(id uuid, url text, description text, events text[], secret bytea, origin jsonb) -> row
WITH created AS (
  INSERT INTO webhooks AS w (id, url, description, events, secret)
  VALUES (:id, :url, :description, :events, :secret)
  RETURNING w
)
SELECT webhook_object(created.w)::text AS webhook_object,
       record_acts_at(now(), :origin, NULL, NULL, '{webhook_created}', '{}',
                      jsonb_build_object('webhook_id', :id, 'url', origin_of(:url))) AS recorded
  FROM created;

-- name: list_webhooks(page_size integer, page_offset bigint) -> row
SELECT (SELECT count(*) FROM webhooks) AS total,
       coalesce(jsonb_agg(page.object ORDER BY page.created_at, page.id), '[]')::text AS webhooks
  FROM (SELECT w.id, w.created_at, webhook_object(w) AS object
          FROM webhooks AS w
         ORDER BY w.created_at, w.id
         LIMIT :page_size OFFSET :page_offset) AS page;

-- name: select_webhook(id uuid) -> row?
SELECT webhook_object(w)::text AS webhook_object FROM webhooks AS w WHERE w.id = :id;

-- name: update_webhook(id uuid, url text, events text[], sets_description boolean, description text,
--                      is_disabled boolean, new_secret bytea, overlap integer, origin jsonb) -> row?
-- Enabling a webhook or changing its URL ends its pause.
WITH before AS (
  SELECT w.id, w.disabled_at IS NOT NULL AS was_disabled FROM webhooks AS w WHERE w.id = :id FOR UPDATE
), changed AS (
  UPDATE webhooks AS w
     SET url = coalesce(:url, w.url),
         events = coalesce(:events, w.events),
         description = CASE WHEN :sets_description THEN :description ELSE w.description END,
         secret = coalesce(:new_secret, w.secret),
         previous_secret = CASE WHEN :new_secret IS NOT NULL THEN w.secret ELSE w.previous_secret END,
         previous_secret_expires_at = CASE WHEN :new_secret IS NOT NULL
                                           THEN now() + make_interval(secs => :overlap)
                                           ELSE w.previous_secret_expires_at END,
         failing_since = CASE WHEN :url <> w.url OR NOT :is_disabled THEN NULL ELSE w.failing_since END,
         retry_at = CASE WHEN :url <> w.url OR NOT :is_disabled THEN NULL ELSE w.retry_at END,
         disabled_at = CASE WHEN :is_disabled THEN coalesce(w.disabled_at, now())
                            WHEN :is_disabled IS NULL THEN w.disabled_at END,
         disabled_reason = CASE WHEN :is_disabled THEN coalesce(w.disabled_reason, 'by_administrator')
                                WHEN :is_disabled IS NULL THEN w.disabled_reason END,
         updated_at = now()
    FROM before
   WHERE w.id = before.id
  RETURNING w, before.was_disabled
)
SELECT webhook_object(changed.w)::text AS webhook_object,
       record_acts_at(now(), :origin, NULL, NULL,
                      ARRAY[CASE WHEN :url IS NOT NULL OR :events IS NOT NULL OR :sets_description
                                 THEN 'webhook_changed' END,
                            CASE WHEN :new_secret IS NOT NULL THEN 'webhook_secret_rotated' END,
                            CASE WHEN :is_disabled AND NOT changed.was_disabled THEN 'webhook_disabled'
                                 WHEN NOT :is_disabled AND changed.was_disabled THEN 'webhook_enabled' END],
                      '{}', jsonb_build_object('webhook_id', :id, 'url', origin_of((changed.w).url))) AS recorded
  FROM changed;

-- name: delete_webhook(id uuid, batch integer, origin jsonb) -> row?
-- Voids up to `batch` waiting events; finish_stale_events voids the rest.
WITH deleted AS (
  DELETE FROM webhooks WHERE id = :id RETURNING id, url
), voided AS (
  UPDATE outbox
     SET outcome = 'void', finished_at = now()
   WHERE id = ANY (ARRAY(SELECT m.id
                           FROM outbox AS m
                           JOIN deleted ON m.recipient = deleted.id::text
                          WHERE m.channel = 'webhook' AND m.outcome IS NULL
                          LIMIT :batch
                            FOR UPDATE OF m SKIP LOCKED))
)
SELECT record_acts_at(now(), :origin, NULL, NULL, '{webhook_deleted}', '{}',
                      jsonb_build_object('webhook_id', id, 'url', origin_of(url))) AS recorded
  FROM deleted;

-- name: list_deliveries(id uuid, page_size integer, page_offset bigint) -> row?
SELECT (SELECT count(*) FROM outbox WHERE channel = 'webhook' AND recipient = w.id::text) AS total,
       (SELECT coalesce(jsonb_agg(page.object ORDER BY page.created_at DESC, page.id DESC), '[]')::text
          FROM (SELECT m.id, m.created_at, delivery_object(m) AS object
                  FROM outbox AS m
                 WHERE m.channel = 'webhook' AND m.recipient = w.id::text
                 ORDER BY m.created_at DESC, m.id DESC
                 LIMIT :page_size OFFSET :page_offset) AS page) AS deliveries
  FROM webhooks AS w
 WHERE w.id = :id;

-- name: redeliver_event(id uuid, delivery_id uuid, origin jsonb) -> row? (delivery?)
-- Keeps the event id. Tries a waiting delivery at once, and repeats a finished one in a new row. If a failing
-- webhook accepts it, its other waiting deliveries follow.
WITH webhook AS (
  SELECT w.id, w.url, w.disabled_at IS NOT NULL AS is_disabled FROM webhooks AS w WHERE w.id = :id
), original AS (
  SELECT m.id, m.user_id, m.kind, m.recipient, m.variables, m.outcome
    FROM outbox AS m
    JOIN webhook ON m.recipient = webhook.id::text AND NOT webhook.is_disabled
   WHERE m.id = :delivery_id AND m.channel = 'webhook'
     FOR UPDATE OF m
), repeated AS (
  INSERT INTO outbox AS m (id, user_id, channel, kind, recipient, variables, next_attempt_at)
  SELECT gen_random_uuid(), original.user_id, 'webhook', original.kind, original.recipient, original.variables,
         first_turn(original.recipient)
    FROM original
   WHERE original.outcome IS NOT NULL
  RETURNING delivery_object(m) AS object
), hurried AS (
  UPDATE outbox AS m SET next_attempt_at = first_turn(m.recipient) FROM original
   WHERE m.id = original.id AND original.outcome IS NULL
  RETURNING delivery_object(m) AS object
), ready AS (
  UPDATE webhooks AS w SET retry_at = NULL FROM original WHERE w.id = :id AND w.retry_at IS NOT NULL
)
SELECT webhook.is_disabled, delivery.object::text AS delivery,
       record_acts_at(now(), :origin, NULL, NULL,
                      ARRAY[CASE WHEN delivery.object IS NOT NULL THEN 'event_redelivered' END], '{}',
                      jsonb_build_object('webhook_id', webhook.id, 'url', origin_of(webhook.url),
                                         'event_id', delivery.object ->> 'event_id')) AS recorded
  FROM webhook
  LEFT JOIN (SELECT object FROM repeated UNION ALL SELECT object FROM hurried) AS delivery ON true;

-- name: send_test_event(id uuid, event text, user_id uuid, email text, origin jsonb) -> row? (delivery?)
WITH webhook AS (
  SELECT w.id, w.url, w.disabled_at IS NOT NULL AS is_disabled FROM webhooks AS w WHERE w.id = :id
), delivery AS (
  INSERT INTO outbox AS m (id, channel, kind, recipient, variables, next_attempt_at)
  SELECT gen_random_uuid(), 'webhook', :event, webhook.id,
         jsonb_build_object('event_id', gen_random_uuid(), 'timestamp', iso_8601(now()),
                            'data', jsonb_build_object(
                              'user', jsonb_build_object('id', :user_id, 'email', :email))),
         first_turn(webhook.id::text)
    FROM webhook
   WHERE NOT webhook.is_disabled
  RETURNING delivery_object(m) AS object
), ready AS (
  UPDATE webhooks AS w SET retry_at = NULL FROM delivery WHERE w.id = :id AND w.retry_at IS NOT NULL
)
SELECT webhook.is_disabled, delivery.object::text AS delivery,
       record_acts_at(now(), :origin, NULL, NULL,
                      ARRAY[CASE WHEN delivery.object IS NOT NULL THEN 'webhook_tested' END], '{}',
                      jsonb_build_object('webhook_id', webhook.id, 'url', origin_of(webhook.url))) AS recorded
  FROM webhook
  LEFT JOIN delivery ON true;

-- name: claim_event(lease integer, give_up integer, slow_targets text[], from_slow boolean)
--   -> row? (secret?, expires_at?, outcome?, last_error?)
-- Picks a random webhook first, so that one long queue does not delay the others.
WITH picked AS (
  SELECT w.id, w.failing_since IS NOT NULL AS is_failing
    FROM webhooks AS w
   WHERE w.disabled_at IS NULL AND (w.retry_at > now()) IS NOT TRUE
     AND (w.failing_since IS NOT NULL OR w.id::text = ANY (:slow_targets)) = :from_slow
     -- Not a join or EXISTS: the planner may read all waiting events for them.
     AND (SELECT m.next_attempt_at
            FROM outbox AS m
           WHERE m.channel = 'webhook' AND m.outcome IS NULL AND m.recipient = w.id::text
           ORDER BY m.next_attempt_at
           LIMIT 1) <= now()
   ORDER BY random()
   LIMIT 1
), due AS (
  SELECT m.id, (SELECT id FROM picked) AS webhook_id, (SELECT is_failing FROM picked) AS is_failing,
         CASE WHEN m.created_at <= now() - make_interval(secs => :give_up) THEN 'failed' END AS outcome
    FROM outbox AS m
   WHERE m.channel = 'webhook' AND m.outcome IS NULL AND m.recipient = (SELECT id::text FROM picked)
     AND m.next_attempt_at <= now()
   ORDER BY m.next_attempt_at
   LIMIT 1 FOR UPDATE OF m SKIP LOCKED
), probed AS (
  -- The second of two processes that try a failing webhook waits here, and then finds it claimed.
  UPDATE webhooks AS w
     SET retry_at = now() + make_interval(secs => :lease)
    FROM due
   WHERE w.id = due.webhook_id AND due.is_failing AND due.outcome IS NULL AND (w.retry_at > now()) IS NOT TRUE
  RETURNING w.id
)
UPDATE outbox AS m
   SET outcome = due.outcome,
       finished_at = CASE WHEN due.outcome IS NOT NULL THEN now() END,
       attempts = m.attempts + (due.outcome IS NULL)::integer,
       next_attempt_at = now() + make_interval(secs => :lease)
  FROM due
 WHERE m.id = due.id AND (NOT due.is_failing OR due.outcome IS NOT NULL OR EXISTS (SELECT FROM probed))
RETURNING m.id, m.channel, m.kind, m.recipient, m.variables, m.secret, m.attempts,
          m.created_at, m.expires_at, m.outcome, m.last_error, m.recipient AS target;

-- name: select_endpoint(id uuid) -> row? (previous_secret?)
SELECT w.url, w.secret, w.failing_since IS NOT NULL AS is_failing,
       CASE WHEN w.previous_secret_expires_at > now() THEN w.previous_secret END AS previous_secret
  FROM webhooks AS w
 WHERE w.id = :id;

-- name: record_webhook_success(id uuid)
UPDATE webhooks SET failing_since = NULL, retry_at = NULL WHERE id = :id AND failing_since IS NOT NULL;

-- name: record_webhook_failure(id uuid, is_gone boolean, shortest integer, longest integer,
--                            retry_after double precision, give_up integer, most_mails integer, origin jsonb)
--   -> row? (disabled_reason?, mails?)
-- Pauses for the time that the webhook has been failing, within bounds, or for its `retry_after` in seconds.
WITH failed AS (
  UPDATE webhooks AS w
     SET failing_since = coalesce(w.failing_since, now()),
         retry_at = now() + greatest(
           make_interval(secs => :retry_after),
           least(greatest(now() - w.failing_since, make_interval(secs => :shortest)),
                 make_interval(secs => :longest)) * (0.5 + random() / 2)),
         disabled_at = CASE WHEN :is_gone OR w.failing_since <= oldest.start THEN now() END,
         disabled_reason = CASE WHEN :is_gone THEN 'gone'
                                WHEN w.failing_since <= oldest.start THEN 'failing' END
    FROM (VALUES (now() - make_interval(secs => :give_up))) AS oldest (start)
   WHERE w.id = :id AND w.disabled_at IS NULL
  RETURNING w.id, w.url, w.disabled_reason, w.failing_since = now() AS is_news
)
SELECT failed.is_news, failed.disabled_reason,
       CASE WHEN failed.disabled_reason = 'failing'
            THEN (SELECT count(write_message_at(now(), gen_random_uuid(), u.id, 'webhook_disabled', u.email,
                                             jsonb_build_object('webhook_url', origin_of(failed.url))))
                    FROM (SELECT u.id, u.email
                            FROM users AS u
                           WHERE u.role = 'admin' AND u.email_proved AND NOT is_banned(u)
                           ORDER BY u.created_at, u.id
                           LIMIT :most_mails) AS u) END AS mails,
       record_acts_at(now(), :origin, NULL, NULL,
                      ARRAY[CASE WHEN failed.disabled_reason IS NOT NULL THEN 'webhook_disabled' END], '{}',
                      jsonb_build_object('webhook_id', failed.id, 'url', origin_of(failed.url),
                                         'reason', failed.disabled_reason)) AS recorded
  FROM failed;

-- name: list_sealed_webhooks(newest bytea, after uuid, batch integer) -> rows
SELECT w.id::text, sealed.secret AS sealed
  FROM webhooks AS w
 CROSS JOIN LATERAL (VALUES (w.secret), (w.previous_secret)) AS sealed (secret)
 WHERE substr(sealed.secret, 1, 4) <> :newest AND (w.id > :after) IS NOT FALSE
 ORDER BY w.id
 LIMIT :batch;

-- name: reseal_webhook(id uuid, old bytea, sealed bytea)
UPDATE webhooks
   SET secret = CASE secret WHEN :old THEN :sealed ELSE secret END,
       previous_secret = CASE previous_secret WHEN :old THEN :sealed ELSE previous_secret END
 WHERE id = :id AND :old IN (secret, previous_secret);

-- name: finish_stale_events(batch integer, give_up integer)
-- Events that no process claims, because their webhook is deleted or disabled.
WITH stale AS (
  SELECT m.id, CASE WHEN w.id IS NULL THEN 'void' ELSE 'failed' END AS outcome
    FROM outbox AS m
    LEFT JOIN webhooks AS w ON w.id::text = m.recipient
   WHERE m.channel = 'webhook' AND m.outcome IS NULL
     AND (w.id IS NULL
          OR w.disabled_at IS NOT NULL AND m.created_at <= now() - make_interval(secs => :give_up))
   LIMIT :batch
     FOR UPDATE OF m SKIP LOCKED
)
UPDATE outbox AS m SET outcome = stale.outcome, finished_at = now() FROM stale WHERE m.id = stale.id;

-- name: list_webhook_states(id uuid, most integer)
--   -> rows (description?, disabled_reason?, failing_since?, retry_at?, disabled_at?,
--     previous_secret_expires_at?)
-- One webhook, or all, without the paths of their URLs. Counts up to `most` waiting events of each.
SELECT w.id, origin_of(w.url) AS origin, w.description, w.events, w.disabled_reason,
       iso_8601(w.failing_since) AS failing_since, iso_8601(w.retry_at) AS retry_at,
       iso_8601(w.disabled_at) AS disabled_at, iso_8601(w.created_at) AS created_at,
       CASE WHEN w.previous_secret_expires_at > now()
            THEN iso_8601(w.previous_secret_expires_at) END AS previous_secret_expires_at,
       (SELECT count(*)
          FROM (SELECT
                  FROM outbox AS m
                 WHERE m.channel = 'webhook' AND m.outcome IS NULL AND m.recipient = w.id::text
                 LIMIT :most) AS events) AS waiting
  FROM webhooks AS w
 WHERE :id IS NULL OR w.id = :id
 ORDER BY w.created_at, w.id;

-- name: search_deliveries(webhook_id uuid, outcome text, before_at timestamptz, before_id uuid, most integer)
--   -> rows (user_id?, address?)
-- A custom plan drops the outcome that is null, or uses the index of failed events.
SELECT m.id, m.user_id, delivery_object(m) AS details, u.id IS NOT NULL AS has_user,
       coalesce(u.email, u.phone) AS address
  FROM outbox AS m
  LEFT JOIN users AS u ON u.id = m.user_id
 WHERE m.channel = 'webhook' AND m.recipient = :webhook_id::text
   AND (:outcome IS NULL OR m.outcome = :outcome)
   AND (:before_at IS NULL OR (m.created_at, m.id) < (:before_at, :before_id))
 ORDER BY m.created_at DESC, m.id DESC
 LIMIT :most;

-- name: select_delivery(webhook_id uuid, id uuid) -> row?
SELECT delivery_object(m) AS details, m.variables
  FROM outbox AS m
 WHERE m.id = :id AND m.channel = 'webhook' AND m.recipient = :webhook_id::text;
