-- name: sign_up(email text, password_hash text, user_metadata user_metadata, autoconfirm boolean, hidden boolean,
--               token_id uuid, token_hash bytea, link_lifetime integer, redirect_to text,
--               message_id uuid, message_secret bytea, message_variables jsonb, ip inet, user_agent text, audience text)
-- Registers a user by email and password. A sign-up of the same address that nobody has confirmed or used is replaced, with
-- all that belongs to it; any other user is left alone. Where that must stay `hidden` (an address has to be confirmed), the
-- answer is the same for a free and a taken address: it is built from the draft of a user, whether or not that was kept, and
-- one message is written in each case.
WITH draft AS (
  SELECT account.*
    FROM jsonb_populate_record(NULL::users, jsonb_build_object(
           'id', gen_random_uuid(),
           'role', 'authenticated',
           'email', :email,
           'email_confirmed_at', CASE WHEN :autoconfirm THEN now() END,
           'email_proved', false,
           'password_hash', :password_hash,
           'app_metadata', '{}'::jsonb,
           'user_metadata', merge_metadata('{}', :user_metadata),
           'confirmation_sent_at', CASE WHEN NOT :autoconfirm THEN now() END,
           'last_sign_in_at', CASE WHEN :autoconfirm THEN now() END,
           'made_by', 'signup',
           'created_at', now(),
           'updated_at', now()
         )) AS account
), replaced AS (
  DELETE FROM users
   WHERE email = :email AND :hidden AND made_by = 'signup' AND email_confirmed_at IS NULL AND last_sign_in_at IS NULL
  RETURNING id
), created AS (
  -- The count makes the deletion come first.
  INSERT INTO users
  SELECT draft.* FROM draft, (SELECT count(*) FROM replaced) AS deletion
  ON CONFLICT (email) DO NOTHING
  RETURNING id
), draft_identity AS (
  SELECT identity.*
    FROM draft,
         jsonb_populate_record(NULL::identities, jsonb_build_object(
           'id', gen_random_uuid(),
           'user_id', draft.id,
           'provider', 'email',
           'subject', draft.id,
           'identity_data', jsonb_build_object('sub', draft.id, 'email', draft.email),
           'last_sign_in_at', draft.last_sign_in_at,
           'created_at', now(),
           'updated_at', now()
         )) AS identity
), identity AS (
  INSERT INTO identities SELECT draft_identity.* FROM draft_identity, created
), token AS (
  INSERT INTO one_time_tokens (id, user_id, purpose, token_hash, target, redirect_to, expires_at)
  SELECT :token_id, created.id, 'signup', :token_hash, :email, :redirect_to, now() + make_interval(secs => :link_lifetime)
    FROM created
   WHERE NOT :autoconfirm
), session AS (
  INSERT INTO sessions (user_id, method, ip, user_agent)
  SELECT created.id, 'password', :ip, :user_agent FROM created WHERE :autoconfirm
  RETURNING id, counter
), message AS (
  -- A taken address is told that someone tried, unless what this statement saw was a sign-up to be replaced: then another
  -- one has just done so.
  INSERT INTO outbox (id, user_id, kind, recipient, variables, secret, one_time_token_id, expires_at, outcome, finished_at)
  SELECT :message_id, told.user_id, told.kind, CASE WHEN told.kind <> 'none' THEN :email END, :message_variables,
         CASE WHEN told.kind = 'signup' THEN :message_secret END,
         CASE WHEN told.kind = 'signup' THEN :token_id END,
         now() + make_interval(secs => :link_lifetime),
         CASE WHEN told.kind = 'none' THEN 'none' END,
         CASE WHEN told.kind = 'none' THEN now() END
    FROM (SELECT coalesce(created.id, taken.id) AS user_id,
                 CASE WHEN created.id IS NOT NULL AND NOT :autoconfirm THEN 'signup'
                      WHEN created.id IS NULL AND taken.id IS NOT NULL AND :hidden THEN 'signup_attempt'
                      ELSE 'none' END AS kind
            FROM (VALUES (1)) AS single (line)
            LEFT JOIN created ON true
            LEFT JOIN (SELECT id FROM users WHERE email = :email AND id NOT IN (SELECT id FROM replaced)) AS taken ON true) AS told
)
SELECT created.id IS NOT NULL AS created,
       user_object(draft::users, json_build_array(identity_object(draft_identity::identities)), ARRAY['email'], :audience)::text AS user_object,
       session.id AS session_id,
       session.counter,
       floor(extract(epoch FROM now()))::bigint AS issued_at
  FROM draft
  CROSS JOIN draft_identity
  LEFT JOIN created ON true
  LEFT JOIN session ON true;

