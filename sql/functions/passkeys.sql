-- A passkey in the format of the official clients: without `last_used_at` before the first use.
CREATE OR REPLACE FUNCTION passkey_object(f factors) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'id', f.id,
    'friendly_name', f.friendly_name,
    'created_at', iso_8601(f.created_at),
    'last_used_at', iso_8601(f.last_used_at)
  ))
$$;
