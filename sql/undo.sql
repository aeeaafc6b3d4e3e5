-- name: write_undo_token(token_id uuid, user_id uuid, target text, token_hash bytea, session_id uuid,
--                        restored text, restored_factor uuid, lifetime integer) -> row
-- Run it before the change, to keep what the change replaces or removes, except what an undo would remove,
-- which may be the thief's. For the same reason, no link outlives those to earlier addresses.
INSERT INTO one_time_tokens (id, user_id, purpose, target, token_hash, session_id, restores, asks_for_factor,
                             expires_at)
SELECT :token_id, :user_id, 'undo', :target, :token_hash, :session_id,
       (SELECT kept.members
          FROM (SELECT i.id, to_jsonb(i) AS members
                  FROM identities AS i
                  JOIN users AS u ON u.id = i.user_id
                 WHERE i.user_id = :user_id AND i.provider = :restored
                   AND CASE i.provider WHEN 'email' THEN u.email_proved WHEN 'phone' THEN u.phone_proved
                                       ELSE true END
                 UNION ALL
                SELECT f.id, to_jsonb(f) || '{"provider": "factor"}'
                  FROM factors AS f
                 WHERE f.user_id = :user_id AND f.id = :restored_factor) AS kept
         WHERE NOT EXISTS (SELECT FROM additions_to(:user_id, undone_since(:session_id, now())) AS added
                            WHERE added.id = kept.id)),
       has_verified_factor(:user_id)
         AND EXISTS (SELECT FROM sessions WHERE id = :session_id AND aal = 'aal2'),
       least(now() + make_interval(secs => :lifetime),
             (SELECT max(earlier.expires_at)
                FROM one_time_tokens AS earlier
               WHERE earlier.user_id = :user_id AND earlier.purpose IN ('undo', 'email_restore')
                 AND earlier.target <> :target
                 AND earlier.spent_at IS NULL AND earlier.expires_at > now()))
RETURNING extract(epoch FROM expires_at - now())::integer AS lifetime;

-- name: select_asked_factor(token_hash bytea, purposes text[]) -> row? (restores?)
-- For undoing a change that was made with a second factor.
SELECT user_id, created_at, restores, extract(epoch FROM clock_timestamp())::float AS moment
  FROM one_time_tokens AS t
 WHERE t.token_hash = :token_hash AND t.purpose = ANY (:purposes) AND t.asks_for_factor AND is_good_link(t);

-- name: record_mail_proof_of_undo(token_hash bytea, purposes text[], network text)
SELECT record_mail_proof(owner.id, :network)
  FROM (SELECT u.id
          FROM users AS u
          JOIN one_time_tokens AS t ON t.user_id = u.id
         WHERE t.token_hash = :token_hash AND t.purpose = ANY (:purposes) AND t.asks_for_factor
           AND is_good_link(t)
           FOR UPDATE OF u) AS owner;

-- name: list_asked_credentials(token_hash bytea, purposes text[]) -> rows
-- The factors from before such a change, and the one that it removed.
SELECT known.id, known.user_id, known.friendly_name, known.credential_id, known.public_key, known.sign_count,
       known.transports, known.is_removed
  FROM one_time_tokens AS t
 CROSS JOIN LATERAL (
         SELECT f.*, false AS is_removed
           FROM factors AS f
          WHERE f.user_id = t.user_id AND f.verified_at < t.created_at
          UNION ALL
         SELECT removed.*, true
           FROM jsonb_populate_record(
                  NULL::factors,
                  CASE WHEN t.restores ->> 'provider' = 'factor' THEN t.restores END
                ) AS removed
       ) AS known
 WHERE t.token_hash = :token_hash AND t.purpose = ANY (:purposes) AND t.asks_for_factor AND is_good_link(t)
   AND known.credential_id IS NOT NULL;

-- name: restore_factor(user_id uuid, factor jsonb)
INSERT INTO factors
SELECT restored.*
  FROM jsonb_populate_record(NULL::factors, :factor) AS restored
 WHERE restored.user_id = :user_id
ON CONFLICT DO NOTHING;

-- name: void_recovery_codes_since(user_id uuid, session_id uuid, moment timestamptz)
-- Older ones pass the undo: the owner may have nothing else, if the change removed the factor.
DELETE FROM recovery_codes
 WHERE user_id = :user_id AND created_at >= undone_since(:session_id, :moment);

-- name: lock_users_of_undo(token_hash bytea) -> rows
-- Locks the user, and the users who have the addresses now, always in one order.
SELECT u.id
  FROM users AS u
  JOIN one_time_tokens AS t
    ON u.id = t.user_id OR u.email = t.target OR u.phone = t.target
       OR u.phone = t.restores -> 'identity_data' ->> 'phone'
 WHERE t.token_hash = :token_hash AND t.purpose IN ('undo', 'email_restore')
 ORDER BY u.id
   FOR UPDATE OF u;

-- name: delete_unused_holder(address text, owner_id uuid, origin jsonb)
DELETE FROM users AS u
 WHERE (u.email = :address OR u.phone = :address) AND u.id <> :owner_id
   AND NOT u.email_proved AND NOT u.phone_proved AND u.last_sign_in_at IS NULL
   AND NOT is_last_administrator(u)
RETURNING record_acts(:origin, u.id, u.email, '{user_deleted}', '{user.deleted}',
                      '{"because": "change_undone"}');

-- name: select_unproved_holder(address text, owner_id uuid) -> row?
SELECT id, email
  FROM users
 WHERE (email = :address AND NOT email_proved OR phone = :address AND NOT phone_proved) AND id <> :owner_id;

-- name: restore_identity(user_id uuid, identity jsonb)
INSERT INTO identities
SELECT restored.*
  FROM jsonb_populate_record(NULL::identities, :identity) AS restored
 WHERE restored.user_id = :user_id
ON CONFLICT DO NOTHING;

-- name: void_links_to_recent_address(user_id uuid, address text) -> row?
-- The address may be a thief's, if there is a link to one from before it, which the row names. Otherwise it
-- may be the owner's only one.
WITH earlier AS (
  SELECT t.target
    FROM one_time_tokens AS t
    JOIN additions_to(:user_id, now() - interval '7 days') AS added
      ON added.type IN ('email', 'phone') AND added.label = :address
   WHERE t.user_id = :user_id AND t.purpose IN ('undo', 'email_restore') AND t.target <> :address
     AND t.created_at <= added.added_at AND t.spent_at IS NULL AND t.expires_at > now()
   ORDER BY t.created_at
   LIMIT 1
), voided AS (
  DELETE FROM one_time_tokens AS t
   USING earlier
   WHERE t.user_id = :user_id AND t.purpose IN ('undo', 'email_restore') AND t.target = :address
)
SELECT target FROM earlier;

-- name: void_undo_links(user_id uuid, moment timestamptz)
-- The links of later changes, whose addresses may be the thief's; without a moment, all links.
DELETE FROM one_time_tokens
 WHERE user_id = :user_id AND purpose IN ('undo', 'email_restore')
   AND (:moment IS NULL OR created_at > :moment);
