-- The tables of a new database; sql/migrations upgrade an existing one. PostgreSQL 14 or later.
--   1. sql/acts.py locks, in one order. Sessions are inserted, and sessions and links ended for good, only with
--      the user's row locked.
--   2. A restore that inserts users with triggers off (session_replication_role) must fill user_objects.

-- Releases whose newest migration is older than `usable_from` cannot use this version.
CREATE TABLE schema_version (
  version           integer PRIMARY KEY,
  applied_at        timestamptz NOT NULL DEFAULT now(),
  functions_digest  text,
  usable_from       integer
);

-- Limited, because metadata is part of each access token. A domain also refuses a parameter that is not
-- stored: a sign-up for a taken address must fail like any other.
CREATE DOMAIN user_metadata AS jsonb CONSTRAINT user_metadata_size CHECK (octet_length(VALUE::text) <= 8192);
CREATE DOMAIN app_metadata AS jsonb CONSTRAINT app_metadata_size CHECK (octet_length(VALUE::text) <= 8192);

-- A domain, because Postgres would parse a constraint of the table again for each refresh. auth/rules/ends.py
-- has the size of each reason.
CREATE DOMAIN session_end_reason AS text CONSTRAINT session_end_reason_check CHECK (
  VALUE IN ('logout', 'ended_by_user', 'ended_by_admin', 'refresh_token_reused', 'password_changed',
            'email_changed', 'banned', 'address_proved', 'email_restored',
            'authorization_code_reused', 'too_many_sessions', 'way_to_sign_in_removed', 'change_undone',
            'factor_added', 'others_signed_out', 'phone_changed', 'identity_linked', 'recovered',
            'reset_by_admin', 'access_lost', 'restored', 'provider_disabled', 'provider_lost', 'promoted')
);

-- `email_proved` and `phone_proved` are false for what AUTH_AUTOCONFIRM or an administrator confirmed.
-- `converted_at` is when an anonymous user became permanent. `first_factor_at` is kept when the factor goes,
-- so that a thief who replaces all factors has no first one. `sign_up_hash` is the password of the newest of
-- several sign-ups, of which no password counts yet. `password_vouched` is true for a password that an operator
-- or an import set for this address, null in rows of 0.5.1. `password_set_at` is null for one from before 0.7.1.
--
-- Here and below, `by_key` is true for what an administrative key has set, and for a session that the key,
-- its link, or something so set has opened. It is false for other sessions, and null otherwise and in rows of
-- 0.7.0. `email_by_key` and `phone_by_key` are the last addresses that a key has set; the user may have
-- others by now.
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
  converted_at          timestamptz,
  first_factor_at       timestamptz,
  sign_up_hash          text,
  password_leaked_at    timestamptz,
  password_vouched      boolean,
  password_by_key       boolean,
  email_by_key          text,
  phone_by_key          text,
  password_set_at       timestamptz DEFAULT now(),
  CONSTRAINT users_made_by_check CHECK (
    made_by IN ('signup', 'administrator', 'import', 'message', 'invitation', 'link', 'oauth', 'anonymous')
  )
) WITH (fillfactor = 80);
CREATE INDEX users_created_at ON users (created_at, id);
CREATE INDEX users_role ON users (role, created_at, id) WHERE role <> 'authenticated';
CREATE INDEX users_email_domain ON users ((split_part(email, '@', 2) COLLATE "C"));
-- For the janitor. Does not contain last_sign_in_at, or sign-ins would not be heap-only updates.
CREATE INDEX users_unproved ON users (created_at)
  WHERE made_by IN ('signup', 'message') AND NOT email_proved AND NOT phone_proved;
CREATE INDEX users_anonymous ON users (created_at, id) WHERE made_by = 'anonymous' AND converted_at IS NULL;
CREATE INDEX users_new_email ON users (new_email) WHERE new_email IS NOT NULL;
CREATE INDEX users_new_phone ON users (new_phone) WHERE new_phone IS NOT NULL;
CREATE INDEX users_banned ON users (created_at, id) WHERE banned_until IS NOT NULL;
CREATE INDEX users_unconfirmed ON users (created_at, id)
  WHERE email_confirmed_at IS NULL AND phone_confirmed_at IS NULL AND coalesce(email, phone) IS NOT NULL;
-- The expression is that of the functions words_of and name_of. With fastupdate, searches would read a list
-- of new words.
CREATE INDEX users_names ON users USING gin (
  to_tsvector('simple', translate(
    coalesce(email, '') || ' ' ||
    coalesce(coalesce(nullif(user_metadata ->> 'name', ''), nullif(user_metadata ->> 'full_name', ''),
                      nullif(btrim(coalesce(user_metadata ->> 'given_name', '') || ' ' ||
                                   coalesce(user_metadata ->> 'family_name', '')), '')), ''),
    '@._+-/’', '       '))
) WITH (fastupdate = off);

