-- Domains and providers of organizations, which their owners set up.

-- name: list_domains(organization_id uuid) -> row
SELECT coalesce(jsonb_agg(organization_domain(d) ORDER BY d.domain), '[]')::text AS domains
  FROM organization_domains AS d
 WHERE d.organization_id = :organization_id;

-- name: select_domain(organization_id uuid, domain text) -> row? (proved_at?, missing_since?)
SELECT d.token, d.proved_at, d.missing_since, organization_domain(d)::text AS domain_object, clock_timestamp() AS now
  FROM organization_domains AS d
 WHERE d.organization_id = :organization_id AND d.domain = :domain;

-- name: list_proved_domains(organization_id uuid, by_command boolean) -> row
-- With `by_command`, also the domains that a command proved, unless another organization has the record since.
SELECT ARRAY(SELECT d.domain FROM organization_domains AS d
              WHERE d.organization_id = :organization_id
                AND (d.proved_at IS NOT NULL
                     OR :by_command AND d.proved_by_command_at IS NOT NULL
                        AND NOT EXISTS (SELECT FROM organization_domains AS other
                                         WHERE other.domain = d.domain AND other.proved_at IS NOT NULL))
              ORDER BY d.domain) AS domains;

-- name: count_domains(organization_id uuid) -> row
SELECT count(*) AS total FROM organization_domains WHERE organization_id = :organization_id;

-- name: select_domain_of_others(organization_id uuid, domain text) -> row
-- Whether another organization, or a provider that is not this one's, has a domain. A record takes a domain that a
-- command proved for another organization: take_domain_by_command.
SELECT EXISTS (SELECT FROM organization_domains AS d
                WHERE d.domain = :domain AND d.organization_id <> :organization_id AND d.proved_at IS NOT NULL)
    OR EXISTS (SELECT FROM identity_provider_domains AS d
                 JOIN identity_providers AS p ON p.id = d.provider_id
                WHERE d.domain = :domain AND p.organization_id IS DISTINCT FROM :organization_id
                  AND NOT EXISTS (SELECT FROM organization_domains AS other
                                   WHERE other.organization_id = p.organization_id AND other.domain = d.domain
                                     AND other.proved_at IS NULL AND other.proved_by_command_at IS NOT NULL)) AS is_taken;

-- name: select_holder_by_command(organization_id uuid, domain text) -> row?
-- The other organization for which a command, and no record, proved a domain.
SELECT d.organization_id AS id
  FROM organization_domains AS d
 WHERE d.domain = :domain AND d.organization_id <> :organization_id
   AND d.proved_at IS NULL AND d.proved_by_command_at IS NOT NULL;

-- name: select_has_domain_by_command(organization_id uuid, domains text[]) -> row
-- Whether a command, and no record, proved one of these domains for an organization.
SELECT EXISTS (SELECT FROM organization_domains AS d
                WHERE d.organization_id = :organization_id AND d.domain = ANY(:domains)
                  AND d.proved_at IS NULL AND d.proved_by_command_at IS NOT NULL) AS has_domain_by_command;

-- name: select_next_provider(organization_id uuid) -> row?
SELECT o.next_provider_id AS id FROM organizations AS o WHERE o.id = :organization_id AND o.ended_at IS NULL;

-- name: replace_next_provider(organization_id uuid, provider_id uuid)
-- A provider has the id, also one of an import: the organization's next one gets another.
UPDATE organizations SET next_provider_id = gen_random_uuid()
 WHERE id = :organization_id AND next_provider_id = :provider_id;

-- name: insert_domain(organization_id uuid, domain text, token text, acted_at timestamptz)
INSERT INTO organization_domains (organization_id, domain, token, created_at)
VALUES (:organization_id, :domain, :token, :acted_at);

-- name: record_lookup(organization_id uuid, domain text, is_held boolean, is_missing boolean, acted_at timestamptz)
-- Writes what a look-up has found. A domain that another organization has proved violates a constraint.
UPDATE organization_domains
   SET proved_at = CASE WHEN :is_held THEN coalesce(proved_at, :acted_at) END,
       missing_since = CASE WHEN :is_held AND :is_missing THEN coalesce(missing_since, :acted_at) END,
       checked_at = :acted_at,
       proved_by_command_at = CASE WHEN NOT :is_held THEN proved_by_command_at END
 WHERE organization_id = :organization_id AND domain = :domain;

