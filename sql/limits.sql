-- name: count_request(key text, amount integer, seconds integer) -> row
INSERT INTO request_counts AS r (key, count, expires_at)
VALUES (:key, :amount, now() + make_interval(secs => :seconds))
ON CONFLICT (key) DO UPDATE
   SET count = CASE WHEN r.expires_at <= now() THEN :amount ELSE r.count + :amount END,
       expires_at = CASE WHEN r.expires_at <= now() THEN excluded.expires_at ELSE r.expires_at END
RETURNING r.count, extract(epoch FROM r.expires_at - now())::float AS seconds_left;

-- name: select_request_count(key text) -> row?
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
--   -> row (user_id?, password_hash?, tries?, seconds_left?, refused_for?, recorded?)
-- Counts before the password is checked: for the address, then for its user, and from networks new to the
-- user over all networks too. A used-up count of a user hides the hash, because a refusal would reveal that
-- an email and a phone belong together.
WITH sent AS (
  SELECT given.address, u.id, own_hash(u) AS password_hash,
         coalesce('user ' || u.id, 'nobody ' || given.address) AS owner,
         NOT EXISTS (SELECT
                       FROM known_networks AS n
                      WHERE n.user_id = u.id AND n.network = :network) AS is_strange
    FROM (VALUES (coalesce(:email, :phone))) AS given (address)
    LEFT JOIN users AS u ON u.email = :email OR u.phone = :phone
), tried AS (
  SELECT count, count > :failures AS refused, seconds_left
    FROM sent
   CROSS JOIN count_up(CASE WHEN :limited THEN 'login ' || address || ' ' || :network END, :failures_seconds)
), strange AS (
  SELECT counted.count > :account_failures AS refused, counted.seconds_left
    FROM sent
   CROSS JOIN tried
   CROSS JOIN count_up(CASE WHEN is_strange AND NOT tried.refused THEN 'account ' || address END,
                       :account_failures_seconds) AS counted
), owned AS (
  SELECT counted.seconds_left > 0 AS refused
    FROM sent
   CROSS JOIN tried
    LEFT JOIN strange ON true
   CROSS JOIN take_from_quota(CASE WHEN NOT tried.refused AND strange.refused IS NOT TRUE
                                   THEN ARRAY[owner || ' ' || :network]
                                     || CASE WHEN is_strange THEN ARRAY[owner] END END,
                              ARRAY[:failures, :account_failures],
                              ARRAY[:failures_seconds, :account_failures_seconds]) AS counted
)
SELECT sent.id AS user_id,
       CASE WHEN owned.refused IS NOT TRUE THEN sent.password_hash END AS password_hash,
       tried.count AS tries,
       tried.seconds_left,
       strange.refused IS NOT NULL AS is_stranger,
       CASE WHEN tried.refused THEN tried.seconds_left
            WHEN strange.refused THEN strange.seconds_left END AS refused_for,
       CASE WHEN tried.refused OR strange.refused
            THEN record_refusal(:origin, sent.id, 'sign_in_refused', 'over_request_rate_limit',
                                jsonb_build_object('tries', tried.count, 'of', :failures)) END AS recorded
  FROM sent
  LEFT JOIN tried ON true
  LEFT JOIN strange ON true
  LEFT JOIN owned ON true;

-- name: finish_password_attempt(email text, phone text, network text, is_stranger boolean)
--   -> row? (take_back_attempt?)
-- Uncounts an attempt with the right password that starts no session.
SELECT take_back_attempt(coalesce(:email, :phone), :network, :is_stranger);

-- name: clear_failures(user_id uuid)
-- Locks the counts in the order of begin_password_attempt, to avoid deadlocks. A pending address may be
-- another user's: only its wrong codes are this one's.
DELETE FROM failure_counts
 WHERE key = ANY (ARRAY(
         SELECT f.key
           FROM users AS u
          CROSS JOIN unnest(ARRAY[u.email, u.phone, u.id::text, u.new_email, u.new_phone])
                  WITH ORDINALITY AS known (name, number)
          CROSS JOIN unnest(ARRAY['login ', 'account ', 'user ', 'code ', 'totp ', 'recovery '])
                  WITH ORDINALITY AS prefix (text, place)
           JOIN failure_counts AS f
             ON f.key COLLATE "C" = prefix.text || known.name
             OR f.key COLLATE "C" >= prefix.text || known.name || ' '
                AND f.key COLLATE "C" < prefix.text || known.name || '!'
          WHERE u.id = :user_id AND (known.number <= 3 OR prefix.text = 'code ')
          ORDER BY prefix.place, length(f.key) DESC
            FOR UPDATE OF f));
