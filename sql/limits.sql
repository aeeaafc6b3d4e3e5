-- name: count_request(key text, amount integer, seconds integer)
-- Counts, in a window that begins with the first and lasts so many seconds; answers the count and the seconds left.
INSERT INTO request_counts AS counter (key, count, expires_at)
VALUES (:key, :amount, now() + make_interval(secs => :seconds))
ON CONFLICT (key) DO UPDATE
   SET count = CASE WHEN counter.expires_at <= now() THEN :amount ELSE counter.count + :amount END,
       expires_at = CASE WHEN counter.expires_at <= now() THEN excluded.expires_at ELSE counter.expires_at END
RETURNING counter.count, extract(epoch FROM counter.expires_at - now())::float AS seconds_left;

-- name: select_request_count(key text)
-- The count of a window that has not ended, and the seconds left.
SELECT count, extract(epoch FROM expires_at - now())::float AS seconds_left FROM request_counts WHERE key = :key AND expires_at > now();

-- name: clear_request_count(key text)
-- Forgets one count.
DELETE FROM request_counts WHERE key = :key;

-- name: reset_request_counts()
-- Forgets all counts of requests.
DELETE FROM request_counts;

-- name: begin_password_attempt(email text, phone text, network text, limited boolean, failures integer, failures_seconds integer,
--                              account_failures integer, account_failures_seconds integer, origin jsonb)
-- Counts a try of a password as failed before it is checked, whether or not anybody has the address, and answers the hash to
-- check. The address is counted together with the network; and, while that allows the try, by itself, where its user has
-- never signed in from there. `refused_for` is how many seconds are left of the window that allows no more.
WITH known AS (
  SELECT id, password_hash FROM users WHERE email = :email OR phone = :phone
), tried AS (
  SELECT count, count > :failures AS refused, seconds_left
    FROM count_up(CASE WHEN :limited THEN 'login ' || coalesce(:email, :phone) || ' ' || :network END, :failures_seconds)
), strange AS (
  SELECT counted.count > :account_failures AS refused, counted.seconds_left
    FROM tried
   CROSS JOIN count_up(CASE WHEN NOT tried.refused
                             AND NOT EXISTS (SELECT FROM known_networks JOIN known ON known.id = known_networks.user_id
                                              WHERE known_networks.network = :network)
                            THEN 'account ' || coalesce(:email, :phone) END, :account_failures_seconds) AS counted
)
SELECT known.id AS user_id,
       known.password_hash,
       tried.count AS tries,
       tried.seconds_left,
       strange.refused IS NOT NULL AS is_stranger,
       CASE WHEN tried.refused THEN tried.seconds_left WHEN strange.refused THEN strange.seconds_left END AS refused_for,
       CASE WHEN tried.refused OR strange.refused
            THEN record_refusal(:origin, known.id, 'sign_in_refused', 'over_request_rate_limit',
                                jsonb_build_object('tries', tried.count, 'of', :failures)) END AS recorded
  FROM (VALUES (1)) AS single (line)
  LEFT JOIN known ON true
  LEFT JOIN tried ON true
  LEFT JOIN strange ON true;

-- name: finish_password_attempt(email text, phone text, network text, is_stranger boolean)
-- Takes back the count of a try whose password was right, where no session is made of it.
SELECT take_back_attempt(coalesce(:email, :phone), :network, :is_stranger);
