-- name: insert_spent_captcha(nonce bytea, expires_at bigint)
INSERT INTO spent_captchas (nonce, expires_at)
SELECT :nonce, to_timestamp(:expires_at)
 WHERE to_timestamp(:expires_at) > now()
ON CONFLICT DO NOTHING;
