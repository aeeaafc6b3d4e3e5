CREATE TABLE bulk_acts (
  id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id     uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  act         text NOT NULL,
  targets     text[] NOT NULL,
  options     jsonb NOT NULL,
  position    integer NOT NULL DEFAULT 0,
  refused     jsonb NOT NULL DEFAULT '[]',
  created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX bulk_acts_user_id ON bulk_acts (user_id);
CREATE INDEX bulk_acts_created_at ON bulk_acts (created_at);
