-- The requirements of an organization: a session's level, one of its providers that are on, and the seconds since the
-- last sign-in.
CREATE OR REPLACE FUNCTION requirement_of(o organizations) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_build_object('aal', o.level)
         || CASE WHEN o.needs_own_provider THEN jsonb_build_object('providers', providers_of(o)) ELSE '{}' END
         || jsonb_strip_nulls(jsonb_build_object('max_age', extract(epoch FROM o.max_age)::integer))
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
                             || CASE WHEN o.level = 'aal1' AND NOT o.needs_own_provider AND o.max_age IS NULL THEN '{}'
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

CREATE OR REPLACE FUNCTION organization_domain(d organization_domains) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'domain', d.domain,
    'name', '_latchkey.' || d.domain,
    'value', 'latchkey=' || d.token,
    'proved_at', iso_8601(d.proved_at),
    'checked_at', iso_8601(d.checked_at),
    'missing_since', iso_8601(d.missing_since),
    'proved_by_command_at', iso_8601(d.proved_by_command_at)
  ))
$$;

-- The words of an organization's name. Inlined, so that the index organizations_names is used.
CREATE OR REPLACE FUNCTION words_of_organization(o organizations) RETURNS tsvector
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT to_tsvector('simple', translate(o.name, '@._+-/’', '       '))
$$;

-- Whether a search finds an organization: by the id, the beginning of the short name, or the beginnings of words of the
-- name. As a range, a prefix is read from the index of short names.
CREATE OR REPLACE FUNCTION organization_is_listed(o organizations, wanted_id uuid, search text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT o.id = wanted_id
         OR o.slug >= search AND o.slug < search || chr(1114111)
         OR words_of_organization(o) @@ query_of(search)
$$;

CREATE OR REPLACE FUNCTION has_more_members(organization uuid, number integer) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT EXISTS (SELECT FROM memberships
                  WHERE organization_id = organization
                  ORDER BY created_at, user_id
                 OFFSET number)
$$;

-- Whether each word of a search begins a word of the name. The first test takes a tenth of the time of the second.
CREATE OR REPLACE FUNCTION has_name(u users, search text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT strpos(lower(name_of(u.user_metadata) COLLATE "C"), part_of(search)) > 0
     AND to_tsvector('simple', translate(name_of(u.user_metadata), '@._+-/’', '       ')) @@ query_of(search)
$$;

-- Whether a search finds a member: by the name or, with addresses, by the email, too.
CREATE OR REPLACE FUNCTION member_is_listed(u users, search text, with_addresses boolean) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN with_addresses THEN may_have(u, part_of(search)) AND words_of(u) @@ query_of(search)
              ELSE has_name(u, search) END
$$;

-- A member in a list. Without addresses, as members see one another. Inlined.
CREATE OR REPLACE FUNCTION member_object(m memberships, u users, has_factor boolean, with_addresses boolean)
  RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_build_object('user_id', m.user_id, 'name', name_of(u.user_metadata), 'role', m.role)
         || CASE WHEN with_addresses THEN jsonb_build_object(
              'email', u.email, 'added_by', m.added_by, 'created_at', iso_8601(m.created_at),
              'has_second_factor', has_factor) ELSE '{}' END
$$;
