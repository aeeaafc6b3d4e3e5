-- name: request_message(purpose text, email text, phone text, create_user boolean, user_metadata user_metadata,
--                       token_id uuid, token_hash bytea, link_lifetime integer, code_mac bytea, code_lifetime integer, redirect_to text,
--                       code_challenge text, message_id uuid, message_secret bytea, message_variables jsonb, quota_keys text[],
--                       quota_amounts integer[], quota_seconds integer[], origin jsonb)
-- Sends what signs in or proves an address, because somebody has asked for it who need not be its owner: a link, a code. Makes
-- the user where that is asked for. Whether anybody has the address shows nowhere, so one message is written in each case; it
-- is of kind `none`, and nothing else happens, where there is nothing to send or the quota is used up.
WITH quota AS (
  SELECT seconds_left = 0 AS allowed FROM take_from_quota(:quota_keys, :quota_amounts, :quota_seconds)
), known AS (
  SELECT account.id, account.user_metadata ->> 'locale' AS locale,
         -- What confirms a sign-up names that sign-up, not whoever asks for it again.
         CASE WHEN :purpose = 'signup'
              THEN jsonb_build_object('user_agent', account.signup_user_agent, 'requested_at', iso_8601(account.created_at)) END AS sign_up,
         (account.banned_until > now()) IS NOT TRUE
           AND CASE :purpose WHEN 'signup' THEN account.email_confirmed_at IS NULL AND account.made_by = 'signup'
                             WHEN 'sms_signup' THEN account.phone_confirmed_at IS NULL AND account.made_by = 'signup'
                             ELSE true END AS is_due,
         (SELECT asked.session_id
            FROM one_time_tokens AS asked
           WHERE asked.user_id = account.id AND asked.purpose = :purpose
           ORDER BY asked.created_at DESC
           LIMIT 1) AS session_id
    FROM quota
   CROSS JOIN users AS account
   WHERE CASE :purpose WHEN 'email_change' THEN account.new_email = :email
                       WHEN 'phone_change' THEN account.new_phone = :phone
                       ELSE account.email = :email OR account.phone = :phone END
   -- What is pending claims nothing, so several may wait for one address.
   ORDER BY CASE WHEN :email IS NOT NULL THEN account.email_change_sent_at ELSE account.phone_change_sent_at END DESC NULLS LAST
   LIMIT 1
     -- Waits for a deletion that is under way, which would take the token's user away.
     FOR KEY SHARE OF account
), created AS (
  INSERT INTO users (email, phone, user_metadata, made_by, confirmation_sent_at)
  SELECT :email, :phone, merge_metadata('{}', :user_metadata), 'message', now()
    FROM quota
   WHERE :create_user AND quota.allowed AND NOT EXISTS (SELECT FROM known)
  ON CONFLICT DO NOTHING
  RETURNING id, user_metadata ->> 'locale' AS locale
), identity AS (
  INSERT INTO identities (user_id, provider, subject, identity_data)
  SELECT created.id, CASE WHEN :email IS NOT NULL THEN 'email' ELSE 'phone' END, created.id,
         jsonb_build_object('sub', created.id) || CASE WHEN :email IS NOT NULL
           THEN jsonb_build_object('email', :email) ELSE jsonb_build_object('phone', :phone) END
    FROM created
), told AS (
  SELECT coalesce(known.id, created.id) AS user_id,
         coalesce(known.locale, created.locale) AS locale,
         coalesce(known.sign_up, '{}') AS sign_up,
         known.session_id,
         created.id IS NOT NULL AS is_created,
         quota.allowed AND coalesce(known.is_due, created.id IS NOT NULL) AS is_due
    FROM quota
    LEFT JOIN known ON true
    LEFT JOIN created ON true
), token AS (
  INSERT INTO one_time_tokens (id, user_id, purpose, target, token_hash, code_mac, code_expires_at, redirect_to, code_challenge, session_id, expires_at)
  SELECT :token_id, told.user_id, :purpose, coalesce(:email, :phone), :token_hash, :code_mac,
         now() + make_interval(secs => :code_lifetime), :redirect_to, :code_challenge, told.session_id,
         now() + make_interval(secs => :link_lifetime)
    FROM told
   WHERE told.is_due
), message AS (
  INSERT INTO outbox (id, user_id, channel, kind, recipient, variables, secret, one_time_token_id, expires_at, outcome, finished_at)
  SELECT :message_id,
         told.user_id,
         CASE WHEN told.is_due THEN CASE WHEN :email IS NOT NULL THEN 'email' ELSE 'sms' END END,
         CASE WHEN told.is_due THEN replace(:purpose, 'sms_signup', 'sms') ELSE 'none' END,
         CASE WHEN told.is_due THEN coalesce(:email, :phone) END,
         :message_variables || jsonb_build_object('locale', told.locale) || told.sign_up,
         CASE WHEN told.is_due THEN :message_secret END,
         CASE WHEN told.is_due THEN :token_id END,
         now() + make_interval(secs => CASE WHEN :email IS NOT NULL THEN :link_lifetime ELSE :code_lifetime END),
         CASE WHEN NOT told.is_due THEN 'none' END,
         CASE WHEN NOT told.is_due THEN now() END
    FROM told
)
SELECT record_acts(:origin, told.user_id, :email, ARRAY[CASE WHEN told.is_created THEN 'user_created' END, 'message_requested'],
                   ARRAY[CASE WHEN told.is_created THEN 'user.created' END],
                   jsonb_build_object('by', CASE WHEN told.is_created THEN 'message' END, 'purpose', :purpose, 'is_sent', told.is_due)) AS recorded
  FROM told;

