-- Some thirty schemas may have made a database without a version, so each change asks whether it is needed.

CREATE TABLE schema_version (
  version           integer PRIMARY KEY,
  applied_at        timestamptz NOT NULL DEFAULT now(),
  functions_digest  text
);
-- Without this table, the releases that had no versions refuse the database.
DROP TABLE latchkey_schema;

-- CREATE OR REPLACE refuses other names of parameters and other types of results.
DO $$
DECLARE
  obsolete regprocedure;
BEGIN
  FOR obsolete IN
    SELECT oid
      FROM pg_proc
     WHERE pronamespace = current_schema()::regnamespace
       AND proname IN (
             'caller_state', 'caller_state_now', 'count_messages', 'count_up',
             'delivery_object', 'end_excess_sessions', 'end_session_of_code', 'end_sessions',
             'has_identity', 'has_room_for_webhook', 'identities_of', 'identities_with',
             'identity_has_changed', 'identity_object', 'is_good_link', 'is_janitors_turn',
             'is_listed', 'is_unused_sign_up', 'iso_8601', 'made_user_objects',
             'merge_metadata', 'message_details', 'other_identities', 'outbox_target',
             'page_of_users', 'place_in_moment', 'record_acts', 'record_refusal',
             'refresh_token_is_stolen', 'refreshes_used_up', 'sensitive_state_now',
             'session_expired', 'session_is_old', 'signed_up_by_phone', 'spend_code',
             'spend_link', 'take_back_attempt', 'take_from_quota', 'timeline_of',
             'user_has_changed', 'user_object', 'void_email_restores', 'void_one_time_tokens',
             'webhook_object', 'with_audience', 'write_user_object')
  LOOP
    EXECUTE format('DROP FUNCTION %s CASCADE', obsolete);
  END LOOP;
END $$;

ALTER TABLE users
  ALTER COLUMN email TYPE text COLLATE "C",
  ALTER COLUMN phone TYPE text COLLATE "C",
  ADD COLUMN IF NOT EXISTS phone_proved boolean NOT NULL DEFAULT false,
  ADD COLUMN IF NOT EXISTS signup_user_agent text,
  DROP CONSTRAINT users_made_by_check;
UPDATE users
   SET made_by = CASE made_by WHEN 'admin' THEN 'administrator' ELSE 'invitation' END
 WHERE made_by IN ('admin', 'invite');
ALTER TABLE users
  ADD CONSTRAINT users_made_by_check CHECK (
    made_by IN ('signup', 'administrator', 'message', 'invitation', 'link', 'oauth')
  );
CREATE INDEX IF NOT EXISTS users_created_at ON users (created_at, id);
CREATE INDEX IF NOT EXISTS users_role ON users (role, created_at, id) WHERE role <> 'authenticated';
CREATE INDEX IF NOT EXISTS users_email_domain ON users ((split_part(email, '@', 2) COLLATE "C"));
CREATE INDEX IF NOT EXISTS users_new_email ON users (new_email) WHERE new_email IS NOT NULL;
CREATE INDEX IF NOT EXISTS users_new_phone ON users (new_phone) WHERE new_phone IS NOT NULL;

CREATE TABLE IF NOT EXISTS user_objects (
  user_id  uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  object   text NOT NULL
) WITH (fillfactor = 80);

DO $$
BEGIN
  IF to_regtype('session_end_reason') IS NULL THEN
    CREATE DOMAIN session_end_reason AS text CONSTRAINT session_end_reason_check CHECK (
      VALUE IN ('logout', 'ended_by_user', 'ended_by_admin', 'refresh_token_reused', 'password_changed',
                'email_changed', 'banned', 'address_proved', 'email_restored',
                'authorization_code_reused', 'too_many_sessions')
    );
    ALTER TABLE sessions
      DROP CONSTRAINT sessions_end_reason_check,
      ALTER COLUMN end_reason TYPE session_end_reason,
      ADD CONSTRAINT sessions_ended_check CHECK ((ended_at IS NULL) = (end_reason IS NULL));
  END IF;
END $$;
ALTER TABLE sessions
  ADD COLUMN IF NOT EXISTS refreshes integer NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS counted_until timestamptz NOT NULL DEFAULT now();
