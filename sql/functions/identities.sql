CREATE OR REPLACE FUNCTION identity_object(identity identities) RETURNS json
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT json_build_object(
    'id', identity.id,
    'identity_id', identity.id,
    'user_id', identity.user_id,
    'identity_data', identity.identity_data,
    'provider', identity.provider,
    'last_sign_in_at', iso_8601(identity.last_sign_in_at),
    'created_at', iso_8601(identity.created_at),
    'updated_at', iso_8601(identity.updated_at)
  )
$$;

-- A user's identities, as objects and as the names of their providers, the oldest first.
CREATE OR REPLACE FUNCTION identities_of(owner uuid) RETURNS TABLE (objects json, providers text[])
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT coalesce(json_agg(identity_object(identity) ORDER BY identity.created_at, identity.provider), '[]'::json),
         coalesce(array_agg(identity.provider ORDER BY identity.created_at, identity.provider), '{}')
    FROM identities AS identity
   WHERE identity.user_id = owner
$$;

-- identities_of for a statement that has itself written one of them (or none: null), and doesn't see that in the table.
CREATE OR REPLACE FUNCTION identities_with(written identities, owner uuid) RETURNS TABLE (objects json, providers text[])
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT coalesce(json_agg(identity_object(identity) ORDER BY (identity).created_at, (identity).provider), '[]'::json),
         coalesce(array_agg((identity).provider ORDER BY (identity).created_at, (identity).provider), '{}')
    FROM (SELECT written AS identity WHERE written.id IS NOT NULL
           UNION ALL
          SELECT identity FROM identities AS identity WHERE identity.user_id = owner AND identity.id IS DISTINCT FROM written.id) AS every
$$;
