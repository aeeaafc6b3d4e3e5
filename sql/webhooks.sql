-- name: create_webhook(id uuid, url text, description text, events text[], secret bytea, most integer, origin jsonb)
-- Makes a webhook, unless there are so many already: no row then.
WITH created AS (
  INSERT INTO webhooks AS webhook (id, url, description, events, secret)
  SELECT :id, :url, :description, :events, :secret WHERE has_room_for_webhook(:most)
  RETURNING webhook
)
SELECT webhook_object(created.webhook)::text AS webhook_object,
       record_acts(:origin, NULL, NULL, ARRAY['webhook_created'], '{}', jsonb_build_object('webhook_id', :id, 'url', :url)) AS recorded
  FROM created;

-- name: list_webhooks(page_size integer, page_offset bigint)
-- A page of the webhooks, the oldest first, and how many there are.
SELECT (SELECT count(*) FROM webhooks) AS total, coalesce(jsonb_agg(page.object ORDER BY page.created_at, page.id), '[]')::text AS webhooks
  FROM (SELECT webhook.id, webhook.created_at, webhook_object(webhook) AS object
          FROM webhooks AS webhook
         ORDER BY webhook.created_at, webhook.id
         LIMIT :page_size OFFSET :page_offset) AS page;

-- name: select_webhook(id uuid)
-- One webhook.
SELECT webhook_object(webhook)::text AS webhook_object FROM webhooks AS webhook WHERE webhook.id = :id;

-- name: update_webhook(id uuid, url text, events text[], sets_description boolean, description text, is_disabled boolean, new_secret bytea,
--                      overlap integer, origin jsonb)
-- Changes a webhook; null leaves as it is. The secret that a new one takes the place of signs for `overlap` seconds more. What is
-- enabled, or gets another address, starts anew: it is tried at once, and has not failed yet.
WITH before AS (
  SELECT webhook.id, webhook.disabled_at IS NOT NULL AS was_disabled FROM webhooks AS webhook WHERE webhook.id = :id FOR UPDATE
), changed AS (
  UPDATE webhooks AS webhook
     SET url = coalesce(:url, webhook.url),
         events = coalesce(:events, webhook.events),
         description = CASE WHEN :sets_description THEN :description ELSE webhook.description END,
         secret = coalesce(:new_secret, webhook.secret),
         previous_secret = CASE WHEN :new_secret IS NOT NULL THEN webhook.secret ELSE webhook.previous_secret END,
         previous_secret_expires_at = CASE WHEN :new_secret IS NOT NULL THEN now() + make_interval(secs => :overlap)
                                           ELSE webhook.previous_secret_expires_at END,
         failing_since = CASE WHEN :url <> webhook.url OR NOT :is_disabled THEN NULL ELSE webhook.failing_since END,
         retry_at = CASE WHEN :url <> webhook.url OR NOT :is_disabled THEN NULL ELSE webhook.retry_at END,
         disabled_at = CASE WHEN :is_disabled THEN coalesce(webhook.disabled_at, now()) WHEN :is_disabled IS NULL THEN webhook.disabled_at END,
         disabled_reason = CASE WHEN :is_disabled THEN coalesce(webhook.disabled_reason, 'by_administrator')
                                WHEN :is_disabled IS NULL THEN webhook.disabled_reason END,
         updated_at = now()
    FROM before
   WHERE webhook.id = before.id
  RETURNING webhook, before.was_disabled
)
SELECT webhook_object(changed.webhook)::text AS webhook_object,
       record_acts(:origin, NULL, NULL,
                   ARRAY[CASE WHEN :url IS NOT NULL OR :events IS NOT NULL OR :sets_description THEN 'webhook_changed' END,
                         CASE WHEN :new_secret IS NOT NULL THEN 'webhook_secret_rotated' END,
                         CASE WHEN :is_disabled AND NOT changed.was_disabled THEN 'webhook_disabled'
                              WHEN NOT :is_disabled AND changed.was_disabled THEN 'webhook_enabled' END],
                   '{}', jsonb_build_object('webhook_id', :id, 'url', (changed.webhook).url)) AS recorded
  FROM changed;

