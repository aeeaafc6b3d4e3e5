CREATE TABLE browser_sessions (
  token_hash  bytea PRIMARY KEY,
  user_id     uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  session_id  uuid NOT NULL CONSTRAINT browser_sessions_session_id_key UNIQUE
                REFERENCES sessions ON DELETE CASCADE,
  created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX browser_sessions_user_id ON browser_sessions (user_id);
ALTER TABLE sessions ADD COLUMN opened_by uuid;
ALTER TABLE authorization_codes ADD COLUMN opened_by uuid;
