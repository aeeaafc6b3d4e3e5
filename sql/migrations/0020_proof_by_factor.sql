ALTER TABLE sessions ADD COLUMN factor_proved_at timestamptz;
