-- name: claim_message(channel text, lease integer, give_up integer, slow_targets text[], from_slow boolean)
-- Takes the message of a channel that has been due for longest, and leaves it to others again after the lease, should the sender
-- die. One that can't be sent any more is finished with, and its secret erased: the link and code that it carries have expired,
-- or are spent or void; or, with nothing to expire, it has been tried for `give_up` seconds. Targets that are known to be slow
-- are left to the threads that serve no others. Events are another statement's, claim_event.
WITH due AS (
  SELECT message.id,
         CASE
           WHEN message.expires_at <= now() THEN 'expired'
           WHEN message.one_time_token_id IS NOT NULL AND (token.id IS NULL OR token.spent_at IS NOT NULL) THEN 'void'
           WHEN message.expires_at IS NULL AND message.created_at <= now() - make_interval(secs => :give_up) THEN 'failed'
         END AS outcome
    FROM outbox AS message
    LEFT JOIN one_time_tokens AS token ON token.id = message.one_time_token_id
   WHERE message.channel = :channel AND message.channel <> 'webhook' AND message.outcome IS NULL AND message.next_attempt_at <= now()
     AND (outbox_target(message.channel, message.recipient) = ANY (:slow_targets)) = :from_slow
   ORDER BY message.next_attempt_at
   LIMIT 1
     FOR UPDATE OF message SKIP LOCKED
)
UPDATE outbox AS message
   SET outcome = due.outcome,
       finished_at = CASE WHEN due.outcome IS NOT NULL THEN now() END,
       secret = CASE WHEN due.outcome IS NULL THEN message.secret END,
       attempts = message.attempts + (due.outcome IS NULL)::integer,
       next_attempt_at = now() + make_interval(secs => :lease)
  FROM due
 WHERE message.id = due.id
RETURNING message.id, message.user_id, message.channel, message.kind, message.recipient, message.variables, message.secret, message.attempts,
          message.created_at, message.expires_at, message.outcome, message.last_error,
          outbox_target(message.channel, message.recipient) AS target;

-- name: finish_message(id uuid, outcome text, reason text, response text)
-- Notes what became of a message, and erases its secret.
UPDATE outbox
   SET outcome = :outcome, finished_at = now(), secret = NULL, last_error = coalesce(:reason, last_error), response = :response
 WHERE id = :id AND outcome IS NULL;

-- name: defer_message(id uuid, attempts integer, delay double precision, reason text)
-- Puts a message off that couldn't be sent now, at most to when it expires; unless the lease ran out and somebody else has it.
UPDATE outbox
   SET next_attempt_at = least(now() + make_interval(secs => :delay), expires_at), last_error = :reason
 WHERE id = :id AND attempts = :attempts AND outcome IS NULL;

-- name: expire_messages()
-- Finishes with the messages that have expired while nobody could send them, and erases their secrets.
UPDATE outbox SET outcome = 'expired', finished_at = now(), secret = NULL WHERE outcome IS NULL AND expires_at <= now() AND next_attempt_at <= now();

-- name: keep_in_dev_inbox(id uuid, sealed bytea, keep integer)
-- Keeps a message as it is sent, and forgets all but the newest ones.
WITH kept AS (
  INSERT INTO dev_inbox (id, sealed) VALUES (:id, :sealed)
  ON CONFLICT (id) DO UPDATE SET sealed = excluded.sealed
)
DELETE FROM dev_inbox WHERE id = ANY (ARRAY(SELECT id FROM dev_inbox ORDER BY kept_at DESC OFFSET :keep));

-- name: select_dev_inbox(recipient text)
-- The messages that were kept, to one recipient or to all, the newest first, with what became of them.
SELECT kept.id, kept.sealed, message.channel, message.kind, message.recipient, message.outcome, message.last_error, message.response,
       iso_8601(message.created_at) AS created_at
  FROM dev_inbox AS kept
  JOIN outbox AS message ON message.id = kept.id
 WHERE :recipient IS NULL OR message.recipient = :recipient
 ORDER BY message.created_at DESC, kept.kept_at DESC;

-- name: select_dev_inbox_message(id uuid)
-- One message that was kept.
SELECT id, sealed FROM dev_inbox WHERE id = :id;
