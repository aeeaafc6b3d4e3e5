-- name: create_user(id uuid, email text, phone text, password_hash text, role text,
--                   user_metadata user_metadata, app_metadata app_metadata, email_confirm boolean,
--                   phone_confirm boolean, ban_duration double precision) -> row (banned_until?)
WITH created AS (
  INSERT INTO users (
    id, email, email_confirmed_at, email_proved, phone, phone_confirmed_at, phone_proved,
    password_hash, role, admin_since, user_metadata, app_metadata, made_by, banned_until,
    password_vouched
  )
  VALUES (
    coalesce(:id, gen_random_uuid()), :email, CASE WHEN :email_confirm THEN now() END, :email_confirm,
    :phone, CASE WHEN :phone_confirm THEN now() END, :phone_confirm,
    :password_hash, :role, CASE WHEN :role = 'admin' THEN now() END,
    merge_metadata('{}', :user_metadata), merge_metadata('{}', :app_metadata), 'administrator',
    end_of_ban(:ban_duration), :password_hash IS NOT NULL
  )
  RETURNING users
), identified AS (
  INSERT INTO identities (user_id, provider, subject, identity_data)
  SELECT own.* FROM created CROSS JOIN own_identities(created.users) AS own
)
SELECT (users).id, iso_8601((users).banned_until) AS banned_until FROM created;

-- name: select_any_user(id uuid, audience text) -> row?
SELECT shown.user_object FROM users AS u CROSS JOIN user_object_for(u, :audience) AS shown WHERE u.id = :id;

-- name: select_addresses(id uuid) -> row? (email?, phone?)
SELECT email, phone FROM users WHERE id = :id;

-- name: set_confirmed_at(user_id uuid, provider text, confirmed_at timestamptz)
-- Does not prove an address (`prove_address` does), but null removes the proof.
UPDATE users
   SET email_confirmed_at = CASE :provider WHEN 'email' THEN :confirmed_at ELSE email_confirmed_at END,
       email_proved = email_proved AND (:provider <> 'email' OR :confirmed_at IS NOT NULL),
       phone_confirmed_at = CASE :provider WHEN 'phone' THEN :confirmed_at ELSE phone_confirmed_at END,
       phone_proved = phone_proved AND (:provider <> 'phone' OR :confirmed_at IS NOT NULL)
 WHERE id = :user_id;

-- name: update_any_user(id uuid, role text, user_metadata user_metadata, app_metadata app_metadata,
--                       sets_ban boolean, ban_duration double precision, sets_password boolean)
UPDATE users
   SET role = coalesce(:role, role),
       admin_since = CASE WHEN coalesce(:role, role) = 'admin' THEN coalesce(admin_since, now()) END,
       user_metadata = merge_metadata(user_metadata, :user_metadata),
       app_metadata = merge_metadata(app_metadata, :app_metadata),
       banned_until = CASE WHEN :sets_ban THEN end_of_ban(:ban_duration) ELSE banned_until END,
       password_vouched = password_vouched OR :sets_password,
       updated_at = now()
 WHERE id = :id;

-- name: end_any_users_sessions(id uuid, origin jsonb) -> row (ended?)
WITH locked AS (
  SELECT id, email FROM users WHERE id = :id FOR UPDATE
)
SELECT end_access(id, NULL, 'ended_by_admin') AS ended,
       (SELECT count(*) FROM api_keys AS k
         WHERE k.user_id = locked.id AND end_of_key(k) IS NULL) AS api_keys,
       iso_8601(now()) AS moment,
       record_acts(:origin, id, email, '{signed_out}', '{auth.logout}', '{"scope": "global"}') AS recorded
  FROM locked;

-- name: end_any_session(id uuid, session_id uuid, origin jsonb) -> row? (ended?)
SELECT end_access(u.id, s.id, 'ended_by_admin') AS ended,
       record_acts(:origin, u.id, u.email, '{session_ended}', '{auth.logout}',
                   jsonb_build_object('session_id', s.id)) AS recorded
  FROM users AS u
  JOIN sessions AS s ON s.user_id = u.id
 WHERE u.id = :id AND s.id = :session_id AND s.ended_at IS NULL;

-- name: end_lost_access_of_user(user_id uuid)
SELECT end_lost_access(locked.u)
  FROM (SELECT u FROM users AS u WHERE u.id = :user_id FOR NO KEY UPDATE) AS locked;

-- name: list_users(email text, role text, q text, is_anonymous boolean, sort text, descending boolean,
--                  page_size integer, page_offset bigint, most integer, audience text) -> row
-- The total counts up to `most`.
SELECT coalesce(json_agg(shown.user_object::json ORDER BY page.place), '[]')::text
         AS users,
       total_of_users(:email, :role, :q, :is_anonymous, :most) AS total
  FROM page_of_users(:email, :role, :q, :sort, :descending, :page_size, :page_offset, :is_anonymous)
       WITH ORDINALITY AS page (id, place)
  JOIN users AS u ON u.id = page.id
 CROSS JOIN user_object_for(u, :audience) AS shown;

-- name: delete_unproved_user(email text, origin jsonb)
DELETE FROM users WHERE email = :email AND NOT is_proved(users, 'email')
RETURNING record_acts(:origin, id, email, '{user_deleted}', '{user.deleted}', '{"because": "created_again"}');

-- name: make_administrator(email text, password_hash text) -> row?
-- Returns no row if the email belongs to an administrator, or if its user has not proved it.
INSERT INTO users AS u (email, email_confirmed_at, email_proved, password_hash, role, admin_since, made_by)
VALUES (:email, now(), true, :password_hash, 'admin', now(), 'administrator')
ON CONFLICT (email) DO UPDATE
   SET role = 'admin', admin_since = coalesce(u.admin_since, now()), updated_at = now()
 WHERE is_proved(u, 'email') AND u.role <> 'admin'
RETURNING id, created_at = now() AS created;
