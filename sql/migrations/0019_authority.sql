ALTER TABLE sessions ADD COLUMN identity_id uuid, ADD COLUMN code_given_at timestamptz;
