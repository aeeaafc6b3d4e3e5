-- name: claim_messages(lease integer, batch integer)
-- Takes messages that are due, and leaves them to others again after the lease, should the sender die. What can't be sent any
-- more, because it has expired or the link that it carries is spent or void, is finished with, and its secret erased.
WITH due AS (
  SELECT message.id,
         CASE
           WHEN message.expires_at <= now() THEN 'expired'
           WHEN message.one_time_token_id IS NOT NULL AND token.id IS NULL THEN 'void'
         END AS outcome
    FROM outbox AS message
    LEFT JOIN one_time_tokens AS token ON token.id = message.one_time_token_id
   WHERE message.outcome IS NULL AND message.next_attempt_at <= now()
   ORDER BY message.next_attempt_at
   LIMIT :batch
     FOR UPDATE OF message SKIP LOCKED
), claimed AS (
  UPDATE outbox AS message
     SET outcome = due.outcome,
         finished_at = CASE WHEN due.outcome IS NOT NULL THEN now() END,
         secret = CASE WHEN due.outcome IS NULL THEN message.secret END,
         attempts = message.attempts + (due.outcome IS NULL)::integer,
         next_attempt_at = now() + make_interval(secs => :lease)
    FROM due
   WHERE message.id = due.id
  RETURNING message.id, message.user_id, message.kind, message.recipient, message.variables, message.secret,
            message.attempts, message.outcome, message.created_at
)
SELECT id, kind, recipient, variables, secret, attempts
  FROM claimed
 WHERE outcome IS NULL
 ORDER BY created_at;

-- name: finish_message(id uuid, outcome text)
-- Notes what became of a message, and erases its secret.
UPDATE outbox SET outcome = :outcome, finished_at = now(), secret = NULL WHERE id = :id AND outcome IS NULL;
