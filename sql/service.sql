-- name: ping() -> row
SELECT 1 AS answer;

-- name: read_time() -> row
SELECT clock_timestamp() AS now;

-- name: select_database_health() -> row
SELECT write_a_row() IS NULL AS is_writable,
       EXISTS (SELECT FROM pg_locks WHERE waitstart < now() - interval '1 second') AS has_waits;

-- name: count_lock_waits() -> row
-- Statements on users or sessions that have waited for a lock for a second, whether on the table, or on a row
-- that another transaction has changed.
SELECT count(DISTINCT waiting.pid) AS total
  FROM pg_locks AS waiting
  JOIN pg_locks AS table_lock ON table_lock.pid = waiting.pid
   AND table_lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND table_lock.relation IN (to_regclass('users'), to_regclass('sessions'))
 WHERE NOT waiting.granted AND waiting.waitstart < now() - interval '1 second';

-- name: write_a_row() -> row
SELECT write_a_row() IS NULL AS is_writable;

-- name: write_to_disk() -> row
SELECT write_to_disk() AS written;

-- name: select_is_current(not_before bigint, expires_at bigint) -> row
SELECT (to_timestamp(:not_before) > now()) IS NOT TRUE
       AND (to_timestamp(:expires_at) <= now()) IS NOT TRUE AS is_current;

-- name: select_backend_pid() -> row
SELECT pg_backend_pid() AS pid;

-- name: lock_key_fingerprints() -> row?
SELECT pg_advisory_xact_lock(7239004117) IS NULL AS locked;

-- name: list_key_fingerprints() -> rows
SELECT setting, array_agg(fingerprint) AS fingerprints FROM key_fingerprints GROUP BY setting;

-- name: replace_key_fingerprints(setting text, fingerprints text[])
WITH removed AS (
  DELETE FROM key_fingerprints WHERE setting = :setting AND fingerprint <> ALL (:fingerprints)
)
INSERT INTO key_fingerprints (setting, fingerprint)
SELECT :setting, unnest(:fingerprints) ON CONFLICT DO NOTHING;
