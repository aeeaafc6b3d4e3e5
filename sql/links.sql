-- name: generate_link(purpose text, email text, new_email text, creates boolean, user_metadata user_metadata, password_hash text,
--                     token_id uuid, token_hash bytea, link_lifetime integer, code_mac bytea, redirect_to text, audience text, origin jsonb)
-- Makes a link for an administrator to hand on; no message is sent. A sign-up and an invitation make the user when there is none,
-- and take over one whom nobody has confirmed, without what was set before. `is_taken` says that the user is confirmed already,
-- or somebody has the new email; no row, that there is no user.
WITH known AS (
  SELECT account.* FROM users AS account WHERE account.email = :email
), created AS (
  INSERT INTO users AS account (email, password_hash, user_metadata, made_by, invited_at, confirmation_sent_at)
  SELECT :email, CASE WHEN :purpose = 'signup' THEN :password_hash END, merge_metadata('{}', :user_metadata), 'link',
         CASE WHEN :purpose = 'invite' THEN now() END, now()
   WHERE :creates AND NOT EXISTS (SELECT FROM known)
  RETURNING account
), changed AS (
  UPDATE users AS account
     SET password_hash = CASE WHEN :creates THEN CASE WHEN :purpose = 'signup' THEN :password_hash END ELSE account.password_hash END,
         user_metadata = CASE WHEN :creates THEN merge_metadata(account.user_metadata, :user_metadata) ELSE account.user_metadata END,
         made_by = CASE WHEN :creates THEN 'link' ELSE account.made_by END,
         invited_at = CASE WHEN :purpose = 'invite' THEN now() ELSE account.invited_at END,
         confirmation_sent_at = CASE WHEN :creates THEN now() ELSE account.confirmation_sent_at END,
         new_email = CASE WHEN :purpose = 'email_change' THEN :new_email ELSE account.new_email END,
         email_change_sent_at = CASE WHEN :purpose = 'email_change' THEN now() ELSE account.email_change_sent_at END
    FROM known
   WHERE account.id = known.id AND NOT (:creates AND known.email_confirmed_at IS NOT NULL)
     AND NOT EXISTS (SELECT FROM users WHERE email = :new_email)
  RETURNING account,
            CASE WHEN :creates THEN end_sessions(account.id, NULL, 'address_proved') END AS ended,
            CASE WHEN :creates THEN void_one_time_tokens(account.id) END AS voided
), target AS (
  SELECT account FROM created UNION ALL SELECT account FROM changed
), identity AS (
  INSERT INTO identities AS identity (user_id, provider, subject, identity_data)
  SELECT (created.account).id, 'email', (created.account).id, jsonb_build_object('sub', (created.account).id, 'email', :email) FROM created
  RETURNING identity
), token AS (
  INSERT INTO one_time_tokens (id, user_id, purpose, target, token_hash, code_mac, code_expires_at, redirect_to, password_hash, expires_at)
  SELECT :token_id, (target.account).id, :purpose, coalesce(:new_email, :email), :token_hash, :code_mac,
         CASE WHEN :code_mac IS NOT NULL THEN now() + make_interval(secs => :link_lifetime) END, :redirect_to,
         CASE WHEN :purpose = 'recovery' THEN :password_hash END, now() + make_interval(secs => :link_lifetime)
    FROM target
)
SELECT (target.account).id IS NULL AS is_taken,
       user_object(target.account, linked.objects, linked.providers, :audience)::text AS user_object,
       CASE WHEN (target.account).id IS NOT NULL
            THEN record_acts(:origin, (target.account).id, (target.account).email,
                             ARRAY[CASE WHEN known.id IS NULL THEN 'user_created' END, 'link_generated'],
                             ARRAY[CASE WHEN known.id IS NULL THEN 'user.created' END],
                             jsonb_build_object('by', CASE WHEN known.id IS NULL THEN 'link' END, 'purpose', :purpose, 'new_email', :new_email))
       END AS recorded
  FROM (VALUES (1)) AS single (line)
  LEFT JOIN target ON true
  LEFT JOIN known ON true
  LEFT JOIN identity ON true
  CROSS JOIN identities_with(identity.identity, (target.account).id) AS linked
 WHERE (target.account).id IS NOT NULL OR known.id IS NOT NULL;

