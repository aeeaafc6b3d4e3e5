-- Usable from 0055
-- 0.6.1 names the column in no statement, and has removed the clients that it said something of.
ALTER TABLE oauth_clients DROP COLUMN gate_origin;
