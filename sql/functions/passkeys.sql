-- A passkey in the format of the official clients, with its status: without `last_used_at` before the first use.
CREATE OR REPLACE FUNCTION passkey_with_status(f factors) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'id', f.id,
    'friendly_name', f.friendly_name,
    'status', CASE WHEN f.verified_at IS NULL THEN 'unverified' ELSE 'verified' END,
    'created_at', iso_8601(f.created_at),
    'last_used_at', iso_8601(f.last_used_at)
  ))
$$;
