-- name: delete_unused_sign_up(address text, is_replaced boolean, origin jsonb)
-- Deletes a sign-up that nobody has confirmed or used, if a new one of its address is to replace it.
DELETE FROM users AS u
 WHERE (u.email = :address OR u.phone = :address) AND :is_replaced AND is_unused_sign_up(u)
RETURNING record_acts(:origin, u.id, u.email, '{user_deleted}', '{user.deleted}', '{"because": "signed_up_again"}');

-- name: insert_sign_up(email text, phone text, password_hash text, user_metadata user_metadata, is_confirmed boolean,
--                      user_agent text, audience text)
-- Inserts a user unless the address is taken. The user object is built from the draft of the row either way, so that it is
-- the same for a free and a taken address.
WITH draft AS (
  SELECT u.*
    FROM jsonb_populate_record(NULL::users, jsonb_build_object(
           'id', gen_random_uuid(),
           'role', 'authenticated',
           'email', :email,
           'email_confirmed_at', CASE WHEN :is_confirmed AND :email IS NOT NULL THEN now() END,
           'email_proved', false,
           'phone', :phone,
           'phone_confirmed_at', CASE WHEN :is_confirmed AND :phone IS NOT NULL THEN now() END,
           'phone_proved', false,
           'password_hash', :password_hash,
           'app_metadata', '{}'::jsonb,
           'user_metadata', merge_metadata('{}', :user_metadata),
           'confirmation_sent_at', CASE WHEN NOT :is_confirmed THEN now() END,
           'last_sign_in_at', CASE WHEN :is_confirmed THEN now() END,
           'made_by', 'signup',
           'signup_user_agent', :user_agent,
           'created_at', now(),
           'updated_at', now()
         )) AS u
), created AS (
  INSERT INTO users SELECT * FROM draft ON CONFLICT DO NOTHING RETURNING id
), draft_identity AS (
  SELECT identity.*
    FROM draft,
         jsonb_populate_record(NULL::identities, jsonb_build_object(
           'id', gen_random_uuid(),
           'user_id', draft.id,
           'provider', CASE WHEN :email IS NOT NULL THEN 'email' ELSE 'phone' END,
           'subject', draft.id,
           'identity_data', jsonb_strip_nulls(jsonb_build_object('sub', draft.id, 'email', :email, 'phone', :phone)),
           'last_sign_in_at', draft.last_sign_in_at,
           'created_at', now(),
           'updated_at', now()
         )) AS identity
), identity AS (
  INSERT INTO identities SELECT draft_identity.* FROM draft_identity, created
)
SELECT created.id IS NOT NULL AS is_created,
       draft.id,
       user_object(draft::users, json_build_array(identity_object(draft_identity::identities)),
                   ARRAY[draft_identity.provider], :audience)::text AS user_object
  FROM draft
 CROSS JOIN draft_identity
  LEFT JOIN created ON true;

-- name: select_address_owner(address text)
-- The user who has an address, and whether it is only a sign-up that nobody has confirmed or used.
SELECT u.id, is_unused_sign_up(u) AS is_unused FROM users AS u WHERE u.email = :address OR u.phone = :address;

-- name: record_refused_sign_up(user_id uuid, origin jsonb)
-- Writes the audit row of a sign-up with a taken address; `user_id` is its owner.
SELECT record_refusal(:origin, :user_id, 'sign_up_refused', 'user_already_exists', '{}');

-- name: select_user(caller_id uuid, caller_session_id uuid, caller_expires_at bigint, refresh_token_lifetime integer,
--                   session_timebox integer, audience text)
-- The caller itself, or why its access token no longer speaks for it; no row when the user is deleted.
SELECT caller_state(caller, session, :caller_expires_at, :refresh_token_lifetime, :session_timebox) AS state,
       with_audience(kept.object, :audience) AS user_object
  FROM users AS caller
  JOIN user_objects AS kept ON kept.user_id = caller.id
  LEFT JOIN sessions AS session ON session.id = :caller_session_id AND session.user_id = caller.id
 WHERE caller.id = :caller_id;

-- name: select_caller(caller_id uuid, caller_session_id uuid, caller_expires_at bigint, refresh_token_lifetime integer,
--                     session_timebox integer)
-- What is decided before a caller's request does its work: whether it is an administrator at this moment, its password's
-- hash and addresses, and how many seconds ago its session began.
SELECT caller_state(caller, session, :caller_expires_at, :refresh_token_lifetime, :session_timebox) AS state,
       caller.role = 'admin' AS is_admin,
       caller.password_hash,
       caller.email,
       caller.email_confirmed_at IS NOT NULL AS email_confirmed,
       caller.phone,
       caller.phone_confirmed_at IS NOT NULL AS phone_confirmed,
       extract(epoch FROM now() - session.created_at)::bigint AS session_age
  FROM users AS caller
  LEFT JOIN sessions AS session ON session.id = :caller_session_id AND session.user_id = caller.id
 WHERE caller.id = :caller_id;

