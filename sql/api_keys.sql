-- name: select_api_keys(caller_id uuid, caller_session_id uuid)
--   -> row? (banned_until?, converted_at?, oldest_factor_at?, method?, aal?,
--            session_created_at?, refreshed_at?, ended_at?, first_passkey_at?)
SELECT caller.*,
       api_keys_of(:caller_id)::text AS api_keys
  FROM caller_facts(:caller_id, :caller_session_id) AS caller;

-- name: list_api_keys(user_id uuid) -> row
SELECT api_keys_of(:user_id)::text AS api_keys;

-- name: write_api_key(id uuid, user_id uuid, session_id uuid, aal text, name text, key_mac bytea, scopes text[], lifetime integer,
--                     acted_at timestamptz) -> row
INSERT INTO api_keys AS k (id, user_id, name, key_mac, scopes, created_at, expires_at, aal, provider_term)
VALUES (:id, :user_id, :name, :key_mac, :scopes, :acted_at, :acted_at + make_interval(secs => :lifetime), :aal,
        (SELECT s.provider_term FROM sessions AS s WHERE s.id = :session_id))
RETURNING api_key_object(k) AS object;

-- name: count_api_keys(user_id uuid) -> row
SELECT count(*) AS total, count(*) FILTER (WHERE is_live(k)) AS live FROM api_keys AS k WHERE k.user_id = :user_id;

-- name: remove_api_keys(user_id uuid, ids text[]) -> rows
DELETE FROM api_keys WHERE user_id = :user_id AND id = ANY (:ids::uuid[]) RETURNING id::text, name;

-- name: select_api_key_to_use(id uuid, key_macs bytea[], audience text, with_organizations boolean)
--   -> row? (converted_at?, banned_until?, oldest_factor_at?, key_expires_at?)
-- The key with the secret. Run it with the owner locked, or it may be removed meanwhile.
SELECT u.role, u.made_by, u.converted_at, u.banned_until,
       verified.oldest AS oldest_factor_at, verified.has_second_step,
       k.aal AS key_aal, end_of(k) AS key_expires_at,
       k.user_id, k.id AS api_key_id, k.name, k.scopes, k.refreshes, k.counted_until,
       k.last_used_on IS NOT DISTINCT FROM (clock_timestamp() AT TIME ZONE 'UTC')::date AS is_used_today,
       object.user_object, memberships.member AS memberships, clock_timestamp() AS now
  FROM api_keys AS k
  JOIN users AS u ON u.id = k.user_id
 CROSS JOIN user_object_of(u, :audience, false) AS object
 CROSS JOIN memberships_of(u.id, :with_organizations) AS memberships
 CROSS JOIN factors_of(u.id) AS verified
 WHERE k.id = :id AND k.key_mac = ANY (:key_macs);

-- name: count_use_of_api_key(id uuid, key_mac bytea, refreshes integer, counted_until timestamptz)
UPDATE api_keys
   SET key_mac = :key_mac, refreshes = :refreshes, counted_until = :counted_until
 WHERE id = :id;

-- name: record_use_of_api_key(id uuid, acted_at timestamptz)
UPDATE api_keys SET last_used_on = (:acted_at AT TIME ZONE 'UTC')::date WHERE id = :id;

-- name: select_owner_of_api_key(id uuid, key_macs bytea[]) -> row?
SELECT user_id, key_mac = ANY (:key_macs) AS is_right FROM api_keys WHERE id = :id;

-- name: select_api_key(id uuid, key_macs bytea[])
--   -> row? (banned_until?, converted_at?, oldest_factor_at?, key_expires_at?, expires_at?)
-- The key with the secret, for POST /introspect.
SELECT owner.*, k.aal AS key_aal, end_of(k) AS key_expires_at,
       k.user_id,
       k.scopes,
       floor(extract(epoch FROM k.created_at))::bigint AS created_at,
       floor(extract(epoch FROM k.expires_at))::bigint AS expires_at
  FROM api_keys AS k
 CROSS JOIN user_facts(k.user_id) AS owner
 WHERE k.id = :id AND k.key_mac = ANY (:key_macs);

-- name: select_user_of_api_key(user_id uuid, api_key_id uuid, audience text, with_organizations boolean)
--   -> row? (banned_until?, converted_at?, oldest_factor_at?, key_aal?, key_expires_at?)
SELECT owner.*, k.aal AS key_aal, end_of(k) AS key_expires_at,
       object.user_object, memberships.member AS memberships
  FROM user_facts(:user_id) AS owner
  JOIN users AS u ON u.id = :user_id
 CROSS JOIN user_object_of(u, :audience, false) AS object
 CROSS JOIN memberships_of(u.id, :with_organizations) AS memberships
  LEFT JOIN api_keys AS k ON k.id = :api_key_id AND k.user_id = :user_id;
