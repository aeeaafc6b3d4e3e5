-- name: use_admin_key(id uuid, key_macs bytea[]) -> row? (expires_at?)
-- The key with the secret. Its first use on a day also moves it to the secret key in use.
WITH used AS (
  UPDATE admin_keys
     SET last_used_on = CURRENT_DATE, key_mac = (:key_macs::bytea[])[1]
   WHERE id = :id AND key_mac = ANY (:key_macs) AND last_used_on IS DISTINCT FROM CURRENT_DATE
)
SELECT name, scopes, expires_at, clock_timestamp() AS now
  FROM admin_keys
 WHERE id = :id AND key_mac = ANY (:key_macs);

-- name: select_admin_key(id uuid) -> row? (expires_at?)
SELECT scopes, expires_at, clock_timestamp() AS now FROM admin_keys WHERE id = :id;

-- name: list_admin_keys() -> rows (created_by?, expires_at?, last_used_on?)
-- `unused_since` is the last use, else the creation.
SELECT k.id, k.name, k.scopes, k.expires_at,
       iso_8601(k.created_at) AS created_at,
       coalesce(u.email, u.phone, k.created_by::text) AS created_by,
       k.last_used_on::text AS last_used_on,
       coalesce(k.last_used_on, k.created_at) AS unused_since,
       now() AS now
  FROM admin_keys AS k
  LEFT JOIN users AS u ON u.id = k.created_by
 ORDER BY k.name;

-- name: lock_admin_keys()
-- Lets the next statements count the keys exactly.
SELECT pg_advisory_xact_lock(7239004125);

-- name: count_admin_keys() -> row
SELECT count(*) AS total FROM admin_keys;

-- name: insert_admin_key(id uuid, name text, key_mac bytea, scopes text[], lifetime integer, created_by uuid,
--                        acted_at timestamptz)
INSERT INTO admin_keys (id, name, key_mac, scopes, created_at, created_by, expires_at)
VALUES (:id, :name, :key_mac, :scopes, :acted_at, :created_by, :acted_at + make_interval(secs => :lifetime));

-- name: delete_admin_key(id uuid) -> row?
DELETE FROM admin_keys WHERE id = :id RETURNING name;
