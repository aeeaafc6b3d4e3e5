-- A timestamp as the API shows it, in any time zone of the connection.
CREATE OR REPLACE FUNCTION iso_8601(moment timestamptz) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;