-- `is_first_proof` if linking it was the first proof of the user's address, or it replaced one that was or that made
-- the account; null in rows of 0.7.x.
CREATE TABLE identities (
  id               uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id          uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  provider         text NOT NULL,
  subject          text NOT NULL,
  identity_data    jsonb NOT NULL,
  last_sign_in_at  timestamptz,
  created_at       timestamptz NOT NULL DEFAULT now(),
  updated_at       timestamptz NOT NULL DEFAULT now(),
  by_key           boolean,
  is_first_proof   boolean,
  CONSTRAINT identities_provider_subject_key UNIQUE (provider, subject) INCLUDE (user_id),
  CONSTRAINT identities_user_id_provider_key UNIQUE (user_id, provider)
);

-- The order of users by their last sign-in, -infinity for never, has its index here: see users_unproved. A
-- trigger of `users` writes it. It has held the user objects, too: hence its name.
CREATE TABLE user_objects (
  user_id          uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  last_sign_in_at  timestamptz NOT NULL DEFAULT '-infinity'
);
CREATE INDEX user_objects_last_sign_in_at ON user_objects (last_sign_in_at, user_id);

-- Applications that sign users in here (OpenID Connect, OAuth 2.1). A public client has no secret. `scopes`
-- are those of grant_type=client_credentials, `resources` the allowed audiences (RFC 8707), `allowed_roles`
-- those of the users who may use it: empty for all. A client whose id is a URL has it as `metadata_url`: its
-- document is current until `fetched_until`. A client with an organization admits its members alone. Nodes of
-- 0.6.1 did not know them, so such a client is always stored with `is_blocked`, and with `admits_members`
-- unless an administrator has blocked it: read refuses_all instead. Nodes of 0.7.x write both, so they stay
-- until 0.9.0.
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
  backchannel_logout_uri      text NOT NULL DEFAULT '',
  previous_secret_hash        bytea,
  previous_secret_expires_at  timestamptz,
  accepts_either_method       boolean NOT NULL DEFAULT false,
  policy_uri                  text NOT NULL DEFAULT '',
  tos_uri                     text NOT NULL DEFAULT '',
  metadata_url                text,
  fetched_until               timestamptz,
  is_blocked                  boolean NOT NULL DEFAULT false,
  created_at                  timestamptz NOT NULL DEFAULT now(),
  updated_at                  timestamptz NOT NULL DEFAULT now(),
  organization_id             uuid,
  admits_members              boolean NOT NULL DEFAULT false,
  CONSTRAINT oauth_clients_auth_method_check CHECK (
    token_endpoint_auth_method IN ('none', 'client_secret_basic', 'client_secret_post')
    AND (token_endpoint_auth_method = 'none') = (secret_hash IS NULL)
  ),
  CONSTRAINT oauth_clients_grant_types_check CHECK (
    cardinality(grant_types) > 0
    AND grant_types <@ ARRAY['authorization_code', 'refresh_token', 'client_credentials',
                             'urn:ietf:params:oauth:grant-type:device_code']
    AND NOT ('client_credentials' = ANY (grant_types) AND secret_hash IS NULL)
    AND NOT ('urn:ietf:params:oauth:grant-type:device_code' = ANY (grant_types) AND is_dynamic)
  ),
  CONSTRAINT oauth_clients_require_pkce_check CHECK (
    require_pkce OR secret_hash IS NOT NULL AND NOT is_dynamic
  ),
  CONSTRAINT oauth_clients_skip_consent_check CHECK (NOT (skip_consent AND is_dynamic)),
  CONSTRAINT oauth_clients_algorithm_check CHECK (id_token_signed_response_alg IN ('RS256', 'ES256')),
  CONSTRAINT oauth_clients_organization_check CHECK (
    CASE WHEN organization_id IS NULL THEN NOT admits_members ELSE is_blocked AND NOT is_dynamic END
  )
);
CREATE INDEX oauth_clients_created_at ON oauth_clients (created_at, id);
CREATE INDEX oauth_clients_organization_id ON oauth_clients (organization_id) WHERE organization_id IS NOT NULL;

