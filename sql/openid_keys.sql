-- name: list_openid_keys()
SELECT id, algorithm, sealed,
       to_char(active_from AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS active_from
  FROM openid_keys
 ORDER BY active_from, id;

-- name: insert_first_openid_key(id text, algorithm text, sealed bytea)
-- Two nodes may each make one at once: both are published, and the newer signs.
INSERT INTO openid_keys (id, algorithm, sealed)
SELECT :id, :algorithm, :sealed WHERE NOT EXISTS (SELECT FROM openid_keys);
