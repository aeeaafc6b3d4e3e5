-- What is due is looked up once: ARRAY(...) and WITH are evaluated a single time, while IN (SELECT ... LIMIT) may be
-- evaluated again for each row that it is compared with, and then removes more or fewer rows than a batch has.

-- name: delete_expired_request_counts(batch integer)
-- Removes counts of requests whose window has ended.
DELETE FROM request_counts
 WHERE key = ANY (ARRAY(SELECT key FROM request_counts WHERE expires_at <= now() AND (SELECT is_janitors_turn()) LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_failure_counts(batch integer)
-- Removes counts of failures and messages whose window has ended.
DELETE FROM failure_counts
 WHERE key = ANY (ARRAY(SELECT key FROM failure_counts WHERE expires_at <= now() AND (SELECT is_janitors_turn()) LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_one_time_tokens(batch integer)
-- Removes links and codes that have expired.
DELETE FROM one_time_tokens
 WHERE id = ANY (ARRAY(SELECT id FROM one_time_tokens WHERE expires_at <= now() AND (SELECT is_janitors_turn()) LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_authorization_codes(batch integer)
-- Removes authorization codes that have expired.
DELETE FROM authorization_codes
 WHERE id = ANY (ARRAY(SELECT id FROM authorization_codes WHERE expires_at <= now() AND (SELECT is_janitors_turn()) LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_oauth_flows(batch integer)
-- Removes sign-ins with providers that nobody came back from.
DELETE FROM oauth_flows
 WHERE id = ANY (ARRAY(SELECT id FROM oauth_flows WHERE expires_at <= now() AND (SELECT is_janitors_turn()) LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_id_tokens(batch integer)
-- Removes the traces of id_tokens that have expired: they are refused without.
DELETE FROM spent_id_tokens
 WHERE token_hash = ANY (ARRAY(SELECT token_hash
                                 FROM spent_id_tokens
                                WHERE expires_at <= now() - interval '1 hour' AND (SELECT is_janitors_turn())
                                LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_old_sessions(batch integer)
-- Removes sessions that ended more than 30 days ago: until then they tell why somebody was signed out.
DELETE FROM sessions
 WHERE id = ANY (ARRAY(SELECT id
                         FROM sessions
                        WHERE ended_at <= now() - interval '30 days' AND (SELECT is_janitors_turn())
                        LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_expired_sessions(batch integer, refresh_token_lifetime integer, session_timebox integer)
-- Removes sessions that expired more than 30 days ago. When they began is what an index knows; when they were refreshed none may.
DELETE FROM sessions
 WHERE id = ANY (ARRAY(SELECT session.id
                         FROM sessions AS session
                        WHERE (SELECT is_janitors_turn())
                          AND session.ended_at IS NULL
                          AND session.created_at <= now() - interval '30 days' - make_interval(secs => least(:refresh_token_lifetime, :session_timebox))
                          AND (session.refreshed_at <= now() - interval '30 days' - make_interval(secs => :refresh_token_lifetime)
                               OR session.created_at <= now() - interval '30 days' - make_interval(secs => :session_timebox))
                        LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_old_messages(batch integer)
-- Removes messages that were finished with more than 30 days ago.
DELETE FROM outbox
 WHERE id = ANY (ARRAY(SELECT id
                         FROM outbox
                        WHERE outcome IS NOT NULL AND finished_at <= now() - interval '30 days' AND (SELECT is_janitors_turn())
                        LIMIT :batch FOR UPDATE SKIP LOCKED));

-- name: delete_old_networks(batch integer)
-- Forgets networks from which a user has not signed in for a year.
WITH old AS (
  SELECT user_id, network
    FROM known_networks
   WHERE seen_at <= now() - interval '365 days' AND (SELECT is_janitors_turn())
   LIMIT :batch FOR UPDATE SKIP LOCKED
)
DELETE FROM known_networks USING old WHERE (known_networks.user_id, known_networks.network) = (old.user_id, old.network);

-- name: delete_old_audit_rows(batch integer, audit_retention integer)
-- Forgets what was done more than so many days ago, the oldest first.
DELETE FROM audit_log
 WHERE id = ANY (ARRAY(SELECT id
                         FROM audit_log
                        WHERE at <= now() - make_interval(days => :audit_retention) AND (SELECT is_janitors_turn())
                        ORDER BY at
                        LIMIT :batch FOR UPDATE SKIP LOCKED));
