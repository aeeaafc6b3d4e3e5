-- Usable from 0052
-- Nodes of 0.5.1 named them.
DROP TABLE IF EXISTS gate_sessions;
DROP FUNCTION IF EXISTS is_stale_at_gate(sessions, integer);