-- name: delete_webhook(id uuid, batch integer, origin jsonb)
-- Deletes a webhook; no row when there is none. What waits for it is void: so many at once, finish_stale_events does the rest.
WITH deleted AS (
  DELETE FROM webhooks WHERE id = :id RETURNING id, url
), voided AS (
  UPDATE outbox
     SET outcome = 'void', finished_at = now()
   WHERE id = ANY (ARRAY(SELECT message.id
                           FROM outbox AS message
                           JOIN deleted ON message.recipient = deleted.id::text
                          WHERE message.channel = 'webhook' AND message.outcome IS NULL
                          LIMIT :batch
                            FOR UPDATE OF message SKIP LOCKED))
)
SELECT record_acts(:origin, NULL, NULL, ARRAY['webhook_deleted'], '{}', jsonb_build_object('webhook_id', id, 'url', url)) AS recorded FROM deleted;

-- name: list_deliveries(id uuid, page_size integer, page_offset bigint)
-- A page of what was sent, or is to be sent, to a webhook, the newest first, and how much there is; no row when there is no such webhook.
SELECT (SELECT count(*) FROM outbox WHERE channel = 'webhook' AND recipient = webhook.id::text) AS total, page.deliveries
  FROM webhooks AS webhook
  CROSS JOIN LATERAL (SELECT coalesce(jsonb_agg(listed.object ORDER BY listed.created_at DESC, listed.id DESC), '[]')::text AS deliveries
                        FROM (SELECT message.id, message.created_at, delivery_object(message) AS object
                                FROM outbox AS message
                               WHERE message.channel = 'webhook' AND message.recipient = webhook.id::text
                               ORDER BY message.created_at DESC, message.id DESC
                               LIMIT :page_size OFFSET :page_offset) AS listed) AS page
 WHERE webhook.id = :id;

-- name: redeliver_event(id uuid, delivery_id uuid, origin jsonb)
-- Sends an event to a webhook once more, under the same event id, and at once: what waits is not put off any longer, what is
-- finished with gets a new row. `delivery` is null for an unknown one; no row when there is no such webhook. One that is disabled gets nothing.
WITH webhook AS (
  SELECT webhook.id, webhook.url, webhook.disabled_at IS NOT NULL AS is_disabled FROM webhooks AS webhook WHERE webhook.id = :id
), known AS (
  SELECT message.id, message.user_id, message.kind, message.recipient, message.variables, message.outcome
    FROM outbox AS message
    JOIN webhook ON message.recipient = webhook.id::text AND NOT webhook.is_disabled
   WHERE message.id = :delivery_id AND message.channel = 'webhook'
     FOR UPDATE OF message
), again AS (
  INSERT INTO outbox AS message (id, user_id, channel, kind, recipient, variables)
  SELECT gen_random_uuid(), known.user_id, 'webhook', known.kind, known.recipient, known.variables FROM known WHERE known.outcome IS NOT NULL
  RETURNING delivery_object(message) AS object
), hurried AS (
  UPDATE outbox AS message SET next_attempt_at = now() FROM known WHERE message.id = known.id AND known.outcome IS NULL
  RETURNING delivery_object(message) AS object
), ready AS (
  UPDATE webhooks SET retry_at = NULL FROM known WHERE webhooks.id = :id AND webhooks.retry_at IS NOT NULL
)
SELECT webhook.is_disabled, delivery.object::text AS delivery,
       record_acts(:origin, NULL, NULL, ARRAY[CASE WHEN delivery.object IS NOT NULL THEN 'event_redelivered' END], '{}',
                   jsonb_build_object('webhook_id', webhook.id, 'url', webhook.url, 'event_id', delivery.object ->> 'event_id')) AS recorded
  FROM webhook
  LEFT JOIN (SELECT object FROM again UNION ALL SELECT object FROM hurried) AS delivery ON true;

