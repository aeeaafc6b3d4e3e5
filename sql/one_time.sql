-- name: select_request(user_id uuid, purpose text, browser_hash bytea)
--   -> row? (user_agent?, session_id?, own_password_hash?)
-- The columns that a message takes over from earlier ones. `own_password_hash` is from the browser's own
-- sign-up, and also belongs to a resent link. A change that an administrative key requested keeps its mark
-- when its message is sent again.
SELECT u.signup_user_agent AS user_agent, iso_8601(u.created_at) AS signed_up_at, newest.session_id,
       (newest.by_key AND :purpose IN ('email_change', 'phone_change')) IS TRUE AS is_by_key,
       (SELECT sign_up.password_hash
          FROM one_time_tokens AS sign_up
         WHERE sign_up.user_id = u.id AND sign_up.purpose = 'signup' AND :purpose = 'signup'
           AND sign_up.browser_hash = :browser_hash
         ORDER BY sign_up.created_at DESC
         LIMIT 1) AS own_password_hash
  FROM users AS u
  LEFT JOIN LATERAL (SELECT t.session_id, t.by_key
                       FROM one_time_tokens AS t
                      WHERE t.user_id = u.id AND t.purpose = :purpose
                      ORDER BY t.created_at DESC
                      LIMIT 1) AS newest ON true
 WHERE u.id = :user_id;

-- name: list_users_of_link(token_hash bytea, id uuid) -> rows
-- The user of a link, and the user who has its address: a new one, or that of a notice.
SELECT u.id
  FROM one_time_tokens AS t
  JOIN users AS u ON u.id = t.user_id OR u.email = t.target OR u.phone = t.target
 WHERE t.token_hash = :token_hash OR t.id = :id;

-- name: select_link(token_hash bytea, id uuid)
--   -> row? (spent_at?, code_expires_at?, browser_hash?, redirect_to?, code_challenge?, session_id?,
--     password_hash?, user_agent?, ip?, email?, phone?, signup_user_agent?, signup_ip?)
-- A link, a code or both: the facts that decide, then what its page shows. The link of a sign-up has
-- `user_metadata`. An administrator generated a link that was not mailed. A link to an address that an
-- administrative key has set is the key's, too.
SELECT t.id, t.user_id, t.purpose, t.target, t.created_at, t.expires_at, t.spent_at,
       t.user_metadata IS NOT NULL AS is_of_sign_up,
       (SELECT count(*)
          FROM one_time_tokens AS newer
         WHERE newer.user_id = t.user_id AND newer.purpose = t.purpose
           AND newer.user_metadata IS NULL AND newer.created_at > t.created_at) AS newer,
       t.code_expires_at, t.browser_hash,
       EXISTS (SELECT FROM outbox AS o WHERE o.user_id = t.user_id AND o.one_time_token_id = t.id) AS was_mailed,
       (t.by_key OR t.target = u.email_by_key OR t.target = u.phone_by_key) IS TRUE AS is_by_key,
       t.redirect_to, t.code_challenge, t.session_id, t.password_hash, t.user_agent, host(t.ip) AS ip,
       u.email, u.phone, iso_8601(t.created_at) AS asked_at,
       CASE WHEN t.user_metadata IS NULL THEN u.signup_user_agent ELSE t.user_agent END AS signup_user_agent,
       CASE WHEN t.user_metadata IS NOT NULL THEN host(t.ip) END AS signup_ip,
       iso_8601(CASE WHEN t.user_metadata IS NULL THEN u.created_at ELSE t.created_at END) AS signed_up_at,
       clock_timestamp() AS now
  FROM one_time_tokens AS t
  JOIN users AS u ON u.id = t.user_id
 WHERE t.token_hash = :token_hash OR t.id = :id;

-- name: list_codes(target text) -> rows (spent_at?, code_expires_at?, browser_hash?)
-- Newer links do not void a code: a newer code does.
SELECT id, user_id, purpose, created_at, expires_at, spent_at, user_metadata IS NOT NULL AS is_of_sign_up,
       0 AS newer, code_mac, code_expires_at, browser_hash, clock_timestamp() AS now
  FROM one_time_tokens
 WHERE target = :target AND code_mac IS NOT NULL;

-- name: spend_link(id uuid, acted_at timestamptz)
-- Changes no row if another request has spent the link.
UPDATE one_time_tokens SET spent_at = :acted_at WHERE id = :id AND spent_at IS NULL;

-- name: unspend_link(id uuid)
-- A first proof is committed before the token hook is asked. The link or code is valid until the session opens.
UPDATE one_time_tokens SET spent_at = NULL WHERE id = :id;

-- name: delete_link(id uuid)
DELETE FROM one_time_tokens WHERE id = :id;

-- name: void_tokens(user_id uuid)
SELECT void_tokens(:user_id);

-- name: forget_password_of_link(id uuid)
UPDATE one_time_tokens SET password_hash = NULL WHERE id = :id;

-- name: take_data_of_link(user_id uuid, id uuid)
UPDATE users AS u
   SET user_metadata = merge_metadata('{}', t.user_metadata)
  FROM one_time_tokens AS t
 WHERE u.id = :user_id AND t.id = :id;

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
-- An address is as old as the last change of its identity. An operator vouches for a password at the addresses
-- that the user has then. A proved address does not become the key's if a key sets it again.
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

-- name: write_authorization_code(user_id uuid, code_hash bytea, code_challenge text, method text,
--                                authorization_code_lifetime integer, opened_by uuid,
--                                authenticated_at timestamptz, provider text, by_key boolean, network text,
--                                acted_at timestamptz)
-- `network` is where every step was passed, or null.
WITH networks AS (
  INSERT INTO known_networks (user_id, network, seen_at, passed_at)
  SELECT :user_id, :network, :acted_at, :acted_at WHERE :network IS NOT NULL
  ON CONFLICT (user_id, network) DO UPDATE SET seen_at = :acted_at, passed_at = :acted_at
)
INSERT INTO authorization_codes (user_id, code_hash, code_challenge, method, opened_by, created_at,
                                 expires_at, authenticated_at, provider, by_key)
VALUES (:user_id, :code_hash, :code_challenge, :method, :opened_by, :acted_at,
        :acted_at + make_interval(secs => :authorization_code_lifetime), :authenticated_at, :provider,
        nullif(:by_key, false));

-- name: select_authorization_code(code_hash bytea) -> row? (session_id?, opened_by?, provider?,
--                                  authenticated_at?)
SELECT user_id, code_challenge, method, session_id, opened_by, provider, authenticated_at, expires_at,
       by_key IS TRUE AS is_by_key
  FROM authorization_codes
 WHERE code_hash = :code_hash;

-- name: mark_authorization_code_used(code_hash bytea, session_id uuid)
UPDATE authorization_codes SET session_id = :session_id WHERE code_hash = :code_hash AND session_id IS NULL;
