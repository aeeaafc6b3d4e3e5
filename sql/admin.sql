-- name: create_user(email text, phone text, password_hash text, role text, user_metadata user_metadata, app_metadata app_metadata,
--                   email_confirm boolean, phone_confirm boolean, audience text, origin jsonb)
-- Makes a user as an administrator describes it. An address that is taken breaks its constraint.
WITH created AS (
  INSERT INTO users AS account (email, email_confirmed_at, email_proved, phone, phone_confirmed_at, phone_proved, password_hash, role,
                                admin_since, user_metadata, app_metadata, made_by)
  VALUES (:email, CASE WHEN :email_confirm THEN now() END, :email_confirm,
          :phone, CASE WHEN :phone_confirm AND :phone IS NOT NULL THEN now() END, :phone_confirm AND :phone IS NOT NULL, :password_hash,
          coalesce(:role, 'authenticated'), CASE WHEN :role = 'admin' THEN now() END,
          merge_metadata('{}', :user_metadata), merge_metadata('{}', :app_metadata), 'admin')
  RETURNING account
), written AS (
  INSERT INTO identities AS identity (user_id, provider, subject, identity_data)
  SELECT (created.account).id, address.provider, (created.account).id,
         jsonb_build_object('sub', (created.account).id, address.provider, address.value)
    FROM created, (VALUES ('email', :email), ('phone', :phone)) AS address (provider, value)
   WHERE address.value IS NOT NULL
  RETURNING identity
), linked AS (
  SELECT json_agg(identity_object(identity) ORDER BY (identity).created_at, (identity).provider) AS objects,
         array_agg((identity).provider ORDER BY (identity).created_at, (identity).provider) AS providers
    FROM written
)
SELECT user_object(created.account, linked.objects, linked.providers, :audience)::text AS user_object,
       record_acts(:origin, (created.account).id, (created.account).email, '{user_created}', '{user.created}',
                   jsonb_build_object('by', 'administrator', 'role', (created.account).role)) AS recorded
  FROM created
  CROSS JOIN linked;

-- name: select_any_user(id uuid, audience text)
-- Any user, for administrators.
SELECT user_object(u, linked.objects, linked.providers, :audience)::text AS user_object
  FROM users AS u
 CROSS JOIN identities_of(u.id) AS linked
 WHERE u.id = :id;

-- name: select_addresses(id uuid)
-- A user's addresses, which its password must differ from.
SELECT email, phone FROM users WHERE id = :id;

