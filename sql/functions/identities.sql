CREATE OR REPLACE FUNCTION linked_identity(i identities) RETURNS jsonb
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
  )
$$;

-- The identities of a user, as the user object has them, and their providers in the same order.
CREATE OR REPLACE FUNCTION linked_identities(owner uuid) RETURNS TABLE (objects jsonb, providers text[])
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT coalesce(jsonb_agg(linked_identity(i) ORDER BY i.created_at, i.provider), '[]'),
         coalesce(array_agg(i.provider ORDER BY i.created_at, i.provider), '{}')
    FROM identities AS i
   WHERE i.user_id = owner
$$;

-- An identity among the ways to sign in. The identity of an address is as old as the address.
CREATE OR REPLACE FUNCTION way_of(i identities) RETURNS TABLE (type text, label text, added_at timestamptz)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT CASE WHEN is_address THEN i.provider ELSE 'identity' END,
         CASE WHEN is_address THEN i.identity_data ->> i.provider
              ELSE concat_ws(' ', i.provider, i.identity_data ->> 'email') END,
         CASE WHEN is_address THEN i.updated_at ELSE i.created_at END
    FROM (SELECT i.provider IN ('email', 'phone')) AS kind (is_address)
$$;

-- The values of INSERT INTO identities for the addresses of a new user.
CREATE OR REPLACE FUNCTION own_identities(u users)
  RETURNS TABLE (user_id uuid, provider text, subject text, identity_data jsonb)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT u.id, kind, u.id::text, jsonb_build_object('sub', u.id, kind, address)
    FROM (VALUES ('email', u.email), ('phone', u.phone)) AS own (kind, address)
   WHERE address IS NOT NULL
$$;

-- The name of a customer's provider in `identities.provider` and `oauth_flows.provider`. Providers of the
-- settings have no colon in their names. It does not contain the identifier, which another provider may get
-- later.
CREATE OR REPLACE FUNCTION provider_name(p identity_providers) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT 'sso:' || p.id
$$;

-- Whether a provider may sign users in. An organization's is stored as not `enabled`: schema.sql.
CREATE OR REPLACE FUNCTION is_enabled(p identity_providers) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT p.enabled OR p.is_on
$$;

CREATE OR REPLACE FUNCTION domains_of(p identity_providers) RETURNS text[]
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT ARRAY(SELECT domain FROM identity_provider_domains WHERE provider_id = p.id ORDER BY domain)
$$;

-- Whether a domain of an organization's provider was proved by a command alone, without a record.
CREATE OR REPLACE FUNCTION has_domain_by_command(p identity_providers) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT p.organization_id IS NOT NULL
     AND EXISTS (SELECT FROM identity_provider_domains AS d
                   JOIN organization_domains AS named ON named.domain = d.domain
                  WHERE d.provider_id = p.id AND named.organization_id = p.organization_id
                    AND named.proved_at IS NULL AND named.proved_by_command_at IS NOT NULL)
$$;

-- A provider in the format of the dialect. Nonce and PKCE are always used, and an email is always required.
CREATE OR REPLACE FUNCTION provider_object(p identity_providers) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'id', p.id,
    'provider_type', 'oidc',
    'identifier', p.identifier,
    'name', p.name,
    'issuer', p.issuer,
    'discovery_url', nullif(p.discovery_url, ''),
    'client_id', p.client_id,
    'acceptable_client_ids', p.acceptable_client_ids,
    'scopes', p.scopes,
    'authorization_params', p.authorization_params,
    'attribute_mapping', p.attribute_mapping,
    'custom_claims_allowlist', p.custom_claims_allowlist,
    'pkce_enabled', true,
    'skip_nonce_check', false,
    'email_optional', false,
    'domains', domains_of(p),
    'enabled', is_enabled(p),
    'is_blocked', nullif(p.is_blocked, false),
    'organization_id', p.organization_id,
    'member_role', p.member_role,
    'tried_at', iso_8601(p.tried_at),
    'created_at', iso_8601(p.created_at),
    'updated_at', iso_8601(p.updated_at)
  ))
$$;