-- name: update_user(caller_id uuid, caller_session_id uuid, caller_expires_at bigint, refresh_token_lifetime integer,
--                   session_timebox integer, audience text, reauthentication_age integer, reauthenticated boolean,
--                   user_metadata user_metadata, password_hash text, checked_password_hash text, notice_id uuid,
--                   message_variables jsonb,
--                   email text, email_token_id uuid, email_token_hash bytea, email_link_lifetime integer, email_code_mac bytea,
--                   email_code_lifetime integer, email_message_id uuid, email_message_secret bytea, redirect_to text, code_challenge text,
--                   email_quota_keys text[], email_quota_amounts integer[], email_quota_seconds integer[],
--                   phone text, phone_token_id uuid, phone_code_mac bytea, phone_code_lifetime integer, phone_message_id uuid,
--                   phone_message_secret bytea, phone_quota_keys text[], phone_quota_amounts integer[], phone_quota_seconds integer[], origin jsonb)
-- Changes the caller's metadata and password, and makes a new email or phone pending: what proves it is sent there. A password
-- is changed only from the one that was checked; all other sessions end and all links are void then, and the user is told.
-- Anything that does not allow the whole change is answered as a state, and nothing is changed.
WITH quota AS (
  -- Before the user's row is locked (law 3), and not for an address that will be refused.
  SELECT mail.seconds_left AS email_wait, sms.seconds_left AS phone_wait, greatest(mail.seconds_left, sms.seconds_left) AS seconds_left,
         CASE WHEN mail.seconds_left > sms.seconds_left THEN mail.amount ELSE sms.amount END AS amount
    FROM take_from_quota(CASE WHEN :email IS NOT NULL AND NOT EXISTS (SELECT FROM users WHERE email = :email) THEN :email_quota_keys END,
                         :email_quota_amounts, :email_quota_seconds) AS mail,
         take_from_quota(CASE WHEN :phone IS NOT NULL AND NOT EXISTS (SELECT FROM users WHERE phone = :phone) THEN :phone_quota_keys END,
                         :phone_quota_amounts, :phone_quota_seconds) AS sms
), account AS (
  SELECT account.id, account.email, account.phone, quota.email_wait, quota.phone_wait
    FROM quota
   CROSS JOIN users AS account
   WHERE account.id = :caller_id
     FOR UPDATE OF account
), change AS (
  SELECT account.*,
         coalesce(:email <> coalesce(account.email, ''), false) AS changes_email,
         coalesce(:phone <> coalesce(account.phone, ''), false) AS changes_phone
    FROM account
), caller AS (
  SELECT change.*,
         sensitive_state_now(change.id, :caller_session_id, :caller_expires_at, :refresh_token_lifetime, :session_timebox,
                             :reauthenticated OR NOT (:password_hash IS NOT NULL OR changes_email OR changes_phone),
                             :reauthentication_age) AS state
    FROM change
), verdict AS (
  SELECT caller.*,
         CASE WHEN caller.state <> 'live' THEN caller.state
              WHEN changes_email AND EXISTS (SELECT FROM users WHERE email = :email) THEN 'email_exists'
              WHEN changes_phone AND EXISTS (SELECT FROM users WHERE phone = :phone) THEN 'phone_exists'
              WHEN changes_email AND email_wait > 0 THEN 'over_email_send_rate_limit'
              WHEN changes_phone AND phone_wait > 0 THEN 'over_sms_send_rate_limit'
              ELSE 'live' END AS answer
    FROM caller
), changed AS (
  UPDATE users AS account
     SET user_metadata = merge_metadata(account.user_metadata, :user_metadata),
         password_hash = coalesce(:password_hash, account.password_hash),
         new_email = CASE WHEN verdict.changes_email THEN :email ELSE account.new_email END,
         email_change_sent_at = CASE WHEN verdict.changes_email THEN now() ELSE account.email_change_sent_at END,
         new_phone = CASE WHEN verdict.changes_phone THEN :phone ELSE account.new_phone END,
         phone_change_sent_at = CASE WHEN verdict.changes_phone THEN now() ELSE account.phone_change_sent_at END,
         updated_at = now()
    FROM verdict
   WHERE account.id = verdict.id AND verdict.answer = 'live'
     AND (:password_hash IS NULL OR account.password_hash IS NOT DISTINCT FROM :checked_password_hash)
  RETURNING account,
            CASE WHEN :password_hash IS NOT NULL THEN end_sessions(account.id, :caller_session_id, 'password_changed') END AS ended,
            CASE WHEN :password_hash IS NOT NULL THEN void_one_time_tokens(account.id) END AS voided
), tokens AS (
  INSERT INTO one_time_tokens (id, user_id, purpose, target, token_hash, code_mac, code_expires_at, redirect_to, code_challenge, session_id, expires_at)
  SELECT :email_token_id, verdict.id, 'email_change', :email, :email_token_hash, :email_code_mac,
         now() + make_interval(secs => :email_code_lifetime), :redirect_to, :code_challenge, :caller_session_id,
         now() + make_interval(secs => :email_link_lifetime)
    FROM verdict, changed
   WHERE verdict.changes_email
  UNION ALL
  SELECT :phone_token_id, verdict.id, 'phone_change', :phone, NULL, :phone_code_mac,
         now() + make_interval(secs => :phone_code_lifetime), NULL, NULL, :caller_session_id,
         now() + make_interval(secs => :phone_code_lifetime)
    FROM verdict, changed
   WHERE verdict.changes_phone
), messages AS (
  INSERT INTO outbox (id, user_id, channel, kind, recipient, variables, secret, one_time_token_id, expires_at)
  SELECT told.id, (changed.account).id, told.channel, told.kind, told.recipient,
         :message_variables || jsonb_build_object('locale', (changed.account).user_metadata ->> 'locale', 'redirect_to', told.redirect_to),
         told.secret, told.token_id, now() + make_interval(secs => told.lifetime)
    FROM changed
   CROSS JOIN verdict
   CROSS JOIN LATERAL (VALUES
           (verdict.changes_email, :email_message_id, 'email', 'email_change', :email, :email_message_secret, :email_token_id,
            :email_link_lifetime, :redirect_to),
           (verdict.changes_phone, :phone_message_id, 'sms', 'phone_change', :phone, :phone_message_secret, :phone_token_id,
            :phone_code_lifetime, NULL),
           (:password_hash IS NOT NULL AND (changed.account).email IS NOT NULL, :notice_id, 'email', 'password_changed',
            (changed.account).email, NULL, NULL, NULL, NULL)
         ) AS told (is_due, id, channel, kind, recipient, secret, token_id, lifetime, redirect_to)
   WHERE told.is_due
)
SELECT CASE WHEN verdict.answer = 'live' AND (changed.account).id IS NULL THEN 'session_not_found' ELSE verdict.answer END AS state,
       quota.seconds_left,
       quota.amount,
       user_object(changed.account, linked.objects, linked.providers, :audience)::text AS user_object,
       CASE WHEN (changed.account).id IS NOT NULL
            THEN record_acts(:origin, verdict.id, (changed.account).email,
                             ARRAY[CASE WHEN :user_metadata IS NOT NULL THEN 'user_changed' END,
                                   CASE WHEN :password_hash IS NOT NULL THEN 'password_changed' END,
                                   CASE WHEN verdict.changes_email THEN 'email_change_requested' END,
                                   CASE WHEN verdict.changes_phone THEN 'phone_change_requested' END],
                             '{user.updated}',
                             jsonb_build_object('new_email', CASE WHEN verdict.changes_email THEN :email END,
                                                'new_phone', CASE WHEN verdict.changes_phone THEN :phone END)) END AS recorded
  FROM verdict
  CROSS JOIN quota
  CROSS JOIN identities_of(verdict.id) AS linked
  LEFT JOIN changed ON true;

