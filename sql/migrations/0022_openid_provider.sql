CREATE TABLE oauth_clients (
  id                          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  name                        text NOT NULL DEFAULT '',
  uri                         text NOT NULL DEFAULT '',
  logo_uri                    text NOT NULL DEFAULT '',
  secret_hash                 bytea,
  token_endpoint_auth_method  text NOT NULL,
  is_dynamic                  boolean NOT NULL DEFAULT false,
  redirect_uris               text[] NOT NULL,
  post_logout_redirect_uris   text[] NOT NULL DEFAULT '{}',
  grant_types                 text[] NOT NULL,
  scopes                      text[] NOT NULL DEFAULT '{}',
  resources                   text[] NOT NULL DEFAULT '{}',
  allowed_roles               text[] NOT NULL DEFAULT '{}',
  require_pkce                boolean NOT NULL DEFAULT true,
  skip_consent                boolean NOT NULL DEFAULT false,
  introspects_sessions        boolean NOT NULL DEFAULT false,
  token_lifetime              integer,
  id_token_signed_response_alg text NOT NULL DEFAULT 'RS256',
  created_at                  timestamptz NOT NULL DEFAULT now(),
  updated_at                  timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT oauth_clients_auth_method_check CHECK (
    token_endpoint_auth_method IN ('none', 'client_secret_basic', 'client_secret_post')
    AND (token_endpoint_auth_method = 'none') = (secret_hash IS NULL)
  ),
  CONSTRAINT oauth_clients_grant_types_check CHECK (
    cardinality(grant_types) > 0
    AND grant_types <@ ARRAY['authorization_code', 'refresh_token', 'client_credentials']
    AND NOT ('client_credentials' = ANY (grant_types) AND secret_hash IS NULL)
  ),
  CONSTRAINT oauth_clients_require_pkce_check CHECK (
    require_pkce OR secret_hash IS NOT NULL AND NOT is_dynamic
  ),
  CONSTRAINT oauth_clients_skip_consent_check CHECK (NOT (skip_consent AND is_dynamic)),
  CONSTRAINT oauth_clients_algorithm_check CHECK (id_token_signed_response_alg IN ('RS256', 'ES256'))
);
CREATE INDEX oauth_clients_created_at ON oauth_clients (created_at, id);

CREATE TABLE oauth_grants (
  id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id     uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  client_id   uuid NOT NULL REFERENCES oauth_clients ON DELETE CASCADE,
  scopes      text[] NOT NULL,
  granted_at  timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT oauth_grants_user_id_client_id_key UNIQUE (user_id, client_id)
);
CREATE INDEX oauth_grants_client_id ON oauth_grants (client_id, granted_at, id);

CREATE TABLE oauth_requests (
  id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  id_hash         bytea NOT NULL CONSTRAINT oauth_requests_id_hash_key UNIQUE,
  client_id       uuid NOT NULL REFERENCES oauth_clients ON DELETE CASCADE,
  browser_hash    bytea NOT NULL,
  redirect_uri    text NOT NULL,
  state           text,
  scopes          text[] NOT NULL,
  resource        text,
  nonce           text,
  code_challenge  text,
  prompts         text[] NOT NULL DEFAULT '{}',
  max_age         integer,
  login_hint      text,
  created_at      timestamptz NOT NULL DEFAULT now(),
  expires_at      timestamptz NOT NULL,
  user_id         uuid REFERENCES users ON DELETE CASCADE,
  session_id      uuid,
  approval_hash   bytea,
  code_hash       bytea CONSTRAINT oauth_requests_code_hash_key UNIQUE,
  code_expires_at timestamptz,
  opened_session_id uuid
);
CREATE INDEX oauth_requests_client_id ON oauth_requests (client_id);
CREATE INDEX oauth_requests_user_id ON oauth_requests (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX oauth_requests_expires_at ON oauth_requests (expires_at);

CREATE TABLE openid_keys (
  id           text PRIMARY KEY,
  algorithm    text NOT NULL,
  sealed       bytea NOT NULL,
  active_from  timestamptz NOT NULL DEFAULT now(),
  created_at   timestamptz NOT NULL DEFAULT now()
);

ALTER TABLE sessions
  ADD COLUMN grant_id uuid CONSTRAINT sessions_grant_id_fkey REFERENCES oauth_grants ON DELETE CASCADE,
  ADD COLUMN scopes text[],
  ADD COLUMN resource text,
  ADD COLUMN auth_time timestamptz;
CREATE INDEX sessions_grant_id ON sessions (grant_id, created_at) WHERE grant_id IS NOT NULL;
