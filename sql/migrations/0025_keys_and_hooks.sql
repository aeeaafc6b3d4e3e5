-- The ids that `reuse_ids` sets for one transaction.
ALTER TABLE users ALTER COLUMN id SET DEFAULT
  coalesce(nullif(current_setting('latchkey.user_id', true), '')::uuid, gen_random_uuid());
ALTER TABLE sessions ALTER COLUMN id SET DEFAULT
  coalesce(nullif(current_setting('latchkey.session_id', true), '')::uuid, gen_random_uuid());
