-- name: list_factors_of_undo(user_id uuid)
--   -> rows (secret?, last_step?, credential_id?, public_key?, sign_count?, transports?, backup_eligible?,
--     removed_at?)
-- The verified factors, and those that were removed: rows without a link keep copies of them.
SELECT f.id, f.user_id, f.factor_type, f.friendly_name, f.secret, f.last_step, f.credential_id, f.public_key,
       f.sign_count, f.transports, f.backup_eligible, f.verified_at, f.removed_at,
       clock_timestamp() AS now
  FROM (SELECT present.*, NULL::timestamptz AS removed_at
          FROM factors AS present
         WHERE present.user_id = :user_id AND present.verified_at IS NOT NULL
         UNION ALL
        SELECT kept.*, t.created_at
          FROM one_time_tokens AS t
         CROSS JOIN LATERAL jsonb_populate_record(NULL::factors, t.restores) AS kept
         WHERE t.user_id = :user_id AND t.purpose = 'undo' AND t.restores ->> 'provider' = 'factor'
           AND NOT EXISTS (SELECT FROM factors WHERE id = kept.id)) AS f
 ORDER BY f.verified_at, f.id;

-- name: list_accepted_credentials(user_id uuid) -> rows
-- The credentials that authenticators must keep for a user: passkeys, used or not, security keys, which have the same
-- user handle, and those removed that the link of a notice would restore and ask for.
SELECT f.id, f.credential_id, false AS is_removed
  FROM factors AS f
 WHERE f.user_id = :user_id AND f.credential_id IS NOT NULL
 UNION ALL
SELECT kept.id, kept.credential_id, true
  FROM one_time_tokens AS t
 CROSS JOIN LATERAL jsonb_populate_record(NULL::factors, t.restores) AS kept
 WHERE t.user_id = :user_id AND t.purpose = 'undo' AND t.restores ->> 'provider' = 'factor'
   AND kept.credential_id IS NOT NULL AND t.expires_at > now();

-- name: restore_factors(user_id uuid, ids text[], codes_before timestamptz)
-- Voids the recovery codes made since a moment: a thief may have them.
WITH voided AS (
  DELETE FROM recovery_codes WHERE user_id = :user_id AND created_at > :codes_before
)
INSERT INTO factors
SELECT kept.*
  FROM one_time_tokens AS t
 CROSS JOIN LATERAL jsonb_populate_record(NULL::factors, t.restores) AS kept
 WHERE t.user_id = :user_id AND t.purpose = 'undo' AND t.restores ->> 'provider' = 'factor'
   AND kept.id = ANY (:ids::uuid[])
ON CONFLICT DO NOTHING;

-- name: void_undo_links(user_id uuid, moment timestamptz)
-- Voids the links of later notices, which may go to the thief's addresses, or all links without a moment.
DELETE FROM one_time_tokens
 WHERE user_id = :user_id AND purpose = 'undo' AND (:moment IS NULL OR created_at > :moment);
