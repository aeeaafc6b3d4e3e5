-- The tables and indexes of a new database; an existing one gets them by sql/migrations (see sql/schema.py). The functions are
-- in sql/functions. Plain PostgreSQL 14 or later; no extensions.
--
-- Laws that the statements in sql/*.sql rely on:
--   1. A session is inserted only by a statement that also updates (and so locks) its user's row.
--   2. A statement that ends a user's sessions for good, or voids links, updates the user's row first and calls the function
--      for it from RETURNING. The functions are VOLATILE: each query in them sees what was committed while the statement
--      waited for the row, so that a session made at the same moment can't slip through.
--   3. Rows are locked in one order, so that nothing waits in a circle: counts of messages and codes, then the user, then what
--      belongs to it (deleting a user locks that last).

CREATE TABLE schema_version (
  version           integer PRIMARY KEY,
  applied_at        timestamptz NOT NULL DEFAULT now(),
  functions_digest  text
);

-- Metadata travels in each access token, so its size is bounded where it is written. Domains, so that a value is refused by
-- being given, whatever the statement then does with it: a sign-up for a known address must fail like any other.
CREATE DOMAIN user_metadata AS jsonb CONSTRAINT user_metadata_size CHECK (octet_length(VALUE::text) <= 8192);
CREATE DOMAIN app_metadata AS jsonb CONSTRAINT app_metadata_size CHECK (octet_length(VALUE::text) <= 8192);

-- Why a session has ended. Not a constraint of the table: Postgres would read the text of that anew for each refresh.
CREATE DOMAIN session_end_reason AS text CONSTRAINT session_end_reason_check CHECK (
  VALUE IN ('logout', 'ended_by_user', 'ended_by_admin', 'refresh_token_reused', 'password_changed', 'email_changed', 'banned',
            'address_proved', 'email_restored', 'authorization_code_reused', 'too_many_sessions')
);

-- Who can sign in. Addresses are in their canonical form (auth/addresses.py), which makes these constraints mean what they say.
-- `email_proved` differs from `email_confirmed_at` in what was confirmed without proof, by AUTH_AUTOCONFIRM; so does `phone_proved`.
CREATE TABLE users (
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
CREATE INDEX users_created_at ON users (created_at, id);
CREATE INDEX users_role ON users (role, created_at, id) WHERE role <> 'authenticated';
CREATE INDEX users_email_domain ON users ((split_part(email, '@', 2) COLLATE "C"));
-- For a message that is asked for again by the address that is to be proved.
CREATE INDEX users_new_email ON users (new_email) WHERE new_email IS NOT NULL;
CREATE INDEX users_new_phone ON users (new_phone) WHERE new_phone IS NOT NULL;

-- The ways in which a user signs in; one of each provider.
CREATE TABLE identities (
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

-- One row for each session, however often it is refreshed: `counter` is that of the newest refresh token, and no token is
-- stored. `refreshes` are those of the window that ends at `counted_until`: AUTH_RATE_LIMIT_REFRESH limits them. No index may hold what a refresh changes, so that it stays a heap-only update.
CREATE TABLE sessions (
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
-- Of all sessions, not only of those that live: to delete a user is to find the ended ones too.
CREATE INDEX sessions_user_id ON sessions (user_id, created_at);
-- For the janitor. What has not been refreshed for long has begun long ago, and that never changes.
CREATE INDEX sessions_ended_at ON sessions (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_created_at ON sessions (created_at) WHERE ended_at IS NULL;

-- What is sent to prove an address, and spent once: a link (the hash of its token), a code (its MAC), or both. `target` is the
-- address that it proves. Of a purpose the three newest links are good, and the newest code.
CREATE TABLE one_time_tokens (
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
CREATE INDEX one_time_tokens_user_id ON one_time_tokens (user_id, purpose, created_at);
CREATE INDEX one_time_tokens_target ON one_time_tokens (target) WHERE code_mac IS NOT NULL;
CREATE INDEX one_time_tokens_expires_at ON one_time_tokens (expires_at);

-- What a browser brings back to an application that asked with a code_challenge, to be traded for tokens (RFC 7636). A code that
-- was used keeps the session that it made, which ends when the code is used again.
CREATE TABLE authorization_codes (
  id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id         uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  code_hash       bytea NOT NULL CONSTRAINT authorization_codes_code_hash_key UNIQUE,
  code_challenge  text NOT NULL,
  method          text NOT NULL,
  session_id      uuid,
  created_at      timestamptz NOT NULL DEFAULT now(),
  expires_at      timestamptz NOT NULL
);
CREATE INDEX authorization_codes_user_id ON authorization_codes (user_id);
CREATE INDEX authorization_codes_expires_at ON authorization_codes (expires_at);

-- A sign-in with a provider that is under way: single use, for the browser that began it. `secrets` (nonce, PKCE verifier) are
-- encrypted. One that links an identity to `user_id` has no browser until that person has agreed on a page of ours.
CREATE TABLE oauth_flows (
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
CREATE INDEX oauth_flows_expires_at ON oauth_flows (expires_at);

-- id_tokens that have signed somebody in, until they expire: each serves once.
CREATE TABLE spent_id_tokens (
  token_hash  bytea PRIMARY KEY,
  expires_at  timestamptz NOT NULL
);
CREATE INDEX spent_id_tokens_expires_at ON spent_id_tokens (expires_at);

-- What is to be sent, written by the statement that makes it true. `secret` (the token of a link and a code, encrypted) is there
-- while the message waits. Kind `none` sends nothing: it makes a request for an unknown address write as much as one for a known.
-- Whoever sends a message takes it until `next_attempt_at`; `last_error` is why it wasn't sent then, `response` what the
-- receiving server said when it was.
CREATE TABLE outbox (
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
CREATE INDEX outbox_messages_waiting ON outbox (channel, next_attempt_at) WHERE outcome IS NULL AND channel <> 'webhook';
CREATE INDEX outbox_finished ON outbox (finished_at) WHERE outcome IS NOT NULL;
-- For the timeline of a user, and for what was sent to an address that nobody has.
CREATE INDEX outbox_user_id ON outbox (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX outbox_address ON outbox (recipient, created_at) WHERE channel <> 'webhook';

-- With AUTH_DEV_INBOX, the last messages as they were sent, encrypted.
CREATE TABLE dev_inbox (
  id       uuid PRIMARY KEY,
  sealed   bytea NOT NULL,
  kept_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX dev_inbox_kept_at ON dev_inbox (kept_at);

-- Where other systems want to hear of events. `secret` signs what is sent there, and the one before it too until
-- `previous_secret_expires_at`; both are encrypted. One that fails since `failing_since` is tried again at `retry_at`, whatever waits.
-- What is sent to an endpoint are rows of the outbox, whose recipient is its id.
CREATE TABLE webhooks (
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
CREATE INDEX outbox_events_waiting ON outbox (recipient, next_attempt_at) WHERE channel = 'webhook' AND outcome IS NULL;
CREATE INDEX outbox_events ON outbox (recipient, created_at, id) WHERE channel = 'webhook';

-- Who did what to whom, from where: a row for each act that matters to security, written by the statement that does it. An act that
-- was refused has a `reason`; those of a minute are one row, with their count, so that a flood can't fill the disk. Users may be
-- deleted; what was done to them stays, until AUTH_AUDIT_RETENTION is over.
CREATE TABLE audit_log (
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
CREATE INDEX audit_log_at ON audit_log (at, id);
CREATE INDEX audit_log_user_id ON audit_log (user_id, at, id) WHERE user_id IS NOT NULL;
CREATE INDEX audit_log_action ON audit_log (action, at, id);
CREATE INDEX audit_log_request_id ON audit_log (request_id) WHERE request_id IS NOT NULL;

-- How often something was done in a window that ends at `expires_at`. Requests are counted in a table that a crash of
-- Postgres empties: it costs no write-ahead log. Failed passwords are counted in one that lasts.
CREATE UNLOGGED TABLE request_counts (
  key         text PRIMARY KEY,
  count       bigint NOT NULL,
  expires_at  timestamptz NOT NULL
) WITH (fillfactor = 70);
CREATE TABLE failure_counts (
  key         text PRIMARY KEY,
  count       bigint NOT NULL,
  expires_at  timestamptz NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX request_counts_expires_at ON request_counts (expires_at);
CREATE INDEX failure_counts_expires_at ON failure_counts (expires_at);
-- All windows of an address begin alike.
CREATE INDEX failure_counts_key ON failure_counts (key COLLATE "C");

-- The networks from which a user has signed in: there a stranger's failures can't lock the user out.
CREATE TABLE known_networks (
  user_id  uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  network  text NOT NULL,
  seen_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, network)
);
CREATE INDEX known_networks_seen_at ON known_networks (seen_at);
