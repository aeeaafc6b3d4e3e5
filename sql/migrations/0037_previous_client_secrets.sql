ALTER TABLE oauth_clients ADD COLUMN previous_secret_hash bytea;
ALTER TABLE oauth_clients ADD COLUMN previous_secret_expires_at timestamptz;
