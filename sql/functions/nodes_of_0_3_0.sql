-- What nodes of 0.3.0 call while they run next to this release: they demand no level of clients and API keys.
-- tests/sql/test_schema.py prepares their statements. In the release after 0.4.0, delete this file, and drop
-- these functions in a migration.

CREATE OR REPLACE FUNCTION session_state(
  u users, s sessions, expires_at bigint, lifetime integer, timebox integer
) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT gives_token(u, expires_at, end_of(s, lifetime, timebox), false)
$$;

CREATE OR REPLACE FUNCTION client_state(
  u users, s sessions, c oauth_clients, expires_at bigint, lifetime integer, timebox integer
) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN c.id IS NULL OR NOT may_use(u, c) THEN 'session_not_found'
              ELSE session_state(u, s, expires_at, lifetime, timebox) END
$$;

CREATE OR REPLACE FUNCTION api_key_state(u users, k api_keys, token_expires_at bigint) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT gives_token(u, token_expires_at, end_of_key(k), false)
$$;
