-- name: select_holders(addresses text[]) -> row
SELECT ARRAY(SELECT id::text FROM users WHERE email = ANY (:addresses) OR phone = ANY (:addresses)) AS ids,
       clock_timestamp() AS now;

-- name: create_user(id uuid, email text, phone text, password_hash text, role text,
--                   user_metadata jsonb, app_metadata jsonb,
--                   email_confirmed_at timestamptz, phone_confirmed_at timestamptz,
--                   banned_until timestamptz, is_vouched boolean, by_key boolean, acted_at timestamptz) -> row
-- An administrator proves the addresses that it confirms.
WITH created AS (
  INSERT INTO users (
    id, email, email_confirmed_at, email_proved, phone, phone_confirmed_at, phone_proved,
    password_hash, role, admin_since, user_metadata, app_metadata, made_by, banned_until,
    password_vouched, password_by_key, email_by_key, phone_by_key, created_at, updated_at
  )
  VALUES (
    coalesce(:id, gen_random_uuid()), :email, :email_confirmed_at, :email_confirmed_at IS NOT NULL,
    :phone, :phone_confirmed_at, :phone_confirmed_at IS NOT NULL,
    :password_hash, :role, CASE WHEN :role = 'admin' THEN :acted_at END,
    merge_metadata('{}', :user_metadata::user_metadata), merge_metadata('{}', :app_metadata::app_metadata), 'administrator',
    :banned_until, :is_vouched, nullif(:by_key, false), CASE WHEN :by_key THEN :email END,
    CASE WHEN :by_key THEN :phone END, :acted_at, :acted_at
  )
  RETURNING users
), identified AS (
  INSERT INTO identities (user_id, provider, subject, identity_data, created_at, updated_at)
  SELECT own.*, :acted_at, :acted_at FROM created CROSS JOIN own_identities(created.users) AS own
)
SELECT (users).id FROM created;

-- name: select_any_user(id uuid, audience text, with_organizations boolean) -> row?
SELECT object.user_object
  FROM users AS u
 CROSS JOIN user_object_of(u, :audience, :with_organizations) AS object
 WHERE u.id = :id;

-- name: select_addresses(id uuid) -> row? (email?, phone?)
SELECT email, phone FROM users WHERE id = :id;

-- name: set_confirmed_at(user_id uuid, kind text, confirmed_at timestamptz)
-- Does not prove an address (`prove_address` does), but null removes the proof.
UPDATE users
   SET email_confirmed_at = CASE :kind WHEN 'email' THEN :confirmed_at ELSE email_confirmed_at END,
       email_proved = email_proved AND (:kind <> 'email' OR :confirmed_at IS NOT NULL),
       phone_confirmed_at = CASE :kind WHEN 'phone' THEN :confirmed_at ELSE phone_confirmed_at END,
       phone_proved = phone_proved AND (:kind <> 'phone' OR :confirmed_at IS NOT NULL)
 WHERE id = :user_id;

-- name: set_ban(id uuid, banned_until timestamptz)
UPDATE users SET banned_until = :banned_until WHERE id = :id;

-- name: update_any_user(id uuid, role text, user_metadata jsonb, app_metadata jsonb,
--                       vouches_password boolean, acted_at timestamptz)
UPDATE users
   SET role = :role,
       admin_since = CASE WHEN :role = 'admin' THEN coalesce(admin_since, :acted_at) END,
       user_metadata = merge_metadata(user_metadata, :user_metadata::user_metadata),
       app_metadata = merge_metadata(app_metadata, :app_metadata::app_metadata),
       password_vouched = password_vouched OR :vouches_password,
       updated_at = :acted_at
 WHERE id = :id;

-- name: end_refused_sessions(user_id uuid, reason text, reach text, keys_up_to text, with_grants boolean,
--                            acted_at timestamptz)
SELECT end_lost_sessions(u, :reason, :reach, :keys_up_to, :with_grants, :acted_at)
  FROM users AS u
 WHERE u.id = :user_id;

-- name: sample_users(q text) -> row
-- The number of a thousand users that a search finds; ids are random. Postgres estimates the same for every
-- prefix of a word, and new rows have no statistics.
SELECT count(*) AS total
  FROM (SELECT * FROM users ORDER BY id LIMIT 1000) AS u
 WHERE is_listed(u, NULL, NULL, :q);

