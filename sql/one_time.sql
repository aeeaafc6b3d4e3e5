-- name: verify_signup(token_hash bytea, ip inet, network text, user_agent text, audience text)
-- Spends the link of a sign-up: confirms and proves the address, voids the user's other links and signs in; the network is known
-- from now on. No row when the
-- link is unknown, spent, expired, or for another address than the user has by now; a banned user's is not spent.
WITH spent AS (
  DELETE FROM one_time_tokens AS token
   USING users AS account
   WHERE token.token_hash = :token_hash AND token.purpose = 'signup' AND token.expires_at > now()
     AND account.id = token.user_id AND account.email = token.target
     AND (account.banned_until > now()) IS NOT TRUE
  RETURNING token.user_id
), confirmed AS (
  UPDATE users AS account
     SET email_confirmed_at = coalesce(account.email_confirmed_at, now()),
         email_proved = true,
         last_sign_in_at = now(),
         updated_at = now()
    FROM spent
   WHERE account.id = spent.user_id
  RETURNING account, void_one_time_tokens(account.id) AS voided
), network AS (
  INSERT INTO known_networks (user_id, network)
  SELECT (confirmed.account).id, :network FROM confirmed
  ON CONFLICT DO NOTHING
), session AS (
  INSERT INTO sessions (user_id, method, ip, user_agent)
  SELECT (confirmed.account).id, 'otp', :ip, :user_agent FROM confirmed
  RETURNING id, counter
)
SELECT user_object(confirmed.account, linked.objects, linked.providers, :audience)::text AS user_object,
       session.id AS session_id,
       session.counter,
       floor(extract(epoch FROM now()))::bigint AS issued_at
  FROM confirmed
  CROSS JOIN session
  CROSS JOIN identities_of((confirmed.account).id) AS linked;
