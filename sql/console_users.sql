-- name: bound_search(seconds double precision, in_order boolean)
-- Applies to the rest of the transaction. A generic plan would read a million users for a rare filter. With
-- `in_order`, Postgres does not collect all users with a word: its estimate of their number is often too low.
SELECT set_config('plan_cache_mode', 'force_custom_plan', true),
       set_config('enable_bitmapscan', (NOT :in_order)::text, true),
       set_config('enable_seqscan', 'off', true),
       set_config('statement_timeout', (1000 * :seconds)::integer::text, true);

-- name: split_words(search text) -> row (rare?, common?)
-- The words that are rare in a sample of many users, and the others: reading a common word, or a common
-- prefix, from the index takes 60 ms with a million users. Ids are random.
WITH sample AS MATERIALIZED (
  SELECT words_of(u) AS words FROM (SELECT * FROM users ORDER BY id LIMIT 50) AS u
), searched AS MATERIALIZED (
  SELECT word, query_of(word) AS query FROM words_in(:search) AS word
), words AS MATERIALIZED (
  SELECT word, reltuples < 20000 OR (SELECT count(*) < 3 FROM sample WHERE words @@ query) AS is_rare
    FROM searched
    JOIN pg_class ON oid = 'users'::regclass
   WHERE numnode(query) > 0
)
SELECT string_agg(word, ' ') FILTER (WHERE is_rare) AS rare,
       string_agg(word, ' ') FILTER (WHERE NOT is_rare) AS common
  FROM words;

-- name: few_users(filters jsonb, few integer) -> row (ids?)
-- The users that pass the filters, or null if there are more. The next three statements find them by the
-- rarest of providers, factors and the last sign-in, whose indexes `matching_users` cannot use.
SELECT CASE WHEN count(*) <= :few THEN coalesce(array_agg(id::text), '{}') END AS ids
  FROM (SELECT u.id FROM matching_users(:filters, NULL) AS u LIMIT :few + 1) AS matches;

-- name: few_users_of_provider(filters jsonb, few integer) -> row? (ids?)
SELECT CASE WHEN count(*) <= :few THEN coalesce(array_agg(id::text), '{}') END AS ids
  FROM (SELECT u.id
          FROM matching_users(:filters - 'provider', NULL) AS u
         WHERE u.id IN (SELECT user_id FROM identities WHERE provider = :filters ->> 'provider')
         LIMIT :few + 1) AS matches;

-- name: few_users_with_factor(filters jsonb, few integer) -> row?
SELECT CASE WHEN count(*) <= :few THEN coalesce(array_agg(id::text), '{}') END AS ids
  FROM (SELECT u.id
          FROM (SELECT DISTINCT user_id FROM factors WHERE verified_at IS NOT NULL) AS f
          JOIN matching_users(:filters - 'has_factor', NULL) AS u ON u.id = f.user_id
         LIMIT :few + 1) AS matches;

-- name: few_locked_users(filters jsonb, few integer) -> row? (ids?)
-- Uses the counts whose window is not over. Counts of a user, not of an address, have the user's id.
WITH tried AS MATERIALIZED (
  SELECT subject, CASE WHEN kind IN ('user', 'totp', 'recovery') THEN subject::uuid END AS user_id
    FROM failure_counts
   WHERE expires_at > now() AND kind = ANY (verdict_kinds())
)
SELECT CASE WHEN count(*) <= :few THEN coalesce(array_agg(id::text), '{}') END AS ids
  FROM (SELECT u.id
          FROM (SELECT u.id FROM tried JOIN users AS u ON u.email = tried.subject
                 UNION
                SELECT u.id FROM tried JOIN users AS u ON u.phone = tried.subject
                 UNION
                SELECT user_id FROM tried WHERE user_id IS NOT NULL) AS locked
          JOIN matching_users(:filters, NULL) AS u ON u.id = locked.id
         LIMIT :few + 1) AS few;

-- name: few_users_by_sign_in(filters jsonb, few integer) -> row?
SELECT CASE WHEN count(*) <= :few THEN coalesce(array_agg(id::text), '{}') END AS ids
  FROM (SELECT u.id
          FROM user_objects AS o
          JOIN matching_users(:filters - '{within,not_within}'::text[], NULL) AS u ON u.id = o.user_id
         WHERE o.last_sign_in_at >= coalesce(now() - (:filters ->> 'within')::interval, '-infinity')
           AND o.last_sign_in_at < coalesce(now() - (:filters ->> 'not_within')::interval, 'infinity')
         LIMIT :few + 1) AS matches;

