-- Usable from 0038
-- Gates: clients that sign users in for a proxy, and the cookies of their browsers.
ALTER TABLE oauth_clients
  ADD COLUMN gate_origin text CONSTRAINT oauth_clients_gate_origin_key UNIQUE;
CREATE TABLE gate_sessions (
  token_hash  bytea PRIMARY KEY,
  user_id     uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  session_id  uuid NOT NULL CONSTRAINT gate_sessions_session_id_key UNIQUE
                REFERENCES sessions ON DELETE CASCADE,
  client_id   uuid NOT NULL REFERENCES oauth_clients ON DELETE CASCADE,
  created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX gate_sessions_user_id ON gate_sessions (user_id);
CREATE INDEX gate_sessions_client_id ON gate_sessions (client_id);
