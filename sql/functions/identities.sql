CREATE OR REPLACE FUNCTION identity_object(i identities) RETURNS json
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_build_object(
    'id', i.id,
    'identity_id', i.id,
    'user_id', i.user_id,
    'identity_data', i.identity_data,
    'provider', i.provider,
    'last_sign_in_at', iso_8601(i.last_sign_in_at),
    'created_at', iso_8601(i.created_at),
    'updated_at', iso_8601(i.updated_at)
  )::json
$$;

CREATE OR REPLACE FUNCTION identities_of(owner uuid) RETURNS TABLE (objects json, providers text[])
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT coalesce(json_agg(identity_object(i) ORDER BY i.created_at, i.provider), '[]'::json),
         coalesce(array_agg(i.provider ORDER BY i.created_at, i.provider), '{}')
    FROM identities AS i
   WHERE i.user_id = owner
$$;

-- What INSERT INTO identities needs for the addresses of a new user.
CREATE OR REPLACE FUNCTION own_identities(u users)
  RETURNS TABLE (user_id uuid, provider text, subject text, identity_data jsonb)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT u.id, kind, u.id::text, jsonb_build_object('sub', u.id, kind, address)
    FROM (VALUES ('email', u.email), ('phone', u.phone)) AS own (kind, address)
   WHERE address IS NOT NULL
$$;
