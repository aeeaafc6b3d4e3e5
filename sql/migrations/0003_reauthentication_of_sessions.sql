ALTER TABLE sessions ADD COLUMN reauthenticated_at timestamptz;
