-- name: take_from_quota(quota_keys text[], quota_amounts integer[], quota_seconds integer[])
SELECT * FROM take_from_quota(:quota_keys, :quota_amounts, :quota_seconds);

-- name: select_phone_is_proved(phone text)
SELECT EXISTS (SELECT FROM users WHERE phone = :phone AND phone_proved) AS is_proved;

-- name: write_token(token_id uuid, user_id uuid, purpose text, target text, token_hash bytea,
--                   link_lifetime integer, code_mac bytea, code_lifetime integer, redirect_to text,
--                   code_challenge text, session_id uuid, password_hash text,
--                   user_metadata user_metadata, user_agent text)
-- Does nothing for a null user, so that a request for an unknown address runs the same statements.
INSERT INTO one_time_tokens (id, user_id, purpose, target, token_hash, code_mac, redirect_to, code_challenge,
                             session_id, password_hash, user_metadata, user_agent, code_expires_at,
                             expires_at)
SELECT :token_id, :user_id, :purpose, :target, :token_hash, :code_mac, :redirect_to, :code_challenge,
       :session_id, :password_hash, :user_metadata, :user_agent,
       now() + make_interval(secs => :code_lifetime),
       now() + make_interval(secs => coalesce(:link_lifetime, :code_lifetime))
 WHERE :user_id IS NOT NULL;

-- name: write_message(message_id uuid, user_id uuid, kind text, recipient text, message_variables jsonb,
--                     message_secret bytea, token_id uuid, lifetime integer)
-- Kind `none` is not sent: a request for an unknown address takes as long as any other.
INSERT INTO outbox (id, user_id, kind, channel, recipient, variables, secret, one_time_token_id, expires_at,
                    outcome, finished_at)
SELECT :message_id, :user_id, :kind,
       CASE WHEN is_sent THEN CASE WHEN :recipient LIKE '%@%' THEN 'email' ELSE 'sms' END END,
       CASE WHEN is_sent THEN :recipient END,
       :message_variables
         || jsonb_build_object('locale', (SELECT user_metadata ->> 'locale' FROM users WHERE id = :user_id)),
       CASE WHEN is_sent THEN :message_secret END,
       CASE WHEN is_sent THEN :token_id END,
       now() + make_interval(secs => :lifetime),
       CASE WHEN NOT is_sent THEN 'none' END,
       CASE WHEN NOT is_sent THEN now() END
  FROM (VALUES (:kind <> 'none')) AS message (is_sent);

-- name: select_message(id uuid)
SELECT m.user_id, m.channel, m.kind, m.recipient, m.variables, m.outcome IS NULL AS is_waiting,
       m.variables ->> 'redirect_to' AS redirect_to, m.one_time_token_id IS NOT NULL AS has_link
  FROM outbox AS m
 WHERE m.id = :id AND m.channel <> 'webhook';

-- name: hurry_message(id uuid, origin jsonb)
-- Not one that is being sent for the first time.
WITH hurried AS (
  UPDATE outbox
     SET next_attempt_at = now()
   WHERE id = :id AND outcome IS NULL AND channel <> 'webhook' AND (attempts = 0 OR last_error IS NOT NULL)
  RETURNING user_id, kind
)
SELECT pg_notify('outbox', '') AS notified,
       record_acts(:origin, user_id, NULL, '{message_resent}', '{}', jsonb_build_object('kind', kind))
  FROM hurried;
