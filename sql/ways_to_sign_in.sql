-- name: list_additions(user_id uuid) -> rows
-- The user's additions, with grants to applications and API keys, which work without a session of the user.
-- Everything that a thief may add belongs in this list; auth/rules says what is recent. What the user was created with
-- does not count; an OAuth sign-up writes the email a microsecond later. The first use of an unused
-- passkey adds it again.
SELECT added.id::text, added.type, added.label, added.added_at, added.is_unused, clock_timestamp() AS now
  FROM (
    SELECT i.id, way.type, way.label, way.added_at, false AS is_unused
      FROM identities AS i
      JOIN users AS u ON u.id = i.user_id
     CROSS JOIN LATERAL way_of(i) AS way
     WHERE i.user_id = :user_id AND way.added_at > u.created_at + interval '1 microsecond'
     UNION ALL
    SELECT f.id, f.factor_type, f.friendly_name, coalesce(f.verified_at, f.created_at), f.verified_at IS NULL
      FROM factors AS f
     WHERE f.user_id = :user_id AND (f.verified_at IS NOT NULL OR f.factor_type = 'passkey')
     UNION ALL
    SELECT o.id, 'grant', c.name, o.granted_at, false
      FROM oauth_grants AS o
      JOIN oauth_clients AS c ON c.id = o.client_id
     WHERE o.user_id = :user_id
     UNION ALL
    SELECT k.id, 'api_key', k.name, k.created_at, false FROM api_keys AS k WHERE k.user_id = :user_id
  ) AS added
 ORDER BY added.added_at, added.id;

-- name: list_added_since(user_id uuid, moment timestamptz) -> rows
-- The kinds of what a user has got since a moment that signs in, or acts for the user.
SELECT DISTINCT added.type
  FROM (SELECT 'password' AS type, password_set_at AS added_at FROM users WHERE id = :user_id AND password_hash IS NOT NULL
         UNION ALL
        SELECT way.type, way.added_at FROM identities AS i CROSS JOIN LATERAL way_of(i) AS way WHERE i.user_id = :user_id
         UNION ALL
        SELECT factor_type, coalesce(verified_at, created_at)
          FROM factors
         WHERE user_id = :user_id AND (verified_at IS NOT NULL OR factor_type = 'passkey')
         UNION ALL
        SELECT 'recovery_codes', created_at FROM recovery_codes WHERE user_id = :user_id
         UNION ALL
        SELECT 'grant', granted_at FROM oauth_grants WHERE user_id = :user_id
         UNION ALL
        SELECT 'api_key', created_at FROM api_keys WHERE user_id = :user_id) AS added
 WHERE added.added_at > :moment
 ORDER BY added.type;

-- name: list_ways_to_sign_in(user_id uuid, ids text[]) -> rows
SELECT id::text, provider FROM identities WHERE user_id = :user_id AND id = ANY (:ids::uuid[]);

-- name: remove_ways_to_sign_in(user_id uuid, ids text[], providers text[], acted_at timestamptz)
WITH removed AS (
  DELETE FROM identities
   WHERE user_id = :user_id AND (id = ANY (:ids::uuid[]) OR provider = ANY (:providers))
  RETURNING provider
), gone AS (
  SELECT coalesce(bool_or(name = 'email'), false) AS email, coalesce(bool_or(name = 'phone'), false) AS phone
    FROM (SELECT provider AS name FROM removed UNION ALL SELECT unnest(:providers)) AS names
)
UPDATE users AS u
   SET email = CASE WHEN NOT gone.email THEN u.email END,
       email_confirmed_at = CASE WHEN NOT gone.email THEN u.email_confirmed_at END,
       email_proved = u.email_proved AND NOT gone.email,
       phone = CASE WHEN NOT gone.phone THEN u.phone END,
       phone_confirmed_at = CASE WHEN NOT gone.phone THEN u.phone_confirmed_at END,
       phone_proved = u.phone_proved AND NOT gone.phone,
       updated_at = :acted_at
  FROM gone
 WHERE u.id = :user_id;

-- name: select_ways_to_sign_in(user_id uuid) -> row
SELECT ARRAY(SELECT provider FROM identities WHERE user_id = :user_id) AS providers,
       EXISTS (SELECT FROM factors WHERE user_id = :user_id AND factor_type = 'passkey' AND verified_at IS NOT NULL)
         AS has_passkey;

-- name: list_all_ways_to_sign_in(user_id uuid) -> rows (label?, added_at?)
-- Lists the steps of a sign-in, too. A password from before 0.7.1 has no age.
SELECT w.type, w.label, w.added_at, w.is_by_key
  FROM (SELECT 'password' AS type, NULL AS label, password_set_at AS added_at, password_by_key IS TRUE AS is_by_key
          FROM users
         WHERE id = :user_id AND password_hash IS NOT NULL
         UNION ALL
        SELECT way.type, way.label, way.added_at,
               (i.by_key OR i.provider = 'email' AND u.email = u.email_by_key
                         OR i.provider = 'phone' AND u.phone = u.phone_by_key) IS TRUE
          FROM identities AS i
          JOIN users AS u ON u.id = i.user_id
         CROSS JOIN LATERAL way_of(i) AS way
         WHERE i.user_id = :user_id
         UNION ALL
        SELECT factor_type, friendly_name, verified_at, by_key IS TRUE
          FROM factors
         WHERE user_id = :user_id AND verified_at IS NOT NULL
         UNION ALL
        SELECT 'recovery_codes', NULL, max(created_at), bool_or(by_key) IS TRUE
          FROM recovery_codes
         WHERE user_id = :user_id
        HAVING count(*) > 0) AS w
 ORDER BY w.added_at, w.type, w.label;

-- name: remove_before_promotion(user_id uuid)
-- Deletes what an administrative key or one of its sessions has set, except addresses and the password;
-- unverified factors, and known networks. Recovery codes go with the last factor.
WITH ways AS (
  DELETE FROM identities WHERE user_id = :user_id AND by_key AND provider NOT IN ('email', 'phone')
), steps AS (
  DELETE FROM factors WHERE user_id = :user_id AND (by_key OR verified_at IS NULL)
), challenges AS (
  DELETE FROM factor_challenges WHERE user_id = :user_id
), codes AS (
  DELETE FROM recovery_codes
   WHERE user_id = :user_id
     AND (by_key OR NOT EXISTS (SELECT FROM factors AS f
                                 WHERE f.user_id = :user_id AND f.verified_at IS NOT NULL AND f.by_key IS NOT TRUE))
)
DELETE FROM known_networks WHERE user_id = :user_id;
