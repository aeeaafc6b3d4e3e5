-- name: list_added(user_id uuid) -> rows
SELECT id::text, type, iso_8601(added_at) AS added_at, label
  FROM additions_to(:user_id, now() - recent_age())
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

-- name: select_can_sign_in(user_id uuid, usable text[]) -> row
SELECT can_sign_in(:user_id, :usable) AS can_sign_in;
