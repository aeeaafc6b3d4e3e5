-- name: list_additions(user_id uuid) -> rows
-- All but what the user was created with: auth/rules says which are recent.
SELECT id::text, type, label, added_at, clock_timestamp() AS now
  FROM additions_to(:user_id, '-infinity')
 ORDER BY added_at, id;

-- name: list_ways_to_sign_in(user_id uuid, ids text[]) -> rows
SELECT id::text, provider FROM identities WHERE user_id = :user_id AND id = ANY (:ids::uuid[]);

-- name: remove_ways_to_sign_in(user_id uuid, ids text[], providers text[])
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
       updated_at = now()
  FROM gone
 WHERE u.id = :user_id;

-- name: select_ways_to_sign_in(user_id uuid) -> row
SELECT ARRAY(SELECT provider FROM identities WHERE user_id = :user_id) AS providers,
       EXISTS (SELECT FROM factors WHERE user_id = :user_id AND factor_type = 'passkey') AS has_passkey;
