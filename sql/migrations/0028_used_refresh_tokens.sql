-- The newest refresh token that was used, and its successor. Without them, or where a node of 0.3.0 has moved
-- the counter, the token before the newest. As in 0019.
LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE;
ALTER TABLE sessions ADD COLUMN used_counter bigint, ADD COLUMN successor_counter bigint;
