ALTER TABLE sessions ADD COLUMN used_counter bigint, ADD COLUMN successor_counter bigint;
