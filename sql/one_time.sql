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
-- administrative key has set is the key's, too. `is_over` if a customer's provider that was turned off since had
-- opened the session that asked.
SELECT t.id, t.user_id, t.purpose, t.target, t.created_at, t.expires_at, t.spent_at,
       t.user_metadata IS NOT NULL AS is_of_sign_up,
       (SELECT count(*)
          FROM one_time_tokens AS newer
         WHERE newer.user_id = t.user_id AND newer.purpose = t.purpose
           AND newer.user_metadata IS NULL AND newer.created_at > t.created_at) AS newer,
       t.code_expires_at, t.browser_hash,
       EXISTS (SELECT FROM outbox AS o WHERE o.user_id = t.user_id AND o.one_time_token_id = t.id) AS was_mailed,
       (t.by_key OR t.target = u.email_by_key OR t.target = u.phone_by_key) IS TRUE AS is_by_key,
       is_over((SELECT s.provider_term FROM sessions AS s WHERE s.id = t.session_id)),
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
