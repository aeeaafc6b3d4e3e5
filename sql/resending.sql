-- name: select_message(id uuid)
--   -> row? (one_time_token_id?, code_challenge?, browser_hash?, user_agent?, ip?)
SELECT m.id, m.user_id, m.channel, m.kind, m.recipient, m.variables, m.one_time_token_id, t.code_challenge,
       t.browser_hash, t.user_agent, host(t.ip) AS ip,
       coalesce(m.outcome, 'waiting') AS outcome,
       u.id IS NOT NULL AS has_user,
       (u.role = 'admin') IS TRUE AS is_for_administrator,
       (t.purpose = 'undo' AND is_good_link(t)) IS TRUE AS has_link
  FROM outbox AS m
  LEFT JOIN users AS u ON u.id = m.user_id
  LEFT JOIN one_time_tokens AS t ON t.id = m.one_time_token_id
 WHERE m.id = :id AND m.channel <> 'webhook';

-- name: hurry_message(id uuid, origin jsonb) -> row?
-- Skips a message that is being sent for the first time. A message whose retry is under way is sent twice.
WITH hurried AS (
  UPDATE outbox
     SET next_attempt_at = now()
   WHERE id = :id AND outcome IS NULL AND channel <> 'webhook' AND (attempts = 0 OR last_error IS NOT NULL)
  RETURNING user_id, kind
)
SELECT pg_notify('outbox', '') AS notified,
       record_acts_at(now(), :origin, user_id, NULL, '{message_resent}', '{}', jsonb_build_object('kind', kind))
  FROM hurried;

-- name: renew_undo_token(id uuid, token_hash bytea)
UPDATE one_time_tokens SET token_hash = :token_hash WHERE id = :id AND spent_at IS NULL;

-- name: copy_notice(id uuid, new_id uuid, secret bytea)
-- The copy keeps the time of the event.
SELECT write_message_at(now(), :new_id, m.user_id, m.kind, m.recipient,
                     jsonb_build_object('requested_at', iso_8601(m.created_at)) || m.variables,
                     :secret,
                     CASE WHEN :secret IS NOT NULL THEN m.one_time_token_id END,
                     CASE WHEN :secret IS NOT NULL THEN m.expires_at END)
  FROM outbox AS m
 WHERE m.id = :id;