DROP INDEX IF EXISTS sessions_live;
CREATE INDEX IF NOT EXISTS sessions_user_id ON sessions (user_id, created_at);
CREATE INDEX IF NOT EXISTS sessions_ended_at ON sessions (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS sessions_created_at ON sessions (created_at) WHERE ended_at IS NULL;

ALTER TABLE one_time_tokens
  ALTER COLUMN token_hash DROP NOT NULL,
  ADD COLUMN IF NOT EXISTS code_mac bytea,
  ADD COLUMN IF NOT EXISTS code_expires_at timestamptz,
  ADD COLUMN IF NOT EXISTS tries integer NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS code_challenge text,
  ADD COLUMN IF NOT EXISTS password_hash text,
  ADD COLUMN IF NOT EXISTS session_id uuid,
  ADD COLUMN IF NOT EXISTS spent_at timestamptz,
  DROP COLUMN IF EXISTS user_agent,
  DROP CONSTRAINT one_time_tokens_purpose_check,
  ADD CONSTRAINT one_time_tokens_purpose_check CHECK (
    purpose IN ('signup', 'sms_signup', 'invite', 'magiclink', 'recovery', 'sms', 'email_change',
                'phone_change', 'email_restore', 'reauthentication')
  ),
  DROP CONSTRAINT IF EXISTS one_time_tokens_code_check,
  ADD CONSTRAINT one_time_tokens_code_check CHECK ((code_mac IS NULL) = (code_expires_at IS NULL));
DROP INDEX one_time_tokens_user_id;
CREATE INDEX one_time_tokens_user_id ON one_time_tokens (user_id, purpose, created_at);
CREATE INDEX IF NOT EXISTS one_time_tokens_target ON one_time_tokens (target) WHERE code_mac IS NOT NULL;
CREATE INDEX IF NOT EXISTS one_time_tokens_expires_at ON one_time_tokens (expires_at);

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

CREATE TABLE IF NOT EXISTS spent_id_tokens (
  token_hash  bytea PRIMARY KEY,
  expires_at  timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS spent_id_tokens_expires_at ON spent_id_tokens (expires_at);

ALTER TABLE outbox
  ADD COLUMN IF NOT EXISTS channel text,
  ADD COLUMN IF NOT EXISTS last_error text,
  ADD COLUMN IF NOT EXISTS response text;
-- The first schema sent nothing but mail.
UPDATE outbox SET channel = 'email' WHERE channel IS NULL AND outcome IS NULL;
ALTER TABLE outbox
  DROP CONSTRAINT IF EXISTS outbox_channel_check,
  ADD CONSTRAINT outbox_channel_check CHECK (channel IN ('email', 'sms', 'webhook')),
  DROP CONSTRAINT outbox_outcome_check,
  ADD CONSTRAINT outbox_outcome_check CHECK (outcome IN ('none', 'sent', 'void', 'expired', 'failed')),
  DROP CONSTRAINT IF EXISTS outbox_sendable_check,
  ADD CONSTRAINT outbox_sendable_check CHECK (
    outcome IS NOT NULL OR (channel IS NOT NULL AND recipient IS NOT NULL)
  );
DROP INDEX IF EXISTS outbox_waiting;
CREATE INDEX IF NOT EXISTS outbox_messages_waiting ON outbox (channel, next_attempt_at)
  WHERE outcome IS NULL AND channel <> 'webhook';
CREATE INDEX IF NOT EXISTS outbox_finished ON outbox (finished_at) WHERE outcome IS NOT NULL;
CREATE INDEX IF NOT EXISTS outbox_user_id ON outbox (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS outbox_address ON outbox (recipient, created_at) WHERE channel <> 'webhook';
CREATE INDEX IF NOT EXISTS outbox_events_waiting ON outbox (recipient, next_attempt_at)
  WHERE channel = 'webhook' AND outcome IS NULL;
CREATE INDEX IF NOT EXISTS outbox_events ON outbox (recipient, created_at, id) WHERE channel = 'webhook';

CREATE TABLE IF NOT EXISTS dev_inbox (
  id       uuid PRIMARY KEY,
  sealed   bytea NOT NULL,
  kept_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS dev_inbox_kept_at ON dev_inbox (kept_at);

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
    cardinality(events) > 0
    AND events <@ ARRAY['user.created', 'user.updated', 'user.deleted', 'auth.login', 'auth.logout']
  ),
  CONSTRAINT webhooks_disabled_check CHECK (
    (disabled_at IS NULL) = (disabled_reason IS NULL)
    AND disabled_reason IN ('by_administrator', 'gone', 'failing')
  )
);
-- The schemas with the column `secrets` had no endpoint that adds a webhook, so the table is empty there.
ALTER TABLE webhooks
  DROP COLUMN IF EXISTS secrets,
  ADD COLUMN IF NOT EXISTS secret bytea NOT NULL,
  ADD COLUMN IF NOT EXISTS previous_secret bytea,
  ADD COLUMN IF NOT EXISTS retry_at timestamptz;

CREATE TABLE IF NOT EXISTS audit_log (
  id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  at          timestamptz NOT NULL DEFAULT now(),
  action      text NOT NULL,
  reason      text,
  user_id     uuid,
  actor       text NOT NULL CONSTRAINT audit_log_actor_check CHECK (
    actor IN ('user', 'service_role', 'anonymous', 'command', 'service')
  ),
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

CREATE UNLOGGED TABLE IF NOT EXISTS request_counts (
  key         text PRIMARY KEY,
  count       bigint NOT NULL,
  expires_at  timestamptz NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS request_counts_expires_at ON request_counts (expires_at);
CREATE TABLE IF NOT EXISTS failure_counts (
  key         text PRIMARY KEY,
  count       bigint NOT NULL,
  expires_at  timestamptz NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS failure_counts_expires_at ON failure_counts (expires_at);
CREATE INDEX IF NOT EXISTS failure_counts_key ON failure_counts (key COLLATE "C");

CREATE TABLE IF NOT EXISTS known_networks (
  user_id  uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  network  text NOT NULL,
  seen_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, network)
);
CREATE INDEX IF NOT EXISTS known_networks_seen_at ON known_networks (seen_at);