-- name: spend_reauthentication_code(user_id uuid, address text, code_mac bytea, origin jsonb)
-- Spends a code that was sent to reauthenticate a user.
SELECT spent.id, record_acts(:origin, spent.user_id, NULL, '{reauthenticated}', '{}') AS recorded
  FROM spend_code(:address, :code_mac, '{reauthentication}') AS spent
 WHERE spent.user_id = :user_id;

-- name: select_link(token_hash bytea, purposes text[])
-- What a link would do, without doing it; no row when it would do nothing any more.
SELECT token.purpose, token.target, token.redirect_to, account.email, account.phone, account.signup_user_agent, is_unused_sign_up(account) AS can_be_declined,
       iso_8601(account.created_at) AS signed_up_at
  FROM one_time_tokens AS token
  JOIN users AS account ON account.id = token.user_id
 WHERE token.token_hash = :token_hash AND token.purpose = ANY (:purposes) AND is_good_link(token);

-- name: verify_address(token_hash bytea, target text, code_mac bytea, purposes text[], redirects boolean, authorization_code text,
--                      authorization_code_lifetime integer, sessions_per_user integer, refresh_token_lifetime integer, session_timebox integer, ip inet, network text, user_agent text, audience text,
--                      origin jsonb)
-- Spends a link or a code that was sent to a user's own address: confirms the address, voids what else was sent, and signs in:
-- by a session or, where the link `redirects` and was asked for with a code_challenge, by an authorization code.
-- When an address is proved for the first time, what was there before without proof goes: sessions, other identities, the phone,
-- pending changes, and the password, unless the sign-up's own message proves it. Somebody else may have set them.
WITH spent AS (
  SELECT * FROM spend_link(:token_hash, :purposes)
   UNION ALL
  SELECT * FROM spend_code(:target, :code_mac, :purposes)
), before AS (
  -- Waits for what is under way with this user, and sees what it has left.
  SELECT account.id, account.email_proved, account.phone_proved, (account.banned_until > now()) IS TRUE AS is_banned,
         spent.purpose, spent.redirect_to, spent.code_challenge, spent.password_hash AS new_password_hash, spent.target LIKE '%@%' AS by_email,
         CASE WHEN spent.target LIKE '%@%' THEN NOT account.email_proved
              ELSE NOT account.phone_proved AND (NOT account.email_proved OR signed_up_by_phone(account)) END AS is_first_proof,
         -- Whoever signed up with somebody else's phone may have added an email of their own since.
         spent.target NOT LIKE '%@%' AND NOT account.phone_proved AND signed_up_by_phone(account) AS drops_email,
         spent.purpose IN ('signup', 'sms_signup') AS is_own_sign_up,
         CASE WHEN spent.target LIKE '%@%' THEN NOT account.email_proved OR account.email_confirmed_at IS NULL
              ELSE NOT account.phone_proved OR account.phone_confirmed_at IS NULL END AS is_confirmation
    FROM users AS account
    JOIN spent ON spent.user_id = account.id
   WHERE spent.target IN (account.email, account.phone)
     FOR UPDATE OF account
), verified AS (
  UPDATE users AS account
     SET email = CASE WHEN before.drops_email THEN NULL ELSE account.email END,
         email_confirmed_at = CASE WHEN before.by_email THEN coalesce(account.email_confirmed_at, now())
                                   WHEN before.drops_email THEN NULL ELSE account.email_confirmed_at END,
         email_proved = before.by_email OR account.email_proved AND NOT before.drops_email,
         phone_confirmed_at = CASE WHEN NOT before.by_email THEN coalesce(account.phone_confirmed_at, now())
                                   WHEN before.is_first_proof THEN NULL ELSE account.phone_confirmed_at END,
         phone_proved = CASE WHEN NOT before.by_email THEN true
                             WHEN before.is_first_proof THEN false ELSE account.phone_proved END,
         phone = CASE WHEN before.by_email AND before.is_first_proof THEN NULL ELSE account.phone END,
         password_hash = CASE WHEN before.new_password_hash IS NOT NULL THEN before.new_password_hash
                              WHEN before.is_first_proof AND NOT before.is_own_sign_up THEN NULL
                              ELSE account.password_hash END,
         new_email = CASE WHEN before.is_first_proof THEN NULL ELSE account.new_email END,
         email_change_sent_at = CASE WHEN before.is_first_proof THEN NULL ELSE account.email_change_sent_at END,
         new_phone = CASE WHEN before.is_first_proof THEN NULL ELSE account.new_phone END,
         phone_change_sent_at = CASE WHEN before.is_first_proof THEN NULL ELSE account.phone_change_sent_at END,
         last_sign_in_at = now(),
         updated_at = CASE WHEN before.is_first_proof OR before.new_password_hash IS NOT NULL THEN now() ELSE account.updated_at END
    FROM before
   WHERE account.id = before.id AND NOT before.is_banned
  RETURNING account, before.code_challenge, before.is_first_proof AS drops, before.drops_email, before.by_email,
            CASE WHEN before.new_password_hash IS NOT NULL THEN end_sessions(account.id, NULL, 'password_changed')
                 WHEN before.is_first_proof THEN end_sessions(account.id, NULL, 'address_proved') END AS ended,
            void_one_time_tokens(account.id) AS voided
), dropped AS (
  DELETE FROM identities AS identity
   USING verified
   WHERE identity.user_id = (verified.account).id AND verified.drops
     AND identity.provider <> CASE WHEN verified.by_email THEN 'email' ELSE 'phone' END
     AND (identity.provider <> 'email' OR verified.drops_email)
  RETURNING identity.id
), used AS (
  UPDATE identities AS identity
     SET last_sign_in_at = now()
    FROM verified
   WHERE identity.user_id = (verified.account).id AND identity.provider = CASE WHEN verified.by_email THEN 'email' ELSE 'phone' END
  RETURNING identity AS touched
), linked AS (
  SELECT coalesce(json_agg(identity_object(coalesce(used.touched, identity)) ORDER BY identity.created_at, identity.provider), '[]') AS objects,
         coalesce(array_agg(identity.provider ORDER BY identity.created_at, identity.provider), '{}') AS providers
    FROM verified
    JOIN identities AS identity ON identity.user_id = (verified.account).id AND identity.id NOT IN (SELECT id FROM dropped)
    LEFT JOIN used ON (used.touched).id = identity.id
), network AS (
  INSERT INTO known_networks (user_id, network) SELECT (verified.account).id, :network FROM verified ON CONFLICT DO NOTHING
), excess AS (
  SELECT end_excess_sessions((verified.account).id, :sessions_per_user, :refresh_token_lifetime, :session_timebox) AS many FROM verified
), code AS (
  INSERT INTO authorization_codes (user_id, code_hash, code_challenge, method, expires_at)
  SELECT (verified.account).id, sha256(convert_to(:authorization_code, 'UTF8')), verified.code_challenge, 'otp', now() + make_interval(secs => :authorization_code_lifetime)
    FROM verified
   WHERE :redirects AND verified.code_challenge IS NOT NULL
  RETURNING id
), session AS (
  INSERT INTO sessions (user_id, method, ip, user_agent)
  SELECT (verified.account).id, 'otp', :ip, :user_agent
    FROM verified
   CROSS JOIN excess
   WHERE NOT (:redirects AND verified.code_challenge IS NOT NULL)
  RETURNING id, counter
)
SELECT CASE WHEN before.is_banned THEN 'user_banned' ELSE 'live' END AS state,
       before.purpose,
       user_object(verified.account, linked.objects, linked.providers, :audience)::text AS user_object,
       CASE WHEN code.id IS NOT NULL THEN :authorization_code END AS authorization_code,
       before.redirect_to,
       session.id AS session_id,
       session.counter,
       floor(extract(epoch FROM now()))::bigint AS issued_at,
       CASE WHEN (verified.account).id IS NOT NULL
            THEN record_acts(:origin, before.id, (verified.account).email,
                             ARRAY[CASE WHEN before.is_confirmation THEN CASE WHEN before.by_email THEN 'email_confirmed' ELSE 'phone_confirmed' END END,
                                   CASE WHEN before.new_password_hash IS NOT NULL THEN 'password_changed' END,
                                   CASE WHEN session.id IS NOT NULL THEN 'signed_in' END],
                             ARRAY[CASE WHEN before.is_confirmation OR before.new_password_hash IS NOT NULL THEN 'user.updated' END,
                                   CASE WHEN session.id IS NOT NULL THEN 'auth.login' END],
                             jsonb_build_object('method', 'otp', 'purpose', before.purpose, 'session_id', session.id)) END AS recorded
  FROM before
  CROSS JOIN linked
  LEFT JOIN verified ON true
  LEFT JOIN code ON true
  LEFT JOIN session ON true;

