ALTER TABLE api_keys
  ADD COLUMN refreshes integer NOT NULL DEFAULT 0,
  ADD COLUMN counted_until timestamptz NOT NULL DEFAULT now();
-- In 0.3.0, it could be set for one transaction.
ALTER TABLE sessions ALTER COLUMN id SET DEFAULT gen_random_uuid();
