CREATE TABLE api_keys (
  id            uuid PRIMARY KEY,
  user_id       uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  name          text NOT NULL,
  key_mac       bytea NOT NULL,
  scopes        text[] NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT now(),
  expires_at    timestamptz,
  last_used_on  date
);
CREATE INDEX api_keys_user_id ON api_keys (user_id, created_at);
CREATE INDEX api_keys_expires_at ON api_keys (expires_at) WHERE expires_at IS NOT NULL;

ALTER TABLE authorization_codes ADD COLUMN provider text;
