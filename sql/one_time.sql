-- name: select_request(user_id uuid, purpose text, browser_hash bytea)
--   -> row? (user_agent?, session_id?, own_password_hash?)
-- What a message takes over of earlier ones. `own_password_hash` is from the browser's own sign-up, and also
-- belongs to a resent link.
SELECT u.signup_user_agent AS user_agent, iso_8601(u.created_at) AS signed_up_at,
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
 WHERE u.id = :user_id;

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

-- name: prove_address(user_id uuid, provider text, address text, proof text)
SELECT prove_address(:user_id, :provider, :address, :proof);

-- name: set_address(user_id uuid, provider text, address text, is_confirmed boolean)
SELECT set_address(:user_id, :provider, :address, :is_confirmed, false);

-- name: set_password(user_id uuid, password_hash text)
SELECT set_password(:user_id, :password_hash);

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

-- name: write_authorization_code(user_id uuid, code_hash bytea, code_challenge text, method text,
--                                authorization_code_lifetime integer, opened_by uuid,
--                                authenticated_at timestamptz, provider text, network text,
--                                acted_at timestamptz)
-- `network` is where every step was passed, or null.
WITH known AS (
  INSERT INTO known_networks (user_id, network, seen_at, passed_at)
  SELECT :user_id, :network, :acted_at, :acted_at WHERE :network IS NOT NULL
  ON CONFLICT (user_id, network) DO UPDATE SET seen_at = :acted_at, passed_at = :acted_at
)
INSERT INTO authorization_codes (user_id, code_hash, code_challenge, method, opened_by, created_at,
                                 expires_at, authenticated_at, provider)
VALUES (:user_id, :code_hash, :code_challenge, :method, :opened_by, :acted_at,
        :acted_at + make_interval(secs => :authorization_code_lifetime), :authenticated_at, :provider);

-- name: select_authorization_code(code_hash bytea) -> row? (session_id?, opened_by?, provider?,
--                                  authenticated_at?)
SELECT user_id, code_challenge, method, session_id, opened_by, provider, authenticated_at, expires_at
  FROM authorization_codes
 WHERE code_hash = :code_hash;

-- name: mark_authorization_code_used(code_hash bytea, session_id uuid)
UPDATE authorization_codes SET session_id = :session_id WHERE code_hash = :code_hash AND session_id IS NULL;
