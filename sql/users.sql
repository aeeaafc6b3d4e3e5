-- name: compare_sign_up(user_id uuid, password_hash text, user_metadata jsonb)
--   -> row?
SELECT password_hash IS NOT DISTINCT FROM :password_hash AS has_same_password,
       user_metadata = merge_metadata('{}', :user_metadata::user_metadata) AS has_same_data
  FROM users
 WHERE id = :user_id;

-- name: dispute_sign_up(user_id uuid, password_hash text)
-- Keeps the hash of the newest of several sign-ups until the proof. The password stays only if it is equal.
UPDATE users
   SET password_hash = CASE WHEN password_hash = :password_hash THEN password_hash END,
       sign_up_hash = coalesce(:password_hash, password_hash, sign_up_hash), user_metadata = '{}', signup_user_agent = NULL
 WHERE id = :user_id;

-- name: insert_sign_up(user_id uuid, email text, phone text, password_hash text, user_metadata jsonb,
--                      is_confirmed boolean, user_agent text, audience text) -> row
-- The user object is built from the draft, so that it is the same for a taken address. It is the first
-- statement of an act, whose time is BEGIN. The drafts are whole rows: a migration may add a column to their tables while
-- Postgres analyses this.
WITH draft AS (
  SELECT jsonb_populate_record(NULL::users, jsonb_build_object(
           'id', :user_id, 'role', 'authenticated', 'email', :email, 'phone', :phone,
           'email_confirmed_at', CASE WHEN :is_confirmed AND :email IS NOT NULL THEN now() END,
           'phone_confirmed_at', CASE WHEN :is_confirmed AND :phone IS NOT NULL THEN now() END,
           'email_proved', false, 'phone_proved', false,
           'password_hash', :password_hash, 'password_set_at', now(),
           'app_metadata', '{}'::jsonb,
           'user_metadata', merge_metadata('{}', :user_metadata::user_metadata),
           'confirmation_sent_at', CASE WHEN NOT :is_confirmed THEN now() END,
           'last_sign_in_at', CASE WHEN :is_confirmed THEN now() END,
           'made_by', 'signup',
           'signup_user_agent', :user_agent,
           'created_at', now(), 'updated_at', now()
         )) AS u
), created AS (
  INSERT INTO users SELECT (u).* FROM draft ON CONFLICT DO NOTHING RETURNING id
), draft_identity AS (
  SELECT jsonb_populate_record(NULL::identities, to_jsonb(own) || jsonb_build_object(
           'id', gen_random_uuid(), 'last_sign_in_at', (draft.u).last_sign_in_at,
           'created_at', now(), 'updated_at', now())) AS i
    FROM draft
   CROSS JOIN own_identities(draft.u) AS own
), identity AS (
  INSERT INTO identities SELECT (i).* FROM draft_identity, created
)
SELECT created.id IS NOT NULL AS is_created, (u).id,
       user_object_from(u, jsonb_build_array(linked_identity(i)), ARRAY[(i).provider], '', :audience) AS user_object
  FROM draft
 CROSS JOIN draft_identity
  LEFT JOIN created ON true;

-- name: insert_anonymous_user(user_id uuid, user_metadata jsonb)
INSERT INTO users (id, user_metadata, made_by)
VALUES (:user_id, merge_metadata('{}', :user_metadata::user_metadata), 'anonymous');

-- name: convert_user(user_id uuid, acted_at timestamptz)
UPDATE users SET converted_at = :acted_at, updated_at = :acted_at WHERE id = :user_id;

-- name: select_user_of_address(address text) -> row?
SELECT id, role, email_proved FROM users WHERE email = :address OR phone = :address;

-- name: record_refused_sign_up(user_id uuid, reason text, origin jsonb)
SELECT record_refused(:origin, :user_id, 'sign_up_refused', :reason, '{}');

-- name: select_user(caller_id uuid, caller_session_id uuid, audience text, with_organizations boolean)
--   -> row? (banned_until?, converted_at?, oldest_factor_at?, method?, aal?,
--            session_created_at?, refreshed_at?, ended_at?, first_passkey_at?, authenticated_at?)
-- Looks up each row once: with `caller_facts` and `user_object_of` it takes 9 µs longer.
SELECT u.role, u.made_by, u.converted_at, u.banned_until,
       own.oldest AS oldest_factor_at, own.has_second_step, now() AS now,
       s.method, s.aal, s.created_at AS session_created_at, s.refreshed_at, end_of(s) AS ended_at, s.first_passkey_at,
       authenticated_at(s) AS authenticated_at,
       user_object_from(u, linked.objects, linked.providers, own.member, :audience) AS user_object,
       memberships.member AS memberships
  FROM users AS u
  LEFT JOIN sessions AS s ON s.id = :caller_session_id AND s.user_id = u.id
 CROSS JOIN factors_of(u.id) AS own
 CROSS JOIN linked_identities(u.id) AS linked
 CROSS JOIN memberships_of(u.id, :with_organizations) AS memberships
 WHERE u.id = :caller_id;

-- name: mark_password_leaked(user_id uuid)
UPDATE users SET password_leaked_at = now() WHERE id = :user_id AND password_leaked_at IS NULL;

-- name: change_user(user_id uuid, user_metadata jsonb, new_email text, new_phone text, audience text, with_organizations boolean,
--                   acted_at timestamptz) -> row
UPDATE users AS u
   SET user_metadata = merge_metadata(u.user_metadata, :user_metadata::user_metadata),
       new_email = coalesce(:new_email, u.new_email),
       email_change_sent_at = CASE WHEN :new_email IS NULL THEN u.email_change_sent_at ELSE :acted_at END,
       new_phone = coalesce(:new_phone, u.new_phone),
       phone_change_sent_at = CASE WHEN :new_phone IS NULL THEN u.phone_change_sent_at ELSE :acted_at END,
       updated_at = :acted_at
 WHERE u.id = :user_id
RETURNING (SELECT object.user_object FROM user_object_of(u, :audience, false) AS object) AS user_object,
          (SELECT memberships.member
             FROM memberships_of(u.id, :with_organizations) AS memberships) AS memberships;

-- name: delete_user(user_id uuid, because text, origin jsonb, acted_at timestamptz)
DELETE FROM users
 WHERE id = :user_id
RETURNING record_acts_at(:acted_at, :origin, id, email, '{user_deleted}', '{user.deleted}',
                         jsonb_build_object('because', :because));

-- name: count_administrators(without uuid) -> row
-- Counts administrators who can sign in. Two who leave at once must not count each other: lock the
-- administrators first.
SELECT count(*) AS total
  FROM users AS u
 WHERE u.role = 'admin' AND u.id IS DISTINCT FROM :without AND NOT is_banned(u);
