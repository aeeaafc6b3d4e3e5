CREATE TABLE typed_addresses (
  id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  browser_hash  bytea NOT NULL,
  address       text NOT NULL,
  has_asked     boolean NOT NULL,
  expires_at    timestamptz NOT NULL
);
CREATE INDEX typed_addresses_expires_at ON typed_addresses (expires_at);
