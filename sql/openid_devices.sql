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

-- name: poll_device_request(code_hash bytea, client_id uuid, slowing integer) -> row? (user_id?)
-- The interval is a second shorter than the announced one, for requests that the network delays.
WITH polled AS (
  SELECT r.id, coalesce(r.polled_at > now() - make_interval(secs => r.poll_interval - 1), false) AS is_early
    FROM oauth_requests AS r
   WHERE r.code_hash = :code_hash AND r.client_id = :client_id AND r.user_code_mac IS NOT NULL
     FOR UPDATE OF r
)
UPDATE oauth_requests AS r
   SET polled_at = now(),
       poll_interval = r.poll_interval + CASE WHEN polled.is_early THEN :slowing ELSE 0 END
  FROM polled
 WHERE r.id = polled.id
RETURNING r.user_id,
          CASE WHEN r.opened_session_id IS NOT NULL THEN 'approved'
               WHEN r.decision = 'denied' THEN 'access_denied'
               WHEN r.code_expires_at <= now() THEN 'expired_token'
               WHEN r.decision = 'approved' THEN 'approved'
               WHEN polled.is_early THEN 'slow_down'
               ELSE 'authorization_pending' END AS state;

-- name: enter_user_code(macs bytea[], user_id uuid, session_id uuid, network text, failures integer[])
--   -> row (refused_for?, request_id?)
SELECT refused_for, tries, request_id
  FROM enter_user_code(:macs, :user_id, :session_id, :network, :failures);

-- name: lock_client_of_device(id uuid)
--   -> row? (secret_hash?, token_lifetime?, previous_secret_hash?, previous_secret_expires_at?,
--     metadata_url?, fetched_until?, gate_origin?)
-- Locks the client before the request, like a deletion of the client.
SELECT c.*
  FROM oauth_clients AS c
  JOIN oauth_requests AS r ON r.client_id = c.id
 WHERE r.id = :id
   FOR KEY SHARE OF c;

-- name: lock_device_request(id uuid, user_id uuid, session_id uuid) -> row? (resource?, ip?, user_agent?)
-- A request that waits for the decision of the user who entered its code in this session.
SELECT r.id, r.scopes, r.resource, host(r.ip) AS ip, r.user_agent, iso_8601(r.created_at) AS asked_at,
       may_use(u, c, r.resource) AS may_use
  FROM oauth_requests AS r
  JOIN oauth_clients AS c ON c.id = r.client_id
  JOIN users AS u ON u.id = r.user_id
 WHERE r.id = :id AND r.user_id = :user_id AND is_open_to(r, :session_id)
   FOR UPDATE OF r;

-- name: decide_device_request(id uuid, decision text)
UPDATE oauth_requests SET decision = :decision WHERE id = :id;
