-- ARRAY(…) and WITH are evaluated once; IN (SELECT … LIMIT) may be evaluated again for each row.

-- name: try_lock_janitor() -> row
SELECT pg_try_advisory_xact_lock(7239004119) AS is_ours;

-- name: delete_expired_request_counts(batch integer)
DELETE FROM request_counts
 WHERE key = ANY (ARRAY(SELECT key FROM request_counts
                         WHERE expires_at <= now() LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_failure_counts(batch integer)
DELETE FROM failure_counts
 WHERE key = ANY (ARRAY(SELECT key FROM failure_counts
                         WHERE expires_at <= now() LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_one_time_tokens(batch integer)
-- Keeps the expired link of a pending change that an administrative key requested: a message that is sent
-- again copies its `by_key`.
DELETE FROM one_time_tokens
 WHERE id = ANY (ARRAY(SELECT t.id
                         FROM one_time_tokens AS t
                        WHERE t.expires_at <= now()
                          AND NOT (t.by_key IS TRUE AND EXISTS (SELECT FROM users AS u
                                                                 WHERE u.id = t.user_id
                                                                   AND t.target IN (u.new_email, u.new_phone)))
                        LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_typed_addresses(batch integer)
DELETE FROM typed_addresses
 WHERE id = ANY (ARRAY(SELECT id FROM typed_addresses
                        WHERE expires_at <= now() LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_authorization_codes(batch integer)
DELETE FROM authorization_codes
 WHERE id = ANY (ARRAY(SELECT id FROM authorization_codes
                        WHERE expires_at <= now() LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_oauth_flows(batch integer)
DELETE FROM oauth_flows
 WHERE id = ANY (ARRAY(SELECT id FROM oauth_flows
                        WHERE expires_at <= now() LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_oauth_requests(batch integer)
DELETE FROM oauth_requests
 WHERE id = ANY (ARRAY(SELECT id FROM oauth_requests
                        WHERE expires_at <= now() LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_unallowed_clients(batch integer, origin jsonb)
-- Strangers may register clients. The request of a user who is about to allow one keeps it.
DELETE FROM oauth_clients AS c
 WHERE c.id = ANY (ARRAY(
         SELECT unallowed.id
           FROM oauth_clients AS unallowed
          WHERE unallowed.is_dynamic AND NOT refuses_all(unallowed)
            AND unallowed.created_at <= now() - interval '1 week'
            AND unallowed.updated_at <= now() - interval '1 week'
            AND NOT EXISTS (SELECT FROM oauth_grants AS o WHERE o.client_id = unallowed.id)
            AND NOT EXISTS (SELECT FROM oauth_requests AS r WHERE r.client_id = unallowed.id)
          LIMIT :batch FOR UPDATE OF unallowed SKIP LOCKED
       ))
RETURNING record_acts_at(now(), :origin, NULL, NULL, '{client_deleted}', '{}',
                         jsonb_build_object('client_id', c.id, 'client', c.name) || '{"because": "unallowed"}');

-- name: forget_previous_secrets()
WITH signing AS (
  UPDATE webhooks
     SET previous_secret = NULL, previous_secret_expires_at = NULL
   WHERE previous_secret_expires_at <= now()
)
UPDATE oauth_clients
   SET previous_secret_hash = NULL, previous_secret_expires_at = NULL
 WHERE previous_secret_expires_at <= now();

-- name: delete_expired_api_keys(batch integer, kept integer)
DELETE FROM api_keys
 WHERE id = ANY (ARRAY(SELECT id FROM api_keys
                        WHERE expires_at <= now() - make_interval(secs => :kept)
                        LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_factor_challenges(batch integer)
DELETE FROM factor_challenges
 WHERE id = ANY (ARRAY(SELECT id FROM factor_challenges
                        WHERE expires_at <= now() LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_unverified_factors(batch integer, enrolment_lifetime integer)
-- Locks the users first, as acts do: the trigger of factors needs them.
WITH expired AS MATERIALIZED (
  SELECT f.id, f.user_id
    FROM factors AS f
   WHERE f.verified_at IS NULL AND f.factor_type <> 'passkey'
     AND f.created_at <= now() - make_interval(secs => :enrolment_lifetime)
   LIMIT :batch
), locked AS MATERIALIZED (
  SELECT u.id FROM users AS u WHERE u.id = ANY (ARRAY(SELECT user_id FROM expired))
     FOR UPDATE OF u SKIP LOCKED
)
DELETE FROM factors AS f
 USING expired
  JOIN locked ON locked.id = expired.user_id
 WHERE f.id = expired.id AND f.verified_at IS NULL;

-- name: delete_unused_passkeys(batch integer, unused_passkey_lifetime integer, origin jsonb)
-- Deletes the passkeys that a browser made unasked, and nobody has used since. Locks the users first, too.
WITH expired AS MATERIALIZED (
  SELECT f.id, f.user_id
    FROM factors AS f
   WHERE f.verified_at IS NULL AND f.factor_type = 'passkey'
     AND f.created_at <= now() - make_interval(secs => :unused_passkey_lifetime)
   LIMIT :batch
), locked AS MATERIALIZED (
  SELECT u.id, u.email FROM users AS u WHERE u.id = ANY (ARRAY(SELECT user_id FROM expired))
     FOR UPDATE OF u SKIP LOCKED
)
DELETE FROM factors AS f
 USING expired
  JOIN locked ON locked.id = expired.user_id
 WHERE f.id = expired.id AND f.verified_at IS NULL
RETURNING record_acts_at(now(), :origin, f.user_id, locked.email, '{passkey_removed}', '{user.updated}',
                         jsonb_build_object('old_passkey', f.friendly_name, 'because', 'passkey_unused'));

-- name: delete_expired_id_tokens(batch integer)
-- After an hour the id_token is refused as expired, so its hash is no longer needed.
DELETE FROM spent_id_tokens
 WHERE token_hash = ANY (ARRAY(SELECT token_hash FROM spent_id_tokens
                                WHERE expires_at <= now() - interval '1 hour'
                                LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_captchas(batch integer)
DELETE FROM spent_captchas
 WHERE nonce = ANY (ARRAY(SELECT nonce FROM spent_captchas
                           WHERE expires_at <= now() LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_old_sessions(batch integer, kept integer)
-- Ended sessions are kept for a while, so that support can see why a user was signed out.
DELETE FROM sessions
 WHERE id = ANY (ARRAY(SELECT id FROM sessions
                        WHERE ended_at <= now() - make_interval(secs => :kept)
                        LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_sessions(batch integer, kept integer, refresh_token_lifetime integer,
--                               session_timebox integer)
-- Expired sessions are kept for the same time. The condition on created_at is for the index.
DELETE FROM sessions
 WHERE id = ANY (ARRAY(SELECT s.id
                         FROM sessions AS s
                        WHERE s.ended_at IS NULL
                          AND s.created_at <= now() - make_interval(secs => :kept)
                              - make_interval(secs => least(:refresh_token_lifetime, :session_timebox))
                          AND session_expired(s, :refresh_token_lifetime + :kept, :session_timebox + :kept)
                        LIMIT :batch FOR UPDATE OF s SKIP LOCKED));

-- name: delete_old_messages(batch integer, kept integer)
DELETE FROM outbox
 WHERE id = ANY (ARRAY(SELECT id FROM outbox
                        WHERE outcome IS NOT NULL AND finished_at <= now() - make_interval(secs => :kept)
                        LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_old_bulk_acts(batch integer)
DELETE FROM bulk_acts
 WHERE id = ANY (ARRAY(SELECT id FROM bulk_acts
                        WHERE created_at <= now() - interval '1 day' LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_old_networks(batch integer, networks_kept integer)
WITH old AS (
  SELECT user_id, network
    FROM known_networks
   WHERE seen_at <= now() - make_interval(secs => :networks_kept)
   LIMIT :batch FOR UPDATE SKIP LOCKED
)
DELETE FROM known_networks AS n USING old WHERE (n.user_id, n.network) = (old.user_id, old.network);

-- name: delete_old_audit_rows(batch integer, audit_retention integer)
SELECT
  FROM delete_old_entries(ARRAY(SELECT id FROM audit_log
                                 WHERE at <= now() - make_interval(days => :audit_retention)
                                 ORDER BY at LIMIT :batch));

-- name: delete_anonymous_users(batch integer, unconfirmed_retention integer, refresh_token_lifetime integer,
--                              session_timebox integer, origin jsonb)
-- Nobody can sign in as an anonymous user without a session or a pending address.
DELETE FROM users
 WHERE id = ANY (ARRAY(
         SELECT u.id
           FROM users AS u
          WHERE is_anonymous(u)
            AND u.created_at <= now() - make_interval(days => :unconfirmed_retention)
            AND u.email IS NULL AND u.phone IS NULL AND u.role = 'authenticated'
            AND NOT is_banned(u)
            AND NOT EXISTS (SELECT
                              FROM own_sessions(u.id, :refresh_token_lifetime, :session_timebox))
            AND NOT EXISTS (SELECT
                              FROM factors AS f
                             WHERE f.user_id = u.id AND f.factor_type = 'passkey')
            AND NOT EXISTS (SELECT
                              FROM one_time_tokens AS t
                             WHERE t.user_id = u.id AND t.expires_at > now())
          LIMIT :batch FOR UPDATE OF u SKIP LOCKED
       ))
RETURNING record_acts_at(now(), :origin, users.id, NULL, '{user_deleted}', '{user.deleted}', '{"because": "abandoned"}');

-- name: delete_unused_users(batch integer, unconfirmed_retention integer, origin jsonb)
-- Deletes users whom any stranger may have created, and who have not been used since.
DELETE FROM users
 WHERE id = ANY (ARRAY(
         SELECT u.id
           FROM users AS u
          WHERE u.made_by IN ('signup', 'message')
            AND NOT u.email_proved AND NOT u.phone_proved
            AND u.created_at <= now() - make_interval(days => :unconfirmed_retention)
            AND u.last_sign_in_at IS NULL AND u.role = 'authenticated'
            AND NOT is_banned(u)
            AND NOT EXISTS (SELECT
                              FROM identities AS i
                             WHERE i.user_id = u.id AND i.provider NOT IN ('email', 'phone'))
            AND NOT EXISTS (SELECT
                              FROM factors AS f
                             WHERE f.user_id = u.id AND f.factor_type = 'passkey')
            AND NOT EXISTS (SELECT
                              FROM one_time_tokens AS t
                             WHERE t.user_id = u.id AND t.expires_at > now())
          LIMIT :batch FOR UPDATE OF u SKIP LOCKED
       ))
RETURNING record_acts_at(now(), :origin, users.id, users.email, '{user_deleted}', '{user.deleted}', '{"because": "unused"}');
