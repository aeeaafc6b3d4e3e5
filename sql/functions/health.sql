-- Fails with disk_full like other writes: writes two megabytes to a temporary file in the database's
-- tablespace, without a row or a record in the WAL.
CREATE OR REPLACE FUNCTION write_to_disk() RETURNS bigint
LANGUAGE sql SET work_mem = '64kB' SET temp_tablespaces = '' AS $$
  SELECT count(*) FROM generate_series(1, 100000)
$$;

-- Whether a row can be written, whatever may forbid it. Only the first call writes one. The next ones lock it, which
-- takes a transaction id and 100 bytes of WAL, and leaves no dead row. A locked table must not delay GET /health.
CREATE OR REPLACE FUNCTION write_a_row() RETURNS void
LANGUAGE sql SET lock_timeout = '300ms' AS $$
  INSERT INTO last_done (task) VALUES ('health') ON CONFLICT (task) DO UPDATE SET at = excluded.at WHERE false
$$;
