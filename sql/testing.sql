-- name: lock_test_databases() -> row?
SELECT pg_advisory_lock(7239004123);

-- name: list_test_databases(mark text) -> rows
-- Those that the test kit has marked as its own. Autovacuum, which has no role, does not use them.
SELECT d.datname AS name,
       EXISTS (SELECT
                 FROM pg_stat_activity AS a
                WHERE a.datname = d.datname AND a.usesysid IS NOT NULL) AS is_used
  FROM pg_database AS d
 WHERE shobj_description(d.oid, 'pg_database') = :mark;
