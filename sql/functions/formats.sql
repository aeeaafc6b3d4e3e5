-- A timestamp as the API shows it, whatever the connection's time zone.
CREATE OR REPLACE FUNCTION iso_8601(moment timestamptz) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

-- A user object with the audience, as its text: of what user_objects holds, or user_object makes.
CREATE OR REPLACE FUNCTION with_audience(object text, audience text) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT '{"aud": ' || to_json(audience) || ', ' || substr(object, 2)
$$;
