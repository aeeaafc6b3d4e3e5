-- name: list_identity_providers(after timestamptz, after_id uuid, most integer) -> rows (organization_id?, organization?)
SELECT p.id, p.identifier, p.name, is_enabled(p) AS enabled, domains_of(p) AS domains,
       (SELECT count(*) FROM identities AS i WHERE i.provider = provider_name(p)) AS users,
       iso_8601(p.created_at) AS created_at, provider_object(p)::text AS provider_object, p.is_blocked,
       o.id AS organization_id, o.name AS organization
  FROM identity_providers AS p
  LEFT JOIN organizations AS o ON o.id = p.organization_id AND o.ended_at IS NULL
 WHERE (p.created_at, p.id) > (:after, :after_id)
 ORDER BY p.created_at, p.id
 LIMIT :most;

-- name: select_identity_provider(identifier text, id uuid) -> row? (organization_id?, tried_at?, member_role?)
SELECT p.id, p.identifier, p.name, p.issuer, p.discovery_url, p.client_id, p.client_secret,
       p.acceptable_client_ids, p.scopes, p.authorization_params, p.attribute_mapping,
       p.custom_claims_allowlist, is_enabled(p) AS enabled, domains_of(p) AS domains,
       p.organization_id, p.is_blocked, p.tried_at, p.member_role, p.updated_at::text AS version,
       provider_object(p)::text AS provider_object, has_domain_by_command(p) AS has_domain_by_command
  FROM identity_providers AS p
 WHERE p.identifier = :identifier OR p.id = :id;

-- name: list_all_providers() -> rows (organization_id?, slug?)
-- What decides where providers sign users in, without those of organizations that have ended.
SELECT p.id, p.name, p.issuer, is_enabled(p) AS enabled, p.organization_id, o.slug,
       o.needs_own_provider IS TRUE AS is_required, has_domain_by_command(p) AS has_domain_by_command
  FROM identity_providers AS p
  LEFT JOIN organizations AS o ON o.id = p.organization_id
 WHERE o.ended_at IS NULL
 ORDER BY p.created_at, p.id;

-- name: begin_term(id uuid)
-- Ends what a provider opened before, as turning it off does.
UPDATE identity_providers SET term = gen_random_uuid() WHERE id = :id;

-- name: select_provider_of_domain(domain text) -> row? (organization_id?)
SELECT p.identifier, p.issuer, is_enabled(p) AS enabled, p.organization_id,
       has_domain_by_command(p) AS has_domain_by_command
  FROM identity_provider_domains AS d
  JOIN identity_providers AS p ON p.id = d.provider_id
 WHERE d.domain = :domain;

-- name: select_provider_name(id uuid) -> row?
SELECT name FROM identity_providers WHERE id = :id;

-- name: insert_identity_provider(id uuid, identifier text, name text, issuer text, discovery_url text,
--                                client_id text, client_secret bytea, acceptable_client_ids text[],
--                                scopes text[], authorization_params jsonb, attribute_mapping jsonb,
--                                custom_claims_allowlist text[], enabled boolean, organization_id uuid, member_role text,
--                                is_blocked boolean, session_id uuid)
-- An organization's provider is off until an owner has tested it. For its `enabled`, and for `disabled_at`, see
-- schema.sql.
INSERT INTO identity_providers (
  id, identifier, name, issuer, discovery_url, client_id, client_secret, acceptable_client_ids, scopes,
  authorization_params, attribute_mapping, custom_claims_allowlist, enabled, disabled_at, organization_id, member_role,
  is_blocked, by_key
) VALUES (
  :id, :identifier, :name, :issuer, :discovery_url, :client_id, :client_secret, :acceptable_client_ids,
  :scopes, :authorization_params, :attribute_mapping, :custom_claims_allowlist,
  :enabled AND :organization_id IS NULL, to_timestamp(0),
  :organization_id, :member_role, :is_blocked, (SELECT s.by_key FROM sessions AS s WHERE s.id = :session_id)
);

-- name: select_provider_facts(id uuid) -> row? (organization_id?, tried_at?)
SELECT p.identifier, p.issuer, is_enabled(p) AS enabled, p.updated_at::text AS version, domains_of(p) AS domains,
       p.organization_id, p.is_blocked, p.tried_at, has_domain_by_command(p) AS has_domain_by_command,
       EXISTS (SELECT FROM identities AS i WHERE i.provider = provider_name(p)) AS has_identities,
       clock_timestamp() AS now
  FROM identity_providers AS p
 WHERE p.id = :id;

