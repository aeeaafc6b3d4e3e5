-- Only nodes of 0.6.1 call these functions, which have its text. They go with the release after this one.
-- `python -m tests.support.previous_release` writes this file.

-- The user object for a response or the claims of a token. A table, so that a statement is planned together with
-- it: as a value it would be planned at each call.
CREATE OR REPLACE FUNCTION user_object_for(u users, audience text) RETURNS TABLE (user_object text)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT user_object_with(u, linked.objects, linked.providers, own.member, audience)
    FROM linked_to(u.id) AS linked
   CROSS JOIN factors_of(u.id) AS own
$$;