-- name: select_user(caller_id uuid, caller_session_id uuid, caller_expires_at bigint, refresh_token_lifetime integer,
--                   session_timebox integer, audience text)
-- The caller itself, or why its access token no longer speaks for it; no row when the user is deleted.
SELECT caller_state(caller, session, :caller_expires_at, :refresh_token_lifetime, :session_timebox) AS state,
       user_object(caller, linked.objects, linked.providers, :audience)::text AS user_object
  FROM users AS caller
  CROSS JOIN identities_of(caller.id) AS linked
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
       caller.phone,
       extract(epoch FROM now() - session.created_at)::bigint AS session_age
  FROM users AS caller
  LEFT JOIN sessions AS session ON session.id = :caller_session_id AND session.user_id = caller.id
 WHERE caller.id = :caller_id;

-- name: update_user(caller_id uuid, caller_session_id uuid, caller_expires_at bigint, refresh_token_lifetime integer,
--                   session_timebox integer, audience text, reauthentication_age integer, reauthenticated boolean,
--                   user_metadata user_metadata, password_hash text, checked_password_hash text, email text, phone text,
--                   message_id uuid)
-- Changes the caller's metadata and password, and makes a new email or phone pending. A password is changed only from the one
-- that was checked; all other sessions end and all links are void then, and the user is told. Anything that does not allow
-- the whole change is answered as a state, and nothing is changed.
WITH caller AS (
  SELECT account.id,
         caller_state(account, session, :caller_expires_at, :refresh_token_lifetime, :session_timebox) AS state,
         :email <> coalesce(account.email, '') AS changes_email,
         :phone <> coalesce(account.phone, '') AS changes_phone,
         NOT :reauthenticated AND session.created_at <= now() - make_interval(secs => :reauthentication_age) AS is_old
    FROM users AS account
    LEFT JOIN sessions AS session ON session.id = :caller_session_id AND session.user_id = account.id
   WHERE account.id = :caller_id
), verdict AS (
  SELECT caller.*,
         CASE
           WHEN caller.state <> 'live' THEN caller.state
           WHEN caller.is_old AND (:password_hash IS NOT NULL OR changes_email OR changes_phone) THEN 'reauthentication_needed'
           WHEN changes_email AND EXISTS (SELECT FROM users WHERE email = :email) THEN 'email_exists'
           WHEN changes_phone AND EXISTS (SELECT FROM users WHERE phone = :phone) THEN 'phone_exists'
           ELSE 'live'
         END AS decision
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
   WHERE account.id = verdict.id AND verdict.decision = 'live'
     AND (:password_hash IS NULL OR account.password_hash IS NOT DISTINCT FROM :checked_password_hash)
  RETURNING account,
            CASE WHEN :password_hash IS NOT NULL THEN end_sessions(account.id, :caller_session_id, 'password_changed') END AS ended,
            CASE WHEN :password_hash IS NOT NULL THEN void_one_time_tokens(account.id) END AS voided
), message AS (
  INSERT INTO outbox (id, user_id, kind, recipient)
  SELECT :message_id, (changed.account).id, 'password_changed', (changed.account).email
    FROM changed
   WHERE :password_hash IS NOT NULL AND (changed.account).email IS NOT NULL
)
SELECT CASE WHEN verdict.decision = 'live' AND changed.account IS NULL THEN 'session_not_found' ELSE verdict.decision END AS state,
       user_object(changed.account, linked.objects, linked.providers, :audience)::text AS user_object
  FROM verdict
  CROSS JOIN identities_of(verdict.id) AS linked
  LEFT JOIN changed ON true;

-- name: delete_user(caller_id uuid, caller_session_id uuid, caller_expires_at bigint, refresh_token_lifetime integer,
--                   session_timebox integer, reauthentication_age integer, reauthenticated boolean)
-- Deletes the caller with all that belongs to it, unless its session has to reauthenticate first.
WITH caller AS (
  SELECT account.id,
         CASE
           WHEN caller_state(account, session, :caller_expires_at, :refresh_token_lifetime, :session_timebox) = 'live'
                AND NOT :reauthenticated AND session.created_at <= now() - make_interval(secs => :reauthentication_age)
             THEN 'reauthentication_needed'
           ELSE caller_state(account, session, :caller_expires_at, :refresh_token_lifetime, :session_timebox)
         END AS state
    FROM users AS account
    LEFT JOIN sessions AS session ON session.id = :caller_session_id AND session.user_id = account.id
   WHERE account.id = :caller_id
), deleted AS (
  DELETE FROM users AS account USING caller WHERE account.id = caller.id AND caller.state = 'live'
)
SELECT caller.state, iso_8601(now()) AS moment FROM caller;