-- name: send_test_event(id uuid, event text, user_id uuid, email text, origin jsonb)
-- Sends a webhook an event of a user that there isn't, at once, whichever kinds it wants; no row when there is no such webhook. One
-- that is disabled gets nothing.
WITH webhook AS (
  SELECT webhook.id, webhook.url, webhook.disabled_at IS NOT NULL AS is_disabled FROM webhooks AS webhook WHERE webhook.id = :id
), sent AS (
  INSERT INTO outbox AS message (id, channel, kind, recipient, variables)
  SELECT gen_random_uuid(), 'webhook', :event, webhook.id,
         jsonb_build_object('event_id', gen_random_uuid(), 'timestamp', iso_8601(now()),
                            'data', jsonb_build_object('user', jsonb_build_object('id', :user_id, 'email', :email)))
    FROM webhook
   WHERE NOT webhook.is_disabled
  RETURNING delivery_object(message) AS object
), ready AS (
  UPDATE webhooks SET retry_at = NULL FROM sent WHERE webhooks.id = :id AND webhooks.retry_at IS NOT NULL
)
SELECT webhook.is_disabled, sent.object::text AS delivery,
       record_acts(:origin, NULL, NULL, ARRAY[CASE WHEN sent.object IS NOT NULL THEN 'webhook_tested' END], '{}',
                   jsonb_build_object('webhook_id', webhook.id, 'url', webhook.url)) AS recorded
  FROM webhook
  LEFT JOIN sent ON true;

-- name: claim_event(lease integer, give_up integer, slow_targets text[], from_slow boolean)
-- Takes an event as claim_message takes a message, but first picks one of the webhooks that something is due for, by lot: however much
-- waits for one, the others get their turn. One that fails counts as slow, and is tried with one event at a time, when its pause is over.
WITH picked AS (
  SELECT webhook.id, webhook.failing_since IS NOT NULL AS is_failing
    FROM webhooks AS webhook
   WHERE webhook.disabled_at IS NULL AND (webhook.retry_at > now()) IS NOT TRUE
     AND (webhook.failing_since IS NOT NULL OR webhook.id::text = ANY (:slow_targets)) = :from_slow
     -- Neither a join nor EXISTS, for which the planner may read all that waits.
     AND (SELECT message.next_attempt_at
            FROM outbox AS message
           WHERE message.channel = 'webhook' AND message.outcome IS NULL AND message.recipient = webhook.id::text
           ORDER BY message.next_attempt_at
           LIMIT 1) <= now()
   ORDER BY random()
   LIMIT 1
), due AS (
  SELECT message.id, (SELECT id FROM picked) AS webhook_id, (SELECT is_failing FROM picked) AS is_failing,
         CASE WHEN message.created_at <= now() - make_interval(secs => :give_up) THEN 'failed' END AS outcome
    FROM outbox AS message
   WHERE message.channel = 'webhook' AND message.outcome IS NULL AND message.recipient = (SELECT id::text FROM picked)
     AND message.next_attempt_at <= now()
   ORDER BY message.next_attempt_at
   LIMIT 1
     FOR UPDATE OF message SKIP LOCKED
), probed AS (
  -- Of two that try the same one, the second waits here, and finds it taken.
  UPDATE webhooks AS webhook
     SET retry_at = now() + make_interval(secs => :lease)
    FROM due
   WHERE webhook.id = due.webhook_id AND due.is_failing AND due.outcome IS NULL AND (webhook.retry_at > now()) IS NOT TRUE
  RETURNING webhook.id
)
UPDATE outbox AS message
   SET outcome = due.outcome,
       finished_at = CASE WHEN due.outcome IS NOT NULL THEN now() END,
       attempts = message.attempts + (due.outcome IS NULL)::integer,
       next_attempt_at = now() + make_interval(secs => :lease)
  FROM due
 WHERE message.id = due.id AND (NOT due.is_failing OR due.outcome IS NOT NULL OR EXISTS (SELECT FROM probed))
RETURNING message.id, message.user_id, message.channel, message.kind, message.recipient, message.variables, message.secret, message.attempts,
          message.created_at, message.expires_at, message.outcome, message.last_error, message.recipient AS target;

-- name: select_endpoint(id uuid)
-- Where a webhook's events go, and what signs them.
SELECT webhook.url, webhook.secret, webhook.failing_since IS NOT NULL AS is_failing,
       CASE WHEN webhook.previous_secret_expires_at > now() THEN webhook.previous_secret END AS previous_secret
  FROM webhooks AS webhook
 WHERE webhook.id = :id;