-- The scopes that a user allows an application, and the redirect URIs: the one that the page of consent showed, and those
-- on its host that the client had at that time. There are none in a grant of whose use nobody was asked, by
-- `skip_consent`, and they are null in one that a node of 0.7.x wrote: when the client asks, it asks again. The sessions
-- of a grant go with it.
CREATE TABLE oauth_grants (
  id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id     uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  client_id   uuid NOT NULL REFERENCES oauth_clients ON DELETE CASCADE,
  scopes      text[] NOT NULL,
  granted_at  timestamptz NOT NULL DEFAULT now(),
  redirect_uris text[],
  CONSTRAINT oauth_grants_user_id_client_id_key UNIQUE (user_id, client_id)
);
CREATE INDEX oauth_grants_client_id ON oauth_grants (client_id, granted_at, id);

-- `counter` is that of the newest refresh token; for `used_counter`, `successor_counter` and `echoes` see
-- auth/rules/refreshing.py. `refreshes` counts in a window that ends at `counted_until`.
-- `amr` is null while `method` is the only one; `factor_id` is the factor that the level `aal2` came from.
-- `opened_by` is the session that gave an application this one, on our pages or by its consent;
-- `code_given_at` is when a code from the user's mailbox was last given in it, `factor_proved_at` when a factor
-- was last used in it. The columns from grant_id on are of a session that an application has by
-- grant_type=authorization_code: it is no session of the user's; `auth_time` is when the user authenticated.
-- `organization_id` is the organization that the user has chosen for the application.
-- `first_passkey_at` is when its user's first factor, a passkey, was registered in it (see
-- auth/rules/levels.py). `provider_term` is the term in which a customer's provider opened it, or the session that
-- opened it: see identity_providers.
-- No index may contain a column that a refresh changes, so that it is a heap-only update.
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
  reauthenticated_at  timestamptz,
  aal           text NOT NULL DEFAULT 'aal1',
  amr           jsonb,
  factor_id     uuid,
  opened_by     uuid,
  code_given_at timestamptz,
  factor_proved_at timestamptz,
  grant_id      uuid CONSTRAINT sessions_grant_id_fkey REFERENCES oauth_grants ON DELETE CASCADE,
  scopes        text[],
  resource      text,
  auth_time     timestamptz,
  first_passkey_at timestamptz,
  used_counter      bigint,
  successor_counter bigint,
  echoes            jsonb,
  organization_id   uuid,
  by_key            boolean,
  provider_term     uuid,
  CONSTRAINT sessions_ended_check CHECK ((ended_at IS NULL) = (end_reason IS NULL))
) WITH (fillfactor = 70);
CREATE INDEX sessions_user_id ON sessions (user_id, created_at);
CREATE INDEX sessions_ended_at ON sessions (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_user_id_ended_at ON sessions (user_id, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_created_at ON sessions (created_at) WHERE ended_at IS NULL;
CREATE INDEX sessions_grant_id ON sessions (grant_id, created_at) WHERE grant_id IS NOT NULL;
CREATE INDEX sessions_provider_term ON sessions (provider_term) WHERE provider_term IS NOT NULL AND ended_at IS NULL;

-- Second factors, and passkeys, which sign in on their own. Unverified ones expire, and a
-- user has at most ten. A passkey is unverified from when a browser made it unasked until its first use. Only
-- verified ones are factors. `secret` is encrypted; `last_step` is the newest time step whose code was used. The
-- columns from credential_id on are WebAuthn's.
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
  by_key          boolean,
  CONSTRAINT factors_factor_type_check CHECK (
    CASE factor_type
      WHEN 'totp' THEN secret IS NOT NULL AND credential_id IS NULL
      WHEN 'webauthn' THEN secret IS NULL AND (verified_at IS NULL) = (credential_id IS NULL)
      WHEN 'passkey' THEN secret IS NULL AND credential_id IS NOT NULL
      ELSE false
    END
  ),
  CONSTRAINT factors_credential_check CHECK (
    (credential_id IS NULL) = (public_key IS NULL) AND (credential_id IS NULL) = (sign_count IS NULL)
  )
);
CREATE INDEX factors_user_id ON factors (user_id, created_at);
CREATE INDEX factors_unverified ON factors (created_at) WHERE verified_at IS NULL AND factor_type <> 'passkey';
CREATE INDEX factors_unused_passkeys ON factors (created_at) WHERE verified_at IS NULL AND factor_type = 'passkey';
CREATE UNIQUE INDEX factors_friendly_name_key ON factors (user_id, friendly_name)
  WHERE friendly_name <> '' AND verified_at IS NOT NULL AND factor_type <> 'passkey';

-- Single use. Those for signing in with a passkey have no user yet.
CREATE TABLE factor_challenges (
  id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id     uuid REFERENCES users ON DELETE CASCADE,
  session_id  uuid,
  factor_id   uuid REFERENCES factors ON DELETE CASCADE,
  purpose     text NOT NULL CONSTRAINT factor_challenges_purpose_check CHECK (
                purpose IN ('totp', 'webauthn', 'passkey_registration', 'passkey_upgrade', 'passkey_authentication')
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
  friendly_name text NOT NULL DEFAULT '',
  by_key      boolean,
  PRIMARY KEY (user_id, code_mac)
);

-- Keys of users for programs. `key_mac` is behind the id of the secret key that made it, and is renewed with
-- the newest one at each use. The time of the last use is a day, so that the list tells no habits. A key has
-- the level `aal` and the `provider_term` of the session that made it. `refreshes` and `counted_until` are as in
-- `sessions`. The default marks a key of a node of 0.7.x, which a trigger then gives the term of the user's identity.
CREATE TABLE api_keys (
  id            uuid PRIMARY KEY,
  user_id       uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  name          text NOT NULL,
  key_mac       bytea NOT NULL,
  scopes        text[] NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT now(),
  expires_at    timestamptz,
  last_used_on  date,
  aal           text NOT NULL DEFAULT 'aal1',
  refreshes     integer NOT NULL DEFAULT 0,
  counted_until timestamptz NOT NULL DEFAULT now(),
  provider_term uuid DEFAULT '00000000-0000-0000-0000-000000000000'
);
CREATE INDEX api_keys_user_id ON api_keys (user_id, created_at);
CREATE INDEX api_keys_expires_at ON api_keys (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX api_keys_provider_term ON api_keys (provider_term) WHERE provider_term IS NOT NULL;

-- Keys of programs for administrative operations. `created_by` is an administrator, null for a command. The key
-- outlives the user.
CREATE TABLE admin_keys (
  id            uuid PRIMARY KEY,
  name          text NOT NULL CONSTRAINT admin_keys_name_key UNIQUE,
  key_mac       bytea NOT NULL,
  scopes        text[] NOT NULL CHECK (cardinality(scopes) > 0),
  created_at    timestamptz NOT NULL DEFAULT now(),
  created_by    uuid,
  expires_at    timestamptz,
  last_used_on  date
);

-- Browsers that are signed in on our pages, identified by the hash of their cookie. The application may sign
-- the user in once without a question until `site_expected_until`: a flow of ours has led the browser there.
CREATE TABLE browser_sessions (
  token_hash  bytea PRIMARY KEY,
  user_id     uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  session_id  uuid NOT NULL CONSTRAINT browser_sessions_session_id_key UNIQUE
                REFERENCES sessions ON DELETE CASCADE,
  created_at  timestamptz NOT NULL DEFAULT now(),
  site_expected_until  timestamptz
);
CREATE INDEX browser_sessions_user_id ON browser_sessions (user_id);

-- A link, a code or both, sent to `target`; is_good_link and spend_code decide which are valid. `restores` is
-- a removed factor that the links of notices ask for. Links of purpose `email_restore` are from 0.1.0. Those
-- of a sign-up carry its password and data, because several people may sign up with one address.
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
  restores         jsonb,
  user_metadata    user_metadata,
  user_agent       text,
  browser_hash     bytea,
  ip               inet,
  by_key           boolean,
  CONSTRAINT one_time_tokens_purpose_check CHECK (
    purpose IN ('signup', 'sms_signup', 'invite', 'magiclink', 'recovery', 'sms', 'email_change',
                'phone_change', 'email_restore', 'reauthentication', 'undo')
  ),
  CONSTRAINT one_time_tokens_code_check CHECK ((code_mac IS NULL) = (code_expires_at IS NULL))
);
CREATE INDEX one_time_tokens_user_id ON one_time_tokens (user_id, purpose, created_at);
CREATE INDEX one_time_tokens_target ON one_time_tokens (target) WHERE code_mac IS NOT NULL;
CREATE INDEX one_time_tokens_browser_hash ON one_time_tokens (browser_hash) WHERE browser_hash IS NOT NULL;
CREATE INDEX one_time_tokens_expires_at ON one_time_tokens (expires_at);

-- Addresses that browsers typed on our pages, each known by the hash of a cookie: no URL may contain one. The
-- pages that wait for a code have the id in their URL. There is a row whether or not the address has a user.
-- `has_asked` if this browser has asked for a link.
CREATE TABLE typed_addresses (
  id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  browser_hash  bytea NOT NULL,
  address       text NOT NULL,
  has_asked     boolean NOT NULL,
  expires_at    timestamptz NOT NULL
);
CREATE INDEX typed_addresses_expires_at ON typed_addresses (expires_at);

-- Codes for grant_type=pkce (RFC 7636). The session of a used code ends when the code is used again.
-- `authenticated_at` is when `provider` authenticated the user, a customer's in its `provider_term`.
CREATE TABLE authorization_codes (
  id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id         uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  code_hash       bytea NOT NULL CONSTRAINT authorization_codes_code_hash_key UNIQUE,
  code_challenge  text NOT NULL,
  method          text NOT NULL,
  session_id      uuid,
  created_at      timestamptz NOT NULL DEFAULT now(),
  expires_at      timestamptz NOT NULL,
  opened_by       uuid,
  authenticated_at timestamptz,
  provider        text,
  by_key          boolean,
  provider_term   uuid
);
CREATE INDEX authorization_codes_user_id ON authorization_codes (user_id);
CREATE INDEX authorization_codes_expires_at ON authorization_codes (expires_at);

-- Authorization requests of applications, each bound to its browser by the hash of a cookie. The user's
-- session `session_id` approves, and the secret of `approval_hash` leads on to the code. A used code is kept
-- until `expires_at`: when it is used again, the session that it opened ends.
-- A device's request (RFC 8628) has neither a browser nor an `id_hash`: its code is the device's from the
-- beginning, and `session_id` is the session whose user typed the code of `user_code_mac` first.
CREATE TABLE oauth_requests (
  id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  id_hash         bytea CONSTRAINT oauth_requests_id_hash_key UNIQUE,
  client_id       uuid NOT NULL REFERENCES oauth_clients ON DELETE CASCADE,
  browser_hash    bytea,
  redirect_uri    text,
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
  opened_session_id uuid,
  user_code_mac   bytea CONSTRAINT oauth_requests_user_code_mac_key UNIQUE,
  ip              inet,
  user_agent      text,
  poll_interval   integer,
  polled_at       timestamptz,
  decision        text,
  organization_id uuid,
  client_redirect_uris text[],
  CONSTRAINT oauth_requests_way_check CHECK (
    CASE WHEN user_code_mac IS NULL
         THEN id_hash IS NOT NULL AND browser_hash IS NOT NULL AND redirect_uri IS NOT NULL
         ELSE id_hash IS NULL AND code_hash IS NOT NULL AND poll_interval IS NOT NULL END
  ),
  CONSTRAINT oauth_requests_decision_check CHECK (decision IN ('approved', 'denied'))
);
CREATE INDEX oauth_requests_client_id ON oauth_requests (client_id);
CREATE INDEX oauth_requests_user_id ON oauth_requests (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX oauth_requests_expires_at ON oauth_requests (expires_at);

-- RSA keys of ID tokens. `sealed` is the encrypted JWK.
CREATE TABLE openid_keys (
  id           text PRIMARY KEY,
  algorithm    text NOT NULL,
  sealed       bytea NOT NULL,
  active_from  timestamptz NOT NULL DEFAULT now(),
  created_at   timestamptz NOT NULL DEFAULT now()
);

-- OAuth sign-ins in progress. `secrets` (nonce, PKCE verifier) is encrypted. A flow that links an identity to
-- `user_id` is bound to a browser when the user agrees on a page.
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
CREATE INDEX oauth_flows_user_id ON oauth_flows (user_id) WHERE user_id IS NOT NULL;

-- OpenID providers of customers. Each signs in addresses of its domains, and its users have an identity whose
-- provider is `sso:<id>`. `client_secret` is encrypted.
--
-- What a provider opens (sessions, those that these open, codes, API keys) has its `term`. Turned off, or with
-- another issuer, a provider begins a new term by a trigger; deleted, or with its organization ended, it has none.
-- What was opened in a term that is over gives no token: is_over. `disabled_at` is 1970, so that nodes of 0.7.x,
-- which end all that the users have from before it, end nothing: they write it until 0.9.0.
--
-- An organization's provider is never `enabled`, because nodes of 0.6.1 should sign in nobody with it. Nodes of
-- 0.7.x write it so: until 0.9.0, read is_enabled. `is_on` is what its owners set, false while an operator has
-- disabled the provider (`is_blocked`). `tried_at` is when an owner signed in with the present client and secret.
-- A provider without `member_role` adds no members.
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
  updated_at               timestamptz NOT NULL DEFAULT now(),
  disabled_at              timestamptz DEFAULT to_timestamp(0),
  organization_id          uuid,
  is_on                    boolean NOT NULL DEFAULT false,
  is_blocked               boolean NOT NULL DEFAULT false,
  tried_at                 timestamptz,
  member_role              text CONSTRAINT identity_providers_member_role_check
    CHECK (member_role ~ '^[a-z][a-z0-9_-]{0,31}$' AND member_role NOT IN ('owner', 'admin')),
  by_key                   boolean,
  term                     uuid NOT NULL DEFAULT gen_random_uuid() CONSTRAINT identity_providers_term_key UNIQUE,
  CONSTRAINT identity_providers_owner_check CHECK (CASE
    WHEN organization_id IS NULL THEN NOT is_on AND NOT is_blocked AND member_role IS NULL
    ELSE NOT enabled AND disabled_at IS NOT NULL AND NOT (is_on AND is_blocked) END)
);
CREATE INDEX identity_providers_organization_id ON identity_providers (organization_id)
  WHERE organization_id IS NOT NULL;

CREATE TABLE identity_provider_domains (
  domain       text PRIMARY KEY,
  provider_id  uuid NOT NULL REFERENCES identity_providers ON DELETE CASCADE
);
CREATE INDEX identity_provider_domains_provider_id ON identity_provider_domains (provider_id);

-- Users with a proved address whom an administrator moves to a provider: its next sign-in with the address of
-- one links their identity.
CREATE TABLE identity_provider_adoptions (
  user_id      uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  provider_id  uuid NOT NULL REFERENCES identity_providers ON DELETE CASCADE,
  adopted_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX identity_provider_adoptions_provider_id ON identity_provider_adoptions (provider_id);

CREATE TABLE spent_id_tokens (
  token_hash  bytea PRIMARY KEY,
  expires_at  timestamptz NOT NULL
);
CREATE INDEX spent_id_tokens_expires_at ON spent_id_tokens (expires_at);

-- Proofs of work that were used.
CREATE TABLE spent_captchas (
  nonce       bytea PRIMARY KEY,
  expires_at  timestamptz NOT NULL
);
CREATE INDEX spent_captchas_expires_at ON spent_captchas (expires_at);

-- Messages, written in the transaction of the act that they report. `secret` is encrypted. A message being
-- sent is leased until `next_attempt_at`. Kind `none` is never sent (see write_message). `logout` is the
-- channel to applications (see write_logout).
CREATE TABLE outbox (
  id                 uuid PRIMARY KEY,
  user_id            uuid,
  channel            text CONSTRAINT outbox_channel_check CHECK (
                       channel IN ('email', 'sms', 'webhook', 'logout')
                     ),
  kind               text NOT NULL,
  recipient          text,
  variables          jsonb NOT NULL DEFAULT '{}',
  secret             bytea,
  one_time_token_id  uuid,
  attempts           integer NOT NULL DEFAULT 0,
  next_attempt_at    timestamptz NOT NULL DEFAULT now(),
  created_at         timestamptz NOT NULL DEFAULT now(),
  expires_at         timestamptz,
  outcome            text CONSTRAINT outbox_outcome_check CHECK (
                       outcome IN ('none', 'sent', 'void', 'expired', 'failed')
                     ),
  finished_at        timestamptz,
  last_error         text,
  response           text,
  is_notice          boolean NOT NULL DEFAULT false,
  CONSTRAINT outbox_sendable_check CHECK (
    outcome IS NOT NULL OR (channel IS NOT NULL AND recipient IS NOT NULL)
  ),
  CONSTRAINT outbox_finished_check CHECK (
    (outcome IS NULL) = (finished_at IS NULL) AND (outcome IS NULL OR secret IS NULL)
  )
);
CREATE INDEX outbox_messages_waiting ON outbox (channel, next_attempt_at)
  WHERE outcome IS NULL AND channel <> 'webhook';
CREATE INDEX outbox_queues ON outbox (channel, is_notice, next_attempt_at)
  WHERE outcome IS NULL AND channel <> 'webhook';
CREATE INDEX outbox_finished ON outbox (finished_at) WHERE outcome IS NOT NULL;
CREATE INDEX outbox_user_id ON outbox (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX outbox_messages ON outbox (coalesce(outcome, 'waiting'), created_at, id)
  WHERE channel <> 'webhook';
CREATE INDEX outbox_address ON outbox (recipient, created_at) WHERE channel <> 'webhook';

CREATE TABLE dev_inbox (
  id       uuid PRIMARY KEY,
  sealed   bytea NOT NULL,
  kept_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX dev_inbox_kept_at ON dev_inbox (kept_at);

-- Both secrets are encrypted. Deliveries are rows of the outbox whose recipient is the webhook's id.
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
    cardinality(events) > 0
    AND events <@ ARRAY['user.created', 'user.updated', 'user.deleted', 'auth.login', 'auth.logout',
                        'organization.created', 'organization.updated', 'organization.deleted',
                        'membership.created', 'membership.updated', 'membership.deleted']
  ),
  CONSTRAINT webhooks_disabled_check CHECK (
    (disabled_at IS NULL) = (disabled_reason IS NULL)
    AND disabled_reason IN ('by_administrator', 'gone', 'failing')
  )
);
-- No other index contains waiting events, so that statements for one webhook do not read those of others.
CREATE INDEX outbox_events_waiting ON outbox (recipient, next_attempt_at)
  WHERE channel = 'webhook' AND outcome IS NULL;
CREATE INDEX outbox_events ON outbox (recipient, created_at, id) WHERE channel = 'webhook';
CREATE INDEX outbox_failed_events ON outbox (recipient, created_at, id)
  WHERE channel = 'webhook' AND outcome = 'failed';

-- Written in the act's transaction. A refused act has a `reason`. Rows outlive their user.
CREATE TABLE audit_log (
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
CREATE INDEX audit_log_at ON audit_log (at, id);
CREATE INDEX audit_log_user_id ON audit_log (user_id, at, id) WHERE user_id IS NOT NULL;
CREATE INDEX audit_log_action ON audit_log (action, at, id);
CREATE INDEX audit_log_done_by ON audit_log (coalesce(actor_id::text, actor), at, id)
  WHERE actor <> 'anonymous' AND (actor <> 'user' OR user_id IS DISTINCT FROM actor_id);
CREATE INDEX audit_log_request_id ON audit_log (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX audit_log_organization ON audit_log ((details #>> '{organization,id}'), at, id)
  WHERE details ? 'organization';

-- Unlogged, to spare the write-ahead log: a crash of Postgres resets the request counters.
CREATE UNLOGGED TABLE request_counts (
  key         text PRIMARY KEY,
  count       bigint NOT NULL,
  expires_at  timestamptz NOT NULL
) WITH (fillfactor = 70);
-- The function add_to_count writes `key` from the columns after it.
CREATE TABLE failure_counts (
  key         text PRIMARY KEY,
  count       bigint NOT NULL,
  expires_at  timestamptz NOT NULL,
  kind        text,
  subject     text,
  network     text,
  seconds     integer
) WITH (fillfactor = 70);
CREATE INDEX request_counts_expires_at ON request_counts (expires_at);
CREATE INDEX failure_counts_expires_at ON failure_counts (expires_at);
CREATE INDEX failure_counts_subject ON failure_counts (subject);

-- At most `amount` in a window of `seconds`, for a subject from a network, or from all that are not known.
CREATE TYPE failure_limit AS (
  kind     text,
  subject  text,
  network  text,
  amount   integer,
  seconds  integer
);

-- Networks whose wrong passwords and codes count for themselves: see auth/rules/counts.py; and browsers, as
-- `browser` and the SHA-256 of their cookie. `passed_at`: when the user last passed every
-- step there. `mail_proved_at`: when a mailed link or code was last used there.
CREATE TABLE known_networks (
  user_id         uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  network         text NOT NULL,
  seen_at         timestamptz NOT NULL DEFAULT now(),
  passed_at       timestamptz,
  mail_proved_at  timestamptz,
  PRIMARY KEY (user_id, network)
);
CREATE INDEX known_networks_seen_at ON known_networks (seen_at);

-- The keys of the node that was started last. A node that shares none of them refuses to start.
CREATE TABLE key_fingerprints (
  setting      text NOT NULL,
  fingerprint  text NOT NULL,
  seen_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (setting, fingerprint)
);

-- When the delivery process last ran, when the last backup was made, and the time up to which hours are
-- counted.
CREATE TABLE last_done (
  task  text PRIMARY KEY,
  at    timestamptz NOT NULL DEFAULT now()
);

-- The counts that the console draws: acts and refusals of the audit log by action, messages by
-- `messages_<outcome>`, and `active_users` of the last 30 days.
CREATE TABLE hourly_counts (
  hour   timestamptz NOT NULL,
  name   text NOT NULL,
  count  bigint NOT NULL,
  PRIMARY KEY (hour, name)
);

-- Acts of an administrator (`user_id`) on many users, in the console. `position` counts the `targets`, ids or
-- emails, that are done; `refused` are those of them that could not be.
CREATE TABLE bulk_acts (
  id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id     uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  act         text NOT NULL,
  targets     text[] NOT NULL,
  options     jsonb NOT NULL,
  position    integer NOT NULL DEFAULT 0,
  refused     jsonb NOT NULL DEFAULT '[]',
  created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX bulk_acts_user_id ON bulk_acts (user_id);
CREATE INDEX bulk_acts_created_at ON bulk_acts (created_at);

-- Requests that `latchkey doctor` sends to the public URL, and how they arrived.
CREATE TABLE probes (
  token_hash  bytea PRIMARY KEY,
  seen        jsonb,
  expires_at  timestamptz NOT NULL
);

-- Organizations of AUTH_ORGANIZATIONS. After `ended_at` statements leave one out; its members go in batches,
-- the row last. `founded_by` keeps the id of its founder, even if the user leaves or is deleted. `next_provider_id` is that
-- of the provider that its owners connect next: they register its redirect URI before. `max_age` is how old a sign-in may be
-- for a membership to count in its session.
CREATE TABLE organizations (
  id            uuid PRIMARY KEY,
  slug          text COLLATE "C" NOT NULL CONSTRAINT organizations_slug_key UNIQUE
                  CONSTRAINT organizations_slug_check CHECK (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  name          text NOT NULL,
  app_metadata  app_metadata NOT NULL DEFAULT '{}',
  level         text NOT NULL DEFAULT 'aal1' CONSTRAINT organizations_level_check CHECK (level IN ('aal1', 'aal2')),
  created_at    timestamptz NOT NULL DEFAULT now(),
  updated_at    timestamptz NOT NULL DEFAULT now(),
  ended_at      timestamptz,
  founded_by    uuid,
  needs_own_provider  boolean NOT NULL DEFAULT false,
  next_provider_id  uuid NOT NULL DEFAULT gen_random_uuid(),
  max_age       interval CONSTRAINT organizations_max_age_check CHECK (max_age BETWEEN '15 minutes' AND '365 days')
);
CREATE INDEX organizations_created_at ON organizations (created_at, id);
CREATE INDEX organizations_ended_at ON organizations (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX organizations_founded_by ON organizations (founded_by) WHERE ended_at IS NULL;
-- The expression is that of words_of_organization.
CREATE INDEX organizations_names ON organizations USING gin (
  to_tsvector('simple', translate(name, '@._+-/’', '       '))) WITH (fastupdate = off);
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_organization_id_fkey FOREIGN KEY (organization_id)
  REFERENCES organizations;

-- The locks of the user guard a membership. `added_by` is how it came about.
CREATE TABLE memberships (
  user_id          uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  organization_id  uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  role             text NOT NULL CONSTRAINT memberships_role_check CHECK (role ~ '^[a-z][a-z0-9_-]{0,31}$'),
  added_by         text NOT NULL CONSTRAINT memberships_added_by_check
                     CHECK (added_by IN ('founder', 'invitation', 'provider', 'administrator')),
  created_at       timestamptz NOT NULL DEFAULT now(),
  updated_at       timestamptz NOT NULL DEFAULT now(),
  provider_id      uuid CONSTRAINT memberships_provider_id_fkey REFERENCES identity_providers,
  PRIMARY KEY (user_id, organization_id)
);
CREATE INDEX memberships_organization_id ON memberships (organization_id, created_at, user_id);
CREATE INDEX memberships_provider_id ON memberships (provider_id) WHERE provider_id IS NOT NULL;

-- Any user who has proved the address may accept. The id is not a secret. `invited_by` is null if an
-- administrator invited.
CREATE TABLE organization_invitations (
  id               uuid PRIMARY KEY,
  organization_id  uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  email            text COLLATE "C" NOT NULL,
  role             text NOT NULL CONSTRAINT organization_invitations_role_check
                     CHECK (role ~ '^[a-z][a-z0-9_-]{0,31}$'),
  invited_by       uuid REFERENCES users ON DELETE CASCADE,
  created_at       timestamptz NOT NULL DEFAULT now(),
  expires_at       timestamptz NOT NULL,
  CONSTRAINT organization_invitations_address_key UNIQUE (organization_id, email)
);
CREATE INDEX organization_invitations_email ON organization_invitations (email);
CREATE INDEX organization_invitations_expires_at ON organization_invitations (expires_at);
CREATE INDEX organization_invitations_invited_by ON organization_invitations (invited_by);

ALTER TABLE identity_providers
  ADD CONSTRAINT identity_providers_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations;

-- Domains of owners, proved by a TXT record since `proved_at`. A domain that `latchkey organizations prove` proved without
-- one has `proved_by_command_at` instead, which counts only while no other machine reaches the service.
CREATE TABLE organization_domains (
  organization_id  uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  domain           text COLLATE "C" NOT NULL,
  token            text NOT NULL,
  created_at       timestamptz NOT NULL DEFAULT now(),
  proved_at        timestamptz,
  checked_at       timestamptz,
  missing_since    timestamptz,
  proved_by_command_at  timestamptz,
  PRIMARY KEY (organization_id, domain)
);
CREATE UNIQUE INDEX organization_domains_proved ON organization_domains (domain) WHERE proved_at IS NOT NULL;
CREATE UNIQUE INDEX organization_domains_proved_by_command ON organization_domains (domain)
  WHERE proved_by_command_at IS NOT NULL;
CREATE INDEX organization_domains_checked_at ON organization_domains (checked_at) WHERE proved_at IS NOT NULL;