-- name: verify_change(token_hash bytea, target text, code_mac bytea, purposes text[], signs_in boolean, restore_id uuid, restore_hash bytea,
--                     restore_lifetime integer, notice_id uuid, notice_secret bytea, message_variables jsonb,
--                     sessions_per_user integer, refresh_token_lifetime integer, session_timebox integer, ip inet, network text,
--                     user_agent text, audience text, origin jsonb)
-- Spends a link or a code that was sent to a new address: it becomes the user's, and the email that the user had, if it was proved, is
-- told. A new email ends all sessions but the one that asked for it, and the old one gets a link that restores it; a new phone ends no
-- session. An address that somebody else has by now breaks its constraint.
WITH spent AS (
  SELECT * FROM spend_link(:token_hash, :purposes)
   UNION ALL
  SELECT * FROM spend_code(:target, :code_mac, :purposes)
), before AS (
  SELECT account.id, CASE WHEN account.email_proved THEN account.email END AS email, account.user_metadata ->> 'locale' AS locale, (account.banned_until > now()) IS TRUE AS is_banned,
         CASE spent.purpose WHEN 'email_change' THEN account.email ELSE account.phone END AS old_address, spent.purpose, spent.redirect_to, spent.target, spent.session_id
    FROM users AS account
    JOIN spent ON spent.user_id = account.id
   WHERE spent.target = CASE spent.purpose WHEN 'email_change' THEN account.new_email ELSE account.new_phone END
     FOR UPDATE OF account
), changed AS (
  UPDATE users AS account
     SET email = CASE WHEN before.purpose = 'email_change' THEN before.target ELSE account.email END,
         email_confirmed_at = CASE WHEN before.purpose = 'email_change' THEN now() ELSE account.email_confirmed_at END,
         email_proved = account.email_proved OR before.purpose = 'email_change',
         new_email = CASE WHEN before.purpose <> 'email_change' THEN account.new_email END,
         email_change_sent_at = CASE WHEN before.purpose <> 'email_change' THEN account.email_change_sent_at END,
         phone = CASE WHEN before.purpose = 'phone_change' THEN before.target ELSE account.phone END,
         phone_confirmed_at = CASE WHEN before.purpose = 'phone_change' THEN now() ELSE account.phone_confirmed_at END,
         phone_proved = account.phone_proved OR before.purpose = 'phone_change',
         new_phone = CASE WHEN before.purpose <> 'phone_change' THEN account.new_phone END,
         phone_change_sent_at = CASE WHEN before.purpose <> 'phone_change' THEN account.phone_change_sent_at END,
         last_sign_in_at = CASE WHEN :signs_in THEN now() ELSE account.last_sign_in_at END,
         updated_at = now()
    FROM before
   WHERE account.id = before.id AND NOT before.is_banned
  RETURNING account, before.purpose, before.email AS old_email, before.locale, before.target,
            CASE WHEN before.purpose = 'email_change' THEN end_sessions(account.id, before.session_id, 'email_changed') END AS ended,
            void_one_time_tokens(account.id) AS voided
), written AS (
  INSERT INTO identities AS identity (user_id, provider, subject, identity_data)
  SELECT (changed.account).id, address.provider, (changed.account).id,
         jsonb_build_object('sub', (changed.account).id, address.provider, changed.target)
    FROM changed
    CROSS JOIN LATERAL (SELECT replace(changed.purpose, '_change', '') AS provider) AS address
  ON CONFLICT (user_id, provider) DO UPDATE SET identity_data = excluded.identity_data, updated_at = now()
  RETURNING identity
), network AS (
  INSERT INTO known_networks (user_id, network) SELECT (changed.account).id, :network FROM changed ON CONFLICT DO NOTHING
), excess AS (
  SELECT end_excess_sessions((changed.account).id, :sessions_per_user, :refresh_token_lifetime, :session_timebox) AS many
    FROM changed
   WHERE :signs_in
), session AS (
  INSERT INTO sessions (user_id, method, ip, user_agent)
  SELECT (changed.account).id, 'otp', :ip, :user_agent FROM changed, excess
  RETURNING id, counter
), restore AS (
  INSERT INTO one_time_tokens (id, user_id, purpose, target, token_hash, expires_at)
  SELECT :restore_id, (changed.account).id, 'email_restore', changed.old_email, :restore_hash, now() + make_interval(secs => :restore_lifetime)
    FROM changed
   WHERE changed.purpose = 'email_change' AND changed.old_email IS NOT NULL
  RETURNING id
), notice AS (
  INSERT INTO outbox (id, user_id, channel, kind, recipient, variables, secret, one_time_token_id, expires_at)
  SELECT :notice_id, (changed.account).id, 'email', replace(changed.purpose, '_change', '_changed'), changed.old_email,
         :message_variables || jsonb_build_object('locale', changed.locale, 'new_email', (changed.account).email, 'new_phone', (changed.account).phone),
         CASE WHEN restore.id IS NOT NULL THEN :notice_secret END, restore.id, now() + make_interval(secs => :restore_lifetime)
    FROM changed
    LEFT JOIN restore ON true
   WHERE changed.old_email IS NOT NULL
)
SELECT CASE WHEN before.is_banned THEN 'user_banned' ELSE 'live' END AS state,
       before.purpose,
       user_object(changed.account, linked.objects, linked.providers, :audience)::text AS user_object,
       before.redirect_to,
       session.id AS session_id,
       session.counter,
       floor(extract(epoch FROM now()))::bigint AS issued_at,
       CASE WHEN (changed.account).id IS NOT NULL
            THEN record_acts(:origin, before.id, (changed.account).email,
                             ARRAY[CASE before.purpose WHEN 'email_change' THEN 'email_changed' ELSE 'phone_changed' END,
                                   CASE WHEN session.id IS NOT NULL THEN 'signed_in' END],
                             ARRAY['user.updated', CASE WHEN session.id IS NOT NULL THEN 'auth.login' END],
                             jsonb_build_object('old_address', before.old_address, 'new_address', before.target, 'method', 'otp', 'session_id', session.id))
       END AS recorded
  FROM before
  LEFT JOIN changed ON true
  LEFT JOIN written ON true
  LEFT JOIN session ON true
  CROSS JOIN identities_with(written.identity, before.id) AS linked;