-- name: delete_user(caller_id uuid, caller_session_id uuid, caller_expires_at bigint, refresh_token_lifetime integer,
--                   session_timebox integer, reauthentication_age integer, reauthenticated boolean, origin jsonb)
-- Deletes the caller with all that belongs to it, unless its session has to reauthenticate first.
WITH account AS (
  SELECT account.id FROM users AS account WHERE account.id = :caller_id FOR UPDATE
), caller AS (
  SELECT account.id,
         sensitive_state_now(account.id, :caller_session_id, :caller_expires_at, :refresh_token_lifetime, :session_timebox,
                             :reauthenticated, :reauthentication_age) AS state
    FROM account
), deleted AS (
  DELETE FROM users AS account USING caller WHERE account.id = caller.id AND caller.state = 'live'
  RETURNING record_acts(:origin, account.id, account.email, '{user_deleted}', '{user.deleted}')
)
SELECT caller.state, iso_8601(now()) AS moment FROM caller;

-- name: lock_user(user_id uuid)
-- Locks a user until the end of the transaction: later statements see what the previous holder of the lock committed.
SELECT id, role, email, email_confirmed_at, email_proved, new_email, phone, phone_confirmed_at, phone_proved, new_phone,
       password_hash, made_by, invited_at, last_sign_in_at, (banned_until > now()) IS TRUE AS is_banned
  FROM users
 WHERE id = :user_id
   FOR UPDATE;
