-- The requirements of an organization: a session's level, and one of its providers that are on.
CREATE OR REPLACE FUNCTION requirement_of(o organizations) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_build_object('aal', o.level)
         || CASE WHEN o.needs_own_provider THEN jsonb_build_object('providers', providers_of(o)) ELSE '{}' END
$$;

-- The names of an organization's providers that are on, as the methods of sessions have them.
CREATE OR REPLACE FUNCTION providers_of(o organizations) RETURNS text[]
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT ARRAY(SELECT provider_name(p) FROM identity_providers AS p
                WHERE p.organization_id = o.id AND p.is_on ORDER BY p.created_at, p.id)
$$;

-- The member `organizations` of the user object as JSON text, with the comma that follows it. Empty without
-- memberships, or with AUTH_ORGANIZATIONS off. A statement prepared while it is off is planned without the
-- tables, because CASE is decided before its parts are planned.
CREATE OR REPLACE FUNCTION memberships_of(owner uuid, is_on boolean) RETURNS TABLE (member text)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT CASE WHEN is_on THEN (
           SELECT coalesce('"organizations": ' || jsonb_agg(
                             jsonb_build_object('id', o.id, 'slug', o.slug, 'name', o.name, 'role', m.role)
                             || CASE WHEN o.level = 'aal1' AND NOT o.needs_own_provider THEN '{}'
                                     ELSE jsonb_build_object('requires', requirement_of(o)) END
                             ORDER BY o.slug)::text || ', ', '')
             FROM memberships AS m
             JOIN organizations AS o ON o.id = m.organization_id
            WHERE m.user_id = owner AND o.ended_at IS NULL
         ) ELSE '' END
$$;

CREATE OR REPLACE FUNCTION organization_object(o organizations) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_build_object(
    'id', o.id,
    'slug', o.slug,
    'name', o.name,
    'requires', requirement_of(o),
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

CREATE OR REPLACE FUNCTION domain_object(d organization_domains) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'domain', d.domain,
    'name', '_latchkey.' || d.domain,
    'value', 'latchkey=' || d.token,
    'proved_at', iso_8601(d.proved_at),
    'checked_at', iso_8601(d.checked_at),
    'missing_since', iso_8601(d.missing_since)
  ))
$$;
