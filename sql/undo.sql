-- name: list_asked_factors(token_hash bytea)
--   -> rows (secret?, last_step?, credential_id?, public_key?, sign_count?, transports?, backup_eligible?)
SELECT f.id, f.user_id, f.factor_type, f.friendly_name, f.secret, f.last_step, f.credential_id, f.public_key,
       f.sign_count, f.transports, f.backup_eligible, extract(epoch FROM clock_timestamp())::float AS moment,
       now() - recent_age() AS added_before,
       NOT EXISTS (SELECT FROM factors AS present WHERE present.id = f.id) AS is_removed
  FROM one_time_tokens AS t
 CROSS JOIN asked_factors(t.user_id) AS f
 WHERE t.token_hash = :token_hash AND t.purpose = 'undo' AND is_good_link(t)
 ORDER BY f.verified_at, f.id;

-- name: list_undone(token_hash bytea) -> rows
-- The restored address replaces the present one.
SELECT added.id::text, added.type, added.label
  FROM one_time_tokens AS t
 CROSS JOIN additions_to(t.user_id, now() - recent_age()) AS added
 WHERE t.token_hash = :token_hash AND t.purpose = 'undo'
   AND NOT (added.type = CASE WHEN t.target LIKE '%@%' THEN 'email' ELSE 'phone' END AND comes_back(t))
 ORDER BY added.added_at, added.id;

-- name: select_comes_back(token_hash bytea) -> row
SELECT comes_back(t) AS comes_back FROM one_time_tokens AS t WHERE t.token_hash = :token_hash;

-- name: lock_users_of_undo(token_hash bytea) -> rows
-- Locks the user and the present owner of the address, in order of their ids.
SELECT u.id
  FROM users AS u
  JOIN one_time_tokens AS t ON u.id = t.user_id OR u.email = t.target OR u.phone = t.target
 WHERE t.token_hash = :token_hash AND t.purpose = 'undo'
 ORDER BY u.id
   FOR UPDATE OF u;

-- name: spend_undo_link(token_hash bytea) -> row?
SELECT t.user_id, t.target, t.created_at, comes_back(t::one_time_tokens) AS comes_back
  FROM spend_link(:token_hash, '{undo}') AS t;

-- name: select_holder(address text, owner_id uuid) -> row? (email?)
SELECT id, email FROM users WHERE (email = :address OR phone = :address) AND id <> :owner_id;

-- name: restore_factors(user_id uuid)
-- The old factors that were removed since: the link has asked for one of them. A thief may have made the
-- recovery codes of the last seven days.
WITH voided AS (
  DELETE FROM recovery_codes WHERE user_id = :user_id AND created_at > now() - recent_age()
)
INSERT INTO factors SELECT f.* FROM asked_factors(:user_id) AS f ON CONFLICT DO NOTHING;

-- name: void_undo_links(user_id uuid, moment timestamptz)
-- The links of later notices, which may go to the thief's addresses; without a moment, all links.
DELETE FROM one_time_tokens
 WHERE user_id = :user_id AND purpose = 'undo' AND (:moment IS NULL OR created_at > :moment);
