-- name: insert_spent_captcha(nonce bytea, expires_at bigint)
-- Inserts nothing for an expired challenge, or for one that any node has spent.
INSERT INTO spent_captchas (nonce, expires_at)
SELECT :nonce, to_timestamp(:expires_at)
 WHERE to_timestamp(:expires_at) > now()
ON CONFLICT DO NOTHING;
