-- Usable from 0061
-- See organization_domains in schema.sql. Nodes of 0.7.x read `proved_at` alone, so for them such a domain is not proved.
ALTER TABLE organization_domains ADD proved_by_command_at timestamptz;
CREATE UNIQUE INDEX organization_domains_proved_by_command ON organization_domains (domain)
  WHERE proved_by_command_at IS NOT NULL;
