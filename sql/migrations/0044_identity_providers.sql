ALTER DOMAIN session_end_reason DROP CONSTRAINT session_end_reason_check;
ALTER DOMAIN session_end_reason ADD CONSTRAINT session_end_reason_check CHECK (
  VALUE IN ('logout', 'ended_by_user', 'ended_by_admin', 'refresh_token_reused', 'password_changed',
            'email_changed', 'banned', 'address_proved', 'email_restored',
            'authorization_code_reused', 'too_many_sessions', 'way_to_sign_in_removed', 'change_undone',
            'factor_added', 'others_signed_out', 'phone_changed', 'identity_linked', 'recovered',
            'reset_by_admin', 'access_lost', 'restored', 'provider_disabled')
);

CREATE TABLE identity_providers (
  id                       uuid PRIMARY KEY,
  identifier               text NOT NULL CONSTRAINT identity_providers_identifier_key UNIQUE,
  name                     text NOT NULL,
  issuer                   text NOT NULL,
  discovery_url            text NOT NULL DEFAULT '',
  client_id                text NOT NULL,
  client_secret            bytea NOT NULL,
  acceptable_client_ids    text[] NOT NULL DEFAULT '{}',
  scopes                   text[] NOT NULL DEFAULT '{}',
  authorization_params     jsonb NOT NULL DEFAULT '{}',
  attribute_mapping        jsonb NOT NULL DEFAULT '{}',
  custom_claims_allowlist  text[] NOT NULL DEFAULT '{}',
  enabled                  boolean NOT NULL DEFAULT true,
  created_at               timestamptz NOT NULL DEFAULT now(),
  updated_at               timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE identity_provider_domains (
  domain       text PRIMARY KEY,
  provider_id  uuid NOT NULL REFERENCES identity_providers ON DELETE CASCADE
);
CREATE INDEX identity_provider_domains_provider_id ON identity_provider_domains (provider_id);

CREATE TABLE identity_provider_adoptions (
  user_id      uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  provider_id  uuid NOT NULL REFERENCES identity_providers ON DELETE CASCADE,
  adopted_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX identity_provider_adoptions_provider_id ON identity_provider_adoptions (provider_id);
