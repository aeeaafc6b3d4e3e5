-- name: insert_oauth_flow(state_hash bytea, browser_hash bytea, provider text, secrets bytea, id uuid, redirect_to text, code_challenge text,
--                         lifetime integer)
-- Remembers what a sign-in with a provider began with, until the browser comes back.
INSERT INTO oauth_flows (id, state_hash, browser_hash, provider, secrets, redirect_to, code_challenge, expires_at)
VALUES (:id, :state_hash, :browser_hash, :provider, :secrets, :redirect_to, :code_challenge, now() + make_interval(secs => :lifetime));

-- name: bind_oauth_flow(state_hash bytea, browser_hash bytea, new_state_hash bytea)
-- Ties a flow that links an identity to the browser whose person has agreed, under a state that only that browser brings.
UPDATE oauth_flows AS flow
   SET browser_hash = :browser_hash, state_hash = :new_state_hash
  FROM users AS account, sessions AS session
 WHERE flow.state_hash = :state_hash AND flow.browser_hash IS NULL AND flow.expires_at > now()
   AND account.id = flow.user_id AND session.id = flow.session_id AND session.ended_at IS NULL
   AND (account.banned_until > now()) IS NOT TRUE
RETURNING flow.id, flow.provider, flow.secrets;

-- name: select_linking_flow(state_hash bytea)
-- Whom a flow would link to, for the page that asks.
SELECT flow.provider, flow.redirect_to, account.email, account.phone, known.provider AS known_by, known.name AS known_as
  FROM oauth_flows AS flow
  JOIN users AS account ON account.id = flow.user_id
  LEFT JOIN LATERAL (
         SELECT identity.provider, identity.identity_data ->> 'name' AS name
           FROM identities AS identity
          WHERE identity.user_id = account.id AND identity.provider NOT IN ('email', 'phone')
          ORDER BY identity.created_at, identity.provider
          LIMIT 1
       ) AS known ON true
 WHERE flow.state_hash = :state_hash AND flow.browser_hash IS NULL AND flow.expires_at > now();

-- name: spend_oauth_flow(state_hash bytea, browser_hash bytea)
-- Ends a flow, once, for the browser that began it.
DELETE FROM oauth_flows
 WHERE state_hash = :state_hash AND browser_hash = :browser_hash AND expires_at > now()
RETURNING id, provider, secrets, redirect_to, code_challenge, user_id, session_id;

-- name: begin_linking(caller_id uuid, caller_session_id uuid, caller_expires_at bigint, refresh_token_lifetime integer, session_timebox integer,
--                     reauthentication_age integer, reauthenticated boolean, id uuid, state_hash bytea, provider text, secrets bytea,
--                     redirect_to text, lifetime integer)
-- Begins a flow that will add an identity to the caller.
WITH account AS (
  SELECT account.id FROM users AS account WHERE account.id = :caller_id FOR UPDATE
), caller AS (
  SELECT account.id,
         sensitive_state_now(account.id, :caller_session_id, :caller_expires_at, :refresh_token_lifetime, :session_timebox,
                             :reauthenticated, :reauthentication_age) AS state
    FROM account
), flow AS (
  INSERT INTO oauth_flows (id, state_hash, provider, secrets, redirect_to, user_id, session_id, expires_at)
  SELECT :id, :state_hash, :provider, :secrets, :redirect_to, caller.id, :caller_session_id, now() + make_interval(secs => :lifetime)
    FROM caller
   WHERE caller.state = 'live'
)
SELECT caller.state FROM caller;

