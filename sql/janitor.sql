-- Each statement deletes one batch, chosen in ARRAY(…) or WITH, which are evaluated once: IN (SELECT … LIMIT)
-- may be evaluated again for each row, and then deletes more or less.

-- name: take_janitors_turn()
-- Takes the janitor's lock for the transaction; false while another node cleans up.
SELECT pg_try_advisory_xact_lock(7239004117) AS is_ours;

-- name: delete_expired_request_counts(batch integer)
-- Deletes request counts whose window has ended.
DELETE FROM request_counts
 WHERE key = ANY (ARRAY(SELECT key FROM request_counts
                         WHERE expires_at <= now() LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_failure_counts(batch integer)
-- Deletes counts of failures and messages whose window has ended.
DELETE FROM failure_counts
 WHERE key = ANY (ARRAY(SELECT key FROM failure_counts
                         WHERE expires_at <= now() LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_one_time_tokens(batch integer)
-- Deletes expired links and codes.
DELETE FROM one_time_tokens
 WHERE id = ANY (ARRAY(SELECT id FROM one_time_tokens
                        WHERE expires_at <= now() LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_authorization_codes(batch integer)
-- Deletes expired authorization codes.
DELETE FROM authorization_codes
 WHERE id = ANY (ARRAY(SELECT id FROM authorization_codes
                        WHERE expires_at <= now() LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_oauth_flows(batch integer)
-- Deletes OAuth sign-ins that were never completed.
DELETE FROM oauth_flows
 WHERE id = ANY (ARRAY(SELECT id FROM oauth_flows
                        WHERE expires_at <= now() LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_id_tokens(batch integer)
-- Deletes the hashes of spent id_tokens that are refused as expired by now.
DELETE FROM spent_id_tokens
 WHERE token_hash = ANY (ARRAY(SELECT token_hash FROM spent_id_tokens
                                WHERE expires_at <= now() - interval '1 hour'
                                LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_old_sessions(batch integer)
-- Deletes sessions 30 days after their end. Until then they tell support why a user was signed out.
DELETE FROM sessions
 WHERE id = ANY (ARRAY(SELECT id FROM sessions
                        WHERE ended_at <= now() - interval '30 days' LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_sessions(batch integer, refresh_token_lifetime integer, session_timebox integer)
-- Deletes sessions 30 days after they expired. The first condition is for the index on created_at.
DELETE FROM sessions
 WHERE id = ANY (ARRAY(SELECT s.id
                         FROM sessions AS s
                        CROSS JOIN (VALUES (now() - interval '30 days')) AS past (day)
                        WHERE s.ended_at IS NULL
                          AND s.created_at <= past.day
                              - make_interval(secs => least(:refresh_token_lifetime, :session_timebox))
                          AND (s.refreshed_at <= past.day - make_interval(secs => :refresh_token_lifetime)
                               OR s.created_at <= past.day - make_interval(secs => :session_timebox))
                        LIMIT :batch FOR UPDATE OF s SKIP LOCKED));

-- name: delete_old_messages(batch integer)
-- Deletes messages 30 days after they were sent or given up.
DELETE FROM outbox
 WHERE id = ANY (ARRAY(SELECT id FROM outbox
                        WHERE outcome IS NOT NULL AND finished_at <= now() - interval '30 days'
                        LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_old_networks(batch integer)
-- Deletes networks from which a user has not signed in for a year.
WITH old AS (
  SELECT user_id, network
    FROM known_networks
   WHERE seen_at <= now() - interval '365 days'
   LIMIT :batch FOR UPDATE SKIP LOCKED
)
DELETE FROM known_networks AS n USING old WHERE (n.user_id, n.network) = (old.user_id, old.network);

-- name: delete_old_audit_rows(batch integer, audit_retention integer)
-- Deletes audit rows older than `audit_retention` days, the oldest first.
DELETE FROM audit_log
 WHERE id = ANY (ARRAY(SELECT id FROM audit_log
                        WHERE at <= now() - make_interval(days => :audit_retention)
                        ORDER BY at LIMIT :batch FOR UPDATE SKIP LOCKED));
