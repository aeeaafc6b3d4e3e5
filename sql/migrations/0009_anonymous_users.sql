ALTER TABLE users
  ADD COLUMN converted_at timestamptz,
  DROP CONSTRAINT users_made_by_check,
  ADD CONSTRAINT users_made_by_check CHECK (
    made_by IN ('signup', 'administrator', 'message', 'invitation', 'link', 'oauth', 'anonymous')
  );
CREATE INDEX users_anonymous ON users (created_at, id) WHERE made_by = 'anonymous' AND converted_at IS NULL;
