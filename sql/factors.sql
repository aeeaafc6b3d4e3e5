-- name: record_mail_proof(user_id uuid, network text, acted_at timestamptz)
INSERT INTO known_networks (user_id, network, seen_at, mail_proved_at)
VALUES (:user_id, :network, :acted_at, :acted_at)
ON CONFLICT (user_id, network) DO UPDATE SET seen_at = :acted_at, mail_proved_at = :acted_at;

-- name: forget_mail_proofs(user_id uuid)
-- Run at a change of an address: a thief of the previous mailbox may have used links.
UPDATE known_networks SET mail_proved_at = NULL WHERE user_id = :user_id AND mail_proved_at IS NOT NULL;

-- name: count_verified_factors(user_id uuid) -> row (names?)
SELECT count(*) FILTER (WHERE factor_type <> 'passkey') AS enrolled, count(*) AS total,
       array_remove(array_agg(friendly_name) FILTER (WHERE factor_type <> 'passkey'), '') AS names
  FROM factors
 WHERE user_id = :user_id AND verified_at IS NOT NULL;

-- name: insert_factor(id uuid, user_id uuid, factor_type text, friendly_name text, secret bytea,
--                     by_key boolean, most_unverified_factors integer, acted_at timestamptz)
-- Beyond `most_unverified_factors`, replaces the oldest unverified one: a refusal would make users wait for
-- abandoned enrolments. Call it with the user's row locked.
WITH replaced AS (
  DELETE FROM factors
   WHERE id = ANY (ARRAY(SELECT id
                           FROM factors
                          WHERE user_id = :user_id AND verified_at IS NULL AND factor_type <> 'passkey'
                          ORDER BY created_at DESC
                         OFFSET :most_unverified_factors - 1))
)
INSERT INTO factors (id, user_id, factor_type, friendly_name, secret, by_key, created_at)
VALUES (:id, :user_id, :factor_type, :friendly_name, :secret, nullif(:by_key, false), :acted_at);

-- name: select_factor(id uuid, user_id uuid, session_id uuid) -> row? (secret?, last_step?)
SELECT id, factor_type, friendly_name, verified_at IS NOT NULL AS is_verified, secret, last_step, created_at,
       EXISTS (SELECT FROM factor_challenges AS c
                WHERE c.factor_id = f.id AND c.session_id = :session_id) AS is_begun_here,
       clock_timestamp() AS now
  FROM factors AS f
 WHERE id = :id AND user_id = :user_id AND factor_type <> 'passkey';

-- name: list_totp_factors(user_id uuid, verified_before timestamptz) -> rows (last_step?)
SELECT id, factor_type, friendly_name, true AS is_verified, secret, last_step,
       clock_timestamp() AS now
  FROM factors
 WHERE user_id = :user_id AND factor_type = 'totp' AND verified_at < coalesce(:verified_before, 'infinity')
 ORDER BY verified_at, id;

-- name: forget_factors(user_id uuid)
-- After a removal by an administrator or the link of a notice, no link asks for a removed factor, and the
-- next factor is the first again. If users could do this, a thief would get a new first hour.
WITH forgotten AS (
  UPDATE one_time_tokens SET restores = NULL WHERE user_id = :user_id AND restores IS NOT NULL
)
UPDATE users
   SET first_factor_at = NULL
 WHERE id = :user_id AND first_factor_at IS NOT NULL 
   AND NOT EXISTS (SELECT FROM factors AS f WHERE f.user_id = users.id AND f.verified_at IS NOT NULL);

-- name: try_challenge(id uuid, user_id uuid, session_id uuid, factor_id uuid, challenge_tries integer)
UPDATE factor_challenges
   SET tries = tries + 1
 WHERE id = :id AND user_id = :user_id AND session_id = :session_id AND factor_id = :factor_id
   AND purpose = 'totp' AND tries < :challenge_tries AND expires_at > now();

-- name: select_challenge(id uuid, user_id uuid, session_id uuid, factor_id uuid, challenge_tries integer) -> row
-- Whether `try_challenge` would count a try now.
SELECT EXISTS (SELECT FROM factor_challenges
                WHERE id = :id AND user_id = :user_id AND session_id = :session_id AND factor_id = :factor_id
                  AND purpose = 'totp' AND tries < :challenge_tries AND expires_at > now()) AS is_open;

-- name: delete_challenge(id uuid)
DELETE FROM factor_challenges WHERE id = :id;

-- name: use_totp_step(id uuid, step bigint)
-- A code works once across all sessions, and codes of earlier steps do not work after it.
UPDATE factors
   SET last_step = :step, last_used_at = now()
 WHERE id = :id AND coalesce(last_step, -1) < :step;

-- name: activate_factor(id uuid, user_id uuid, credential_id bytea, public_key bytea, sign_count bigint,
--                       transports text[], aaguid uuid, backup_eligible boolean, backed_up boolean,
--                       by_key boolean, acted_at timestamptz)
-- Removes factors that others may have begun to enrol, but no unused passkey: the user was told of it, and with a first
-- factor `remove_unused_passkeys` removes it.
WITH others AS (
  DELETE FROM factors WHERE user_id = :user_id AND id <> :id AND verified_at IS NULL AND factor_type <> 'passkey'
), first AS (
  UPDATE users SET first_factor_at = :acted_at WHERE id = :user_id AND first_factor_at IS NULL
)
UPDATE factors
   SET verified_at = :acted_at, updated_at = :acted_at, by_key = by_key OR nullif(:by_key, false),
       credential_id = :credential_id, public_key = :public_key,
       sign_count = :sign_count, transports = :transports, aaguid = :aaguid,
       backup_eligible = :backup_eligible, backed_up = :backed_up
 WHERE id = :id;

