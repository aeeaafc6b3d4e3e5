-- Whether this transaction is the one that cleans up; of several at a time only one does, over all nodes.
CREATE OR REPLACE FUNCTION is_janitors_turn() RETURNS boolean
  LANGUAGE sql VOLATILE
AS $$
  SELECT pg_try_advisory_xact_lock(7239004117)
$$;