-- name: prove_domain_by_command(organization_id uuid, domain text, acted_at timestamptz)
-- A domain that a command proved for another organization violates a constraint.
UPDATE organization_domains SET proved_by_command_at = :acted_at
 WHERE organization_id = :organization_id AND domain = :domain AND proved_at IS NULL AND proved_by_command_at IS NULL;

-- name: delete_domain(organization_id uuid, domain text) -> row? (proved_at?)
DELETE FROM organization_domains WHERE organization_id = :organization_id AND domain = :domain RETURNING proved_at;

-- name: take_domain_from_provider(organization_id uuid, domain text) -> row?
DELETE FROM identity_provider_domains AS d USING identity_providers AS p
 WHERE d.domain = :domain AND p.id = d.provider_id AND p.organization_id = :organization_id
RETURNING p.is_blocked;

-- name: list_providers_of_organization(organization_id uuid) -> rows
SELECT p.id, p.issuer, has_domain_by_command(p) AS has_domain_by_command, provider_object(p)::text AS provider_object
  FROM identity_providers AS p
 WHERE p.organization_id = :organization_id
 ORDER BY p.created_at, p.id;

-- name: list_ways_in(organization_id uuid) -> rows (organization_id?)
-- The providers that are on and have a domain.
SELECT p.organization_id, p.issuer, has_domain_by_command(p) AS has_domain_by_command
  FROM identity_providers AS p
 WHERE p.organization_id = :organization_id AND p.is_on
   AND EXISTS (SELECT FROM identity_provider_domains AS d WHERE d.provider_id = p.id);

-- name: select_membership_role(organization_id uuid, user_id uuid) -> row?
SELECT m.role
  FROM memberships AS m
  JOIN organizations AS o ON o.id = m.organization_id AND o.ended_at IS NULL
 WHERE m.organization_id = :organization_id AND m.user_id = :user_id;

-- name: select_organization_of_provider(provider_id uuid, user_id uuid) -> row? (organization_id?, slug?, role?)
-- About a refused sign-in: the provider's name, its organization, and the role of the member who began it there.
SELECT p.name, o.id AS organization_id, o.slug, m.role
  FROM identity_providers AS p
  LEFT JOIN organizations AS o ON o.id = p.organization_id AND o.ended_at IS NULL
  LEFT JOIN memberships AS m ON m.organization_id = o.id AND m.user_id = :user_id
 WHERE p.id = :provider_id;

-- name: mark_provider_tried(id uuid, version text, acted_at timestamptz)
-- A change since `version` was read may have brought another client, secret or document, which has signed in nobody.
UPDATE identity_providers SET tried_at = :acted_at WHERE id = :id AND updated_at::text = :version;

-- name: add_by_provider(user_id uuid, organization_id uuid, provider_id uuid, role text, acted_at timestamptz)
-- A member has nothing left to accept.
WITH answered AS (
  DELETE FROM organization_invitations AS i
   USING users AS u
   WHERE u.id = :user_id AND u.email_proved AND i.email = u.email AND i.organization_id = :organization_id
)
INSERT INTO memberships (user_id, organization_id, role, added_by, provider_id, created_at, updated_at)
VALUES (:user_id, :organization_id, :role, 'provider', :provider_id, :acted_at, :acted_at)
ON CONFLICT DO NOTHING;

-- name: list_members_of_provider(provider_id uuid, most integer) -> rows
SELECT m.user_id, m.organization_id FROM memberships AS m WHERE m.provider_id = :provider_id
 ORDER BY m.user_id
 LIMIT :most;

