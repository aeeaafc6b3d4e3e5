-- Locks of acts: sql/acts.py has their order.

-- name: lock_users(ids text[])
-- The subquery hides the number of users: for a single one, Postgres would take a plan with its id for much
-- cheaper, and make that at each execution, in 16 of 30 µs.
SELECT FROM users WHERE id = ANY ((SELECT :ids::uuid[])::uuid[]) ORDER BY id FOR UPDATE;

-- name: share_client(id uuid)
SELECT FROM oauth_clients WHERE id = :id FOR SHARE;

-- name: lock_client(id uuid)
-- FOR UPDATE, because a deletion after a weaker lock would wait for inserts that refer to the client.
SELECT FROM oauth_clients WHERE id = :id FOR UPDATE;

-- name: share_provider(id uuid)
SELECT FROM identity_providers WHERE id = :id FOR SHARE;

-- name: lock_provider(id uuid)
SELECT FROM identity_providers WHERE id = :id FOR UPDATE;

-- name: lock_administrators() -> row
SELECT pg_advisory_xact_lock(7239004121) IS NULL AS locked;

-- name: lock_organizations(ids text[])
-- FOR NO KEY UPDATE: an act that joins has the row of an invitation and waits for the foreign key, and one
-- that invites again has the organization and waits for that row.
SELECT FROM organizations WHERE id = ANY (:ids::uuid[]) ORDER BY id FOR NO KEY UPDATE;

-- name: hold_session(session_id uuid)
SELECT FROM sessions WHERE id = :session_id FOR NO KEY UPDATE;

-- name: lock_session(session_id uuid, ip inet, user_agent text, audience text, with_organizations boolean)
--   -> row? (resource?, converted_at?, banned_until?, oldest_factor_at?, ended_at?, first_passkey_at?,
--     used_counter?, successor_counter?, echoes?)
-- Locks a session to refresh it, and returns it as the previous holder of the lock left it.
SELECT s.id AS session_id, s.user_id, s.grant_id IS NOT NULL AS is_of_client, s.resource,
       s.method, s.aal, s.created_at AS session_created_at, s.refreshed_at, end_of(s) AS ended_at, s.first_passkey_at,
       s.counter, s.used_counter, s.successor_counter, s.refreshes, s.counted_until, s.echoes,
       (s.ip, s.user_agent) IS NOT DISTINCT FROM (:ip, :user_agent) AS is_same_client,
       methods_of(s) AS amr, authenticated_at(s) AS authenticated_at,
       u.role, u.made_by, u.converted_at, u.banned_until,
       own.oldest AS oldest_factor_at, own.has_second_step,
       user_object_from(u, linked.objects, linked.providers, own.member, :audience) AS user_object,
       memberships.member AS memberships, clock_timestamp() AS now
  FROM sessions AS s
  JOIN users AS u ON u.id = s.user_id
 CROSS JOIN linked_identities(u.id) AS linked
 CROSS JOIN factors_of(u.id) AS own
 CROSS JOIN memberships_of(u.id, :with_organizations) AS memberships
 WHERE s.id = :session_id
   FOR NO KEY UPDATE OF s;

-- name: lock_client_session(session_id uuid, client_id uuid, ip inet, user_agent text, with_organizations boolean)
--   -> row? (resource?, converted_at?, banned_until?, oldest_factor_at?, ended_at?, first_passkey_at?,
--     used_counter?, successor_counter?, echoes?, auth_time?, token_lifetime?, secret_hash?,
--     previous_secret_hash?, previous_secret_expires_at?, organization_id?, for_organization_id?)
-- Like lock_session, for a session that a user gave a client. Also returns the client's settings.
SELECT s.id AS session_id, s.user_id, s.resource, s.scopes,
       s.method, s.aal, s.created_at AS session_created_at, s.refreshed_at, end_of(s) AS ended_at, s.first_passkey_at,
       s.counter, s.used_counter, s.successor_counter, s.refreshes, s.counted_until, s.echoes,
       (s.ip, s.user_agent) IS NOT DISTINCT FROM (:ip, :user_agent) AS is_same_client,
       methods_of(s) AS amr, floor(extract(epoch FROM s.auth_time))::bigint AS auth_time,
       coalesce(c.metadata_url, c.id::text) AS client_id, c.token_lifetime, c.id_token_signed_response_alg,
       c.grant_types, c.scopes AS client_scopes, true AS refreshes_tokens,
       c.token_endpoint_auth_method, c.accepts_either_method, c.secret_hash, c.previous_secret_hash,
       c.previous_secret_expires_at, c.allowed_roles, c.resources, c.is_dynamic, refuses_all(c) AS is_blocked,
       c.organization_id, s.organization_id AS for_organization_id, memberships.member AS memberships,
       u.role, u.made_by, u.converted_at, u.banned_until, u.app_metadata::jsonb, u.email_proved, u.phone_proved,
       own.oldest AS oldest_factor_at, own.has_second_step,
       user_object_from(u, linked.objects, linked.providers, own.member, NULL) AS user_object,
       floor(extract(epoch FROM clock_timestamp()))::bigint AS issued_at,
       clock_timestamp() AS now
  FROM sessions AS s
  JOIN oauth_grants AS g ON g.id = s.grant_id
  JOIN oauth_clients AS c ON c.id = g.client_id
  JOIN users AS u ON u.id = s.user_id
 CROSS JOIN linked_identities(u.id) AS linked
 CROSS JOIN factors_of(u.id) AS own
 CROSS JOIN memberships_of(u.id, :with_organizations) AS memberships
 WHERE s.id = :session_id AND c.id = :client_id
   FOR NO KEY UPDATE OF s;

-- name: lock_request(id uuid)
SELECT FROM oauth_requests WHERE id = :id FOR UPDATE;