-- name: invite_user(email text, user_metadata user_metadata, app_metadata app_metadata, token_id uuid, token_hash bytea, link_lifetime integer,
--                   redirect_to text, message_id uuid, message_secret bytea, message_variables jsonb, quota_keys text[],
--                   quota_amounts integer[], quota_seconds integer[], audience text, origin jsonb)
-- Invites somebody by mail. Whoever was invited and has not accepted is invited again; any other user is left alone.
WITH known AS (
  SELECT account.id,
         account.invited_at IS NOT NULL AND account.email_confirmed_at IS NULL AND account.password_hash IS NULL AS is_pending
    FROM users AS account
   WHERE account.email = :email
), verdict AS (
  SELECT CASE WHEN EXISTS (SELECT FROM known WHERE NOT is_pending) THEN 'email_exists' ELSE 'live' END AS state
), quota AS (
  SELECT spent.*
    FROM verdict
   CROSS JOIN LATERAL take_from_quota(CASE WHEN verdict.state = 'live' THEN :quota_keys END, :quota_amounts, :quota_seconds) AS spent
), invited AS (
  INSERT INTO users AS account (email, user_metadata, app_metadata, made_by, invited_at, confirmation_sent_at)
  SELECT :email, merge_metadata('{}', :user_metadata), merge_metadata('{}', :app_metadata), 'invite', now(), now()
    FROM verdict, quota
   WHERE verdict.state = 'live' AND quota.seconds_left = 0
  ON CONFLICT (email) DO UPDATE
     SET user_metadata = merge_metadata(account.user_metadata, :user_metadata),
         app_metadata = merge_metadata(account.app_metadata, :app_metadata),
         invited_at = now(),
         confirmation_sent_at = now(),
         updated_at = now()
   WHERE account.invited_at IS NOT NULL AND account.email_confirmed_at IS NULL AND account.password_hash IS NULL
  RETURNING account
), identity AS (
  INSERT INTO identities AS identity (user_id, provider, subject, identity_data)
  SELECT (invited.account).id, 'email', (invited.account).id, jsonb_build_object('sub', (invited.account).id, 'email', :email) FROM invited
  ON CONFLICT (user_id, provider) DO UPDATE SET identity_data = excluded.identity_data
  RETURNING identity
), token AS (
  INSERT INTO one_time_tokens (id, user_id, purpose, target, token_hash, redirect_to, expires_at)
  SELECT :token_id, (invited.account).id, 'invite', :email, :token_hash, :redirect_to, now() + make_interval(secs => :link_lifetime)
    FROM invited
), message AS (
  INSERT INTO outbox (id, user_id, channel, kind, recipient, variables, secret, one_time_token_id, expires_at)
  SELECT :message_id, (invited.account).id, 'email', 'invite', :email,
         :message_variables || jsonb_build_object('locale', (invited.account).user_metadata ->> 'locale'), :message_secret, :token_id,
         now() + make_interval(secs => :link_lifetime)
    FROM invited
)
SELECT CASE WHEN quota.seconds_left > 0 THEN 'over_email_send_rate_limit'
            WHEN (invited.account).id IS NULL THEN 'email_exists'
            ELSE 'live' END AS state,
       quota.*,
       user_object(invited.account, linked.objects, linked.providers, :audience)::text AS user_object,
       CASE WHEN (invited.account).id IS NOT NULL
            THEN record_acts(:origin, (invited.account).id, :email,
                             ARRAY[CASE WHEN known.id IS NULL THEN 'user_created' END, 'invited'],
                             ARRAY[CASE WHEN known.id IS NULL THEN 'user.created' END],
                             jsonb_build_object('by', CASE WHEN known.id IS NULL THEN 'invitation' END)) END AS recorded
  FROM quota
  LEFT JOIN known ON true
  LEFT JOIN invited ON true
  LEFT JOIN identity ON true
  CROSS JOIN identities_with(identity.identity, (invited.account).id) AS linked;
