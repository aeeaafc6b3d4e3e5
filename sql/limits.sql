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

-- name: list_known_networks(user_id uuid) -> rows (passed_at?, mail_proved_at?)
SELECT network, passed_at, mail_proved_at, clock_timestamp() AS now FROM known_networks WHERE user_id = :user_id;

-- name: record_verdict(kinds text[], subjects text[], networks text[], amounts integer[], seconds integer[],
--                      tries integer, is_right boolean)
--   -> row (refused_by?, refused_for?, count?, seconds_left?)
-- The arrays are the columns of the limits. Without a limit, nothing is counted.
SELECT v.refused_by, v.refused_for, v.count, v.seconds_left
  FROM record_verdict(
         ARRAY(SELECT (l.kind, l.subject, l.network, l.amount, l.seconds)::failure_limit
                 FROM unnest(:kinds, :subjects, :networks, :amounts, :seconds)
                        WITH ORDINALITY AS l (kind, subject, network, amount, seconds, place)
                ORDER BY l.place),
         :tries, :is_right) AS v;

-- name: select_credentials(email text, phone text, network text) -> row (user_id?, password_hash?)
-- The hash that a password is checked against, and the count of wrong ones so far. An address without a user
-- takes the same statement.
SELECT u.id AS user_id, coalesce(u.password_hash, u.sign_up_hash) AS password_hash,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('name', n.network, 'passed_at', n.passed_at,
                                                     'mail_proved_at', n.mail_proved_at)), '[]')
          FROM known_networks AS n
         WHERE n.user_id = u.id) AS networks,
       (SELECT coalesce(jsonb_object_agg(f.kind, jsonb_build_object('count', f.count,
                                                                    'expires_at', f.expires_at)), '{}')
          FROM failure_counts AS f
         WHERE f.key IN (concat_ws(' ', 'login', address, :network), concat_ws(' ', 'account', address)))
         AS counts,
       clock_timestamp() AS now
  FROM (VALUES (coalesce(:email, :phone))) AS subject (address)
  LEFT JOIN users AS u ON u.email = :email OR u.phone = :phone;

-- name: clear_failures(user_id uuid)
-- Locks the counts in the order of record_verdict, to avoid deadlocks. A pending address may belong to
-- another user: only its wrong codes belong to this user.
DELETE FROM failure_counts
 WHERE key = ANY (ARRAY(
         SELECT f.key
           FROM users AS u
           JOIN failure_counts AS f
             ON f.subject = ANY (ARRAY[u.email, u.phone, u.id::text]
                                 || ARRAY(SELECT t.id::text FROM one_time_tokens AS t WHERE t.user_id = u.id))
                AND f.kind = ANY (verdict_kinds())
             OR f.subject IN (u.new_email, u.new_phone) AND f.kind IN ('try', 'code')
          WHERE u.id = :user_id
          ORDER BY array_position(verdict_kinds(), f.kind), f.network IS NULL
            FOR UPDATE OF f));