-- name: sign_in_by_identity(provider text, subject text, identity_data jsonb, email text, email_verified boolean, is_trusted boolean,
--                           signup_allowed boolean, code_challenge text, authorization_code text, authorization_code_lifetime integer,
--                           id_token_hash bytea, id_token_expires_at bigint, sessions_per_user integer, refresh_token_lifetime integer, session_timebox integer, ip inet, network text, user_agent text,
--                           audience text, origin jsonb)
-- Signs in whom a provider has identified: the user who has the identity; else, where a trusted provider says that the address
-- is verified, the user who has the address; else a new one. Where that proves the address for the first time, what was set
-- before without proof goes: password, sessions, other identities, phone, pending changes. An id_token serves once.
WITH first_use AS (
  INSERT INTO spent_id_tokens (token_hash, expires_at)
  SELECT :id_token_hash, to_timestamp(:id_token_expires_at) WHERE :id_token_hash IS NOT NULL
  ON CONFLICT DO NOTHING
  RETURNING token_hash
), fresh AS (
  SELECT :id_token_hash IS NULL OR EXISTS (SELECT FROM first_use) AS is_fresh
), by_identity AS (
  SELECT identity.user_id FROM identities AS identity WHERE identity.provider = :provider AND identity.subject = :subject
), by_email AS (
  SELECT account.id AS user_id,
         EXISTS (SELECT FROM identities AS other WHERE other.user_id = account.id AND other.provider = :provider)
           AND account.email_proved AS has_another
    FROM users AS account
   WHERE account.email = :email AND :email_verified AND :is_trusted AND NOT EXISTS (SELECT FROM by_identity)
), found AS (
  SELECT user_id, false AS by_email, false AS has_another FROM by_identity
   UNION ALL
  SELECT user_id, true, has_another FROM by_email
), before AS (
  -- Waits for what is under way with this user, and sees what it has left.
  SELECT account.id, found.by_email, found.has_another, (account.banned_until > now()) IS TRUE AS is_banned,
         found.by_email AND NOT account.email_proved AS is_first_proof,
         found.by_email AND (NOT account.email_proved OR account.email_confirmed_at IS NULL) AS is_confirmation
    FROM users AS account
    JOIN found ON found.user_id = account.id
     FOR UPDATE OF account
), lost AS (
  -- An identity that was there when this began, and is not now: somebody has proved the address meanwhile, or unlinked it.
  SELECT EXISTS (SELECT FROM before WHERE NOT before.by_email AND NOT has_identity(before.id, :provider, :subject)) AS is_lost
), verdict AS (
  SELECT CASE WHEN NOT fresh.is_fresh THEN 'bad_oauth_callback'
              WHEN before.is_banned THEN 'user_banned'
              WHEN before.has_another THEN 'identity_already_exists'
              WHEN lost.is_lost THEN 'identity_lost'
              WHEN before.id IS NULL AND NOT :signup_allowed THEN 'signup_disabled'
              ELSE 'live' END AS state
    FROM fresh
   CROSS JOIN lost
    LEFT JOIN before ON true
), created AS (
  INSERT INTO users AS account (email, email_confirmed_at, email_proved, user_metadata, made_by, last_sign_in_at)
  SELECT CASE WHEN is_free THEN :email END, CASE WHEN is_free THEN now() END, is_free AND :is_trusted,
         jsonb_strip_nulls(jsonb_build_object('name', :identity_data ->> 'name', 'avatar_url', :identity_data ->> 'avatar_url')), 'oauth', now()
    FROM verdict
   CROSS JOIN (SELECT :email IS NOT NULL AND :email_verified AND NOT EXISTS (SELECT FROM users WHERE email = :email) AS is_free) AS address
   WHERE verdict.state = 'live' AND NOT EXISTS (SELECT FROM before)
  RETURNING account
), signed_in AS (
  UPDATE users AS account
     SET last_sign_in_at = now(),
         email_confirmed_at = CASE WHEN before.by_email THEN coalesce(account.email_confirmed_at, now()) ELSE account.email_confirmed_at END,
         email_proved = account.email_proved OR before.by_email,
         password_hash = CASE WHEN before.is_first_proof THEN NULL ELSE account.password_hash END,
         phone = CASE WHEN before.is_first_proof THEN NULL ELSE account.phone END,
         phone_confirmed_at = CASE WHEN before.is_first_proof THEN NULL ELSE account.phone_confirmed_at END,
         phone_proved = account.phone_proved AND NOT before.is_first_proof,
         new_email = CASE WHEN before.is_first_proof THEN NULL ELSE account.new_email END,
         email_change_sent_at = CASE WHEN before.is_first_proof THEN NULL ELSE account.email_change_sent_at END,
         new_phone = CASE WHEN before.is_first_proof THEN NULL ELSE account.new_phone END,
         phone_change_sent_at = CASE WHEN before.is_first_proof THEN NULL ELSE account.phone_change_sent_at END,
         updated_at = CASE WHEN before.by_email THEN now() ELSE account.updated_at END
    FROM before, verdict
   WHERE account.id = before.id AND verdict.state = 'live'
  RETURNING account, before.is_first_proof, before.by_email,
            CASE WHEN before.is_first_proof THEN end_sessions(account.id, NULL, 'address_proved') END AS ended,
            CASE WHEN before.is_first_proof THEN void_one_time_tokens(account.id) END AS voided
), target AS (
  SELECT account, false AS is_first_proof, false AS by_email FROM created
   UNION ALL
  SELECT account, is_first_proof, by_email FROM signed_in
), dropped AS (
  DELETE FROM identities AS identity
   USING target
   WHERE identity.user_id = (target.account).id AND target.is_first_proof AND identity.provider <> 'email'
  RETURNING identity.id
), own_email AS (
  -- A moment later than the provider's, which was there first: app_metadata.provider is the oldest.
  INSERT INTO identities AS identity (user_id, provider, subject, identity_data, created_at)
  SELECT (created.account).id, 'email', (created.account).id, jsonb_build_object('sub', (created.account).id, 'email', :email),
         now() + interval '1 microsecond'
    FROM created
   WHERE (created.account).email IS NOT NULL
  RETURNING identity
), inserted AS (
  -- The count makes the deletion come first: an identity of this provider may be among what goes. Two first sign-ins at once
  -- break a constraint; the one that is tried again finds what the other has made.
  INSERT INTO identities AS identity (user_id, provider, subject, identity_data, last_sign_in_at)
  SELECT (target.account).id, :provider, :subject, :identity_data, now()
    FROM target, (SELECT count(*) FROM dropped) AS deletion
   WHERE NOT EXISTS (SELECT FROM by_identity)
  RETURNING identity
), used AS (
  UPDATE identities AS identity
     SET identity_data = :identity_data, last_sign_in_at = now(), updated_at = now()
    FROM target
   WHERE identity.provider = :provider AND identity.subject = :subject AND identity.user_id = (target.account).id
  RETURNING identity
), written AS (
  SELECT identity FROM inserted UNION ALL SELECT identity FROM used
), linked AS (
  SELECT json_agg(identity_object(identity) ORDER BY (identity).created_at, (identity).provider) AS objects,
         array_agg((identity).provider ORDER BY (identity).created_at, (identity).provider) AS providers
    FROM (SELECT identity FROM written
           UNION ALL
          SELECT identity FROM own_email
           UNION ALL
          SELECT identity FROM identities AS identity
            JOIN target ON identity.user_id = (target.account).id
           WHERE NOT EXISTS (SELECT FROM written WHERE (written.identity).id = identity.id)
             AND NOT EXISTS (SELECT FROM dropped WHERE dropped.id = identity.id)) AS every
), notice AS (
  INSERT INTO outbox (id, user_id, channel, kind, recipient, variables)
  SELECT gen_random_uuid(), (target.account).id, 'email', 'identity_linked', (target.account).email,
         jsonb_build_object('locale', (target.account).user_metadata ->> 'locale', 'provider', :provider)
    FROM target
   WHERE target.by_email
), network AS (
  INSERT INTO known_networks (user_id, network) SELECT (target.account).id, :network FROM target ON CONFLICT DO NOTHING
), excess AS (
  SELECT end_excess_sessions((target.account).id, :sessions_per_user, :refresh_token_lifetime, :session_timebox) AS many FROM target
), code AS (
  INSERT INTO authorization_codes (user_id, code_hash, code_challenge, method, expires_at)
  SELECT (target.account).id, sha256(convert_to(:authorization_code, 'UTF8')), :code_challenge, 'oauth',
         now() + make_interval(secs => :authorization_code_lifetime)
    FROM target
   WHERE :code_challenge IS NOT NULL
  RETURNING id
), session AS (
  INSERT INTO sessions (user_id, method, ip, user_agent)
  SELECT (target.account).id, 'oauth', :ip, :user_agent FROM target, excess WHERE :code_challenge IS NULL
  RETURNING id, counter
)
SELECT verdict.state,
       user_object(target.account, linked.objects, linked.providers, :audience)::text AS user_object,
       CASE WHEN code.id IS NOT NULL THEN :authorization_code END AS authorization_code,
       session.id AS session_id,
       session.counter,
       floor(extract(epoch FROM now()))::bigint AS issued_at,
       CASE WHEN (target.account).id IS NOT NULL
            THEN record_acts(:origin, (target.account).id, (target.account).email,
                             ARRAY[CASE WHEN before.id IS NULL THEN 'user_created' END,
                                   CASE WHEN before.is_confirmation THEN 'email_confirmed' END,
                                   CASE WHEN before.by_email THEN 'identity_linked' END,
                                   CASE WHEN session.id IS NOT NULL THEN 'signed_in' END],
                             ARRAY[CASE WHEN before.id IS NULL THEN 'user.created' WHEN before.by_email THEN 'user.updated' END,
                                   CASE WHEN session.id IS NOT NULL THEN 'auth.login' END],
                             jsonb_build_object('by', CASE WHEN before.id IS NULL THEN 'oauth' END, 'method', 'oauth', 'provider', :provider,
                                                'session_id', session.id))
       END AS recorded,
       before.id AS user_id
  FROM verdict
  CROSS JOIN linked
  LEFT JOIN before ON true
  LEFT JOIN target ON true
  LEFT JOIN code ON true
  LEFT JOIN session ON true;