-- name: select_has_administrators(id uuid) -> row
SELECT EXISTS (SELECT
                 FROM identities AS i
                 JOIN users AS u ON u.id = i.user_id
                 JOIN identity_providers AS p ON p.id = :id
                WHERE i.provider = provider_name(p) AND u.role = 'admin') AS has_administrators;

-- name: select_provider_of_issuer(id uuid, issuer text) -> row? (organization_id?, member_role?)
-- An organization that ended with its last user leaves its provider to the janitor.
SELECT is_enabled(p) AND NOT EXISTS (SELECT FROM organizations AS o
                                      WHERE o.id = p.organization_id AND o.ended_at IS NOT NULL) AS enabled,
       p.is_blocked, domains_of(p) AS domains, p.organization_id, p.member_role, p.term, p.by_key IS TRUE AS is_by_key
  FROM identity_providers AS p
 WHERE p.id = :id AND p.issuer = :issuer;

-- name: update_identity_provider(id uuid, name text, issuer text, discovery_url text, client_id text,
--                                client_secret bytea, acceptable_client_ids text[], scopes text[],
--                                authorization_params jsonb, attribute_mapping jsonb,
--                                custom_claims_allowlist text[], enabled boolean, is_blocked boolean,
--                                tried_at timestamptz, member_role text, session_id uuid,
--                                acted_at timestamptz)
UPDATE identity_providers
   SET name = :name, issuer = :issuer, discovery_url = :discovery_url, client_id = :client_id,
       client_secret = :client_secret, acceptable_client_ids = :acceptable_client_ids, scopes = :scopes,
       authorization_params = :authorization_params, attribute_mapping = :attribute_mapping,
       custom_claims_allowlist = :custom_claims_allowlist,
       enabled = :enabled AND organization_id IS NULL, is_on = :enabled AND organization_id IS NOT NULL,
       disabled_at = to_timestamp(0), is_blocked = :is_blocked, tried_at = :tried_at, member_role = :member_role, updated_at = :acted_at,
       by_key = by_key OR (SELECT s.by_key FROM sessions AS s WHERE s.id = :session_id)
 WHERE id = :id;

-- name: remove_domains_of_provider(id uuid, domains text[])
DELETE FROM identity_provider_domains WHERE provider_id = :id AND domain <> ALL (:domains);

-- name: add_domains_of_provider(id uuid, domains text[])
-- A domain of another provider violates the primary key.
INSERT INTO identity_provider_domains (domain, provider_id)
SELECT wanted.domain, :id
  FROM unnest(:domains) AS wanted (domain)
 WHERE NOT EXISTS (SELECT FROM identity_provider_domains AS d
                    WHERE d.domain = wanted.domain AND d.provider_id = :id);

-- name: delete_flows_of_provider(id uuid)
DELETE FROM oauth_flows AS f USING identity_providers AS p WHERE p.id = :id AND f.provider = provider_name(p);

-- name: delete_adoptions_of_provider(id uuid)
DELETE FROM identity_provider_adoptions WHERE provider_id = :id;

-- name: remove_users_of_provider(id uuid, batch integer)
-- Deletes identities of a disabled provider.
WITH batch AS MATERIALIZED (
  SELECT i.user_id
    FROM identities AS i
    JOIN identity_providers AS p ON i.provider = provider_name(p)
   WHERE p.id = :id AND NOT is_enabled(p)
   LIMIT :batch
), locked AS MATERIALIZED (
  SELECT u.id FROM users AS u WHERE u.id = ANY (ARRAY(SELECT user_id FROM batch)) ORDER BY u.id
     FOR UPDATE OF u
)
DELETE FROM identities AS i
 USING locked, identity_providers AS p
 WHERE p.id = :id AND i.user_id = locked.id AND i.provider = provider_name(p);

-- name: delete_identity_provider(id uuid)
DELETE FROM identity_providers WHERE id = :id;

-- name: adopt_user(user_id uuid, provider_id uuid, acted_at timestamptz)
INSERT INTO identity_provider_adoptions AS a (user_id, provider_id, adopted_at)
VALUES (:user_id, :provider_id, :acted_at)
ON CONFLICT (user_id) DO UPDATE SET provider_id = excluded.provider_id, adopted_at = excluded.adopted_at;

