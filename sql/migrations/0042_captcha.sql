CREATE TABLE spent_captchas (
  nonce       bytea PRIMARY KEY,
  expires_at  timestamptz NOT NULL
);
CREATE INDEX spent_captchas_expires_at ON spent_captchas (expires_at);