-- name: restore_email(token_hash bytea, origin jsonb)
-- Undoes a change of email: the old address is the user's again and proved, the password is void, everybody is signed out, and
-- what was added since goes: a phone, identities, and links to undo later changes, to addresses of whoever made this one. Nor may
-- somebody hold the address who has not proved it.
WITH spent AS (
  SELECT * FROM spend_link(:token_hash, '{email_restore}')
), unused AS (
  DELETE FROM users AS account
   USING spent
   WHERE account.email = spent.target AND account.id <> spent.user_id AND NOT account.email_proved AND account.last_sign_in_at IS NULL
  RETURNING record_acts(:origin, account.id, account.email, '{user_deleted}', '{user.deleted}', '{"because": "email_restored"}')
), squatter AS (
  UPDATE users AS account
     SET email = NULL, email_confirmed_at = NULL, updated_at = now()
    FROM spent
   WHERE account.email = spent.target AND account.id <> spent.user_id AND NOT account.email_proved AND account.last_sign_in_at IS NOT NULL
  RETURNING account.id, record_acts(:origin, account.id, NULL, '{email_changed}', '{user.updated}', jsonb_build_object('old_address', spent.target))
), restored AS (
  UPDATE users AS account
     SET email = spent.target, email_confirmed_at = now(), email_proved = true, password_hash = NULL,
         new_email = NULL, email_change_sent_at = NULL, new_phone = NULL, phone_change_sent_at = NULL,
         phone = CASE WHEN account.phone_confirmed_at >= spent.created_at THEN NULL ELSE account.phone END,
         phone_proved = account.phone_proved AND (account.phone_confirmed_at >= spent.created_at) IS NOT TRUE,
         phone_confirmed_at = CASE WHEN account.phone_confirmed_at < spent.created_at THEN account.phone_confirmed_at END,
         updated_at = now()
    FROM spent, (SELECT count(*) FROM unused) AS first, (SELECT count(*) FROM squatter) AS second
   WHERE account.id = spent.user_id
  RETURNING account.id, account.email, account.phone, spent.created_at,
            end_sessions(account.id, NULL, 'email_restored') AS ended,
            void_one_time_tokens(account.id) AS voided,
            void_email_restores(account.id, spent.created_at) AS voided_restores
), dropped AS (
  DELETE FROM identities AS identity
   USING restored
   WHERE identity.user_id = restored.id
     AND (identity.provider = 'phone' AND restored.phone IS NULL
          OR identity.provider NOT IN ('email', 'phone') AND identity.created_at >= restored.created_at)
), taken AS (
  DELETE FROM identities AS identity USING squatter WHERE identity.user_id = squatter.id AND identity.provider = 'email'
), written AS (
  UPDATE identities AS identity
     SET identity_data = jsonb_build_object('sub', restored.id, 'email', restored.email), updated_at = now()
    FROM restored
   WHERE identity.user_id = restored.id AND identity.provider = 'email'
)
SELECT 'live' AS state, NULL AS redirect_to, id AS user_id, email,
       record_acts(:origin, id, email, '{email_change_undone}', '{user.updated}') AS recorded
  FROM restored;

