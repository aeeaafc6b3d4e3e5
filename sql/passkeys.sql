-- name: write_challenge(user_id uuid, session_id uuid, factor_id uuid, purpose text, challenge bytea,
--                       lifetime integer, most_challenges integer) -> row
-- Keeps a session's newest challenges for each purpose and factor, and all challenges without a session. Call
-- it with the user's row locked.
WITH replaced AS (
  DELETE FROM factor_challenges
   WHERE id = ANY (ARRAY(SELECT id
                           FROM factor_challenges
                          WHERE user_id = :user_id AND session_id = :session_id AND purpose = :purpose
                            AND factor_id IS NOT DISTINCT FROM :factor_id
                          ORDER BY created_at DESC
                         OFFSET :most_challenges - 1))
)
INSERT INTO factor_challenges (user_id, session_id, factor_id, purpose, challenge, expires_at)
VALUES (:user_id, :session_id, :factor_id, :purpose, :challenge, now() + make_interval(secs => :lifetime))
RETURNING id, floor(extract(epoch FROM expires_at))::bigint AS expires_at;

-- name: spend_challenge(challenge_id uuid, user_id uuid, session_id uuid, factor_id uuid, purposes text[])
--   -> row?
DELETE FROM factor_challenges
 WHERE id = :challenge_id AND purpose = ANY (:purposes)
   AND user_id IS NOT DISTINCT FROM :user_id
   AND session_id IS NOT DISTINCT FROM :session_id
   AND factor_id IS NOT DISTINCT FROM :factor_id
RETURNING challenge, purpose, expires_at > now() AS is_live;

-- name: void_challenges(user_id uuid)
DELETE FROM factor_challenges WHERE user_id = :user_id;

-- name: list_credentials(user_id uuid) -> rows
SELECT id, credential_id, transports, factor_type
  FROM factors
 WHERE user_id = :user_id AND credential_id IS NOT NULL
 ORDER BY created_at;

-- name: select_credential(credential_id bytea, factor_type text) -> row? (verified_at?)
-- A passkey that is not verified was not used yet.
SELECT id, user_id, public_key, friendly_name, verified_at, by_key IS TRUE AS is_by_key
  FROM factors
 WHERE credential_id = :credential_id AND factor_type = :factor_type
   AND (verified_at IS NOT NULL OR factor_type = 'passkey');

-- name: select_counter(id uuid) -> row? (sign_count?, backup_eligible?)
SELECT sign_count, backup_eligible FROM factors WHERE id = :id;

-- name: use_credential(id uuid, sign_count bigint, backed_up boolean, acted_at timestamptz)
UPDATE factors SET sign_count = :sign_count, backed_up = :backed_up, last_used_at = :acted_at WHERE id = :id;

-- name: write_passkey(user_id uuid, friendly_name text, credential_id bytea, public_key bytea,
--                     sign_count bigint, transports text[], aaguid uuid, backup_eligible boolean,
--                     backed_up boolean, by_key boolean, acted_at timestamptz) -> row
WITH first AS (
  UPDATE users SET first_factor_at = :acted_at WHERE id = :user_id AND first_factor_at IS NULL
)
INSERT INTO factors (id, user_id, factor_type, friendly_name, verified_at, created_at, updated_at, credential_id,
                     public_key, sign_count, transports, aaguid, backup_eligible, backed_up, by_key)
VALUES (gen_random_uuid(), :user_id, 'passkey', :friendly_name, :acted_at, :acted_at, :acted_at, :credential_id,
        :public_key, :sign_count, :transports, :aaguid, :backup_eligible, :backed_up, nullif(:by_key, false))
RETURNING id, passkey_with_status(factors)::text AS object;

-- name: write_unused_passkey(user_id uuid, friendly_name text, credential_id bytea, public_key bytea,
--                            sign_count bigint, transports text[], aaguid uuid, backup_eligible boolean,
--                            backed_up boolean, by_key boolean, acted_at timestamptz) -> row
-- A passkey that a browser made unasked: no factor until `verify_passkey`.
INSERT INTO factors (id, user_id, factor_type, friendly_name, created_at, updated_at, credential_id, public_key,
                     sign_count, transports, aaguid, backup_eligible, backed_up, by_key)
VALUES (gen_random_uuid(), :user_id, 'passkey', :friendly_name, :acted_at, :acted_at, :credential_id, :public_key,
        :sign_count, :transports, :aaguid, :backup_eligible, :backed_up, nullif(:by_key, false))
RETURNING id, passkey_with_status(factors)::text AS object;

-- name: verify_passkey(user_id uuid, passkey_id uuid, acted_at timestamptz)
-- The first use of a passkey that a browser made unasked.
WITH first AS (
  UPDATE users SET first_factor_at = :acted_at WHERE id = :user_id AND first_factor_at IS NULL
)
UPDATE factors
   SET verified_at = :acted_at, updated_at = :acted_at
 WHERE id = :passkey_id AND user_id = :user_id AND factor_type = 'passkey' AND verified_at IS NULL;

-- name: remove_unused_passkeys(user_id uuid, kept_id uuid) -> rows
DELETE FROM factors
 WHERE user_id = :user_id AND factor_type = 'passkey' AND verified_at IS NULL AND id IS DISTINCT FROM :kept_id
RETURNING friendly_name;

-- name: record_first_passkey(session_id uuid, passkey_id uuid, acted_at timestamptz)
-- Records the first factor that the user has ever had, in a session of the API. On our pages, `raise_session`
-- runs instead.
UPDATE sessions
   SET first_passkey_at = :acted_at, factor_proved_at = :acted_at, factor_id = :passkey_id
 WHERE id = :session_id;

-- name: list_passkeys(user_id uuid) -> row
SELECT coalesce(jsonb_agg(passkey_with_status(f) ORDER BY f.created_at, f.id), '[]')::text AS passkeys
  FROM factors AS f
 WHERE f.user_id = :user_id AND f.factor_type = 'passkey';

-- name: select_passkey(user_id uuid, passkey_id uuid) -> row?
SELECT id, friendly_name, verified_at IS NOT NULL AS is_verified
  FROM factors
 WHERE user_id = :user_id AND id = :passkey_id AND factor_type = 'passkey';

-- name: rename_passkey(user_id uuid, passkey_id uuid, friendly_name text, acted_at timestamptz) -> row
UPDATE factors
   SET friendly_name = :friendly_name, updated_at = :acted_at
 WHERE user_id = :user_id AND id = :passkey_id AND factor_type = 'passkey'
RETURNING passkey_with_status(factors)::text AS object;
