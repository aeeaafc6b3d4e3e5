-- Usable from 0055
-- A client with an organisation admits its members alone. Nodes of 0.6.1 and before do not know them: for those, such a
-- client is blocked. It is blocked for all unless it `admits_members`.
ALTER TABLE oauth_clients
  ADD organization_id uuid CONSTRAINT oauth_clients_organization_id_fkey REFERENCES organizations,
  ADD admits_members boolean NOT NULL DEFAULT false,
  ADD CONSTRAINT oauth_clients_organization_check CHECK (
    CASE WHEN organization_id IS NULL THEN NOT admits_members ELSE is_blocked AND NOT is_dynamic END
  );
CREATE INDEX oauth_clients_organization_id ON oauth_clients (organization_id) WHERE organization_id IS NOT NULL;
ALTER TABLE oauth_requests ADD organization_id uuid;
ALTER TABLE sessions ADD organization_id uuid;
