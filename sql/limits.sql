-- name: count_request(key text, amount integer, seconds integer)
INSERT INTO request_counts AS r (key, count, expires_at)
VALUES (:key, :amount, now() + make_interval(secs => :seconds))
ON CONFLICT (key) DO UPDATE
   SET count = CASE WHEN r.expires_at <= now() THEN :amount ELSE r.count + :amount END,
       expires_at = CASE WHEN r.expires_at <= now() THEN excluded.expires_at ELSE r.expires_at END
RETURNING r.count, extract(epoch FROM r.expires_at - now())::float AS seconds_left;

-- name: select_request_count(key text)
SELECT count, extract(epoch FROM expires_at - now())::float AS seconds_left
  FROM request_counts
 WHERE key = :key AND expires_at > now();

-- name: clear_request_count(key text)
DELETE FROM request_counts WHERE key = :key;

-- name: reset_request_counts()
DELETE FROM request_counts;

-- name: begin_password_attempt(email text, phone text, network text, limited boolean, failures integer,
--                              failures_seconds integer, account_failures integer,
--                              account_failures_seconds integer, origin jsonb)
-- Counts before the password is checked; from networks new to the user, for the address alone too.
WITH known AS (
  SELECT id, password_hash FROM users WHERE email = :email OR phone = :phone
), tried AS (
  SELECT count, count > :failures AS refused, seconds_left
    FROM count_up(CASE WHEN :limited THEN 'login ' || coalesce(:email, :phone) || ' ' || :network END,
                  :failures_seconds)
), strange AS (
  SELECT counted.count > :account_failures AS refused, counted.seconds_left
    FROM tried
   CROSS JOIN count_up(CASE WHEN NOT tried.refused
                             AND NOT EXISTS (SELECT
                                               FROM known_networks AS n
                                               JOIN known ON known.id = n.user_id
                                              WHERE n.network = :network)
                            THEN 'account ' || coalesce(:email, :phone) END,
                       :account_failures_seconds) AS counted
)
SELECT known.id AS user_id,
       known.password_hash,
       tried.count AS tries,
       tried.seconds_left,
       strange.refused IS NOT NULL AS is_stranger,
       CASE WHEN tried.refused THEN tried.seconds_left
            WHEN strange.refused THEN strange.seconds_left END AS refused_for,
       CASE WHEN tried.refused OR strange.refused
            THEN record_refusal(:origin, known.id, 'sign_in_refused', 'over_request_rate_limit',
                                jsonb_build_object('tries', tried.count, 'of', :failures)) END AS recorded
  FROM (VALUES (1)) AS single (line)
  LEFT JOIN known ON true
  LEFT JOIN tried ON true
  LEFT JOIN strange ON true;

-- name: finish_password_attempt(email text, phone text, network text, is_stranger boolean)
-- Uncounts an attempt with the right password that starts no session.
SELECT take_back_attempt(coalesce(:email, :phone), :network, :is_stranger);