-- name: list_users(email text, role text, q text, is_anonymous boolean, sort text, descending boolean,
--                  page_size integer, page_offset bigint, most integer, audience text, with_organizations boolean) -> row
-- Reads users in their order until the page is full, and others until it has counted `most`. Postgres expects
-- that `coalesce` finds many users, and uses no index.
WITH page AS (
  SELECT id, row_number() OVER () AS place
    FROM (
      SELECT id
        FROM users
       WHERE is_listed(users, :email, :role, NULL) AND coalesce(is_listed(users, NULL, NULL, :q), false)
         AND (:is_anonymous IS NULL OR is_anonymous(users) = :is_anonymous)
       ORDER BY CASE WHEN :sort = 'created_at' AND NOT :descending THEN created_at
                     WHEN :sort = 'updated_at' AND NOT :descending THEN updated_at END,
                CASE WHEN :sort = 'created_at' AND :descending THEN created_at
                     WHEN :sort = 'updated_at' AND :descending THEN updated_at END DESC,
                CASE WHEN :sort = 'last_sign_in_at' AND NOT :descending THEN last_sign_in_at END,
                CASE WHEN :sort = 'last_sign_in_at' AND :descending THEN last_sign_in_at END DESC NULLS LAST,
                CASE WHEN :sort = 'email' AND NOT :descending THEN email END,
                CASE WHEN :sort = 'email' AND :descending THEN email END DESC NULLS LAST,
                CASE WHEN NOT :descending THEN id END,
                CASE WHEN :descending THEN id END DESC
       LIMIT :page_size OFFSET :page_offset
    ) AS sorted
)
SELECT (SELECT coalesce(json_agg(object.user_object::json ORDER BY page.place), '[]')::text
          FROM page
          JOIN users AS u ON u.id = page.id
         CROSS JOIN user_object_of(u, :audience, :with_organizations) AS object) AS users,
       (SELECT count(*)
          FROM (SELECT
                  FROM users
                 WHERE is_listed(users, :email, :role, NULL) AND coalesce(is_listed(users, NULL, NULL, :q), false)
                   AND (:is_anonymous IS NULL OR is_anonymous(users) = :is_anonymous)
                 LIMIT :most) AS counted) AS total;

-- name: find_users(email text, role text, q text, is_anonymous boolean, sort text, descending boolean,
--                  page_size integer, page_offset bigint, audience text, with_organizations boolean) -> row
-- Collects all users that the index of words finds, and sorts them.
WITH matches AS MATERIALIZED (
  SELECT id, created_at, updated_at, last_sign_in_at, email
    FROM users
   WHERE is_listed(users, :email, :role, :q)
     AND (:is_anonymous IS NULL OR is_anonymous(users) = :is_anonymous)
), page AS (
  SELECT id, row_number() OVER () AS place
    FROM (
      SELECT id
        FROM matches
       ORDER BY CASE WHEN :sort = 'created_at' AND NOT :descending THEN created_at
                     WHEN :sort = 'updated_at' AND NOT :descending THEN updated_at END,
                CASE WHEN :sort = 'created_at' AND :descending THEN created_at
                     WHEN :sort = 'updated_at' AND :descending THEN updated_at END DESC,
                CASE WHEN :sort = 'last_sign_in_at' AND NOT :descending THEN last_sign_in_at END,
                CASE WHEN :sort = 'last_sign_in_at' AND :descending THEN last_sign_in_at END DESC NULLS LAST,
                CASE WHEN :sort = 'email' AND NOT :descending THEN email END,
                CASE WHEN :sort = 'email' AND :descending THEN email END DESC NULLS LAST,
                CASE WHEN NOT :descending THEN id END,
                CASE WHEN :descending THEN id END DESC
       LIMIT :page_size OFFSET :page_offset
    ) AS sorted
)
SELECT (SELECT coalesce(json_agg(object.user_object::json ORDER BY page.place), '[]')::text
          FROM page
          JOIN users AS u ON u.id = page.id
         CROSS JOIN user_object_of(u, :audience, :with_organizations) AS object) AS users,
       (SELECT count(*) FROM matches) AS total;
