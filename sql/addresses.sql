-- name: forget_sign_up(user_id uuid)
UPDATE users SET user_metadata = '{}', signup_user_agent = NULL WHERE id = :user_id;

-- name: withdraw_email(user_id uuid, target text)
WITH voided AS (
  DELETE FROM one_time_tokens WHERE user_id = :user_id AND purpose = 'email_change' AND target = :target
)
UPDATE users SET new_email = NULL, email_change_sent_at = NULL WHERE id = :user_id AND new_email = :target;

-- name: withdraw_changes(user_id uuid, purposes text[])
-- A waiting message whose link or code is deleted is not sent. Call it with the user's row locked.
WITH voided AS (
  DELETE FROM one_time_tokens WHERE user_id = :user_id AND purpose = ANY (:purposes) AND spent_at IS NULL
)
UPDATE users
   SET new_email = CASE WHEN 'email_change' <> ALL (:purposes) THEN new_email END,
       email_change_sent_at = CASE WHEN 'email_change' <> ALL (:purposes) THEN email_change_sent_at END,
       new_phone = CASE WHEN 'phone_change' <> ALL (:purposes) THEN new_phone END,
       phone_change_sent_at = CASE WHEN 'phone_change' <> ALL (:purposes) THEN phone_change_sent_at END
 WHERE id = :user_id;

-- name: remove_unproved(user_id uuid, kind text)
-- The first proof of an address removes the other address, other ways to sign in, factors, and the proofs of
-- networks; `end_holdings`, `void_undo_links` and `set_password` remove the rest.
WITH ways AS (
  DELETE FROM identities WHERE user_id = :user_id AND provider <> :kind
), steps AS (
  DELETE FROM factors WHERE user_id = :user_id
), codes AS (
  DELETE FROM recovery_codes WHERE user_id = :user_id
), networks AS (
  UPDATE known_networks SET passed_at = NULL, mail_proved_at = NULL WHERE user_id = :user_id
)
UPDATE users
   SET email = CASE WHEN :kind = 'email' THEN email END,
       email_confirmed_at = CASE WHEN :kind = 'email' THEN email_confirmed_at END,
       email_proved = email_proved AND :kind = 'email',
       phone = CASE WHEN :kind = 'phone' THEN phone END,
       phone_confirmed_at = CASE WHEN :kind = 'phone' THEN phone_confirmed_at END,
       phone_proved = phone_proved AND :kind = 'phone',
       first_factor_at = NULL
 WHERE id = :user_id;

-- name: set_address(user_id uuid, kind text, address text, is_confirmed boolean, is_proved boolean,
--                   by_key boolean, acted_at timestamptz)
-- An address is as old as the last change of its identity. `password_vouched` goes with the address that an operator
-- vouched for it at. `email_by_key` and `phone_by_key` do not change if a key sets again what the user has proved.
WITH identity AS (
  INSERT INTO identities AS i (user_id, provider, subject, identity_data, created_at, updated_at)
  VALUES (:user_id, :kind, :user_id, jsonb_build_object('sub', :user_id, :kind, :address),
          :acted_at, :acted_at)
  ON CONFLICT (user_id, provider) DO UPDATE
     SET identity_data = excluded.identity_data, updated_at = excluded.updated_at
   WHERE i.identity_data ->> :kind IS DISTINCT FROM :address
), phone AS (
  UPDATE users
     SET phone = :address, phone_proved = :is_proved, new_phone = NULL, phone_change_sent_at = NULL,
         phone_confirmed_at = CASE WHEN :is_confirmed THEN coalesce(
           CASE WHEN phone = :address THEN phone_confirmed_at END, :acted_at) END,
         password_vouched = CASE WHEN :address <> phone THEN NULL ELSE password_vouched END,
         phone_by_key = CASE WHEN :by_key AND (phone IS DISTINCT FROM :address OR NOT phone_proved) THEN :address
           ELSE phone_by_key END,
         updated_at = :acted_at
   WHERE id = :user_id AND :kind = 'phone'
)
UPDATE users
   SET email = :address, email_proved = :is_proved, new_email = NULL, email_change_sent_at = NULL,
       email_confirmed_at = CASE WHEN :is_confirmed THEN coalesce(
         CASE WHEN email = :address THEN email_confirmed_at END, :acted_at) END,
       password_vouched = CASE WHEN :address <> email THEN NULL ELSE password_vouched END,
       email_by_key = CASE WHEN :by_key AND (email IS DISTINCT FROM :address OR NOT email_proved) THEN :address
         ELSE email_by_key END,
       updated_at = :acted_at
 WHERE id = :user_id AND :kind = 'email';

-- name: set_password(user_id uuid, password_hash text, by_key boolean, acted_at timestamptz)
-- The only writer of a password. `sign_in` stores another hash of the same one; a first proof may keep it.
UPDATE users
   SET password_hash = :password_hash, sign_up_hash = NULL, password_leaked_at = NULL,
       password_by_key = CASE WHEN password_hash = :password_hash THEN password_by_key
         WHEN :password_hash IS NOT NULL THEN nullif(:by_key, false) END,
       password_set_at = CASE WHEN password_hash = :password_hash THEN password_set_at ELSE :acted_at END,
       password_vouched = NULL, updated_at = :acted_at
 WHERE id = :user_id;

-- name: make_way(addresses text[], origin jsonb)
-- Deletes users who have an address of an import, and give way.
DELETE FROM users
 WHERE id = ANY (ARRAY(
         SELECT u.id
           FROM users AS u
          WHERE (u.email = ANY (:addresses) OR u.phone = ANY (:addresses))
            AND gives_way(u) AND u.role <> 'admin'
          ORDER BY u.id
            FOR UPDATE OF u
       ))
RETURNING record_acts_at(now(), :origin, users.id, users.email, '{user_deleted}', '{user.deleted}',
                         '{"because": "created_again"}');
