-- Usable from 0055
-- An organisation's own provider is never `enabled`, and was disabled in 1970, so that nodes of 0.6.1 sign in nobody
-- with it and end nothing of its users. `is_on` is what its owners set, but while an operator has disabled it
-- (`is_blocked`), and `tried_at` when one signed in with the present client and secret. `member_role` is that of users
-- whom it adds; without one it adds nobody.
ALTER TABLE organizations ADD needs_own_provider boolean NOT NULL DEFAULT false;
ALTER TABLE identity_providers
  ADD organization_id uuid CONSTRAINT identity_providers_organization_id_fkey REFERENCES organizations,
  ADD is_on boolean NOT NULL DEFAULT false,
  ADD is_blocked boolean NOT NULL DEFAULT false,
  ADD tried_at timestamptz,
  ADD member_role text CONSTRAINT identity_providers_member_role_check
    CHECK (member_role ~ '^[a-z][a-z0-9_-]{0,31}$' AND member_role NOT IN ('owner', 'admin')),
  ADD CONSTRAINT identity_providers_owner_check CHECK (CASE
    WHEN organization_id IS NULL THEN NOT is_on AND NOT is_blocked AND member_role IS NULL
    ELSE NOT enabled AND disabled_at IS NOT NULL AND NOT (is_on AND is_blocked) END);
CREATE INDEX identity_providers_organization_id ON identity_providers (organization_id)
  WHERE organization_id IS NOT NULL;
ALTER TABLE memberships ADD provider_id uuid CONSTRAINT memberships_provider_id_fkey REFERENCES identity_providers;
CREATE INDEX memberships_provider_id ON memberships (provider_id) WHERE provider_id IS NOT NULL;

-- Domains that an owner has named, and proved by a TXT record.
CREATE TABLE organization_domains (
  organization_id  uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  domain           text COLLATE "C" NOT NULL,
  token            text NOT NULL,
  created_at       timestamptz NOT NULL DEFAULT now(),
  proved_at        timestamptz,
  checked_at       timestamptz,
  missing_since    timestamptz,
  PRIMARY KEY (organization_id, domain)
);
CREATE UNIQUE INDEX organization_domains_proved ON organization_domains (domain) WHERE proved_at IS NOT NULL;
CREATE INDEX organization_domains_checked_at ON organization_domains (checked_at) WHERE proved_at IS NOT NULL;
