-- What nodes of 0.2.0 call while they run next to this release. tests/sql/test_schema.py prepares their
-- statements, and tests/faults/test_releases.py runs such a node. In the release after 0.3.0, delete this
-- file, and drop these functions in a migration.

-- Checks no level, which such a node does itself.
CREATE OR REPLACE FUNCTION caller_state(
  u users, s sessions, expires_at bigint, lifetime integer, timebox integer
) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT gives_token(u, expires_at, end_of(s, lifetime, timebox), false)
$$;

CREATE OR REPLACE FUNCTION locked_caller_state(
  user_id uuid, session_id uuid, expires_at bigint, lifetime integer, timebox integer,
  reauthenticated boolean, age integer, aal text, level text, required text, needs_proof boolean
) RETURNS text
  LANGUAGE sql VOLATILE
AS $$
  SELECT CASE
    WHEN state = 'live' AND NOT reauthenticated
         AND (authenticated_at(s) <= now() - make_interval(secs => age)
              OR needs_proof AND (proved_at(s) > now() - make_interval(secs => age)) IS NOT TRUE)
    THEN 'reauthentication_needed'
    ELSE state
  END
    FROM users AS u
    LEFT JOIN sessions AS s ON s.id = locked_caller_state.session_id AND s.user_id = u.id
   CROSS JOIN caller_state(u, s, expires_at, lifetime, timebox, locked_caller_state.aal, level, required)
           AS state
   WHERE u.id = locked_caller_state.user_id
$$;

-- The pages of such a node bind no code to a browser. In plpgsql, as it was: a running statement has looked
-- up the language, but not yet the body.
CREATE OR REPLACE FUNCTION spend_code(address text, macs bytea[], purposes text[])
  RETURNS SETOF one_time_tokens
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  RETURN QUERY SELECT * FROM spend_code(address, macs, purposes, NULL);
END
$$;

-- Functions of 0.2.0 that its statements do not need. Dropped here rather than by a migration, because they
-- are in use until the others are replaced.
DROP FUNCTION IF EXISTS locked_caller_state(uuid, uuid, bigint, integer, integer, boolean, integer);
DROP FUNCTION IF EXISTS page_of_users(text, text, text, text, boolean, integer, bigint);
DROP FUNCTION IF EXISTS spend_code(text, bytea, text[]);
DROP FUNCTION IF EXISTS timeline_of(uuid, integer, integer, bigint);
DROP FUNCTION IF EXISTS timeline_of_sessions(uuid, integer, integer);
