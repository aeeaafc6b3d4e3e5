-- Whether a client refuses every user. One that admits the members of its organization is stored as blocked:
-- schema.sql.
CREATE OR REPLACE FUNCTION refuses_all(c oauth_clients) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT c.is_blocked AND NOT c.admits_members
$$;

-- Whether a user belongs to an organization, if there is one.
CREATE OR REPLACE FUNCTION belongs_to(owner uuid, organization uuid) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT organization IS NULL
      OR EXISTS (SELECT
                   FROM memberships AS m
                   JOIN organizations AS o ON o.id = m.organization_id
                  WHERE m.user_id = owner AND m.organization_id = organization AND o.ended_at IS NULL)
$$;

-- A URI with "/" for an empty path, which is the same (RFC 3986, section 6.2.3).
CREATE OR REPLACE FUNCTION with_path(uri text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT regexp_replace(uri, '^([a-z][a-z0-9+.-]*://[^/?]+)(\?|$)', '\1/\2')
$$;

-- Whether a client admits a user: by the user's role, or by one of the list `roles` in `app_metadata`, and as
-- a member of the client's organization, and of that of a session. Refuses anonymous users, whom an
-- application could not identify, and resources that an administrator has removed from a client that an
-- administrator created.
CREATE OR REPLACE FUNCTION admits(c oauth_clients, u users, resource text, organization uuid) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT NOT is_anonymous(u) AND NOT refuses_all(c)
     AND (cardinality(c.allowed_roles) = 0 OR u.role = ANY (c.allowed_roles)
          OR CASE WHEN jsonb_typeof(u.app_metadata -> 'roles') = 'array'
                  THEN u.app_metadata -> 'roles' ?| c.allowed_roles ELSE false END)
     AND (resource IS NULL OR c.is_dynamic OR resource = ANY (c.resources)
          OR with_path(resource) = ANY (ARRAY(SELECT with_path(r.uri) FROM unnest(c.resources) AS r (uri))))
     AND belongs_to(u.id, c.organization_id) AND belongs_to(u.id, organization)
$$;
