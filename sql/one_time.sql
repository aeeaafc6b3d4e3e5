-- name: lock_recipient(purpose text, email text, phone text, browser_hash bytea)
--   -> row? (session_id?, own_password_hash?)
-- FOR KEY SHARE prevents a deletion. Several users may wait for one new address. `own_password_hash` is from
-- the browser's own sign-up, and also belongs to a resent link.
SELECT u.id,
       NOT is_banned(u)
         AND CASE :purpose WHEN 'signup' THEN u.email_confirmed_at IS NULL
                           WHEN 'sms_signup' THEN u.phone_confirmed_at IS NULL
                           ELSE :purpose NOT IN ('email_change', 'phone_change') OR NOT EXISTS (
                             SELECT FROM users AS o
                              WHERE (o.email = :email OR o.phone = :phone) AND NOT gives_way(o)) END
         AS is_due,
       CASE WHEN :purpose = 'signup'
            THEN jsonb_build_object('user_agent', u.signup_user_agent, 'requested_at', iso_8601(u.created_at))
            ELSE '{}' END AS sign_up,
       (SELECT asked.session_id
          FROM one_time_tokens AS asked
         WHERE asked.user_id = u.id AND asked.purpose = :purpose
         ORDER BY asked.created_at DESC
         LIMIT 1) AS session_id,
       (SELECT own.password_hash
          FROM one_time_tokens AS own
         WHERE own.user_id = u.id AND own.purpose = 'signup' AND :purpose = 'signup'
           AND own.browser_hash = :browser_hash
         ORDER BY own.created_at DESC
         LIMIT 1) AS own_password_hash
  FROM users AS u
 WHERE CASE :purpose WHEN 'email_change' THEN u.new_email = :email
                     WHEN 'phone_change' THEN u.new_phone = :phone
                     ELSE u.email = :email OR u.phone = :phone END
 ORDER BY CASE :purpose WHEN 'email_change' THEN u.email_change_sent_at
                        WHEN 'phone_change' THEN u.phone_change_sent_at END DESC
 LIMIT 1
   FOR KEY SHARE OF u;

-- name: spend_reauthentication_code(user_id uuid, address text, code_macs bytea[], browser_hash bytea,
--                                   network text, code_failures integer[], origin jsonb)
--   -> row? (mail_proof_recorded?)
-- The code of a command, without a session, also counts at a recently changed address.
SELECT CASE WHEN spent.session_id IS NULL OR NOT is_recent_address(spent.user_id, spent.target)
            THEN 'code' ELSE 'proof' END AS given,
       record_acts(:origin, spent.user_id, NULL, '{reauthenticated}', '{}') AS recorded,
       record_mail_proof(spent.user_id, :network) AS mail_proof_recorded
  FROM use_code(:address, :code_macs, '{reauthentication}', :browser_hash, :network, :code_failures) AS spent
 WHERE spent.user_id = :user_id;

-- name: select_link(token_hash bytea, purposes text[])
--   -> row? (redirect_to?, email?, phone?, browser_hash?, code_challenge?, user_agent?, ip?,
--     signup_user_agent?, signup_ip?)
SELECT t.purpose, t.target, t.redirect_to, u.email, u.phone,
       t.browser_hash, t.code_challenge, t.user_agent, host(t.ip) AS ip, iso_8601(t.created_at) AS asked_at,
       CASE WHEN t.user_metadata IS NULL THEN u.signup_user_agent ELSE t.user_agent END AS signup_user_agent,
       CASE WHEN t.user_metadata IS NOT NULL THEN host(t.ip) END AS signup_ip,
       CASE t.purpose WHEN 'signup' THEN is_unused_sign_up(u)
                      WHEN 'email_change' THEN is_anonymous(u) OR (u.email IS NULL AND u.phone IS NULL)
                      ELSE false END AS can_be_declined,
       iso_8601(CASE WHEN t.user_metadata IS NULL THEN u.created_at ELSE t.created_at END) AS signed_up_at
  FROM one_time_tokens AS t
  JOIN users AS u ON u.id = t.user_id
 WHERE t.token_hash = :token_hash AND t.purpose = ANY (:purposes) AND is_good_link(t);

-- name: decline_signup(token_hash bytea, origin jsonb)
-- If several people have signed up, the user has no password until one of them proves the address.
WITH signed_up AS (
  SELECT u.id, t.id AS token_id, u.password_hash IS NOT NULL AS is_only_one
    FROM one_time_tokens AS t
    JOIN users AS u ON u.id = t.user_id
   WHERE t.token_hash = :token_hash AND t.purpose = 'signup'
     AND t.spent_at IS NULL AND t.expires_at > now() AND is_unused_sign_up(u)
     FOR UPDATE OF u
), deleted AS (
  DELETE FROM users AS u USING signed_up
   WHERE u.id = signed_up.id AND signed_up.is_only_one AND NOT is_last_administrator(u)
  RETURNING record_acts(:origin, u.id, u.email, '{user_deleted}', '{user.deleted}', '{"because": "declined"}')
)
DELETE FROM one_time_tokens AS t USING signed_up WHERE t.id = signed_up.token_id;