-- name: rename_factor(id uuid, user_id uuid, friendly_name text, acted_at timestamptz) -> row?
UPDATE factors AS f
   SET friendly_name = :friendly_name, updated_at = :acted_at
  FROM factors AS old
 WHERE f.id = :id AND f.user_id = :user_id AND f.factor_type <> 'passkey' AND f.verified_at IS NOT NULL
   AND old.id = f.id
RETURNING f.factor_type, f.friendly_name, old.friendly_name AS old_name, factor_object(f)::text AS object;

-- name: list_factors_by_id(user_id uuid, ids text[]) -> rows
SELECT id, user_id, factor_type, friendly_name
  FROM factors
 WHERE user_id = :user_id AND id = ANY (:ids::uuid[]);

-- name: list_factors_and_passkeys(user_id uuid) -> rows
-- The verified factors, and all passkeys: the first use would verify one.
SELECT id, factor_type
  FROM factors
 WHERE user_id = :user_id AND (verified_at IS NOT NULL OR factor_type = 'passkey')
 ORDER BY verified_at, id;

-- name: remove_factors(user_id uuid, ids text[], verified_before timestamptz, kept_until timestamptz)
-- Removes factors and passkeys. Sessions whose level came from one fall to `aal1`. A thief may have passed
-- the second step with one, so no network keeps its own tries. Recovery codes go with the last factor. The
-- links of notices may restore those verified before a moment: rows without a link keep copies until
-- `kept_until`.
WITH gone AS (
  DELETE FROM factors WHERE user_id = :user_id AND id = ANY (:ids::uuid[]) RETURNING *
), lowered AS (
  UPDATE sessions SET aal = 'aal1', factor_id = NULL, first_passkey_at = NULL
   WHERE user_id = :user_id AND factor_id = ANY (:ids::uuid[])
), networks AS (
  UPDATE known_networks SET passed_at = NULL
   WHERE user_id = :user_id AND passed_at IS NOT NULL
     AND EXISTS (SELECT FROM gone WHERE gone.verified_at IS NOT NULL)
), codes AS (
  DELETE FROM recovery_codes
   WHERE user_id = :user_id
     AND NOT EXISTS (SELECT FROM factors AS f
                      WHERE f.user_id = :user_id AND f.verified_at IS NOT NULL AND f.id <> ALL (:ids::uuid[]))
)
INSERT INTO one_time_tokens (id, user_id, purpose, target, restores, expires_at)
SELECT gen_random_uuid(), :user_id, 'undo', '', to_jsonb(gone) || '{"provider": "factor"}', :kept_until
  FROM gone
 WHERE gone.verified_at <= :verified_before;

-- name: list_factors(user_id uuid) -> row?
SELECT u.id, coalesce(jsonb_agg(factor_object(f) ORDER BY f.created_at, f.id) FILTER (WHERE f.id IS NOT NULL), '[]')::text
         AS factors
  FROM users AS u
  LEFT JOIN factors AS f ON f.user_id = u.id AND f.factor_type <> 'passkey'
 WHERE u.id = :user_id
 GROUP BY u.id;

-- name: select_has_recovery_codes(user_id uuid) -> row
SELECT EXISTS (SELECT FROM recovery_codes WHERE user_id = :user_id) AS has_codes;

-- name: replace_recovery_codes(user_id uuid, code_macs bytea[], friendly_name text, by_key boolean,
--                              acted_at timestamptz) -> row
-- Without a name, the new codes keep the name of the old ones.
WITH voided AS (
  DELETE FROM recovery_codes WHERE user_id = :user_id AND code_mac <> ALL (:code_macs)
  RETURNING used_at, friendly_name
), named AS (
  SELECT coalesce(:friendly_name, (SELECT max(friendly_name) FROM voided), '') AS friendly_name
), made AS (
  INSERT INTO recovery_codes (user_id, code_mac, friendly_name, by_key, created_at)
  SELECT :user_id, unnest(:code_macs), friendly_name, nullif(:by_key, false), :acted_at FROM named
)
SELECT friendly_name, EXISTS (SELECT FROM voided WHERE used_at IS NULL) AS replaced FROM named;

-- name: delete_recovery_codes(user_id uuid)
DELETE FROM recovery_codes WHERE user_id = :user_id;

-- name: select_recovery_code(user_id uuid, code_macs bytea[], made_before timestamptz) -> row?
SELECT code_mac
  FROM recovery_codes
 WHERE user_id = :user_id AND code_mac = ANY (:code_macs) AND used_at IS NULL
   AND created_at < coalesce(:made_before, 'infinity');

-- name: use_recovery_code(user_id uuid, code_mac bytea) -> row?
UPDATE recovery_codes
   SET used_at = now()
 WHERE user_id = :user_id AND code_mac = :code_mac AND used_at IS NULL
RETURNING (SELECT count(*) - 1 FROM recovery_codes WHERE user_id = :user_id AND used_at IS NULL) AS remaining;

-- name: select_recovery_codes(caller_id uuid, caller_session_id uuid)
--   -> row? (banned_until?, converted_at?, oldest_factor_at?, method?, aal?,
--            session_created_at?, refreshed_at?, ended_at?, first_passkey_at?)
SELECT caller.*,
       (SELECT count(*) FROM recovery_codes WHERE user_id = :caller_id) AS total,
       (SELECT count(*) FROM recovery_codes WHERE user_id = :caller_id AND used_at IS NULL) AS remaining
  FROM caller_facts(:caller_id, :caller_session_id) AS caller;
