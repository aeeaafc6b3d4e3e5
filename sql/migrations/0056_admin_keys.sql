-- Usable from 0055
CREATE TABLE admin_keys (
  id            uuid PRIMARY KEY,
  name          text NOT NULL CONSTRAINT admin_keys_name_key UNIQUE,
  key_mac       bytea NOT NULL,
  scopes        text[] NOT NULL CHECK (cardinality(scopes) > 0),
  created_at    timestamptz NOT NULL DEFAULT now(),
  created_by    uuid,
  expires_at    timestamptz,
  last_used_on  date
);
