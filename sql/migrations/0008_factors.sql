ALTER TABLE sessions
  ADD COLUMN aal text NOT NULL DEFAULT 'aal1',
  ADD COLUMN amr jsonb,
  ADD COLUMN factor_id uuid;

ALTER DOMAIN session_end_reason DROP CONSTRAINT session_end_reason_check;
ALTER DOMAIN session_end_reason ADD CONSTRAINT session_end_reason_check CHECK (
  VALUE IN ('logout', 'ended_by_user', 'ended_by_admin', 'refresh_token_reused', 'password_changed',
            'email_changed', 'banned', 'address_proved', 'email_restored',
            'authorization_code_reused', 'too_many_sessions', 'way_to_sign_in_removed', 'change_undone',
            'factor_added')
);

ALTER TABLE one_time_tokens ADD COLUMN asks_for_factor boolean NOT NULL DEFAULT false;

CREATE TABLE factors (
  id              uuid PRIMARY KEY,
  user_id         uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  factor_type     text NOT NULL,
  friendly_name   text NOT NULL DEFAULT '',
  verified_at     timestamptz,
  last_used_at    timestamptz,
  created_at      timestamptz NOT NULL DEFAULT now(),
  updated_at      timestamptz NOT NULL DEFAULT now(),
  secret          bytea,
  last_step       bigint,
  credential_id   bytea CONSTRAINT factors_credential_id_key UNIQUE,
  public_key      bytea,
  sign_count      bigint,
  transports      text[],
  aaguid          uuid,
  backup_eligible boolean,
  backed_up       boolean,
  CONSTRAINT factors_factor_type_check CHECK (
    CASE factor_type
      WHEN 'totp' THEN secret IS NOT NULL AND credential_id IS NULL
      WHEN 'webauthn' THEN secret IS NULL AND (verified_at IS NULL) = (credential_id IS NULL)
      WHEN 'passkey' THEN secret IS NULL AND verified_at IS NOT NULL AND credential_id IS NOT NULL
      ELSE false
    END
  ),
  CONSTRAINT factors_credential_check CHECK (
    (credential_id IS NULL) = (public_key IS NULL) AND (credential_id IS NULL) = (sign_count IS NULL)
  )
);
CREATE INDEX factors_user_id ON factors (user_id, created_at);
CREATE INDEX factors_unverified ON factors (created_at) WHERE verified_at IS NULL;
CREATE UNIQUE INDEX factors_friendly_name_key ON factors (user_id, friendly_name)
  WHERE friendly_name <> '' AND verified_at IS NOT NULL AND factor_type <> 'passkey';

CREATE TABLE factor_challenges (
  id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id     uuid REFERENCES users ON DELETE CASCADE,
  session_id  uuid,
  factor_id   uuid REFERENCES factors ON DELETE CASCADE,
  purpose     text NOT NULL CONSTRAINT factor_challenges_purpose_check CHECK (
                purpose IN ('totp', 'webauthn', 'passkey_registration', 'passkey_authentication')
              ),
  challenge   bytea,
  tries       integer NOT NULL DEFAULT 0,
  created_at  timestamptz NOT NULL DEFAULT now(),
  expires_at  timestamptz NOT NULL
);
CREATE INDEX factor_challenges_user_id ON factor_challenges (user_id);
CREATE INDEX factor_challenges_factor_id ON factor_challenges (factor_id);
CREATE INDEX factor_challenges_expires_at ON factor_challenges (expires_at);

CREATE TABLE recovery_codes (
  user_id     uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  code_mac    bytea NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now(),
  used_at     timestamptz,
  PRIMARY KEY (user_id, code_mac)
);
