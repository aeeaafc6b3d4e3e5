-- The newest refresh token that was used, and its successor. Without them, the token before the newest.
ALTER TABLE sessions ADD COLUMN used_counter bigint, ADD COLUMN successor_counter bigint;
