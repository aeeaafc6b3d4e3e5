-- name: dispute_sign_up(address text, password_hash text, user_metadata user_metadata, is_repeated boolean)
-- Until this address is proved, only the page of a link, which shows whose it is, confirms a different
-- password or different data: an owner may type the code of a stranger who signed up later.
UPDATE users AS u
   SET password_hash = CASE WHEN u.password_hash = :password_hash THEN :password_hash END,
       sign_up_hash = coalesce(:password_hash, own_hash(u)), user_metadata = '{}', signup_user_agent = NULL
 WHERE (u.email = :address OR u.phone = :address) AND :is_repeated AND is_unused_sign_up(u)
   AND (u.password_hash, u.user_metadata)
       IS DISTINCT FROM (:password_hash, merge_metadata('{}', :user_metadata));

-- name: insert_sign_up(user_id uuid, email text, phone text, password_hash text, user_metadata user_metadata,
--                      is_confirmed boolean, user_agent text, audience text) -> row
-- The user object is built from the draft, so that it is the same for a taken address.
WITH draft AS (
  SELECT u.*
    FROM jsonb_populate_record(NULL::users, jsonb_build_object(
           'id', :user_id, 'role', 'authenticated', 'email', :email, 'phone', :phone,
           'email_confirmed_at', CASE WHEN :is_confirmed AND :email IS NOT NULL THEN now() END,
           'phone_confirmed_at', CASE WHEN :is_confirmed AND :phone IS NOT NULL THEN now() END,
           'email_proved', false, 'phone_proved', false,
           'password_hash', :password_hash,
           'app_metadata', '{}'::jsonb,
           'user_metadata', merge_metadata('{}', :user_metadata),
           'confirmation_sent_at', CASE WHEN NOT :is_confirmed THEN now() END,
           'last_sign_in_at', CASE WHEN :is_confirmed THEN now() END,
           'made_by', 'signup',
           'signup_user_agent', :user_agent,
           'created_at', now(), 'updated_at', now()
         )) AS u
), created AS (
  INSERT INTO users SELECT * FROM draft ON CONFLICT DO NOTHING RETURNING id
), draft_identity AS (
  SELECT identity.*
    FROM draft
   CROSS JOIN own_identities(draft::users) AS own,
         jsonb_populate_record(NULL::identities, to_jsonb(own) || jsonb_build_object(
           'id', gen_random_uuid(), 'last_sign_in_at', draft.last_sign_in_at,
           'created_at', now(), 'updated_at', now())) AS identity
), identity AS (
  INSERT INTO identities SELECT draft_identity.* FROM draft_identity, created
)
SELECT created.id IS NOT NULL AS is_created, draft.id,
       with_audience((user_object(draft::users)::jsonb || jsonb_build_object(
         'app_metadata', jsonb_build_object('provider', draft_identity.provider,
                                            'providers', ARRAY[draft_identity.provider]),
         'identities', ARRAY[identity_object(draft_identity::identities)]))::text, :audience) AS user_object
  FROM draft
 CROSS JOIN draft_identity
  LEFT JOIN created ON true;

-- name: insert_anonymous_user(user_id uuid, user_metadata user_metadata) -> row
INSERT INTO users (id, user_metadata, made_by)
VALUES (:user_id, merge_metadata('{}', :user_metadata), 'anonymous')
RETURNING id;

-- name: convert_user(user_id uuid)
UPDATE users SET converted_at = clock_timestamp(), updated_at = now() WHERE id = :user_id;

-- name: select_address_owner(address text) -> row?
-- FOR KEY SHARE prevents a deletion.
SELECT u.id, is_unused_sign_up(u) AS is_unused, gives_way(u) AS gives_way
  FROM users AS u
 WHERE u.email = :address OR u.phone = :address
   FOR KEY SHARE;

-- name: select_user_of_address(address text) -> row?
SELECT id, email_proved, gives_way(users) AS gives_way,
       invited_at IS NOT NULL AND email_confirmed_at IS NULL AND password_hash IS NULL AS is_invited
  FROM users
 WHERE email = :address OR phone = :address;

-- name: record_refused_sign_up(user_id uuid, origin jsonb)
SELECT record_refusal(:origin, :user_id, 'sign_up_refused', 'user_already_exists', '{}');

-- name: select_user(caller_id uuid, caller_session_id uuid, audience text)
--   -> row? (banned_until?, converted_at?, oldest_factor_at?, method?, aal?,
--            session_created_at?, refreshed_at?, ended_at?, first_passkey_at?)
SELECT caller.*,
       with_audience(copy.object, :audience) AS user_object
  FROM caller_facts(:caller_id, :caller_session_id) AS caller
  JOIN user_objects AS copy ON copy.user_id = :caller_id;

-- name: mark_password_leaked(user_id uuid)
-- Until the user has another password.
UPDATE users SET password_leaked_at = now() WHERE id = :user_id AND password_leaked_at IS NULL;

-- name: select_taken_address(email text, phone text, user_id uuid) -> row?
-- A user who proves the address replaces one whom a stranger may have created.
SELECT coalesce(email = :email, false) AS is_email
  FROM users
 WHERE (email = :email OR phone = :phone) AND id <> :user_id AND NOT gives_way(users)
 ORDER BY is_email DESC
 LIMIT 1;

-- name: change_user(user_id uuid, user_metadata user_metadata, new_email text, new_phone text, audience text)
--   -> row
UPDATE users AS u
   SET user_metadata = merge_metadata(u.user_metadata, :user_metadata),
       new_email = coalesce(:new_email, u.new_email),
       email_change_sent_at = CASE WHEN :new_email IS NULL THEN u.email_change_sent_at ELSE now() END,
       new_phone = coalesce(:new_phone, u.new_phone),
       phone_change_sent_at = CASE WHEN :new_phone IS NULL THEN u.phone_change_sent_at ELSE now() END,
       updated_at = now()
 WHERE u.id = :user_id
RETURNING with_audience(user_object(u)::text, :audience) AS user_object;

-- name: delete_user(user_id uuid, origin jsonb) -> row
DELETE FROM users
 WHERE id = :user_id
RETURNING iso_8601(now()) AS moment,
          record_acts(:origin, id, email, '{user_deleted}', '{user.deleted}') AS recorded;

-- name: count_other_administrators(user_id uuid) -> row
-- Those who can sign in. Two who leave at once must not count each other: lock the administrators first.
SELECT count(*) AS total FROM users AS u WHERE u.role = 'admin' AND u.id <> :user_id AND NOT is_banned(u);

-- name: lock_user(user_id uuid)
--   -> row? (email?, new_email?, phone?, new_phone?, email_confirmed_at?, phone_confirmed_at?, banned_until?)
-- Timestamps as text: Python's datetime has fewer years than Postgres.
SELECT id, role, email, email_proved, new_email, phone, phone_proved, new_phone, user_metadata, app_metadata,
       NOT keeps_password(users) AS lacks_password, own_hash(users) IS NOT NULL AS has_own_password,
       iso_8601(email_confirmed_at) AS email_confirmed_at, iso_8601(phone_confirmed_at) AS phone_confirmed_at,
       CASE WHEN is_banned(users) THEN iso_8601(banned_until) END AS banned_until,
       is_anonymous(users) AS is_anonymous,
       is_banned(users) AS is_banned
  FROM users
 WHERE id = :user_id
   FOR UPDATE;