-- name: list_identities_at_organization(user_id uuid, organization_id uuid) -> rows (member_role?, organization_id?)
SELECT i.provider, i.created_at, i.is_first_proof IS TRUE AS is_first_proof, p.id AS provider_id, p.organization_id,
       p.member_role, is_enabled(p) AS enabled, domains_of(p) AS domains, p.issuer,
       has_domain_by_command(p) AS has_domain_by_command
  FROM identities AS i
  JOIN identity_providers AS p ON i.provider = provider_name(p)
 WHERE i.user_id = :user_id AND p.organization_id = :organization_id
 ORDER BY i.created_at, p.id;

-- name: list_joinable_providers(organization_id uuid) -> rows (member_role?, organization_id?)
-- What decides who may join by moving to the organization's sign-in.
SELECT p.member_role, is_enabled(p) AS enabled, domains_of(p) AS domains, p.organization_id, p.issuer,
       has_domain_by_command(p) AS has_domain_by_command
  FROM identity_providers AS p
 WHERE p.organization_id = :organization_id;

-- name: keep_membership(user_id uuid, organization_id uuid, provider_id uuid, heir_id uuid)
-- A membership that stays when the provider that added it is deleted: that of the last owner, and one that another
-- provider (`heir_id`) would add.
UPDATE memberships SET provider_id = :heir_id
 WHERE user_id = :user_id AND organization_id = :organization_id AND provider_id = :provider_id;

-- For the janitor.

-- name: list_domains_to_look_up(most integer) -> rows
-- A domain is looked up weekly, and daily while its record is missing.
SELECT d.organization_id, o.slug, o.name, d.domain, d.token
  FROM organization_domains AS d
  JOIN organizations AS o ON o.id = d.organization_id AND o.ended_at IS NULL
 WHERE d.proved_at IS NOT NULL
   AND d.checked_at < now() - CASE WHEN d.missing_since IS NULL THEN interval '7 days' ELSE interval '1 day' END
 ORDER BY d.checked_at
 LIMIT :most;

-- name: disable_providers_of_organization(organization_id uuid, acted_at timestamptz)
-- Run when the organization ends.
UPDATE identity_providers SET is_on = false, updated_at = :acted_at
 WHERE organization_id = :organization_id AND is_on;

-- name: disable_providers_of_ended_organizations(batch integer)
-- The deletion of the last user ends an organization without this.
UPDATE identity_providers AS p SET is_on = false, updated_at = now()
  FROM organizations AS o
 WHERE o.id = p.organization_id AND o.ended_at IS NOT NULL AND p.is_on
   AND p.id = ANY (ARRAY(SELECT on_still.id
                           FROM identity_providers AS on_still
                           JOIN organizations AS ended ON ended.id = on_still.organization_id
                          WHERE ended.ended_at IS NOT NULL AND on_still.is_on
                          LIMIT :batch FOR UPDATE OF on_still SKIP LOCKED));

-- name: remove_users_of_ended_providers(batch integer)
WITH batch AS MATERIALIZED (
  SELECT i.user_id, p.id
    FROM identities AS i
    JOIN identity_providers AS p ON i.provider = provider_name(p)
    JOIN organizations AS o ON o.id = p.organization_id AND o.ended_at IS NOT NULL
   WHERE NOT p.is_on
   LIMIT :batch
), locked AS MATERIALIZED (
  SELECT u.id FROM users AS u WHERE u.id = ANY (ARRAY(SELECT user_id FROM batch)) ORDER BY u.id
     FOR UPDATE OF u
)
DELETE FROM identities AS i
 USING locked, batch
 WHERE i.user_id = locked.id AND batch.user_id = locked.id AND i.provider = 'sso:' || batch.id;

-- name: delete_providers_of_ended_organizations(batch integer)
DELETE FROM identity_providers AS p
 WHERE p.id = ANY (ARRAY(
         SELECT gone.id
           FROM identity_providers AS gone
           JOIN organizations AS o ON o.id = gone.organization_id AND o.ended_at IS NOT NULL
          WHERE NOT EXISTS (SELECT FROM identities AS i WHERE i.provider = provider_name(gone))
            AND NOT EXISTS (SELECT FROM memberships AS m WHERE m.provider_id = gone.id)
          LIMIT :batch FOR UPDATE OF gone SKIP LOCKED));