-- name: search_users(filters jsonb, among text[], sort text, place text, id uuid, page_size integer) -> rows
-- A page of the users that pass the filters, in the order of an index, from the beginning or after a place.
SELECT u.id,
       CASE :sort WHEN 'newest' THEN u.created_at::text WHEN 'last_sign_in' THEN o.last_sign_in_at::text
                  WHEN 'email' THEN u.email WHEN 'phone' THEN u.phone ELSE u.id::text END AS place
  FROM user_objects AS o
  JOIN matching_users(:filters - '{within,not_within}'::text[], :among::uuid[]) AS u ON u.id = o.user_id
 WHERE o.last_sign_in_at >= coalesce(now() - (:filters ->> 'within')::interval, '-infinity')
   AND o.last_sign_in_at < coalesce(now() - (:filters ->> 'not_within')::interval, 'infinity')
   AND (:place IS NULL
    OR CASE :sort
         WHEN 'newest' THEN (u.created_at, u.id) < (:place::timestamptz, :id)
         WHEN 'last_sign_in' THEN (o.last_sign_in_at, o.user_id) < (:place::timestamptz, :id)
         WHEN 'email' THEN u.email > :place
         WHEN 'phone' THEN u.phone > :place
         ELSE u.id > :id
       END)
 ORDER BY CASE :sort WHEN 'newest' THEN u.created_at WHEN 'last_sign_in' THEN o.last_sign_in_at END DESC,
          CASE :sort WHEN 'email' THEN u.email WHEN 'phone' THEN u.phone END,
          CASE WHEN :sort IN ('newest', 'last_sign_in') THEN u.id END DESC,
          CASE WHEN :sort = 'id' THEN u.id END
 LIMIT :page_size;

-- name: estimate_users() -> row
-- The count of the last ANALYZE.
SELECT greatest(reltuples, 0)::bigint AS total FROM pg_class WHERE oid = 'users'::regclass;

-- name: describe_users(ids text[], locks jsonb)
--   -> rows (email?, phone?, name?, invitation_lasts?, last_sign_in_at?)
SELECT u.id,
       u.email,
       u.phone,
       name_of(u.user_metadata) AS name,
       u.role,
       is_anonymous(u) AS is_anonymous,
       coalesce(u.email_confirmed_at, u.phone_confirmed_at) IS NOT NULL AS is_confirmed,
       has_open_invitation(u) AS is_invited,
       CASE WHEN has_open_invitation(u) THEN invitation_lasts(u) END AS invitation_lasts,
       is_banned(u) AS is_banned,
       is_locked(u, :locks) AS is_locked,
       EXISTS (SELECT FROM factors WHERE user_id = u.id AND verified_at IS NOT NULL) AS has_factor,
       ARRAY(SELECT i.provider FROM identities AS i WHERE i.user_id = u.id ORDER BY i.created_at, i.provider)
         AS providers,
       iso_8601(u.created_at) AS created_at,
       iso_8601(u.last_sign_in_at) AS last_sign_in_at
  FROM unnest(:ids::uuid[]) WITH ORDINALITY AS page (id, place)
  JOIN users AS u ON u.id = page.id
 ORDER BY page.place;

-- name: list_user_ids(filters jsonb, after uuid, most integer) -> rows
SELECT u.id::text
  FROM matching_users(:filters, NULL) AS u
 WHERE :after IS NULL OR u.id > :after
 ORDER BY u.id
 LIMIT :most;

-- name: record_export(filters jsonb, origin jsonb)
SELECT record_acts_at(now(), :origin, NULL, NULL, '{users_exported}', '{}', jsonb_build_object('count', total))
  FROM (SELECT count(*) AS total FROM matching_users(:filters, NULL)) AS matches;

-- name: select_chosen(ids text[], refresh_token_lifetime integer, session_timebox integer) -> row
-- The effects of an act on many users, in numbers.
SELECT coalesce(array_agg(u.id::text ORDER BY u.email, u.id), '{}') AS ids,
       coalesce(array_agg(coalesce(u.email, u.phone, u.id::text) ORDER BY u.email, u.id), '{}') AS names,
       count(*) FILTER (WHERE u.role <> 'admin') AS changeable,
       coalesce(sum(live.sessions) FILTER (WHERE u.role <> 'admin'), 0)::bigint AS sessions,
       (SELECT count(*)
          FROM api_keys AS k
          JOIN users ON users.id = k.user_id
         WHERE users.id = ANY (:ids::uuid[]) AND users.role <> 'admin') AS api_keys
  FROM users AS u
 CROSS JOIN LATERAL (SELECT count(*) AS sessions
                       FROM own_sessions(u.id, :refresh_token_lifetime, :session_timebox)) AS live
 WHERE u.id = ANY (:ids::uuid[]);

-- name: create_bulk_act(user_id uuid, act text, targets text[], options jsonb) -> row
INSERT INTO bulk_acts (user_id, act, targets, options) VALUES (:user_id, :act, :targets, :options)
RETURNING id::text;

-- name: select_bulk_act(id uuid, user_id uuid) -> row?
SELECT id::text, act, targets, options, position, refused
  FROM bulk_acts
 WHERE id = :id AND user_id = :user_id AND created_at > now() - interval '1 day';

-- name: advance_bulk_act(id uuid, position integer, refusal jsonb)
UPDATE bulk_acts AS b
   SET position = b.position + 1, refused = b.refused || coalesce(:refusal, '[]')
 WHERE b.id = :id AND b.position = :position;

-- name: list_groups(most_users integer, most integer) -> row
SELECT ARRAY(
  SELECT DISTINCT name
    FROM (SELECT app_metadata -> 'groups' AS theirs
            FROM users
           ORDER BY created_at DESC, id DESC
           LIMIT :most_users) AS newest,
         jsonb_array_elements_text(CASE jsonb_typeof(theirs) WHEN 'array' THEN theirs ELSE '[]' END) AS name
   ORDER BY name
   LIMIT :most
) AS groups;
