-- name: list_added(user_id uuid, days integer) -> rows
SELECT id::text, type, iso_8601(added_at) AS added_at, label
  FROM additions_to(:user_id, now() - make_interval(days => :days))
 ORDER BY added_at, id;

-- name: list_undone(token_hash bytea, purposes text[]) -> rows
-- The address that the link was sent to is kept.
SELECT added.id, added.type, added.label
  FROM one_time_tokens AS t
  JOIN users AS u ON u.id = t.user_id
  LEFT JOIN sessions AS s ON s.id = t.session_id
 CROSS JOIN undone_by(t) AS since
 CROSS JOIN additions_to(t.user_id, since) AS added
 WHERE refusal_of_act('undo_link', u, s, NULL, NULL, NULL, NULL, NULL, 'remove', added.type, added.added_at,
                      since) IS NULL
   AND t.token_hash = :token_hash AND t.purpose = ANY (:purposes)
   AND added.type <> CASE WHEN t.target LIKE '%@%' THEN 'email' ELSE 'phone' END
 ORDER BY added.added_at, added.id;

-- name: list_taken_back(user_id uuid, session_id uuid) -> rows
-- What the passkey or provider that proved the session is older than.
SELECT added.id::text, added.type, added.label
  FROM sessions AS s
 CROSS JOIN proved_with_older(s) AS since
 CROSS JOIN additions_to(s.user_id, greatest(since, now() - interval '7 days')) AS added
 WHERE s.id = :session_id AND s.user_id = :user_id AND added.added_at > since
 ORDER BY added.added_at, added.id;

-- name: select_may_take_back(user_id uuid) -> row
-- Whether something was added in the last seven days while no notice of it could be mailed, and a passkey or
-- provider from before remains.
SELECT EXISTS (
  SELECT
    FROM (SELECT min(moment)
            FROM (SELECT created_at FROM identities
                   WHERE user_id = :user_id AND provider NOT IN ('email', 'phone')
                   UNION ALL
                  SELECT verified_at FROM factors WHERE user_id = :user_id AND factor_type = 'passkey'
                 ) AS known (moment)
         ) AS oldest (moment)
   CROSS JOIN additions_to(:user_id, greatest(oldest.moment, now() - interval '7 days')) AS added
   WHERE added.added_at > oldest.moment AND had_no_address(:user_id, oldest.moment)
) AS may;

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
