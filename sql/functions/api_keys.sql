CREATE OR REPLACE FUNCTION api_key_object(k api_keys) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_build_object(
    'id', k.id,
    'name', k.name,
    'prefix', 'lk_' || left(k.id::text, 8),
    'scopes', k.scopes,
    'created_at', iso_8601(k.created_at),
    'expires_at', iso_8601(k.expires_at),
    'last_used_on', k.last_used_on
  )
$$;

-- The API keys of a user, newest first.
CREATE OR REPLACE FUNCTION api_keys_of(owner uuid) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT coalesce(jsonb_agg(api_key_object(k) ORDER BY k.created_at DESC, k.id), '[]')
    FROM api_keys AS k
   WHERE k.user_id = owner
$$;
