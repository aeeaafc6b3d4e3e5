-- Fails with disk_full like other writes: writes two megabytes to a temporary file in the database's
-- tablespace, without a row or a record in the WAL.
CREATE OR REPLACE FUNCTION write_to_disk() RETURNS bigint
LANGUAGE sql SET work_mem = '64kB' SET temp_tablespaces = '' AS $$
  SELECT count(*) FROM generate_series(1, 100000)
$$;
