-- name: write_client(id uuid, name text, uri text, logo_uri text, policy_uri text, tos_uri text,
--                    secret_hash bytea, token_endpoint_auth_method text, accepts_either_method boolean,
--                    is_dynamic boolean, redirect_uris text[],
--                    post_logout_redirect_uris text[], grant_types text[], scopes text[], resources text[],
--                    allowed_roles text[], require_pkce boolean, skip_consent boolean,
--                    introspects_sessions boolean, token_lifetime integer, id_token_signed_response_alg text,
--                    backchannel_logout_uri text, is_blocked boolean, organization_id uuid)
-- For `is_blocked` and `admits_members` of a client with an organization see schema.sql.
INSERT INTO oauth_clients AS c (
  id, name, uri, logo_uri, policy_uri, tos_uri, secret_hash, token_endpoint_auth_method,
  accepts_either_method, is_dynamic, redirect_uris, post_logout_redirect_uris, grant_types, scopes,
  resources, allowed_roles, require_pkce, skip_consent, introspects_sessions, token_lifetime,
  id_token_signed_response_alg, backchannel_logout_uri, is_blocked, organization_id, admits_members
) VALUES (
  :id, :name, :uri, :logo_uri, :policy_uri, :tos_uri, :secret_hash, :token_endpoint_auth_method,
  :accepts_either_method, :is_dynamic, :redirect_uris, :post_logout_redirect_uris, :grant_types,
  :scopes, :resources, :allowed_roles, :require_pkce, :skip_consent, :introspects_sessions,
  :token_lifetime, :id_token_signed_response_alg, :backchannel_logout_uri,
  :is_blocked OR :organization_id IS NOT NULL, :organization_id, NOT :is_blocked AND :organization_id IS NOT NULL
)
ON CONFLICT (id) DO UPDATE
   SET name = :name, uri = :uri, logo_uri = :logo_uri, policy_uri = :policy_uri, tos_uri = :tos_uri,
       token_endpoint_auth_method = :token_endpoint_auth_method, accepts_either_method = :accepts_either_method,
       redirect_uris = :redirect_uris, post_logout_redirect_uris = :post_logout_redirect_uris,
       grant_types = :grant_types, scopes = :scopes, resources = :resources, allowed_roles = :allowed_roles,
       require_pkce = :require_pkce, skip_consent = :skip_consent, introspects_sessions = :introspects_sessions,
       token_lifetime = :token_lifetime, id_token_signed_response_alg = :id_token_signed_response_alg,
       backchannel_logout_uri = :backchannel_logout_uri,
       is_blocked = excluded.is_blocked, organization_id = :organization_id, admits_members = excluded.admits_members,
       -- The time after the wait for a consent, which does not cover the change.
       updated_at = clock_timestamp();

-- name: delete_surplus_clients(origin jsonb)
-- Deletes clients as `delete_unallowed_clients` does, if there are more than 1,000. The newest ones stay.
DELETE FROM oauth_clients AS c
 WHERE c.id = ANY (ARRAY(
         SELECT old.id
           FROM oauth_clients AS old
          WHERE old.id = ANY (ARRAY(
                  SELECT unallowed.id
                    FROM oauth_clients AS unallowed
                   WHERE unallowed.is_dynamic AND NOT refuses_all(unallowed)
                     AND NOT EXISTS (SELECT FROM oauth_grants AS o WHERE o.client_id = unallowed.id)
                   ORDER BY unallowed.created_at DESC, unallowed.id DESC
                  OFFSET 1000))
            AND NOT EXISTS (SELECT FROM oauth_requests AS r WHERE r.client_id = old.id)
            FOR UPDATE OF old SKIP LOCKED
       ))
RETURNING record_acts_at(now(), :origin, NULL, NULL, '{client_deleted}', '{}',
                         jsonb_build_object('client_id', c.id, 'client', c.name) || '{"because": "unallowed"}');

-- name: keep_client_document(id uuid, metadata_url text, lifetime integer)
UPDATE oauth_clients AS c
   SET metadata_url = :metadata_url, fetched_until = clock_timestamp() + make_interval(secs => :lifetime)
 WHERE c.id = :id;

-- name: replace_client_secret(id uuid, secret_hash bytea, previous_secret_hash bytea,
--                             previous_secret_expires_at timestamptz, acted_at timestamptz)
UPDATE oauth_clients AS c
   SET secret_hash = :secret_hash,
       previous_secret_hash = :previous_secret_hash,
       previous_secret_expires_at = :previous_secret_expires_at,
       updated_at = :acted_at
 WHERE c.id = :id;

-- name: end_previous_client_secret(id uuid, acted_at timestamptz)
UPDATE oauth_clients AS c
   SET previous_secret_hash = NULL, previous_secret_expires_at = NULL, updated_at = :acted_at
 WHERE c.id = :id;

-- name: select_client(id uuid)
--   -> row? (secret_hash?, previous_secret_hash?, previous_secret_expires_at?, token_lifetime?, metadata_url?,
--     organization_id?)
SELECT c.id, c.name, c.uri, c.logo_uri, c.policy_uri, c.tos_uri, c.secret_hash, c.previous_secret_hash,
       CASE WHEN c.previous_secret_expires_at > now() THEN c.previous_secret_expires_at END
         AS previous_secret_expires_at,
       c.token_endpoint_auth_method, c.accepts_either_method, c.is_dynamic, c.redirect_uris,
       c.post_logout_redirect_uris, c.grant_types, c.scopes, c.resources, c.allowed_roles, c.require_pkce,
       c.skip_consent, c.introspects_sessions, c.token_lifetime, c.id_token_signed_response_alg,
       c.backchannel_logout_uri, refuses_all(c) AS is_blocked, c.organization_id, c.metadata_url,
       coalesce(c.fetched_until > now(), false) AS is_current, c.created_at, c.updated_at,
       floor(extract(epoch FROM now()))::bigint AS issued_at, clock_timestamp() AS now
  FROM oauth_clients AS c
 WHERE c.id = :id;