-- name: link_identity(user_id uuid, session_id uuid, refresh_token_lifetime integer, session_timebox integer,
--                     provider text, subject text, identity_data jsonb, message_id uuid, message_variables jsonb, origin jsonb)
-- Adds an identity to the user who began the flow, while the session that began it lives. An identity that somebody has breaks
-- its constraint. No row when the session has ended.
WITH account AS (
  SELECT account.id, account.email, account.user_metadata ->> 'locale' AS locale FROM users AS account WHERE account.id = :user_id FOR UPDATE
), owner AS (
  SELECT account.*
    FROM account
   WHERE caller_state_now(account.id, :session_id, NULL, :refresh_token_lifetime, :session_timebox) = 'live'
), identity AS (
  INSERT INTO identities (user_id, provider, subject, identity_data)
  SELECT owner.id, :provider, :subject, :identity_data FROM owner
), notice AS (
  INSERT INTO outbox (id, user_id, channel, kind, recipient, variables)
  SELECT :message_id, owner.id, 'email', 'identity_linked', owner.email,
         :message_variables || jsonb_build_object('locale', owner.locale, 'provider', :provider)
    FROM owner
   WHERE owner.email IS NOT NULL
)
SELECT owner.id AS user_id,
       record_acts(:origin, owner.id, owner.email, '{identity_linked}', '{user.updated}', jsonb_build_object('provider', :provider)) AS recorded
  FROM owner;

