-- Usable from 0054
-- Nodes of 0.5.1 listed them. This release lists every application, and does not read the column.
DELETE FROM oauth_clients WHERE gate_origin IS NOT NULL;
