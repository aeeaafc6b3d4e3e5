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

-- Newest first.
CREATE OR REPLACE FUNCTION api_keys_of(owner uuid) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT coalesce(jsonb_agg(api_key_object(k) ORDER BY k.created_at DESC, k.id), '[]')
    FROM api_keys AS k
   WHERE k.user_id = owner
$$;

-- Whether a key, or its access token, may act. `token_expires_at` is the token's exp, or null.
CREATE OR REPLACE FUNCTION api_key_state(u users, k api_keys, token_expires_at bigint) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE
    WHEN to_timestamp(token_expires_at) <= now() THEN 'bad_jwt'
    WHEN u.banned_until > now() THEN 'user_banned'
    WHEN k.id IS NULL OR k.expires_at <= now() THEN 'api_key_not_found'
    ELSE 'live'
  END
$$;