-- name: decline_signup(token_hash bytea, origin jsonb)
-- "This was not me": deletes the sign-up that a link would confirm, while nobody has confirmed or used it.
DELETE FROM users AS account
 USING one_time_tokens AS token
 WHERE token.token_hash = :token_hash AND token.purpose = 'signup' AND token.spent_at IS NULL AND token.expires_at > now()
   AND account.id = token.user_id AND is_unused_sign_up(account)
RETURNING record_acts(:origin, account.id, account.email, '{user_deleted}', '{user.deleted}', '{"because": "declined"}');

-- name: lock_owner_of_authorization_code(code_hash bytea)
-- Locks the user that an unexpired authorization code was issued to.
SELECT u.id, u.email, (u.banned_until > now()) IS TRUE AS is_banned
  FROM users AS u
  JOIN authorization_codes AS code ON code.user_id = u.id
 WHERE code.code_hash = :code_hash AND code.expires_at > now()
   FOR UPDATE OF u;

-- name: select_authorization_code(code_hash bytea)
-- An authorization code whose owner is locked; `session_id` is the session it was exchanged for.
SELECT code_challenge, method, session_id FROM authorization_codes WHERE code_hash = :code_hash;

-- name: mark_authorization_code_used(code_hash bytea, session_id uuid)
-- Keeps the session that an authorization code was exchanged for: a second use ends it.
UPDATE authorization_codes SET session_id = :session_id WHERE code_hash = :code_hash;

-- name: end_session_of_code(session_id uuid)
-- Ends the session of an authorization code that is used again (RFC 6749, section 4.1.2).
UPDATE sessions SET ended_at = now(), end_reason = 'authorization_code_reused' WHERE id = :session_id AND ended_at IS NULL;
