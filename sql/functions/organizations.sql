-- The first member of the user object, as text: without memberships, or with AUTH_ORGANIZATIONS off, there is none. One
-- look-up of an empty table costs less than asking whether there is one.
CREATE OR REPLACE FUNCTION memberships_of(owner uuid, is_on boolean) RETURNS TABLE (member text)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT coalesce('"organizations": ' || jsonb_agg(
                    jsonb_build_object('id', o.id, 'slug', o.slug, 'name', o.name, 'role', m.role)
                    || CASE o.level WHEN 'aal1' THEN '{}' ELSE jsonb_build_object('requires',
                                                                 jsonb_build_object('aal', o.level)) END
                    ORDER BY o.slug)::text || ', ', '')
    FROM memberships AS m
    JOIN organizations AS o ON o.id = m.organization_id
   WHERE is_on AND m.user_id = owner AND o.ended_at IS NULL
$$;

CREATE OR REPLACE FUNCTION organization_object(o organizations) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_build_object(
    'id', o.id,
    'slug', o.slug,
    'name', o.name,
    'requires', jsonb_build_object('aal', o.level),
    'created_at', iso_8601(o.created_at),
    'updated_at', iso_8601(o.updated_at)
  )
$$;

CREATE OR REPLACE FUNCTION invitation_object(i organization_invitations) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_build_object(
    'id', i.id,
    'email', i.email,
    'role', i.role,
    'created_at', iso_8601(i.created_at),
    'expires_at', iso_8601(i.expires_at)
  )
$$;