-- name: unlink_identity(caller_id uuid, caller_session_id uuid, caller_expires_at bigint, refresh_token_lifetime integer,
--                       session_timebox integer, reauthentication_age integer, reauthenticated boolean, identity_id uuid, usable text[], message_id uuid,
--                       message_variables jsonb, origin jsonb)
-- Removes one of the caller's identities, never the last that is `usable`, and never that of an address that the user has.
WITH account AS (
  -- Two at once must not each leave the other's.
  SELECT account.id, account.email, account.user_metadata ->> 'locale' AS locale FROM users AS account WHERE account.id = :caller_id FOR UPDATE
), caller AS (
  SELECT account.id, account.email, account.locale,
         sensitive_state_now(account.id, :caller_session_id, :caller_expires_at, :refresh_token_lifetime, :session_timebox,
                             :reauthenticated, :reauthentication_age) AS state
    FROM account
), chosen AS (
  SELECT identity.id, identity.provider,
         identity.provider IN ('email', 'phone') OR other_identities(identity.user_id, identity.id, :usable) = 0 AS is_last
    FROM caller
    JOIN identities AS identity ON identity.id = :identity_id AND identity.user_id = caller.id
   WHERE caller.state = 'live'
), deleted AS (
  DELETE FROM identities AS identity USING chosen WHERE identity.id = chosen.id AND NOT chosen.is_last
  RETURNING identity.provider
), notice AS (
  INSERT INTO outbox (id, user_id, channel, kind, recipient, variables)
  SELECT :message_id, caller.id, 'email', 'identity_unlinked', caller.email,
         :message_variables || jsonb_build_object('locale', caller.locale, 'provider', deleted.provider)
    FROM caller, deleted
   WHERE caller.email IS NOT NULL
)
SELECT CASE WHEN caller.state <> 'live' THEN caller.state
            WHEN chosen.id IS NULL THEN 'identity_not_found'
            WHEN chosen.is_last THEN 'single_identity_not_deletable'
            ELSE 'live' END AS state,
       iso_8601(now()) AS moment,
       CASE WHEN deleted.provider IS NOT NULL
            THEN record_acts(:origin, caller.id, caller.email, '{identity_unlinked}', '{user.updated}',
                             jsonb_build_object('provider', deleted.provider)) END AS recorded
  FROM caller
  LEFT JOIN chosen ON true
  LEFT JOIN deleted ON true;
