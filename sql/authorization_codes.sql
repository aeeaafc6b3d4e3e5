-- name: write_authorization_code(user_id uuid, code_hash bytea, code_challenge text, method text,
--                                authorization_code_lifetime integer, opened_by uuid,
--                                authenticated_at timestamptz, provider text, provider_term uuid,
--                                by_key boolean, network text, acted_at timestamptz)
-- `network` is where every step was passed, or null.
WITH networks AS (
  INSERT INTO known_networks (user_id, network, seen_at, passed_at)
  SELECT :user_id, :network, :acted_at, :acted_at WHERE :network IS NOT NULL
  ON CONFLICT (user_id, network) DO UPDATE SET seen_at = :acted_at, passed_at = :acted_at
)
INSERT INTO authorization_codes (user_id, code_hash, code_challenge, method, opened_by, created_at,
                                 expires_at, authenticated_at, provider, provider_term, by_key)
VALUES (:user_id, :code_hash, :code_challenge, :method, :opened_by, :acted_at,
        :acted_at + make_interval(secs => :authorization_code_lifetime), :authenticated_at, :provider,
        :provider_term, nullif(:by_key, false));

-- name: select_authorization_code(code_hash bytea) -> row? (session_id?, opened_by?, provider?,
--                                  provider_term?, authenticated_at?)
SELECT user_id, code_challenge, method, session_id, opened_by, provider, provider_term, is_over(provider_term),
       authenticated_at, expires_at, by_key IS TRUE AS is_by_key
  FROM authorization_codes
 WHERE code_hash = :code_hash;

-- name: mark_authorization_code_used(code_hash bytea, session_id uuid)
UPDATE authorization_codes SET session_id = :session_id WHERE code_hash = :code_hash AND session_id IS NULL;
