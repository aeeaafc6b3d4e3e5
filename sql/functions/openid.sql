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

-- The time until which the previous secret is also accepted, or null.
CREATE OR REPLACE FUNCTION previous_secret_end(c oauth_clients) RETURNS timestamptz
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN c.previous_secret_expires_at > now() THEN c.previous_secret_expires_at END
$$;

-- Null if these are the credentials of a client; otherwise the reason, or the method that it must use.
-- `method` is how they were sent. A wrong secret is refused like an unknown client, for every method. The
-- secrets are random and hashed, so the time of a comparison reveals nothing about them.
CREATE OR REPLACE FUNCTION client_refusal(c oauth_clients, method text, hash bytea) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE
    WHEN c.is_blocked THEN 'blocked'
    WHEN c.secret_hash IS NULL AND method <> 'none' THEN 'public'
    WHEN c.secret_hash IS NULL THEN NULL
    WHEN method = 'none' THEN 'secret_missing'
    WHEN c.secret_hash IS DISTINCT FROM hash
         AND (c.previous_secret_hash = hash AND previous_secret_end(c) IS NOT NULL) IS NOT TRUE THEN 'unknown'
    WHEN c.token_endpoint_auth_method <> method AND NOT c.accepts_either_method
      THEN c.token_endpoint_auth_method
  END
$$;

-- Whether a device's request waits for its code, or for the decision of the session that entered the code
-- first.
CREATE OR REPLACE FUNCTION is_open_to(r oauth_requests, session uuid) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT r.user_code_mac IS NOT NULL AND r.decision IS NULL AND r.code_expires_at > now()
     AND coalesce(r.session_id = session, true)
$$;

-- Binds a device's request to the first session that enters its code. `macs` are those of the code with each
-- key.
CREATE OR REPLACE FUNCTION enter_user_code(
  macs bytea[], owner uuid, session uuid, here text, failures integer[]
) RETURNS TABLE (refused_for double precision, tries bigint, request_id uuid)
  LANGUAGE plpgsql VOLATILE ROWS 1
AS $$
DECLARE
  entered oauth_requests;
BEGIN
  SELECT r.* INTO entered FROM oauth_requests AS r WHERE r.user_code_mac = ANY (macs);
  SELECT v.refused_for, v.count INTO refused_for, tries
    FROM record_verdict(limits_of('device', 'device', owner::text, owner, here, failures), 1,
                        coalesce(is_open_to(entered, session), false)) AS v;
  PERFORM FROM users AS u WHERE u.id = owner FOR UPDATE;
  UPDATE oauth_requests AS r
     SET user_id = owner, session_id = session
   WHERE r.id = entered.id AND refused_for IS NULL AND is_open_to(r, session)
  RETURNING r.id INTO request_id;
  RETURN NEXT;
END
$$;
