-- name: select_api_keys(caller_id uuid, caller_session_id uuid, caller_expires_at bigint, caller_aal text,
--                       caller_level text, mfa_required text, refresh_token_lifetime integer,
--                       session_timebox integer) -> row?
SELECT caller_state(u, s, :caller_expires_at, :refresh_token_lifetime, :session_timebox,
                    :caller_aal, :caller_level, :mfa_required) AS state,
       api_keys_of(u.id)::text AS api_keys
  FROM users AS u
  LEFT JOIN sessions AS s ON s.id = :caller_session_id AND s.user_id = u.id
 WHERE u.id = :caller_id;

-- name: list_api_keys(user_id uuid) -> row
SELECT api_keys_of(:user_id)::text AS api_keys;

-- name: write_api_key(id uuid, user_id uuid, session_id uuid, name text, key_mac bytea, scopes text[],
--                     lifetime integer, most_api_keys integer) -> row?
-- The key gets the level of the session. Inserts nothing beyond `most_api_keys`. Call it with the user's row
-- locked.
INSERT INTO api_keys AS k (id, user_id, name, key_mac, scopes, expires_at, aal)
SELECT :id, s.user_id, :name, :key_mac, :scopes, now() + make_interval(secs => :lifetime), s.aal
  FROM sessions AS s
 WHERE s.id = :session_id AND s.user_id = :user_id
   AND (SELECT count(*) FROM api_keys WHERE user_id = :user_id) < :most_api_keys
RETURNING api_key_object(k) AS object;

-- name: remove_api_keys(user_id uuid, ids text[])
DELETE FROM api_keys WHERE user_id = :user_id AND id = ANY (:ids::uuid[]) RETURNING id::text, name;

-- name: list_api_keys_by_id(user_id uuid, ids text[]) -> rows
SELECT id::text, name FROM api_keys WHERE user_id = :user_id AND id = ANY (:ids::uuid[]) ORDER BY id;

-- name: record_api_key_verdict(id uuid, key_macs bytea[], network text, password_failures integer[])
--   -> row (refused_for?)
-- Counts whether or not this id exists. By network, because a stranger who has seen the id must not lock the
-- key.
SELECT refused_for
  FROM record_verdict(CASE WHEN :password_failures IS NOT NULL
                           THEN ARRAY[('api_key', :id, :network, (:password_failures)[1],
                                       (:password_failures)[2])::failure_limit] END, 1,
                      EXISTS (SELECT FROM api_keys AS k WHERE k.id = :id AND k.key_mac = ANY (:key_macs)));

-- name: use_api_key(id uuid, key_macs bytea[], refresh_limit_seconds integer, mfa_required text,
--                    audience text, origin jsonb) -> row? (expires_at?, recorded?)
-- One UPDATE, because only an UPDATE sees a concurrent removal of the key. Each use counts, or a program
-- could call the token hook without limit. The first use per day that returns a token is recorded.
UPDATE api_keys AS k
   SET key_mac = (:key_macs)[1],
       (refreshes, counted_until) = (
         SELECT * FROM refresh_window(k.refreshes, k.counted_until, :refresh_limit_seconds)),
       last_used_on = CASE WHEN api_key_state(u, old, NULL, :mfa_required) = 'live'
                           THEN (now() AT TIME ZONE 'UTC')::date ELSE k.last_used_on END
  FROM api_keys AS old
  JOIN users AS u ON u.id = old.user_id
  JOIN user_objects AS copy ON copy.user_id = u.id
 WHERE k.id = :id AND old.id = k.id AND k.key_mac = ANY (:key_macs) AND end_of_key(k) IS NULL
RETURNING api_key_state(u, k, NULL, :mfa_required) AS state,
          with_audience(copy.object, :audience) AS user_object,
          k.user_id,
          k.id AS api_key_id,
          k.scopes,
          k.refreshes,
          extract(epoch FROM k.counted_until - now())::float AS seconds_left,
          what_decides(copy.object, NULL) AS decides,
          floor(extract(epoch FROM now()))::bigint AS issued_at,
          floor(extract(epoch FROM k.expires_at))::bigint AS expires_at,
          CASE WHEN k.last_used_on IS DISTINCT FROM old.last_used_on
               THEN record_acts(:origin, u.id, u.email, '{api_key_used}', '{}',
                                jsonb_build_object('api_key', k.name, 'api_key_id', k.id)) END AS recorded;

-- name: select_owner_of_api_key(id uuid) -> row?
SELECT user_id FROM api_keys WHERE id = :id;

-- name: select_api_key(id uuid, key_macs bytea[], mfa_required text) -> row? (expires_at?)
-- Selects a live key by its secret, for POST /introspect.
SELECT k.user_id,
       k.scopes,
       floor(extract(epoch FROM k.created_at))::bigint AS created_at,
       floor(extract(epoch FROM k.expires_at))::bigint AS expires_at
  FROM api_keys AS k
  JOIN users AS u ON u.id = k.user_id
 WHERE k.id = :id AND k.key_mac = ANY (:key_macs) AND api_key_state(u, k, NULL, :mfa_required) = 'live';

-- name: select_user_of_api_key(user_id uuid, api_key_id uuid, expires_at bigint, mfa_required text,
--                             audience text) -> row?
SELECT api_key_state(u, k, :expires_at, :mfa_required) AS state,
       with_audience(copy.object, :audience) AS user_object
  FROM users AS u
  JOIN user_objects AS copy ON copy.user_id = u.id
  LEFT JOIN api_keys AS k ON k.id = :api_key_id AND k.user_id = u.id
 WHERE u.id = :user_id;
