-- Requests of devices (RFC 8628): rows of `oauth_requests` with a `user_code_mac`, and without an `id_hash`.

-- name: insert_device_request(client_id uuid, code_hash bytea, user_code_mac bytea, scopes text[],
--                             resource text, ip inet, user_agent text, poll_interval integer,
--                             code_lifetime integer)
-- Inserts nothing if the client is deleted. The row outlives the code, to detect an expired code and a second
-- use.
INSERT INTO oauth_requests (client_id, code_hash, user_code_mac, scopes, resource, ip, user_agent,
                            poll_interval, code_expires_at, expires_at)
SELECT c.id, :code_hash, :user_code_mac, :scopes, :resource, :ip, :user_agent, :poll_interval,
       now() + make_interval(secs => :code_lifetime), now() + 2 * make_interval(secs => :code_lifetime)
  FROM oauth_clients AS c
 WHERE c.id = :client_id
   FOR KEY SHARE OF c;

-- name: find_device_code(code_hash bytea, client_id uuid) -> row? (user_id?)
SELECT r.id, r.user_id
  FROM oauth_requests AS r
 WHERE r.code_hash = :code_hash AND r.client_id = :client_id AND r.user_code_mac IS NOT NULL;

-- name: select_poll(id uuid) -> row? (polled_at?, decision?)
SELECT r.polled_at, r.poll_interval, r.decision, r.code_expires_at,
       r.opened_session_id IS NOT NULL AS has_session, clock_timestamp() AS now
  FROM oauth_requests AS r
 WHERE r.id = :id;

-- name: record_poll(id uuid, poll_interval integer, acted_at timestamptz)
UPDATE oauth_requests SET polled_at = :acted_at, poll_interval = :poll_interval WHERE id = :id;

-- name: select_user_code(macs bytea[]) -> row? (session_id?, decision?)
-- The request that a code is for. `macs` are those of the code with each key.
SELECT r.id, r.session_id, r.decision, r.code_expires_at, clock_timestamp() AS now
  FROM oauth_requests AS r
 WHERE r.user_code_mac = ANY (:macs);

-- name: find_device_request(id uuid) -> row?
SELECT r.client_id FROM oauth_requests AS r WHERE r.id = :id AND r.user_code_mac IS NOT NULL;

-- name: select_device_request(id uuid, with_organizations boolean)
--   -> row? (user_id?, session_id?, decision?, resource?, ip?, user_agent?, grant_scopes?, granted_at?,
--     redirect_uri?, client_redirect_uris?, grant_redirect_uris?)
-- A device's request, and of the user who entered its code the grant to its client and the memberships.
SELECT r.id, r.client_id, r.user_id, r.session_id, r.decision, r.code_expires_at, r.scopes, r.resource,
       r.redirect_uri, r.client_redirect_uris, host(r.ip) AS ip, r.user_agent,
       iso_8601(r.created_at) AS asked_at,
       g.scopes AS grant_scopes, g.granted_at, g.redirect_uris AS grant_redirect_uris,
       '{}'::text[] AS opened_scopes, memberships.member AS memberships, clock_timestamp() AS now
  FROM oauth_requests AS r
  LEFT JOIN oauth_grants AS g ON g.user_id = r.user_id AND g.client_id = r.client_id
 CROSS JOIN memberships_of(r.user_id, :with_organizations) AS memberships
 WHERE r.id = :id AND r.user_code_mac IS NOT NULL;

-- name: decide_device_request(id uuid, decision text, organization_id uuid)
UPDATE oauth_requests SET decision = :decision, organization_id = :organization_id WHERE id = :id;
