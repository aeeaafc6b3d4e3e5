-- Usable from 0055
-- Organisations of AUTH_ORGANIZATIONS. Since `ended_at` nothing says one; its members go in batches, the row last.
-- `founded_by` is the user who founded one, also after leaving it or a deletion.
CREATE TABLE organizations (
  id            uuid PRIMARY KEY,
  slug          text COLLATE "C" NOT NULL CONSTRAINT organizations_slug_key UNIQUE
                  CONSTRAINT organizations_slug_check CHECK (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  name          text NOT NULL,
  app_metadata  app_metadata NOT NULL DEFAULT '{}',
  level         text NOT NULL DEFAULT 'aal1' CONSTRAINT organizations_level_check CHECK (level IN ('aal1', 'aal2')),
  created_at    timestamptz NOT NULL DEFAULT now(),
  updated_at    timestamptz NOT NULL DEFAULT now(),
  ended_at      timestamptz,
  founded_by    uuid
);
CREATE INDEX organizations_created_at ON organizations (created_at, id);
CREATE INDEX organizations_ended_at ON organizations (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX organizations_founded_by ON organizations (founded_by) WHERE ended_at IS NULL;

-- A row of the user: its locks guard it. `added_by` is the founder's press, an invitation's, or an administrator.
CREATE TABLE memberships (
  user_id          uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  organization_id  uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  role             text NOT NULL CONSTRAINT memberships_role_check CHECK (role ~ '^[a-z][a-z0-9_-]{0,31}$'),
  added_by         text NOT NULL CONSTRAINT memberships_added_by_check
                     CHECK (added_by IN ('founder', 'invitation', 'provider', 'administrator')),
  created_at       timestamptz NOT NULL DEFAULT now(),
  updated_at       timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, organization_id)
);
CREATE INDEX memberships_organization_id ON memberships (organization_id, created_at, user_id);

-- For an address, whoever has proved it. The id is no secret. Without `invited_by`, an administrator has invited.
CREATE TABLE organization_invitations (
  id               uuid PRIMARY KEY,
  organization_id  uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  email            text COLLATE "C" NOT NULL,
  role             text NOT NULL CONSTRAINT organization_invitations_role_check
                     CHECK (role ~ '^[a-z][a-z0-9_-]{0,31}$'),
  invited_by       uuid REFERENCES users ON DELETE CASCADE,
  created_at       timestamptz NOT NULL DEFAULT now(),
  expires_at       timestamptz NOT NULL,
  CONSTRAINT organization_invitations_address_key UNIQUE (organization_id, email)
);
CREATE INDEX organization_invitations_email ON organization_invitations (email);
CREATE INDEX organization_invitations_expires_at ON organization_invitations (expires_at);
CREATE INDEX organization_invitations_invited_by ON organization_invitations (invited_by);

ALTER TABLE webhooks DROP CONSTRAINT webhooks_events_check;
ALTER TABLE webhooks ADD CONSTRAINT webhooks_events_check CHECK (
  cardinality(events) > 0
  AND events <@ ARRAY['user.created', 'user.updated', 'user.deleted', 'auth.login', 'auth.logout',
                      'organization.created', 'organization.updated', 'organization.deleted',
                      'membership.created', 'membership.updated', 'membership.deleted']
);

CREATE INDEX audit_log_organization ON audit_log ((details #>> '{organization,id}'), at, id)
  WHERE details ? 'organization';
