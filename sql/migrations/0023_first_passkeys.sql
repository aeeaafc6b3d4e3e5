-- As in 0019.
LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE;
ALTER TABLE sessions ADD COLUMN first_passkey_at timestamptz;
