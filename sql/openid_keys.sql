-- name: list_openid_keys() -> rows
SELECT id, algorithm, sealed,
       to_char(active_from AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS active_from
  FROM openid_keys
 ORDER BY active_from, id;

-- name: lock_openid_keys()
-- Prevents two nodes from both creating the first key.
SELECT pg_advisory_xact_lock(7239004122) IS NULL AS locked;

-- name: insert_openid_key(id text, algorithm text, sealed bytea, active_from double precision)
INSERT INTO openid_keys (id, algorithm, sealed, active_from)
VALUES (:id, :algorithm, :sealed, coalesce(to_timestamp(:active_from), now()));

-- name: delete_openid_key(id text)
DELETE FROM openid_keys WHERE id = :id;

-- name: select_longest_client_token(access_token_lifetime integer, id_token_lifetime integer)
--   -> row (lifetime?)
-- The lifetime in seconds, null without clients.
SELECT max(greatest(coalesce(token_lifetime, :access_token_lifetime), :id_token_lifetime)) AS lifetime
  FROM oauth_clients;

-- name: list_sealed_openid_keys(newest bytea, after text, batch integer) -> rows
SELECT k.id, k.sealed
  FROM openid_keys AS k
 WHERE substr(k.sealed, 1, 4) <> :newest AND (k.id > :after) IS NOT FALSE
 ORDER BY k.id
 LIMIT :batch;

-- name: reseal_openid_key(id text, old bytea, sealed bytea)
UPDATE openid_keys SET sealed = :sealed WHERE id = :id AND sealed = :old;