-- name: count_clients() -> row
SELECT count(*) AS total FROM oauth_clients AS c;

-- name: list_clients(page_size integer, page_offset bigint) -> rows
--   (secret_hash?, token_lifetime?, metadata_url?, previous_secret_expires_at?, organization_id?)
SELECT c.id, c.name, c.uri, c.logo_uri, c.policy_uri, c.tos_uri, c.secret_hash,
       CASE WHEN c.previous_secret_expires_at > now() THEN c.previous_secret_expires_at END
         AS previous_secret_expires_at,
       c.token_endpoint_auth_method, c.accepts_either_method, c.is_dynamic, c.redirect_uris,
       c.post_logout_redirect_uris, c.grant_types, c.scopes, c.resources, c.allowed_roles, c.require_pkce,
       c.skip_consent, c.introspects_sessions, c.token_lifetime, c.id_token_signed_response_alg,
       c.backchannel_logout_uri, refuses_all(c) AS is_blocked, c.organization_id, c.metadata_url, c.created_at, c.updated_at
  FROM oauth_clients AS c
 ORDER BY c.created_at DESC, c.id DESC
 LIMIT :page_size OFFSET :page_offset;

-- name: delete_requests_to_other_uris(client_id uuid, redirect_uris text[])
-- A removed redirect URI gets no code anymore.
DELETE FROM oauth_requests AS r
 WHERE r.client_id = :client_id AND r.redirect_uri <> ALL (:redirect_uris) AND r.opened_session_id IS NULL;

-- name: has_grants(client_id uuid) -> row
SELECT EXISTS (SELECT FROM oauth_grants WHERE client_id = :client_id) AS has_grants;

-- name: has_lost_access(client_id uuid) -> row
SELECT EXISTS (SELECT
                 FROM oauth_grants AS g
                 JOIN oauth_clients AS c ON c.id = g.client_id
                 JOIN users AS u ON u.id = g.user_id
                 JOIN sessions AS s ON s.grant_id = g.id
                WHERE g.client_id = :client_id AND s.ended_at IS NULL
                  AND NOT admits(c, u, s.resource, s.organization_id)) AS has_lost_access;

-- name: end_lost_access(client_id uuid, after timestamptz, after_id uuid, size integer, reason text,
--                       reach text, keys_up_to text, with_grants boolean) -> row?
-- Ends the sessions that users of one batch of a client's grants have lost. Returns the start of the next
-- batch, or no row.
WITH batch AS MATERIALIZED (
  SELECT g.id, g.granted_at, g.user_id
    FROM oauth_grants AS g
   WHERE g.client_id = :client_id
     AND (g.granted_at, g.id) > (:after, :after_id)
   ORDER BY g.granted_at, g.id
   LIMIT :size
), locked AS MATERIALIZED (
  SELECT u FROM users AS u WHERE u.id = ANY (ARRAY(SELECT user_id FROM batch)) ORDER BY u.id FOR UPDATE OF u
), ended AS (
  SELECT count(*)
    FROM locked
   CROSS JOIN LATERAL end_lost_sessions(locked.u, :reason, :reach, :keys_up_to, :with_grants,
                                        clock_timestamp())
)
SELECT batch.granted_at AS after, batch.id AS after_id
  FROM batch
 CROSS JOIN ended
 ORDER BY batch.granted_at DESC, batch.id DESC
 LIMIT 1;

-- name: end_access_of_documents(document_hosts text[], batch integer, reason text, reach text,
--                               keys_up_to text, with_grants boolean)
-- Ends the sessions of clients whose document is at a host that is no longer in AUTH_OAUTH_CLIENT_DOCUMENTS.
WITH unnamed AS MATERIALIZED (
  SELECT c.id
    FROM oauth_clients AS c
   WHERE c.metadata_url IS NOT NULL
     AND NOT ARRAY['*', split_part(c.metadata_url, '/', 3)] && :document_hosts
), batch AS MATERIALIZED (
  SELECT s.id, s.user_id
    FROM unnamed
    JOIN oauth_grants AS g ON g.client_id = unnamed.id
    JOIN sessions AS s ON s.grant_id = g.id
   WHERE s.ended_at IS NULL
   LIMIT :batch
), locked AS MATERIALIZED (
  SELECT u.id FROM users AS u WHERE u.id = ANY (ARRAY(SELECT user_id FROM batch)) ORDER BY u.id
     FOR UPDATE OF u
), codes AS (
  DELETE FROM oauth_requests AS r USING unnamed WHERE r.client_id = unnamed.id
)
SELECT end_held(batch.user_id, batch.id, :reason, :reach, :keys_up_to, :with_grants, clock_timestamp())
  FROM batch
  JOIN locked ON locked.id = batch.user_id;

-- name: list_users_of_client(client_id uuid) -> rows
SELECT g.user_id FROM oauth_grants AS g WHERE g.client_id = :client_id;

-- name: delete_client(id uuid) -> row?
-- The client's grants, with their sessions, and its requests go too. Run it with the client and their users
-- locked.
DELETE FROM oauth_clients AS c WHERE c.id = :id RETURNING c.id, c.name;
