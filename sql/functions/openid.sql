-- Whether a user may use a client: by the user's role, or by one of the list `roles` in `app_metadata`.
-- Refuses anonymous users, whom an application could not identify. A blocked client refuses every user.
CREATE OR REPLACE FUNCTION may_use(u users, c oauth_clients) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT NOT is_anonymous(u) AND NOT c.is_blocked
     AND (cardinality(c.allowed_roles) = 0 OR u.role = ANY (c.allowed_roles)
          OR CASE WHEN jsonb_typeof(u.app_metadata -> 'roles') = 'array'
                  THEN u.app_metadata -> 'roles' ?| c.allowed_roles ELSE false END)
$$;

-- Also checks a resource, which an administrator may remove from a client that an administrator created.
CREATE OR REPLACE FUNCTION may_use(u users, c oauth_clients, resource text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT may_use(u, c) AND (resource IS NULL OR c.is_dynamic OR resource = ANY (c.resources))
$$;
