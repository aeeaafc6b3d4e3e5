-- name: lock_test_databases() -> row?
SELECT pg_advisory_lock(7239004123);

-- name: list_test_databases(mark text) -> rows
-- The databases of the test kit. Autovacuum, which has no role, does not count as a user.
SELECT d.datname AS name,
       EXISTS (SELECT
                 FROM pg_stat_activity AS a
                WHERE a.datname = d.datname AND a.usesysid IS NOT NULL) AS is_used
  FROM pg_database AS d
 WHERE shobj_description(d.oid, 'pg_database') = :mark;
