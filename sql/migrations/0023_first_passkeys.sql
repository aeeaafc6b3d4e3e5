ALTER TABLE sessions ADD COLUMN first_passkey_at timestamptz;
