ALTER TABLE authorization_codes ADD COLUMN authenticated_at timestamptz;
