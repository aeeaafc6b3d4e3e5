-- name: insert_oauth_flow(id uuid, state_hash bytea, browser_hash bytea, provider text, secrets bytea,
--                         redirect_to text, code_challenge text, user_id uuid, session_id uuid,
--                         lifetime integer)
INSERT INTO oauth_flows (id, state_hash, browser_hash, provider, secrets, redirect_to, code_challenge,
                         user_id, session_id, expires_at)
VALUES (:id, :state_hash, :browser_hash, :provider, :secrets, :redirect_to, :code_challenge,
        :user_id, :session_id, now() + make_interval(secs => :lifetime));

-- name: select_linking_flow(state_hash bytea) -> row? (redirect_to?, code_challenge?, email?, phone?, known_by?, known_as?)
SELECT f.user_id, f.session_id, f.provider, f.redirect_to, f.code_challenge, u.email, u.phone,
       identity.provider AS known_by, identity.name AS known_as
  FROM oauth_flows AS f
  JOIN users AS u ON u.id = f.user_id
  LEFT JOIN LATERAL (
         SELECT i.provider, i.identity_data ->> 'name' AS name
           FROM identities AS i
          WHERE i.user_id = u.id AND i.provider NOT IN ('email', 'phone')
          ORDER BY i.created_at, i.provider
          LIMIT 1
       ) AS identity ON true
 WHERE f.state_hash = :state_hash AND f.browser_hash IS NULL AND f.expires_at > now();

-- name: bind_oauth_flow(state_hash bytea, browser_hash bytea, new_state_hash bytea, acted_at timestamptz) -> row?
-- Only the browser where the user agreed gets the new state, once.
UPDATE oauth_flows AS f
   SET browser_hash = :browser_hash, state_hash = :new_state_hash
 WHERE f.state_hash = :state_hash AND f.browser_hash IS NULL AND f.expires_at > :acted_at
RETURNING f.id, f.secrets;

-- name: spend_oauth_flow(state_hash bytea, browser_hashes bytea[])
--   -> row? (redirect_to?, code_challenge?, user_id?, session_id?)
DELETE FROM oauth_flows
 WHERE state_hash = :state_hash AND browser_hash = ANY(:browser_hashes)
RETURNING id, provider, secrets, redirect_to, code_challenge, user_id, session_id, created_at,
          expires_at > now() AS is_live;

-- name: select_oauth_flow(state_hash bytea) -> row? (redirect_to?, code_challenge?)
-- The redirect URL of a flow that ends with an error, in another browser or in one that has lost its cookie.
SELECT redirect_to, code_challenge FROM oauth_flows WHERE state_hash = :state_hash AND browser_hash IS NOT NULL;

-- name: spend_id_token(token_hash bytea, expires_at bigint)
INSERT INTO spent_id_tokens (token_hash, expires_at)
VALUES (:token_hash, to_timestamp(:expires_at))
ON CONFLICT DO NOTHING;

-- name: select_spent_id_token(token_hash bytea) -> row?
SELECT expires_at FROM spent_id_tokens WHERE token_hash = :token_hash;

-- name: select_owner_of_identity(provider text, subject text, email text) -> row (user_id?)
-- The user who has an identity, else the one with the email.
SELECT coalesce((SELECT i.user_id FROM identities AS i WHERE i.provider = :provider AND i.subject = :subject),
                u.id) AS user_id
  FROM (VALUES (:email)) AS address (email)
  LEFT JOIN users AS u ON u.email = address.email;

-- name: select_identity_of(user_id uuid, provider text, subject text) -> row?
SELECT by_key IS TRUE AS is_by_key
  FROM identities
 WHERE user_id = :user_id AND provider = :provider AND subject = :subject;

-- name: use_identity(user_id uuid, provider text, subject text, identity_data jsonb, acted_at timestamptz)
UPDATE identities
   SET identity_data = :identity_data, last_sign_in_at = :acted_at, updated_at = :acted_at
 WHERE user_id = :user_id AND provider = :provider AND subject = :subject;

-- name: insert_identity(user_id uuid, provider text, subject text, identity_data jsonb,
--                       last_sign_in_at timestamptz, by_key boolean, is_first_proof boolean, acted_at timestamptz)
-- Inserts nothing if the user has an identity of this provider. Another user's identity violates its
-- constraint.
INSERT INTO identities (user_id, provider, subject, identity_data, last_sign_in_at, by_key, is_first_proof, created_at,
                        updated_at)
VALUES (:user_id, :provider, :subject, :identity_data, :last_sign_in_at, nullif(:by_key, false),
        nullif(:is_first_proof, false), :acted_at, :acted_at)
ON CONFLICT (user_id, provider) DO NOTHING;

-- name: remove_identity(user_id uuid, provider text) -> row?
DELETE FROM identities WHERE user_id = :user_id AND provider = :provider
RETURNING created_at, is_first_proof IS TRUE AS is_first_proof;

-- name: create_user_by_identity(user_id uuid, email text, is_proved boolean, user_metadata jsonb,
--                               provider text, subject text, identity_data jsonb, by_key boolean,
--                               acted_at timestamptz)
-- A taken email violates its constraint.
WITH created AS (
  INSERT INTO users (id, email, email_confirmed_at, email_proved, user_metadata, made_by, email_by_key, created_at,
                     updated_at)
  VALUES (:user_id, :email, CASE WHEN :email IS NOT NULL THEN :acted_at END, :is_proved, :user_metadata::user_metadata, 'oauth',
          CASE WHEN :by_key THEN :email END, :acted_at, :acted_at)
  RETURNING id
)
INSERT INTO identities (user_id, provider, subject, identity_data, last_sign_in_at, by_key, created_at, updated_at)
SELECT id, :provider, :subject, :identity_data, :acted_at, nullif(:by_key, false), :acted_at, :acted_at FROM created;

-- name: convert_by_identity(user_id uuid, email text, is_proved boolean, by_key boolean, acted_at timestamptz)
UPDATE users
   SET converted_at = :acted_at, email = :email,
       email_confirmed_at = CASE WHEN :email IS NOT NULL THEN :acted_at END,
       email_proved = :is_proved, email_by_key = CASE WHEN :by_key THEN :email ELSE email_by_key END, updated_at = :acted_at
 WHERE id = :user_id;

-- name: add_email_of_identity(user_id uuid, email text, acted_at timestamptz)
-- A microsecond after the provider's identity: app_metadata.provider is the oldest.
INSERT INTO identities (user_id, provider, subject, identity_data, created_at, updated_at)
VALUES (:user_id, 'email', :user_id, jsonb_build_object('sub', :user_id, 'email', :email),
        :acted_at + interval '1 microsecond', :acted_at);