-- name: spend_adoption(user_id uuid, provider_id uuid)
DELETE FROM identity_provider_adoptions WHERE user_id = :user_id AND provider_id = :provider_id;

-- name: list_sealed_providers(newest bytea, after uuid, batch integer) -> rows
SELECT p.id::text, p.client_secret AS sealed
  FROM identity_providers AS p
 WHERE substr(p.client_secret, 1, 4) <> :newest AND (p.id > :after) IS NOT FALSE
 ORDER BY p.id
 LIMIT :batch;

-- name: reseal_provider(id uuid, old bytea, sealed bytea)
UPDATE identity_providers SET client_secret = :sealed WHERE id = :id AND client_secret = :old;

-- name: count_users_of_provider(id uuid) -> row
SELECT count(*) AS total
  FROM identities AS i
  JOIN identity_providers AS p ON i.provider = provider_name(p)
 WHERE p.id = :id;

-- name: end_opened_by_provider(user_id uuid, provider_id uuid, reason text, acted_at timestamptz)
-- What an earlier term of the provider opened is over, and ends in batches.
SELECT end_opened_in(:user_id, ARRAY(SELECT p.term FROM identity_providers AS p WHERE p.id = :provider_id), :reason, :acted_at);

-- name: end_what_is_over(batch integer, reason text)
-- Ends what providers opened in terms that are over, of some users: after the act that ended a term, and by the
-- janitor after an interruption.
WITH present AS MATERIALIZED (
  SELECT term FROM present_terms()
), batch AS MATERIALIZED (
  SELECT s.user_id
    FROM terms_of_open_sessions() AS terms
    JOIN sessions AS s ON s.provider_term = terms.term AND s.ended_at IS NULL
   WHERE NOT EXISTS (SELECT FROM present WHERE present.term = terms.term)
   UNION
  SELECT k.user_id FROM api_keys AS k
   WHERE k.provider_term IS NOT NULL AND NOT EXISTS (SELECT FROM present WHERE present.term = k.provider_term)
   UNION
  SELECT c.user_id FROM authorization_codes AS c
   WHERE c.provider_term IS NOT NULL AND c.session_id IS NULL
     AND NOT EXISTS (SELECT FROM present WHERE present.term = c.provider_term)
   UNION
  SELECT t.user_id FROM one_time_tokens AS t JOIN sessions AS s ON s.id = t.session_id
   WHERE t.spent_at IS NULL AND t.purpose IN ('email_change', 'phone_change') AND s.provider_term IS NOT NULL
     AND NOT EXISTS (SELECT FROM present WHERE present.term = s.provider_term)
   LIMIT :batch
), locked AS MATERIALIZED (
  SELECT u.id FROM users AS u WHERE u.id = ANY (ARRAY(SELECT user_id FROM batch)) ORDER BY u.id
     FOR UPDATE OF u
)
SELECT end_opened_in(locked.id, terms_over_of(locked.id), :reason, clock_timestamp()) FROM locked;

-- name: select_provider_of_user(user_id uuid) -> row? (organization_id?, joins?)
-- The provider of the domain of a user's proved address, whether it signs in this user (`is_linked`), whether an
-- administrator has moved the user to it (`is_adopted`), and the name of the organization that the user joins there.
SELECT p.id, p.identifier, p.name, p.issuer, d.domain, is_enabled(p) AS enabled, p.organization_id,
       has_domain_by_command(p) AS has_domain_by_command,
       EXISTS (SELECT FROM identities AS i WHERE i.user_id = u.id AND i.provider = provider_name(p)) AS is_linked,
       EXISTS (SELECT FROM identity_provider_adoptions AS a WHERE a.user_id = u.id AND a.provider_id = p.id) AS is_adopted,
       (SELECT o.name FROM organizations AS o
         WHERE o.id = p.organization_id AND o.ended_at IS NULL AND p.member_role IS NOT NULL
           AND NOT EXISTS (SELECT FROM memberships AS m WHERE m.organization_id = o.id AND m.user_id = u.id)) AS joins
  FROM users AS u
  JOIN identity_provider_domains AS d ON d.domain = split_part(u.email, '@', 2)
  JOIN identity_providers AS p ON p.id = d.provider_id
 WHERE u.id = :user_id AND u.email_proved;
