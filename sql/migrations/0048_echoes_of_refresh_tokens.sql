-- Usable from 0047
ALTER TABLE sessions ADD COLUMN echoes jsonb;
