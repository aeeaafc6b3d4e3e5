-- The whole database: every table, index and function. It is applied when the service starts and differs from what was
-- applied last (see sql/__init__.py), in one transaction, and is safe to apply again.
-- Plain PostgreSQL 14 or later; no extensions.
--
-- Laws that the statements in sql/*.sql rely on:
--   1. A session is inserted only by a statement that also updates (and so locks) its user's row.
--   2. A statement that ends a user's sessions for good, or voids links, updates the user's row first and calls the function
--      for it from RETURNING. The functions are VOLATILE: each query in them sees what was committed while the statement
--      waited for the row, so that a session made at the same moment can't slip through.
--   3. Rows are locked in one order, so that nothing waits in a circle: counts of messages and codes, then the user, then what
--      belongs to it (deleting a user locks that last).
--   4. user_objects is what user_object makes of each user; triggers write it when a statement that has changed a user or its
--      identities ends. So only statements that change neither may read it; the others call user_object. Whoever loads rows
--      with triggers off (session_replication_role) fills it too, or these users are taken for deleted.

-- Metadata travels in each access token, so its size is bounded where it is written. Domains, so that a value is refused by
-- being given, whatever the statement then does with it: a sign-up for a known address must fail like any other.
DO $$
BEGIN
  CREATE DOMAIN user_metadata AS jsonb CONSTRAINT user_metadata_size CHECK (octet_length(VALUE::text) <= 8192);
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;
DO $$
BEGIN
  CREATE DOMAIN app_metadata AS jsonb CONSTRAINT app_metadata_size CHECK (octet_length(VALUE::text) <= 8192);
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;

-- Why a session has ended. Not a constraint of the table: Postgres would read the text of that anew for each refresh.
DO $$
BEGIN
  CREATE DOMAIN session_end_reason AS text CONSTRAINT session_end_reason_check CHECK (
    VALUE IN ('logout', 'ended_by_user', 'ended_by_admin', 'refresh_token_reused', 'password_changed', 'email_changed', 'banned',
              'address_proved', 'email_restored', 'authorization_code_reused', 'too_many_sessions')
  );
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;

-- Who can sign in. Addresses are in their canonical form (auth/addresses.py), which makes these constraints mean what they say.
-- `email_proved` differs from `email_confirmed_at` in what was confirmed without proof, by AUTH_AUTOCONFIRM; so does `phone_proved`.
CREATE TABLE IF NOT EXISTS users (
  id                    uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  role                  text NOT NULL DEFAULT 'authenticated',
  email                 text COLLATE "C" CONSTRAINT users_email_key UNIQUE,
  email_confirmed_at    timestamptz,
  email_proved          boolean NOT NULL DEFAULT false,
  phone                 text COLLATE "C" CONSTRAINT users_phone_key UNIQUE,
  phone_confirmed_at    timestamptz,
  phone_proved          boolean NOT NULL DEFAULT false,
  password_hash         text,
  app_metadata          app_metadata NOT NULL DEFAULT '{}',
  user_metadata         user_metadata NOT NULL DEFAULT '{}',
  new_email             text,
  email_change_sent_at  timestamptz,
  new_phone             text,
  phone_change_sent_at  timestamptz,
  confirmation_sent_at  timestamptz,
  invited_at            timestamptz,
  last_sign_in_at       timestamptz,
  banned_until          timestamptz,
  admin_since           timestamptz,
  made_by               text NOT NULL,
  signup_user_agent     text,
  created_at            timestamptz NOT NULL DEFAULT now(),
  updated_at            timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT users_made_by_check CHECK (made_by IN ('signup', 'admin', 'message', 'invite', 'link', 'oauth'))
) WITH (fillfactor = 80);
-- For the administrators' listing: what it sorts by, and what it finds by prefix (in collation C a prefix is a range).
CREATE INDEX IF NOT EXISTS users_created_at ON users (created_at, id);
CREATE INDEX IF NOT EXISTS users_role ON users (role, created_at, id) WHERE role <> 'authenticated';
CREATE INDEX IF NOT EXISTS users_email_domain ON users ((split_part(email, '@', 2) COLLATE "C"));
-- For a message that is asked for again by the address that is to be proved.
CREATE INDEX IF NOT EXISTS users_new_email ON users (new_email) WHERE new_email IS NOT NULL;
CREATE INDEX IF NOT EXISTS users_new_phone ON users (new_phone) WHERE new_phone IS NOT NULL;

-- The ways in which a user signs in; one of each provider.
CREATE TABLE IF NOT EXISTS identities (
  id               uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id          uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  provider         text NOT NULL,
  subject          text NOT NULL,
  identity_data    jsonb NOT NULL,
  last_sign_in_at  timestamptz,
  created_at       timestamptz NOT NULL DEFAULT now(),
  updated_at       timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT identities_provider_subject_key UNIQUE (provider, subject),
  CONSTRAINT identities_user_id_provider_key UNIQUE (user_id, provider)
);

-- The user object of each user, as text without its audience: it is read far more often than it changes. A table of its own, as it
-- is three times as large as the user, and listings look at many users to show a few.
CREATE TABLE IF NOT EXISTS user_objects (
  user_id  uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  object   text NOT NULL
) WITH (fillfactor = 80);

-- A timestamp as the API shows it, whatever the connection's time zone.
CREATE OR REPLACE FUNCTION iso_8601(moment timestamptz) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

CREATE OR REPLACE FUNCTION identity_object(identity identities) RETURNS json
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT json_build_object(
    'id', identity.id,
    'identity_id', identity.id,
    'user_id', identity.user_id,
    'identity_data', identity.identity_data,
    'provider', identity.provider,
    'last_sign_in_at', iso_8601(identity.last_sign_in_at),
    'created_at', iso_8601(identity.created_at),
    'updated_at', iso_8601(identity.updated_at)
  )
$$;

-- A user's identities, as objects and as the names of their providers, the oldest first.
CREATE OR REPLACE FUNCTION identities_of(owner uuid) RETURNS TABLE (objects json, providers text[])
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT coalesce(json_agg(identity_object(identity) ORDER BY identity.created_at, identity.provider), '[]'::json),
         coalesce(array_agg(identity.provider ORDER BY identity.created_at, identity.provider), '{}')
    FROM identities AS identity
   WHERE identity.user_id = owner
$$;

-- identities_of for a statement that has itself written one of them (or none: null), and doesn't see that in the table.
CREATE OR REPLACE FUNCTION identities_with(written identities, owner uuid) RETURNS TABLE (objects json, providers text[])
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT coalesce(json_agg(identity_object(identity) ORDER BY (identity).created_at, (identity).provider), '[]'::json),
         coalesce(array_agg((identity).provider ORDER BY (identity).created_at, (identity).provider), '{}')
    FROM (SELECT written AS identity WHERE written.id IS NOT NULL
           UNION ALL
          SELECT identity FROM identities AS identity WHERE identity.user_id = owner AND identity.id IS DISTINCT FROM written.id) AS every
$$;

-- The user object of the API but for its audience, which is the deployment's; the only place that knows its fields. The planner
-- inlines it only while it holds no sub-select (24 µs; with one 54), so the identities are handed in: from identities_of, or as
-- just written.
CREATE OR REPLACE FUNCTION user_object(account users, identities json, providers text[]) RETURNS json
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT json_build_object(
    'id', account.id,
    'role', account.role,
    'email', account.email,
    'email_confirmed_at', iso_8601(account.email_confirmed_at),
    'phone', account.phone,
    'phone_confirmed_at', iso_8601(account.phone_confirmed_at),
    'confirmed_at', iso_8601(least(account.email_confirmed_at, account.phone_confirmed_at)),
    'confirmation_sent_at', iso_8601(account.confirmation_sent_at),
    'invited_at', iso_8601(account.invited_at),
    'last_sign_in_at', iso_8601(account.last_sign_in_at),
    'app_metadata', account.app_metadata || jsonb_build_object('provider', providers[1], 'providers', providers),
    'user_metadata', account.user_metadata,
    'identities', identities,
    'new_email', account.new_email,
    'email_change_sent_at', iso_8601(account.email_change_sent_at),
    'new_phone', account.new_phone,
    'phone_change_sent_at', iso_8601(account.phone_change_sent_at),
    'banned_until', iso_8601(account.banned_until),
    'is_anonymous', false,
    'created_at', iso_8601(account.created_at),
    'updated_at', iso_8601(account.updated_at)
  )
$$;

-- A user object with the audience, as its text: of what user_objects holds, or user_object makes.
CREATE OR REPLACE FUNCTION with_audience(object text, audience text) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT '{"aud": ' || to_json(audience) || ', ' || substr(object, 2)
$$;

-- The user object whole.
CREATE OR REPLACE FUNCTION user_object(account users, identities json, providers text[], audience text) RETURNS json
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT with_audience(user_object(account, identities, providers)::text, audience)::json
$$;

-- What user_objects should hold at this moment.
CREATE OR REPLACE FUNCTION made_user_objects() RETURNS TABLE (user_id uuid, object text)
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT account.id, user_object(account, linked.objects, linked.providers)::text
    FROM users AS account
   CROSS JOIN identities_of(account.id) AS linked
$$;

-- To make the object is half of the work of the statements that are run most, and they only read it: so it is made when it changes.
-- VOLATILE, and called with the user's row locked: it sees what all others have done who have had that lock.
CREATE OR REPLACE FUNCTION write_user_object(owner uuid) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  INSERT INTO user_objects (user_id, object)
  SELECT made.user_id, made.object FROM made_user_objects() AS made WHERE made.user_id = owner
  ON CONFLICT (user_id) DO UPDATE SET object = excluded.object
$$;

CREATE OR REPLACE FUNCTION user_has_changed() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM write_user_object(NEW.id);
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER users_object AFTER INSERT OR UPDATE ON users FOR EACH ROW EXECUTE FUNCTION user_has_changed();

CREATE OR REPLACE FUNCTION identity_has_changed() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM FROM users WHERE id IN (OLD.user_id, NEW.user_id) ORDER BY id FOR NO KEY UPDATE;
  PERFORM write_user_object(id) FROM users WHERE id IN (OLD.user_id, NEW.user_id);
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER identities_object AFTER INSERT OR UPDATE OR DELETE ON identities FOR EACH ROW EXECUTE FUNCTION identity_has_changed();

-- In databases that were made before, or when this file has come to make something else of a user. It may take a minute, so it comes
-- before anything else is locked: refreshes go on.
INSERT INTO user_objects (user_id, object)
SELECT made.user_id, made.object
  FROM made_user_objects() AS made
  LEFT JOIN user_objects AS kept ON kept.user_id = made.user_id
 WHERE kept.object IS DISTINCT FROM made.object
ON CONFLICT (user_id) DO UPDATE SET object = excluded.object;

-- One row for each session, however often it is refreshed: `counter` is that of the newest refresh token, and no token is
-- stored. `refreshes` are those of the window that ends at `counted_until`: AUTH_RATE_LIMIT_REFRESH limits them. No index may hold what a refresh changes, so that it stays a heap-only update.
CREATE TABLE IF NOT EXISTS sessions (
  id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id       uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  counter       bigint NOT NULL DEFAULT 0,
  method        text NOT NULL,
  ip            inet,
  user_agent    text,
  created_at    timestamptz NOT NULL DEFAULT now(),
  refreshed_at  timestamptz NOT NULL DEFAULT now(),
  refreshes     integer NOT NULL DEFAULT 0,
  counted_until timestamptz NOT NULL DEFAULT now(),
  ended_at      timestamptz,
  end_reason    session_end_reason,
  CONSTRAINT sessions_ended_check CHECK ((ended_at IS NULL) = (end_reason IS NULL))
) WITH (fillfactor = 70);
-- In databases that were made before, the table has the reasons in a constraint.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_constraint WHERE conrelid = 'sessions'::regclass AND conname = 'sessions_end_reason_check') THEN
    ALTER TABLE sessions
      DROP CONSTRAINT sessions_end_reason_check,
      ALTER COLUMN end_reason TYPE session_end_reason,
      ADD CONSTRAINT sessions_ended_check CHECK ((ended_at IS NULL) = (end_reason IS NULL));
  END IF;
END $$;
-- Of all sessions, not only of those that live: to delete a user is to find the ended ones too.
DROP INDEX IF EXISTS sessions_live;
CREATE INDEX IF NOT EXISTS sessions_user_id ON sessions (user_id, created_at);
-- For the janitor. What has not been refreshed for long has begun long ago, and that never changes.
CREATE INDEX IF NOT EXISTS sessions_ended_at ON sessions (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS sessions_created_at ON sessions (created_at) WHERE ended_at IS NULL;

-- What is sent to prove an address, and spent once: a link (the hash of its token), a code (its MAC), or both. `target` is the
-- address that it proves. Of a purpose the three newest links are good, and the newest code.
CREATE TABLE IF NOT EXISTS one_time_tokens (
  id               uuid PRIMARY KEY,
  user_id          uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  purpose          text NOT NULL,
  target           text NOT NULL,
  token_hash       bytea CONSTRAINT one_time_tokens_token_hash_key UNIQUE,
  code_mac         bytea,
  code_expires_at  timestamptz,
  tries            integer NOT NULL DEFAULT 0,
  redirect_to      text,
  code_challenge   text,
  password_hash    text,
  session_id       uuid,
  created_at       timestamptz NOT NULL DEFAULT now(),
  expires_at       timestamptz NOT NULL,
  spent_at         timestamptz,
  CONSTRAINT one_time_tokens_purpose_check CHECK (
    purpose IN ('signup', 'sms_signup', 'invite', 'magiclink', 'recovery', 'sms', 'email_change', 'phone_change', 'email_restore',
                'reauthentication')
  ),
  CONSTRAINT one_time_tokens_code_check CHECK ((code_mac IS NULL) = (code_expires_at IS NULL))
);
CREATE INDEX IF NOT EXISTS one_time_tokens_user_id ON one_time_tokens (user_id, purpose, created_at);
CREATE INDEX IF NOT EXISTS one_time_tokens_target ON one_time_tokens (target) WHERE code_mac IS NOT NULL;
CREATE INDEX IF NOT EXISTS one_time_tokens_expires_at ON one_time_tokens (expires_at);

-- What a browser brings back to an application that asked with a code_challenge, to be traded for tokens (RFC 7636). A code that
-- was used keeps the session that it made, which ends when the code is used again.
CREATE TABLE IF NOT EXISTS authorization_codes (
  id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id         uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  code_hash       bytea NOT NULL CONSTRAINT authorization_codes_code_hash_key UNIQUE,
  code_challenge  text NOT NULL,
  method          text NOT NULL,
  session_id      uuid,
  created_at      timestamptz NOT NULL DEFAULT now(),
  expires_at      timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS authorization_codes_user_id ON authorization_codes (user_id);
CREATE INDEX IF NOT EXISTS authorization_codes_expires_at ON authorization_codes (expires_at);

-- A sign-in with a provider that is under way: single use, for the browser that began it. `secrets` (nonce, PKCE verifier) are
-- encrypted. One that links an identity to `user_id` has no browser until that person has agreed on a page of ours.
CREATE TABLE IF NOT EXISTS oauth_flows (
  id              uuid PRIMARY KEY,
  state_hash      bytea NOT NULL CONSTRAINT oauth_flows_state_hash_key UNIQUE,
  browser_hash    bytea,
  provider        text NOT NULL,
  secrets         bytea NOT NULL,
  redirect_to     text,
  code_challenge  text,
  user_id         uuid REFERENCES users ON DELETE CASCADE,
  session_id      uuid,
  created_at      timestamptz NOT NULL DEFAULT now(),
  expires_at      timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS oauth_flows_expires_at ON oauth_flows (expires_at);

-- id_tokens that have signed somebody in, until they expire: each serves once.
CREATE TABLE IF NOT EXISTS spent_id_tokens (
  token_hash  bytea PRIMARY KEY,
  expires_at  timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS spent_id_tokens_expires_at ON spent_id_tokens (expires_at);

-- What is to be sent, written by the statement that makes it true. `secret` (the token of a link and a code, encrypted) is there
-- while the message waits. Kind `none` sends nothing: it makes a request for an unknown address write as much as one for a known.
-- Whoever sends a message takes it until `next_attempt_at`; `last_error` is why it wasn't sent then, `response` what the
-- receiving server said when it was.
CREATE TABLE IF NOT EXISTS outbox (
  id                 uuid PRIMARY KEY,
  user_id            uuid,
  channel            text CONSTRAINT outbox_channel_check CHECK (channel IN ('email', 'sms', 'webhook')),
  kind               text NOT NULL,
  recipient          text,
  variables          jsonb NOT NULL DEFAULT '{}',
  secret             bytea,
  one_time_token_id  uuid,
  attempts           integer NOT NULL DEFAULT 0,
  next_attempt_at    timestamptz NOT NULL DEFAULT now(),
  created_at         timestamptz NOT NULL DEFAULT now(),
  expires_at         timestamptz,
  outcome            text CONSTRAINT outbox_outcome_check CHECK (outcome IN ('none', 'sent', 'void', 'expired', 'failed')),
  finished_at        timestamptz,
  last_error         text,
  response           text,
  -- Nobody would ever take it otherwise.
  CONSTRAINT outbox_sendable_check CHECK (outcome IS NOT NULL OR (channel IS NOT NULL AND recipient IS NOT NULL)),
  CONSTRAINT outbox_finished_check CHECK ((outcome IS NULL) = (finished_at IS NULL) AND (outcome IS NULL OR secret IS NULL))
);
CREATE INDEX IF NOT EXISTS outbox_messages_waiting ON outbox (channel, next_attempt_at) WHERE outcome IS NULL AND channel <> 'webhook';
CREATE INDEX IF NOT EXISTS outbox_finished ON outbox (finished_at) WHERE outcome IS NOT NULL;
-- For the timeline of a user, and for what was sent to an address that nobody has.
CREATE INDEX IF NOT EXISTS outbox_user_id ON outbox (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS outbox_address ON outbox (recipient, created_at) WHERE channel <> 'webhook';

-- With AUTH_DEV_INBOX, the last messages as they were sent, encrypted.
CREATE TABLE IF NOT EXISTS dev_inbox (
  id       uuid PRIMARY KEY,
  sealed   bytea NOT NULL,
  kept_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS dev_inbox_kept_at ON dev_inbox (kept_at);

-- Where other systems want to hear of events. `secret` signs what is sent there, and the one before it too until
-- `previous_secret_expires_at`; both are encrypted. One that fails since `failing_since` is tried again at `retry_at`, whatever waits.
-- What is sent to an endpoint are rows of the outbox, whose recipient is its id.
CREATE TABLE IF NOT EXISTS webhooks (
  id                          uuid PRIMARY KEY,
  url                         text NOT NULL,
  description                 text,
  events                      text[] NOT NULL,
  secret                      bytea NOT NULL,
  previous_secret             bytea,
  previous_secret_expires_at  timestamptz,
  failing_since               timestamptz,
  retry_at                    timestamptz,
  disabled_at                 timestamptz,
  disabled_reason             text,
  created_at                  timestamptz NOT NULL DEFAULT now(),
  updated_at                  timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT webhooks_events_check CHECK (
    cardinality(events) > 0 AND events <@ ARRAY['user.created', 'user.updated', 'user.deleted', 'auth.login', 'auth.logout']
  ),
  CONSTRAINT webhooks_disabled_check CHECK (
    (disabled_at IS NULL) = (disabled_reason IS NULL) AND disabled_reason IN ('by_administrator', 'gone', 'failing')
  )
);
-- An endpoint's deliveries: those that wait, and all, as they are listed. What waits for one must be found without looking through what
-- waits for others, so no other index has it.
CREATE INDEX IF NOT EXISTS outbox_events_waiting ON outbox (recipient, next_attempt_at) WHERE channel = 'webhook' AND outcome IS NULL;
CREATE INDEX IF NOT EXISTS outbox_events ON outbox (recipient, created_at, id) WHERE channel = 'webhook';

-- Who did what to whom, from where: a row for each act that matters to security, written by the statement that does it. An act that
-- was refused has a `reason`; those of a minute are one row, with their count, so that a flood can't fill the disk. Users may be
-- deleted; what was done to them stays, until AUTH_AUDIT_RETENTION is over.
CREATE TABLE IF NOT EXISTS audit_log (
  id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  at          timestamptz NOT NULL DEFAULT now(),
  action      text NOT NULL,
  reason      text,
  user_id     uuid,
  actor       text NOT NULL CONSTRAINT audit_log_actor_check CHECK (actor IN ('user', 'service_role', 'anonymous', 'command', 'service')),
  actor_id    uuid,
  ip          inet,
  network     text,
  user_agent  text,
  request_id  text,
  count       integer NOT NULL DEFAULT 1,
  details     jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX IF NOT EXISTS audit_log_at ON audit_log (at, id);
CREATE INDEX IF NOT EXISTS audit_log_user_id ON audit_log (user_id, at, id) WHERE user_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS audit_log_action ON audit_log (action, at, id);
CREATE INDEX IF NOT EXISTS audit_log_request_id ON audit_log (request_id) WHERE request_id IS NOT NULL;

-- Where a message goes, as far as slowness is concerned: one mail host, or the provider of all SMS. An event's webhook is its own.
CREATE OR REPLACE FUNCTION outbox_target(channel text, recipient text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE channel WHEN 'email' THEN split_part(recipient, '@', -1) ELSE channel END
$$;

-- How often something was done in a window that ends at `expires_at`. Requests are counted in a table that a crash of
-- Postgres empties: it costs no write-ahead log. Failed passwords are counted in one that lasts.
CREATE UNLOGGED TABLE IF NOT EXISTS request_counts (
  key         text PRIMARY KEY,
  count       bigint NOT NULL,
  expires_at  timestamptz NOT NULL
) WITH (fillfactor = 70);
CREATE TABLE IF NOT EXISTS failure_counts (
  key         text PRIMARY KEY,
  count       bigint NOT NULL,
  expires_at  timestamptz NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS request_counts_expires_at ON request_counts (expires_at);
CREATE INDEX IF NOT EXISTS failure_counts_expires_at ON failure_counts (expires_at);
-- All windows of an address begin alike.
CREATE INDEX IF NOT EXISTS failure_counts_key ON failure_counts (key COLLATE "C");

-- The networks from which a user has signed in: there a stranger's failures can't lock the user out.
CREATE TABLE IF NOT EXISTS known_networks (
  user_id  uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  network  text NOT NULL,
  seen_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, network)
);
CREATE INDEX IF NOT EXISTS known_networks_seen_at ON known_networks (seen_at);

-- Whether this transaction is the one that cleans up; of several at a time only one does, over all nodes.
CREATE OR REPLACE FUNCTION is_janitors_turn() RETURNS boolean
  LANGUAGE sql VOLATILE
AS $$
  SELECT pg_try_advisory_xact_lock(7239004117)
$$;

-- A webhook as administrators see it: without its secrets.
CREATE OR REPLACE FUNCTION webhook_object(webhook webhooks) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_build_object(
    'id', webhook.id,
    'url', webhook.url,
    'description', webhook.description,
    'events', webhook.events,
    'disabled', webhook.disabled_at IS NOT NULL,
    'disabled_at', iso_8601(webhook.disabled_at),
    'disabled_reason', webhook.disabled_reason,
    'failing_since', iso_8601(webhook.failing_since),
    'previous_secret_expires_at', CASE WHEN webhook.previous_secret_expires_at > now() THEN iso_8601(webhook.previous_secret_expires_at) END,
    'created_at', iso_8601(webhook.created_at),
    'updated_at', iso_8601(webhook.updated_at)
  )
$$;

-- One event on its way to one webhook, and what became of it.
CREATE OR REPLACE FUNCTION delivery_object(message outbox) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_build_object(
    'id', message.id,
    'event', message.kind,
    'event_id', 'msg_' || (message.variables ->> 'event_id'),
    'status', coalesce(message.outcome, 'waiting'),
    'attempts', message.attempts,
    'last_error', message.last_error,
    'response', message.response,
    'created_at', iso_8601(message.created_at),
    'next_attempt_at', CASE WHEN message.outcome IS NULL THEN iso_8601(message.next_attempt_at) END,
    'finished_at', iso_8601(message.finished_at)
  )
$$;

-- Whether there may be one webhook more. Of those that ask at once each waits for the one before: seen after the lock.
CREATE OR REPLACE FUNCTION has_room_for_webhook(most integer) RETURNS boolean
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7239004118);
  RETURN (SELECT count(*) < most FROM webhooks);
END
$$;

-- Metadata after a change: merged by key; null removes one.
CREATE OR REPLACE FUNCTION merge_metadata(metadata jsonb, change jsonb) RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT coalesce(jsonb_object_agg(member.key, member.value) FILTER (WHERE member.value <> 'null'), '{}')
    FROM jsonb_each(metadata || coalesce(change, '{}')) AS member
$$;

-- Whether a session has lived too long: unrefreshed for `lifetime` seconds, or `timebox` (may be null) seconds in all.
CREATE OR REPLACE FUNCTION session_expired(session sessions, lifetime integer, timebox integer) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT session.refreshed_at <= now() - make_interval(secs => lifetime)
      OR coalesce(session.created_at <= now() - make_interval(secs => timebox), false)
$$;

-- Whether a refresh token of ours has been used again after its session moved on: it is behind, and neither the one before the
-- newest nor still within the seconds in which two requests of one client may cross.
CREATE OR REPLACE FUNCTION refresh_token_is_stolen(session sessions, token_counter bigint, reuse_interval integer) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT token_counter < session.counter
     AND NOT (token_counter = session.counter - 1 AND session.refreshed_at > now() - make_interval(secs => reuse_interval))
$$;

-- Whether a session has used up its refreshes in the window that has not ended; `most` is null where there is no limit.
CREATE OR REPLACE FUNCTION refreshes_used_up(session sessions, most integer) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT coalesce(session.refreshes >= most, false) AND session.counted_until > now()
$$;

-- Whether an access token still speaks for its user: `live`, or the error_code that says why not. Every statement that
-- serves a request with an access token asks this. `expires_at` is the token's exp: the clock is this one, not a node's.
CREATE OR REPLACE FUNCTION caller_state(caller users, session sessions, expires_at bigint, lifetime integer, timebox integer) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE
    WHEN to_timestamp(expires_at) <= now() THEN 'bad_jwt'
    WHEN caller.banned_until > now() THEN 'user_banned'
    WHEN session.id IS NULL OR session.ended_at IS NOT NULL THEN 'session_not_found'
    WHEN session_expired(session, lifetime, timebox) THEN 'session_expired'
    ELSE 'live'
  END
$$;

-- caller_state as it is now, for a statement that has waited for the user's row: what ended the session meanwhile is seen.
CREATE OR REPLACE FUNCTION caller_state_now(caller_id uuid, caller_session_id uuid, expires_at bigint, lifetime integer, timebox integer) RETURNS text
  LANGUAGE sql VOLATILE
AS $$
  SELECT caller_state(account, session, expires_at, lifetime, timebox)
    FROM users AS account
    LEFT JOIN sessions AS session ON session.id = caller_session_id AND session.user_id = account.id
   WHERE account.id = caller_id
$$;

-- Whether a session began so many seconds ago (null: no matter) that something sensitive needs more than its token.
CREATE OR REPLACE FUNCTION session_is_old(session_id uuid, age integer) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT coalesce((SELECT created_at <= now() - make_interval(secs => age) FROM sessions WHERE id = session_id), false)
$$;

-- caller_state_now for what is sensitive: a session that is too old for it, and was not reauthenticated, has to be.
CREATE OR REPLACE FUNCTION sensitive_state_now(
  caller_id uuid, caller_session_id uuid, expires_at bigint, lifetime integer, timebox integer, reauthenticated boolean, age integer
) RETURNS text
  LANGUAGE sql VOLATILE
AS $$
  SELECT CASE WHEN state = 'live' AND NOT reauthenticated AND session_is_old(caller_session_id, age) THEN 'reauthentication_needed' ELSE state END
    FROM caller_state_now(caller_id, caller_session_id, expires_at, lifetime, timebox) AS state
$$;

-- Whether this is a sign-up that nobody has confirmed or used: it may be replaced by another one of the same address.
CREATE OR REPLACE FUNCTION is_unused_sign_up(account users) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT account.made_by = 'signup' AND account.email_confirmed_at IS NULL AND account.phone_confirmed_at IS NULL
     AND account.last_sign_in_at IS NULL AND (account.banned_until > now()) IS NOT TRUE
$$;

-- Whether a user has come by signing up with a phone; one that was added later, or by an administrator, is another thing.
CREATE OR REPLACE FUNCTION signed_up_by_phone(account users) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT account.made_by = 'signup'
     AND EXISTS (SELECT FROM identities WHERE user_id = account.id AND provider = 'phone' AND created_at = account.created_at)
$$;

-- Ends a user's live sessions but `kept` (may be null), and says how many.
CREATE OR REPLACE FUNCTION end_sessions(owner uuid, kept uuid, reason text) RETURNS bigint
  LANGUAGE sql VOLATILE
AS $$
  WITH ended AS (
    UPDATE sessions
       SET ended_at = now(), end_reason = reason
     WHERE user_id = owner AND ended_at IS NULL AND id IS DISTINCT FROM kept
    RETURNING id
  )
  SELECT count(*) FROM ended
$$;

-- Whether a listing for administrators has a user: of this email and this role, and with an email, phone or email's domain that
-- begins so (each null: no matter). In collation C a prefix is a range, which an index finds; a % in it is a letter.
CREATE OR REPLACE FUNCTION is_listed(account users, wanted_email text, wanted_role text, prefix text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT (wanted_email IS NULL OR account.email = wanted_email)
     AND (wanted_role IS NULL OR account.role = wanted_role)
     AND (prefix IS NULL
          OR account.email >= prefix AND account.email < prefix || chr(1114111)
          OR account.phone >= prefix AND account.phone < prefix || chr(1114111)
          OR split_part(account.email, '@', 2) COLLATE "C" >= prefix
             AND split_part(account.email, '@', 2) COLLATE "C" < prefix || chr(1114111))
$$;

-- Who is on a page of such a listing, in its order. With its parameters' values at hand the planner folds each CASE to a column or to
-- nothing, so that an index gives the order. Apart from the statement that shows these users, which need not be planned anew each time.
CREATE OR REPLACE FUNCTION page_of_users(
  wanted_email text, wanted_role text, prefix text, sort text, descending boolean, page_size integer, page_offset bigint
)
  RETURNS SETOF uuid
  LANGUAGE plpgsql STABLE ROWS 20
AS $$
BEGIN
  RETURN QUERY
    SELECT id
      FROM users
     WHERE is_listed(users, wanted_email, wanted_role, prefix)
     ORDER BY CASE WHEN sort = 'created_at' AND NOT descending THEN created_at
                   WHEN sort = 'updated_at' AND NOT descending THEN updated_at END,
              CASE WHEN sort = 'created_at' AND descending THEN created_at
                   WHEN sort = 'updated_at' AND descending THEN updated_at END DESC,
              CASE WHEN sort = 'last_sign_in_at' AND NOT descending THEN last_sign_in_at END,
              CASE WHEN sort = 'last_sign_in_at' AND descending THEN last_sign_in_at END DESC NULLS LAST,
              CASE WHEN sort = 'email' AND NOT descending THEN email END,
              CASE WHEN sort = 'email' AND descending THEN email END DESC NULLS LAST,
              CASE WHEN NOT descending THEN id END,
              CASE WHEN descending THEN id END DESC
     LIMIT page_size OFFSET page_offset;
END
$$;

-- Whether a listing has a row of the audit log: about this user, of this action, in this time, of this request (each null: no matter).
CREATE OR REPLACE FUNCTION is_listed(entry audit_log, subject uuid, wanted_action text, since timestamptz, until timestamptz, wanted_request_id text)
  RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT (subject IS NULL OR entry.user_id = subject)
     AND (wanted_action IS NULL OR entry.action = wanted_action)
     AND (since IS NULL OR entry.at >= since)
     AND (until IS NULL OR entry.at < until)
     AND (wanted_request_id IS NULL OR entry.request_id = wanted_request_id)
$$;

-- What became of a message, as the timeline tells it.
CREATE OR REPLACE FUNCTION message_details(message outbox, target text) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_build_object(
    'id', message.id,
    'channel', message.channel,
    'recipient', target,
    'outcome', coalesce(message.outcome, 'waiting'),
    'attempts', message.attempts,
    'last_error', message.last_error,
    'response', message.response,
    'written_at', iso_8601(message.created_at),
    'next_attempt_at', CASE WHEN message.outcome IS NULL THEN iso_8601(message.next_attempt_at) END
  )
$$;

-- What one statement has done is of one moment; in which order the timeline tells it.
CREATE OR REPLACE FUNCTION place_in_moment(name text) RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE name WHEN 'user_created' THEN 0 WHEN 'signed_in' THEN 2 WHEN 'ended' THEN 3 ELSE 1 END
$$;

-- All that is known to have happened to a user: the newest of what the audit log has, so many; what became of sessions as far as it does
-- not tell that; and messages and events, where they are finished with or else were written.
CREATE OR REPLACE FUNCTION timeline_of(owner uuid, lifetime integer, timebox integer, most bigint)
  RETURNS TABLE (at timestamptz, id uuid, kind text, name text, reason text, count bigint, actor text, actor_id uuid, ip inet,
                 user_agent text, request_id text, details jsonb)
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  (SELECT act.at, act.id, CASE WHEN act.reason IS NULL THEN 'act' ELSE 'refusal' END, act.action, act.reason, act.count::bigint,
          act.actor, act.actor_id, act.ip, act.user_agent, act.request_id, act.details
     FROM audit_log AS act
    WHERE act.user_id = owner
    ORDER BY act.at DESC, place_in_moment(act.action) DESC, act.id DESC
    LIMIT most)
   UNION ALL
  -- One transaction has one now(), so what a statement has done and what it has written down of that are of the same moment.
  SELECT session.created_at, session.id, 'session', 'began', NULL::text, 1::bigint, NULL::text, NULL::uuid, session.ip, session.user_agent,
         NULL::text, jsonb_build_object('method', session.method)
    FROM sessions AS session
   WHERE session.user_id = owner
     AND NOT EXISTS (SELECT FROM audit_log AS act WHERE act.user_id = owner AND act.at = session.created_at AND act.action = 'signed_in')
   UNION ALL
  SELECT ended.at, ended.id, 'session', 'ended', ended.reason, ended.count, NULL::text, NULL::uuid, NULL::inet, NULL::text, NULL::text,
         '{}'::jsonb
    FROM (SELECT session.ended_at AS at, min(session.id::text)::uuid AS id, session.end_reason AS reason, count(*) AS count
            FROM sessions AS session
           WHERE session.user_id = owner AND session.ended_at IS NOT NULL
           GROUP BY session.ended_at, session.end_reason) AS ended
   WHERE NOT EXISTS (SELECT
                       FROM audit_log AS act
                      WHERE act.user_id = owner AND act.at = ended.at
                        AND act.action IN ('session_ended', 'signed_out', 'refresh_token_reused', 'authorization_code_reused'))
   UNION ALL
  SELECT least(session.refreshed_at + make_interval(secs => lifetime), session.created_at + make_interval(secs => timebox)), session.id,
         'session', 'expired', NULL::text, 1::bigint, NULL::text, NULL::uuid, NULL::inet, NULL::text, NULL::text, '{}'::jsonb
    FROM sessions AS session
   WHERE session.user_id = owner AND session.ended_at IS NULL AND session_expired(session, lifetime, timebox)
   UNION ALL
  SELECT coalesce(message.finished_at, message.created_at), message.id, 'message', message.kind, NULL::text, 1::bigint, NULL::text, NULL::uuid,
         NULL::inet, NULL::text, NULL::text, message_details(message, message.recipient)
    FROM outbox AS message
   WHERE message.user_id = owner AND message.channel IN ('email', 'sms')
   UNION ALL
  SELECT coalesce(message.finished_at, message.created_at), message.id, 'event', message.kind, NULL::text, 1::bigint, NULL::text, NULL::uuid,
         NULL::inet, NULL::text, NULL::text, message_details(message, coalesce(webhook.url, message.recipient))
    FROM outbox AS message
    LEFT JOIN webhooks AS webhook ON webhook.id::text = message.recipient
   WHERE message.user_id = owner AND message.channel = 'webhook'
$$;

-- Ends the oldest sessions of a user who is about to get one more than `most`, and says how many.
CREATE OR REPLACE FUNCTION end_excess_sessions(owner uuid, most integer, lifetime integer, timebox integer) RETURNS bigint
  LANGUAGE sql VOLATILE
AS $$
  WITH ended AS (
    UPDATE sessions
       SET ended_at = now(), end_reason = 'too_many_sessions'
     WHERE ended_at IS NULL
       AND id = ANY (ARRAY(SELECT session.id
                             FROM sessions AS session
                            WHERE session.user_id = owner AND session.ended_at IS NULL AND NOT session_expired(session, lifetime, timebox)
                            ORDER BY session.created_at DESC
                           OFFSET most - 1))
    RETURNING id
  )
  SELECT count(*) FROM ended
$$;

-- Ends the session that an authorization code has made, and says whether there was one: then the code was used before.
CREATE OR REPLACE FUNCTION end_session_of_code(session_id uuid) RETURNS boolean
  LANGUAGE sql VOLATILE
AS $$
  WITH ended AS (
    UPDATE sessions
       SET ended_at = coalesce(ended_at, now()), end_reason = coalesce(end_reason, 'authorization_code_reused')
     WHERE id = session_id
    RETURNING id
  )
  SELECT EXISTS (SELECT FROM ended)
$$;

-- Whether a user has an identity, seen after the user's row is locked.
CREATE OR REPLACE FUNCTION has_identity(owner uuid, wanted_provider text, wanted_subject text) RETURNS boolean
  LANGUAGE sql VOLATILE
AS $$
  SELECT EXISTS (SELECT FROM identities WHERE user_id = owner AND provider = wanted_provider AND subject = wanted_subject)
$$;

-- How many identities of usable providers a user has besides one, seen after the user's row is locked.
CREATE OR REPLACE FUNCTION other_identities(owner uuid, one uuid, usable text[]) RETURNS bigint
  LANGUAGE sql VOLATILE
AS $$
  SELECT count(*) FROM identities WHERE user_id = owner AND id <> one AND provider = ANY (usable)
$$;

-- Takes back the count of a try whose password was right, and no other (see begin_password_attempt).
CREATE OR REPLACE FUNCTION take_back_attempt(address text, network text, is_stranger boolean) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  UPDATE failure_counts
     SET count = greatest(count - 1, 0)
   WHERE key = ANY (ARRAY(SELECT counter.key
                            FROM failure_counts AS counter
                           WHERE counter.key = 'login ' || address || ' ' || network
                              OR (is_stranger AND counter.key = 'account ' || address)
                           -- First the one that begin_password_attempt counts first: two that count the same can't wait for each other.
                           ORDER BY counter.key DESC
                             FOR UPDATE))
$$;

-- Voids what could still sign a user in: links and codes, whose number it tells, and authorization codes. A message that waits to
-- carry one is not sent then. What was spent stays until it would have expired, so that it is known whose it was when somebody
-- brings it again. What undoes a change of email stays good: whoever has taken over a user would void it first.
CREATE OR REPLACE FUNCTION void_one_time_tokens(owner uuid) RETURNS bigint
  LANGUAGE sql VOLATILE
AS $$
  DELETE FROM authorization_codes WHERE user_id = owner AND session_id IS NULL;
  WITH voided AS (
    DELETE FROM one_time_tokens WHERE user_id = owner AND purpose <> 'email_restore' AND spent_at IS NULL RETURNING id
  )
  SELECT count(*) FROM voided
$$;

-- Counts in the window of a key, which begins with the first and lasts so many seconds; no row for no key.
CREATE OR REPLACE FUNCTION count_up(counted_key text, seconds integer) RETURNS TABLE (count bigint, seconds_left double precision)
  LANGUAGE sql VOLATILE
AS $$
  INSERT INTO failure_counts AS counter (key, count, expires_at)
  SELECT counted_key, 1, now() + make_interval(secs => seconds) WHERE counted_key IS NOT NULL
  ON CONFLICT (key) DO UPDATE
     SET count = CASE WHEN counter.expires_at <= now() THEN 1 ELSE counter.count + 1 END,
         expires_at = CASE WHEN counter.expires_at <= now() THEN excluded.expires_at ELSE counter.expires_at END
  RETURNING counter.count, extract(epoch FROM counter.expires_at - now())::double precision
$$;

-- Counts in several windows, one after the other. `seconds_left` is 0 where all allow one more, else how long the first does not that
-- refuses; the rest tells of that one, or of the one with the least left. What one has refused does not count in those after it:
-- nobody can use up another's messages, or everybody's, by asking in vain.
CREATE OR REPLACE FUNCTION take_from_quota(keys text[], amounts integer[], seconds integer[])
  RETURNS TABLE (seconds_left double precision, amount integer, remaining integer, resets_in double precision)
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  counted record;
BEGIN
  seconds_left := 0;
  FOR place IN 1 .. coalesce(array_length(keys, 1), 0) LOOP
    SELECT * INTO counted FROM count_up(keys[place], seconds[place]);
    -- One that refuses has less than nothing left.
    IF remaining IS NULL OR amounts[place] - counted.count < remaining THEN
      amount := amounts[place];
      remaining := amounts[place] - counted.count;
      resets_in := counted.seconds_left;
    END IF;
    IF remaining < 0 THEN
      remaining := 0;
      seconds_left := resets_in;
      EXIT;
    END IF;
  END LOOP;
  RETURN NEXT;
END
$$;

-- Voids the links that undo changes of email made after a moment: whoever has taken over a user may hold them.
CREATE OR REPLACE FUNCTION void_email_restores(owner uuid, since timestamptz) RETURNS bigint
  LANGUAGE sql VOLATILE
AS $$
  WITH voided AS (
    DELETE FROM one_time_tokens WHERE user_id = owner AND purpose = 'email_restore' AND created_at > since RETURNING id
  )
  SELECT count(*) FROM voided
$$;

-- Whether a link can still be spent. Of a purpose the three newest are good; but of those that undo a change of email all, or
-- whoever has taken over a user would only have to change it three times more.
CREATE OR REPLACE FUNCTION is_good_link(token one_time_tokens) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT token.spent_at IS NULL AND token.expires_at > now()
     AND (token.purpose = 'email_restore'
          OR 3 > (SELECT count(*)
                    FROM one_time_tokens AS newer
                   WHERE newer.user_id = token.user_id AND newer.purpose = token.purpose AND newer.created_at > token.created_at))
$$;

-- Spends the link with this hash, if it is one of the purposes, and still good.
CREATE OR REPLACE FUNCTION spend_link(hash bytea, purposes text[]) RETURNS SETOF one_time_tokens
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  PERFORM account.id FROM users AS account JOIN one_time_tokens AS token ON token.user_id = account.id WHERE token.token_hash = hash
      FOR UPDATE OF account;
  RETURN QUERY
    UPDATE one_time_tokens AS token
       SET spent_at = now()
     WHERE token.token_hash = hash AND token.purpose = ANY (purposes) AND is_good_link(token)
    RETURNING token.*;
END
$$;

-- Tries a code that was sent to an address, for one of the purposes, and spends it when it is right. Each try is counted before
-- it is looked at: five kill a code, and twenty in a day that were wrong all codes of the address. The links beside them stay.
CREATE OR REPLACE FUNCTION spend_code(address text, mac bytea, purposes text[]) RETURNS SETOF one_time_tokens
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  IF mac IS NULL OR (SELECT count FROM count_up('code ' || address, 86400)) > 20 THEN
    RETURN;
  END IF;
  PERFORM account.id
     FROM users AS account
    WHERE account.id = ANY (ARRAY(SELECT token.user_id FROM one_time_tokens AS token WHERE token.target = address AND token.code_mac IS NOT NULL))
    ORDER BY account.id
      FOR UPDATE;
  RETURN QUERY
    WITH tried AS (
      UPDATE one_time_tokens AS token
         SET tries = token.tries + 1,
             spent_at = CASE WHEN token.code_mac = mac THEN now() END
       WHERE token.target = address AND token.purpose = ANY (purposes) AND token.code_mac IS NOT NULL
         AND token.tries < 5 AND token.spent_at IS NULL AND token.code_expires_at > now()
         AND NOT EXISTS (SELECT FROM one_time_tokens AS newer
                          WHERE newer.user_id = token.user_id AND newer.purpose = token.purpose AND newer.code_mac IS NOT NULL
                            AND newer.created_at > token.created_at)
      RETURNING token.*
    )
    SELECT * FROM tried WHERE tried.spent_at IS NOT NULL;
  IF FOUND THEN
    UPDATE failure_counts AS counter SET count = greatest(counter.count - 1, 0) WHERE counter.key = 'code ' || address;
  END IF;
END
$$;

-- Writes down what a statement has done to a user: a row of the audit log for each of `acts`, and a message to each webhook that
-- wants to hear of one of `events`; nulls among them are left out. `origin` is where the request comes from, as every statement
-- that calls this is given it. To be called where it is certain to run: in RETURNING, or in the last SELECT.
CREATE OR REPLACE FUNCTION record_acts(origin jsonb, subject uuid, email text, acts text[], events text[], details jsonb DEFAULT '{}') RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  -- Whoever signs in by a request is the one who acts in it.
  signs_in CONSTANT boolean := origin ->> 'actor' = 'anonymous' AND 'signed_in' = ANY (acts);
BEGIN
  INSERT INTO audit_log (action, user_id, actor, actor_id, ip, network, user_agent, request_id, details)
  SELECT act, subject,
         CASE WHEN signs_in THEN 'user' ELSE origin ->> 'actor' END,
         CASE WHEN signs_in THEN subject ELSE (origin ->> 'actor_id')::uuid END,
         (origin ->> 'ip')::inet, origin ->> 'network', origin ->> 'user_agent', origin ->> 'request_id', jsonb_strip_nulls(details)
    FROM unnest(acts) AS act
   WHERE act IS NOT NULL;

  WITH event AS MATERIALIZED (
    SELECT kind, gen_random_uuid() AS id FROM unnest(events) AS kind WHERE kind IS NOT NULL
  )
  INSERT INTO outbox (id, user_id, channel, kind, recipient, variables)
  SELECT gen_random_uuid(), subject, 'webhook', event.kind, webhook.id,
         jsonb_build_object('event_id', event.id, 'timestamp', iso_8601(now()),
                            'data', jsonb_build_object('user', jsonb_build_object('id', subject, 'email', email)))
    FROM event
    JOIN webhooks AS webhook ON event.kind = ANY (webhook.events) AND webhook.disabled_at IS NULL;
END
$$;

-- Writes down that something was refused: once a minute for each user, action, reason and network, with the count and what was told
-- last. So a flood can't fill the disk.
CREATE OR REPLACE FUNCTION record_refusal(origin jsonb, subject uuid, refused_act text, error_code text, told jsonb) RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  minute CONSTANT timestamptz := date_trunc('minute', now());
  sum CONSTANT text := concat_ws('|', minute, subject, refused_act, error_code, origin ->> 'network', origin ->> 'actor', origin ->> 'actor_id');
BEGIN
  INSERT INTO audit_log AS refusal (id, at, action, reason, user_id, actor, actor_id, ip, network, user_agent, request_id, details)
  VALUES (encode(substr(sha256(convert_to(sum, 'UTF8')), 1, 16), 'hex')::uuid, now(), refused_act, error_code, subject,
          origin ->> 'actor', (origin ->> 'actor_id')::uuid, (origin ->> 'ip')::inet, origin ->> 'network', origin ->> 'user_agent',
          origin ->> 'request_id', told)
  ON CONFLICT (id) DO UPDATE
     SET count = refusal.count + 1, user_agent = excluded.user_agent, request_id = excluded.request_id, details = excluded.details;
END
$$;
