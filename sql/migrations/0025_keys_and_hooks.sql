-- An id that `reuse_session_id` sets for one transaction.
ALTER TABLE sessions ALTER COLUMN id SET DEFAULT
  coalesce(nullif(current_setting('latchkey.session_id', true), '')::uuid, gen_random_uuid());