-- name: update_any_user(id uuid, email text, phone text, password_hash text, role text, user_metadata user_metadata,
--                       app_metadata app_metadata, email_confirm boolean, sets_email_confirmed boolean,
--                       email_confirmed_at timestamptz, phone_confirm boolean, sets_phone_confirmed boolean,
--                       phone_confirmed_at timestamptz, sets_ban boolean, ban_seconds double precision, audience text, origin jsonb)
-- Changes any user, for administrators. A new address is unconfirmed unless the same request confirms it. A new password or
-- email and a ban end all sessions and void all links; a ban without seconds is for ever, and one of 0 seconds is lifted. Whoever
-- confirms the email of a sign-up that nobody has proved proves it: what the sign-up has set otherwise goes. Only an address that
-- is there afterwards can be confirmed.
WITH before AS (
  SELECT account.id, account.email, account.phone, account.email_confirmed_at, account.phone_confirmed_at, account.role, account.banned_until,
         account.user_metadata, account.app_metadata, proof.is_first_proof,
         coalesce(:email, account.email) AS next_email,
         coalesce(:phone, CASE WHEN NOT proof.is_first_proof THEN account.phone END) AS next_phone
    FROM users AS account
   CROSS JOIN LATERAL (SELECT account.made_by = 'signup' AND NOT account.email_proved AND coalesce(:email, account.email) IS NOT NULL
                              AND (:email_confirm OR :sets_email_confirmed AND :email_confirmed_at IS NOT NULL) AS is_first_proof) AS proof
   WHERE account.id = :id
     FOR UPDATE OF account
), changed AS (
  UPDATE users AS account
     SET email = before.next_email,
         email_confirmed_at = CASE WHEN before.next_email IS NULL THEN NULL
                                   WHEN :sets_email_confirmed THEN :email_confirmed_at
                                   WHEN :email_confirm THEN now()
                                   WHEN :email <> coalesce(account.email, '') THEN NULL
                                   ELSE account.email_confirmed_at END,
         email_proved = CASE WHEN before.next_email IS NULL THEN false
                             WHEN :sets_email_confirmed THEN :email_confirmed_at IS NOT NULL
                             WHEN :email_confirm THEN true
                             WHEN :email <> coalesce(account.email, '') THEN false
                             ELSE account.email_proved END,
         new_email = CASE WHEN :email <> coalesce(account.email, '') OR before.is_first_proof THEN NULL ELSE account.new_email END,
         email_change_sent_at = CASE WHEN :email <> coalesce(account.email, '') OR before.is_first_proof THEN NULL ELSE account.email_change_sent_at END,
         phone = before.next_phone,
         phone_confirmed_at = CASE WHEN before.next_phone IS NULL THEN NULL
                                   WHEN :sets_phone_confirmed THEN :phone_confirmed_at
                                   WHEN :phone_confirm THEN now()
                                   WHEN :phone <> coalesce(account.phone, '') OR before.is_first_proof THEN NULL
                                   ELSE account.phone_confirmed_at END,
         phone_proved = CASE WHEN before.next_phone IS NULL THEN false
                             WHEN :sets_phone_confirmed THEN :phone_confirmed_at IS NOT NULL
                             WHEN :phone_confirm THEN true
                             WHEN :phone <> coalesce(account.phone, '') OR before.is_first_proof THEN false
                             ELSE account.phone_proved END,
         new_phone = CASE WHEN :phone <> coalesce(account.phone, '') OR before.is_first_proof THEN NULL ELSE account.new_phone END,
         phone_change_sent_at = CASE WHEN :phone <> coalesce(account.phone, '') OR before.is_first_proof THEN NULL ELSE account.phone_change_sent_at END,
         password_hash = coalesce(:password_hash, CASE WHEN NOT before.is_first_proof THEN account.password_hash END),
         role = coalesce(:role, account.role),
         admin_since = CASE WHEN coalesce(:role, account.role) = 'admin' THEN coalesce(account.admin_since, now()) END,
         user_metadata = merge_metadata(account.user_metadata, :user_metadata),
         app_metadata = merge_metadata(account.app_metadata, :app_metadata),
         banned_until = CASE WHEN NOT :sets_ban THEN account.banned_until
                             WHEN :ban_seconds IS NULL THEN timestamptz '9999-12-31 23:59:59+00'
                             WHEN :ban_seconds > 0 THEN now() + make_interval(secs => :ban_seconds) END,
         updated_at = now()
    FROM before
   WHERE account.id = before.id
  RETURNING account, before.email AS old_email, before.is_first_proof
), ended AS (
  SELECT end_sessions((account).id, NULL, reason) + void_one_time_tokens((account).id) AS many
    FROM changed,
         LATERAL (SELECT CASE WHEN :sets_ban AND (:ban_seconds > 0) IS NOT FALSE THEN 'banned'
                              WHEN :password_hash IS NOT NULL THEN 'password_changed'
                              WHEN (account).email IS DISTINCT FROM old_email THEN 'email_changed'
                              WHEN is_first_proof THEN 'address_proved' END AS reason) AS why
   WHERE reason IS NOT NULL
), dropped AS (
  DELETE FROM identities AS identity
   USING changed
   WHERE identity.user_id = (changed.account).id AND changed.is_first_proof AND identity.provider <> 'email'
     AND NOT (identity.provider = 'phone' AND :phone IS NOT NULL)
  RETURNING identity.id
), written AS (
  INSERT INTO identities AS identity (user_id, provider, subject, identity_data)
  SELECT (account).id, address.provider, (account).id, jsonb_build_object('sub', (account).id, address.provider, address.value)
    FROM changed, (VALUES ('email', :email), ('phone', :phone)) AS address (provider, value)
   WHERE address.value IS NOT NULL
  ON CONFLICT (user_id, provider) DO UPDATE SET identity_data = excluded.identity_data, updated_at = now()
  RETURNING identity
), linked AS (
  SELECT coalesce(json_agg(identity_object(identity) ORDER BY (identity).created_at, (identity).provider), '[]') AS objects,
         coalesce(array_agg((identity).provider ORDER BY (identity).created_at, (identity).provider), '{}') AS providers
    FROM (SELECT identity FROM written
           UNION ALL
          SELECT identity FROM identities AS identity
           WHERE identity.user_id = :id AND identity.id NOT IN (SELECT id FROM dropped)
             AND NOT EXISTS (SELECT FROM written WHERE (written.identity).id = identity.id)) AS every
)
SELECT user_object(changed.account, linked.objects, linked.providers, :audience)::text AS user_object,
       (SELECT many FROM ended) AS ended,
       record_acts(:origin, (changed.account).id, (changed.account).email,
                   ARRAY[CASE WHEN (before.user_metadata, before.app_metadata) <> ((changed.account).user_metadata, (changed.account).app_metadata)
                              THEN 'user_changed' END,
                         CASE WHEN :password_hash IS NOT NULL THEN 'password_changed' END,
                         CASE WHEN before.email IS DISTINCT FROM (changed.account).email THEN 'email_changed' END,
                         CASE WHEN before.phone IS DISTINCT FROM (changed.account).phone THEN 'phone_changed' END,
                         CASE WHEN before.email_confirmed_at IS DISTINCT FROM (changed.account).email_confirmed_at
                              THEN CASE WHEN (changed.account).email_confirmed_at IS NULL THEN 'email_unconfirmed' ELSE 'email_confirmed' END END,
                         CASE WHEN before.phone_confirmed_at IS DISTINCT FROM (changed.account).phone_confirmed_at
                              THEN CASE WHEN (changed.account).phone_confirmed_at IS NULL THEN 'phone_unconfirmed' ELSE 'phone_confirmed' END END,
                         CASE WHEN before.role IS DISTINCT FROM (changed.account).role THEN 'role_changed' END,
                         CASE WHEN :sets_ban AND (changed.account).banned_until IS NOT NULL THEN 'banned'
                              WHEN before.banned_until IS NOT NULL AND (changed.account).banned_until IS NULL THEN 'unbanned' END],
                   '{user.updated}',
                   jsonb_build_object('old_email', CASE WHEN before.email <> (changed.account).email THEN before.email END,
                                      'old_phone', CASE WHEN before.phone <> (changed.account).phone THEN before.phone END,
                                      'old_role', CASE WHEN before.role <> (changed.account).role THEN before.role END,
                                      'role', CASE WHEN before.role <> (changed.account).role THEN (changed.account).role END,
                                      'banned_until', CASE WHEN :sets_ban THEN iso_8601((changed.account).banned_until) END)) AS recorded
  FROM changed
  JOIN before ON true
  CROSS JOIN linked;

