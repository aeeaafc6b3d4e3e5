-- Usable from 0055
-- 0.6.1 names these columns in no statement. It has removed the clients of gates, and only 0.3.0 and 0.4.0 used
-- the other two.
ALTER TABLE oauth_clients DROP COLUMN gate_origin;
ALTER TABLE sessions DROP COLUMN identity_id;
ALTER TABLE one_time_tokens DROP COLUMN asks_for_factor;
