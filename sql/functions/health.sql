-- Statements on users or sessions that have waited for a lock for a second, whether on the table, or on a row
-- that another transaction has changed.
CREATE OR REPLACE FUNCTION count_lock_waits() RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT count(DISTINCT waiting.pid)
    FROM pg_locks AS waiting
    JOIN pg_locks AS held ON held.pid = waiting.pid
     AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
     AND held.relation IN (to_regclass('users'), to_regclass('sessions'))
   WHERE NOT waiting.granted AND waiting.waitstart < now() - interval '1 second'
$$;

-- Fails with disk_full like other writes: writes two megabytes to a temporary file in the database's
-- tablespace, without a row or a record in the WAL.
CREATE OR REPLACE FUNCTION write_to_disk() RETURNS bigint
LANGUAGE sql SET work_mem = '64kB' SET temp_tablespaces = '' AS $$
  SELECT count(*) FROM generate_series(1, 100000)
$$;