-- name: decline_change(token_hash bytea, origin jsonb)
WITH asked AS (
  SELECT u.id, t.target
    FROM one_time_tokens AS t
    JOIN users AS u ON u.id = t.user_id
   WHERE t.token_hash = :token_hash AND t.purpose = 'email_change' AND is_good_link(t)
     AND (is_anonymous(u) OR (u.email IS NULL AND u.phone IS NULL))
     FOR UPDATE OF u
), declined AS (
  UPDATE users AS u
     SET new_email = NULL, email_change_sent_at = NULL
    FROM asked
   WHERE u.id = asked.id AND u.new_email = asked.target
  RETURNING record_acts(:origin, u.id, NULL, '{email_change_declined}', '{user.updated}',
                        jsonb_build_object('new_address', asked.target))
)
DELETE FROM one_time_tokens AS t
 USING asked
 WHERE t.user_id = asked.id AND t.purpose = 'email_change' AND t.target = asked.target;

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

-- name: spend_one_time_token(token_hash bytea, target text, code_macs bytea[], browser_hash bytea,
--                            purposes text[], network text, code_failures integer[])
--   -> row? (redirect_to?, code_challenge?, session_id?, browser_hash?, user_agent?)
SELECT id, user_id, purpose, target, redirect_to, code_challenge, session_id, browser_hash, user_agent,
       method_of(t::one_time_tokens) AS method
  FROM (SELECT * FROM spend_link(:token_hash, :purposes)
         UNION ALL
        SELECT * FROM use_code(:target, :code_macs, :purposes, :browser_hash, :network, :code_failures)) AS t;

-- name: keep_one_time_token(id uuid)
-- The token hook is called before the session is opened. The link or code stays valid until then.
UPDATE one_time_tokens SET spent_at = NULL WHERE id = :id;

-- name: confirm_address(token_id uuid, provider text, is_shown boolean, network text) -> row
SELECT * FROM confirm_address(:token_id, :provider, :is_shown, true, :network);

-- name: remove_unproved(user_id uuid, provider text)
-- What the first proof of an address removes, but for what `end_access`, `void_undo_links` and `set_password`
-- do: the other address, other ways to sign in, factors, and what is known of networks.
WITH ways AS (
  DELETE FROM identities WHERE user_id = :user_id AND provider <> :provider
), steps AS (
  DELETE FROM factors WHERE user_id = :user_id
), codes AS (
  DELETE FROM recovery_codes WHERE user_id = :user_id
), networks AS (
  UPDATE known_networks SET passed_at = NULL, mail_proved_at = NULL WHERE user_id = :user_id
)
UPDATE users
   SET email = CASE WHEN :provider = 'email' THEN email END,
       email_confirmed_at = CASE WHEN :provider = 'email' THEN email_confirmed_at END,
       email_proved = email_proved AND :provider = 'email',
       phone = CASE WHEN :provider = 'phone' THEN phone END,
       phone_confirmed_at = CASE WHEN :provider = 'phone' THEN phone_confirmed_at END,
       phone_proved = phone_proved AND :provider = 'phone',
       first_factor_at = NULL
 WHERE id = :user_id;

-- name: set_address(user_id uuid, provider text, address text, is_confirmed boolean, is_proved boolean,
--                   acted_at timestamptz)
-- An address is as old as the last change of its identity. An operator vouches for a password at the addresses
-- that the user has then.
WITH own AS (
  INSERT INTO identities AS i (user_id, provider, subject, identity_data, created_at, updated_at)
  VALUES (:user_id, :provider, :user_id, jsonb_build_object('sub', :user_id, :provider, :address),
          :acted_at, :acted_at)
  ON CONFLICT (user_id, provider) DO UPDATE
     SET identity_data = excluded.identity_data, updated_at = excluded.updated_at
   WHERE i.identity_data ->> :provider IS DISTINCT FROM :address
), phone AS (
  UPDATE users
     SET phone = :address, phone_proved = :is_proved, new_phone = NULL, phone_change_sent_at = NULL,
         phone_confirmed_at = CASE WHEN :is_confirmed THEN coalesce(
           CASE WHEN phone = :address THEN phone_confirmed_at END, :acted_at) END,
         password_vouched = CASE WHEN :address <> phone THEN NULL ELSE password_vouched END,
         updated_at = :acted_at
   WHERE id = :user_id AND :provider = 'phone'
)
UPDATE users
   SET email = :address, email_proved = :is_proved, new_email = NULL, email_change_sent_at = NULL,
       email_confirmed_at = CASE WHEN :is_confirmed THEN coalesce(
         CASE WHEN email = :address THEN email_confirmed_at END, :acted_at) END,
       password_vouched = CASE WHEN :address <> email THEN NULL ELSE password_vouched END,
       updated_at = :acted_at
 WHERE id = :user_id AND :provider = 'email';

