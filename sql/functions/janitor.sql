-- Takes the janitor's lock for this transaction; false when another node has it.
CREATE OR REPLACE FUNCTION is_janitors_turn() RETURNS boolean
  LANGUAGE sql VOLATILE
AS $$
  SELECT pg_try_advisory_xact_lock(7239004117)
$$;