-- name: note_webhook_success(id uuid)
-- Notes that a webhook works again.
UPDATE webhooks SET failing_since = NULL, retry_at = NULL WHERE id = :id AND failing_since IS NOT NULL;

-- name: note_webhook_failure(id uuid, is_gone boolean, shortest integer, longest integer, asked double precision, give_up integer,
--                            most_mails integer, origin jsonb)
-- Notes that a webhook has failed. It is left alone for as long again as it has been failing, within bounds, or as it asks for.
-- Disabled is one that says that it is gone, and one that has been failing for `give_up` seconds, which administrators are told by mail.
WITH failed AS (
  UPDATE webhooks AS webhook
     SET failing_since = coalesce(webhook.failing_since, now()),
         retry_at = now() + greatest(make_interval(secs => :asked),
                                     -- Jitter, so that what has failed together does not come back together.
                                     least(greatest(now() - webhook.failing_since, make_interval(secs => :shortest)), make_interval(secs => :longest))
                                     * (0.5 + random() / 2)),
         disabled_at = CASE WHEN :is_gone OR webhook.failing_since <= now() - make_interval(secs => :give_up) THEN now() END,
         disabled_reason = CASE WHEN :is_gone THEN 'gone'
                                WHEN webhook.failing_since <= now() - make_interval(secs => :give_up) THEN 'failing' END
   WHERE webhook.id = :id AND webhook.disabled_at IS NULL
  RETURNING webhook.id, webhook.url, webhook.disabled_reason, webhook.failing_since = now() AS is_news
), told AS (
  INSERT INTO outbox (id, user_id, channel, kind, recipient, variables)
  SELECT gen_random_uuid(), administrator.id, 'email', 'webhook_disabled', administrator.email,
         jsonb_build_object('webhook_url', failed.url, 'locale', administrator.locale)
    FROM failed
    CROSS JOIN (SELECT account.id, account.email, account.user_metadata ->> 'locale' AS locale
                  FROM users AS account
                 WHERE account.role = 'admin' AND account.email_confirmed_at IS NOT NULL AND account.email IS NOT NULL
                   AND (account.banned_until > now()) IS NOT TRUE
                 ORDER BY account.created_at, account.id
                 LIMIT :most_mails) AS administrator
   WHERE failed.disabled_reason = 'failing'
)
SELECT failed.is_news, failed.disabled_reason,
       record_acts(:origin, NULL, NULL, ARRAY[CASE WHEN failed.disabled_reason IS NOT NULL THEN 'webhook_disabled' END], '{}',
                   jsonb_build_object('webhook_id', failed.id, 'url', failed.url, 'reason', failed.disabled_reason)) AS recorded
  FROM failed;

-- name: select_webhook_secrets()
-- The secrets of all webhooks, as they are encrypted.
SELECT id::text, secret, previous_secret FROM webhooks;

-- name: reseal_webhook(id uuid, old_secret bytea, secret bytea, previous_secret bytea)
-- Keeps a webhook's secrets encrypted with another key, unless they have been changed meanwhile.
UPDATE webhooks SET secret = :secret, previous_secret = :previous_secret WHERE id = :id AND secret = :old_secret;

-- name: finish_stale_events(batch integer, give_up integer)
-- Finishes with events that nobody takes: those of deleted webhooks are void, those that have waited too long for disabled ones have failed.
WITH stale AS (
  SELECT waiting.id, CASE WHEN webhook.id IS NULL THEN 'void' ELSE 'failed' END AS outcome
    FROM outbox AS waiting
    LEFT JOIN webhooks AS webhook ON webhook.id::text = waiting.recipient
   WHERE waiting.channel = 'webhook' AND waiting.outcome IS NULL AND (SELECT is_janitors_turn())
     AND (webhook.id IS NULL OR webhook.disabled_at IS NOT NULL AND waiting.created_at <= now() - make_interval(secs => :give_up))
   LIMIT :batch
     FOR UPDATE OF waiting SKIP LOCKED
)
UPDATE outbox AS message SET outcome = stale.outcome, finished_at = now() FROM stale WHERE message.id = stale.id;
