-- name: take_from_quota(quota_keys text[], quota_amounts integer[], quota_seconds integer[])
--   -> row (amount?, remaining?, resets_in?)
SELECT seconds_left, amount, remaining, resets_in
  FROM take_from_quota(:quota_keys, :quota_amounts, :quota_seconds);

-- name: select_wait(quota_keys text[], quota_amounts integer[]) -> row
SELECT coalesce(max(extract(epoch FROM f.expires_at - now())), 0)::float AS seconds
  FROM unnest(:quota_keys, :quota_amounts) AS quota (key, amount)
  JOIN failure_counts AS f ON f.key = quota.key AND f.count >= quota.amount AND f.expires_at > now();

-- name: write_token(token_id uuid, user_id uuid, purpose text, target text, token_hash bytea,
--                   link_lifetime integer, code_mac bytea, code_lifetime integer, redirect_to text,
--                   code_challenge text, session_id uuid, password_hash text,
--                   user_metadata user_metadata, user_agent text, browser_hash bytea, ip inet)
-- Inserts no token if the user is null, so that a request for an unknown address runs the same statements. A
-- browser that asks again waits for the new link alone.
WITH forgotten AS (
  UPDATE one_time_tokens
     SET browser_hash = NULL
   WHERE browser_hash = :browser_hash AND target = :target AND purpose = :purpose AND spent_at IS NOT NULL
)
INSERT INTO one_time_tokens (id, user_id, purpose, target, token_hash, code_mac, redirect_to, code_challenge,
                             session_id, password_hash, user_metadata, user_agent, browser_hash, ip,
                             code_expires_at, expires_at)
SELECT :token_id, :user_id, :purpose, :target, :token_hash, :code_mac, :redirect_to, :code_challenge,
       :session_id, :password_hash, :user_metadata, :user_agent, :browser_hash, :ip,
       now() + make_interval(secs => :code_lifetime),
       now() + make_interval(secs => coalesce(:link_lifetime, :code_lifetime))
 WHERE :user_id IS NOT NULL;

-- name: write_message(message_id uuid, user_id uuid, kind text, recipient text, message_variables jsonb,
--                     message_secret bytea, token_id uuid, lifetime integer, longest_delay double precision)
-- Kind `none` is not sent; it makes a request for an unknown address take as long as any other.
INSERT INTO outbox (id, user_id, kind, channel, recipient, variables, secret, one_time_token_id, expires_at,
                    next_attempt_at, outcome, finished_at)
SELECT :message_id, :user_id, :kind,
       CASE WHEN is_sent THEN CASE WHEN :recipient LIKE '%@%' THEN 'email' ELSE 'sms' END END,
       CASE WHEN is_sent THEN :recipient END,
       :message_variables
         || jsonb_build_object('locale', (SELECT user_metadata ->> 'locale' FROM users WHERE id = :user_id)),
       CASE WHEN is_sent THEN :message_secret END,
       CASE WHEN is_sent THEN :token_id END,
       now() + make_interval(secs => :lifetime),
       now() + make_interval(secs => random() * :longest_delay),
       CASE WHEN NOT is_sent THEN 'none' END,
       CASE WHEN NOT is_sent THEN now() END
  FROM (VALUES (:kind <> 'none')) AS message (is_sent);