-- name: delete_any_user(id uuid, origin jsonb)
-- Deletes any user with all that belongs to it, for administrators.
DELETE FROM users WHERE id = :id RETURNING record_acts(:origin, id, email, '{user_deleted}', '{user.deleted}');

-- name: end_any_users_sessions(id uuid, origin jsonb)
-- Signs any user out, for administrators; no row when there is no such user.
SELECT end_sessions(account.id, NULL, 'ended_by_admin') AS ended,
       iso_8601(now()) AS moment,
       record_acts(:origin, account.id, account.email, '{signed_out}', '{auth.logout}', '{"scope": "global"}') AS recorded
  FROM users AS account
 WHERE account.id = :id;

-- name: list_users(email text, role text, q text, sort text, descending boolean, page_size integer, page_offset bigint, audience text)
-- A page of users, for administrators.
SELECT coalesce(json_agg(user_object(u, linked.objects, linked.providers, :audience) ORDER BY page.place), '[]')::text AS users
  FROM page_of_users(:email, :role, :q, :sort, :descending, :page_size, :page_offset) WITH ORDINALITY AS page (id, place)
  JOIN users AS u ON u.id = page.id
 CROSS JOIN identities_of(u.id) AS linked;

-- name: count_users(email text, role text, q text, most integer)
-- How many users a listing has, but counts no further than `most` (null: all).
SELECT count(*) AS total
  FROM (SELECT
          FROM users
         WHERE is_listed(users, :email, :role, :q)
         LIMIT :most) AS found;

-- name: select_user_by_email(email text)
-- Whether anybody has an address, and has proved it.
SELECT email_proved FROM users WHERE email = :email;

-- name: make_administrator(email text, password_hash text, origin jsonb)
-- Makes the user of an address an administrator; creates it, confirmed, where nobody has the address. Somebody who has signed up
-- with the address and not proved it becomes none: that user is replaced.
WITH unproved AS (
  DELETE FROM users WHERE email = :email AND NOT email_proved AND :password_hash IS NOT NULL
  RETURNING record_acts(:origin, id, email, '{user_deleted}', '{user.deleted}', '{"because": "created_again"}')
), made AS (
  INSERT INTO users AS account (email, email_confirmed_at, email_proved, password_hash, role, admin_since, made_by)
  SELECT :email, now(), true, :password_hash, 'admin', now(), 'admin' FROM (SELECT count(*) FROM unproved) AS deletion
  ON CONFLICT (email) DO UPDATE
     SET role = 'admin', admin_since = coalesce(account.admin_since, now()), updated_at = now()
   WHERE account.email_proved
  RETURNING id, created_at = now() AS created
), identity AS (
  INSERT INTO identities (user_id, provider, subject, identity_data)
  SELECT made.id, 'email', made.id, jsonb_build_object('sub', made.id, 'email', :email) FROM made
  ON CONFLICT (user_id, provider) DO NOTHING
)
SELECT id, created,
       record_acts(:origin, id, :email, ARRAY[CASE WHEN created THEN 'user_created' ELSE 'role_changed' END],
                   ARRAY[CASE WHEN created THEN 'user.created' ELSE 'user.updated' END], '{"by": "administrator", "role": "admin"}') AS recorded
  FROM made;
