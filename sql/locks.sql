-- Locks of acts: sql/acts.py has their order.

-- name: lock_users(ids text[])
SELECT FROM users WHERE id = ANY (:ids::uuid[]) ORDER BY id FOR UPDATE;

-- name: share_client(id uuid)
-- Nobody changes or deletes it meanwhile.
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

-- name: lock_request(id uuid)
SELECT FROM oauth_requests WHERE id = :id FOR UPDATE;