-- name: set_password(user_id uuid, password_hash text)
-- The only writer of a password. `sign_in` stores another hash of the same one.
UPDATE users
   SET password_hash = :password_hash, sign_up_hash = NULL, password_leaked_at = NULL,
       password_vouched = NULL, updated_at = now()
 WHERE id = :user_id;

-- name: make_way(addresses text[], owner_id uuid, because text, origin jsonb)
-- Deletes users who block an address for a user who has proved it, or whom an administrator creates.
DELETE FROM users AS gone
 WHERE gone.id = ANY (ARRAY(
         SELECT u.id
           FROM users AS u
          WHERE (u.email = ANY (:addresses) OR u.phone = ANY (:addresses))
            AND u.id IS DISTINCT FROM :owner_id AND gives_way(u) AND u.role <> 'admin'
          ORDER BY u.id
            FOR UPDATE OF u
       ))
RETURNING record_acts(:origin, gone.id, gone.email, '{user_deleted}', '{user.deleted}',
                      jsonb_build_object('because', :because));

-- name: write_address_identity(user_id uuid, provider text, address text)
INSERT INTO identities (user_id, provider, subject, identity_data)
SELECT :user_id, :provider, :user_id, jsonb_build_object('sub', :user_id, :provider, :address)
 WHERE :user_id IS NOT NULL
ON CONFLICT (user_id, provider) DO UPDATE SET identity_data = excluded.identity_data, updated_at = now();

-- name: write_authorization_code(user_id uuid, code_hash bytea, code_challenge text, method text,
--                                network text, authorization_code_lifetime integer, opened_by uuid,
--                                auth_time double precision, provider text, browser text,
--                                notify_sign_in boolean) -> row (known?)
-- Passing on a browser's session, perhaps by a thief of the cookie, makes no network known. Call it with the
-- user's row locked.
INSERT INTO authorization_codes (user_id, code_hash, code_challenge, method, opened_by, expires_at,
                                 authenticated_at, provider)
VALUES (:user_id, :code_hash, :code_challenge, :method, :opened_by,
        now() + make_interval(secs => :authorization_code_lifetime),
        least(to_timestamp(:auth_time), now()), :provider)
RETURNING CASE WHEN :opened_by IS NULL AND NOT has_second_step(:user_id)
               THEN know_network(:user_id, :network) END AS known,
          has_second_step(:user_id) AS lacks_step,
          (SELECT :notify_sign_in AND :opened_by IS NULL AND is_new_sign_in(u, :network, :browser)
             FROM users AS u WHERE id = :user_id) AS is_new;

-- name: lock_owner_of_authorization_code(code_hash bytea) -> row? (email?)
SELECT u.id, u.email, is_banned(u) AS is_banned
  FROM users AS u
  JOIN authorization_codes AS code ON code.user_id = u.id
 WHERE code.code_hash = :code_hash AND code.expires_at > now()
   FOR UPDATE OF u;

-- name: select_authorization_code(code_hash bytea, refresh_token_lifetime integer, session_timebox integer)
--   -> row? (session_id?, opened_by?, provider?)
-- Run it with the owner locked, so that a second use sees the session of the first.
-- The end of the session that issued the code voids it.
SELECT code.user_id, code.code_challenge, code.method, code.session_id, code.opened_by, code.provider
  FROM authorization_codes AS code
  LEFT JOIN sessions AS opener ON opener.id = code.opened_by
 WHERE code.code_hash = :code_hash AND code.expires_at > now()
   AND (code.session_id IS NOT NULL OR code.opened_by IS NULL
        OR end_of(opener, :refresh_token_lifetime, :session_timebox) IS NULL);

-- name: mark_authorization_code_used(code_hash bytea, session_id uuid)
WITH used AS (
  UPDATE authorization_codes SET session_id = :session_id WHERE code_hash = :code_hash
  RETURNING method, opened_by, authenticated_at
)
UPDATE sessions
   SET reauthenticated_at = used.authenticated_at
  FROM used
 WHERE id = :session_id AND used.method = 'oauth' AND used.opened_by IS NULL;
