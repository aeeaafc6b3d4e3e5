ALTER TABLE key_fingerprints ADD COLUMN seen_at timestamptz NOT NULL DEFAULT now();

CREATE TABLE last_done (
  task  text PRIMARY KEY,
  at    timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE probes (
  token_hash  bytea PRIMARY KEY,
  seen        jsonb,
  expires_at  timestamptz NOT NULL
);
