-- name: bound_search(seconds double precision)
-- For the rest of the transaction. A generic plan would read a million users for a rare filter.
SELECT set_config('plan_cache_mode', 'force_custom_plan', true),
       set_config('statement_timeout', (1000 * :seconds)::integer::text, true);

-- name: list_users_by_age(filters jsonb, among text[], backward boolean, place timestamptz, id uuid,
--                         page_size integer)
SELECT u.id, u.created_at::text AS place
  FROM filtered_users(:filters, :among::uuid[]) AS u
 WHERE CASE WHEN :backward THEN (u.created_at, u.id) > (:place, :id)
            ELSE (u.created_at, u.id) < (:place, :id) END
 ORDER BY CASE WHEN :backward THEN u.created_at END, CASE WHEN :backward THEN u.id END,
          CASE WHEN NOT :backward THEN u.created_at END DESC, CASE WHEN NOT :backward THEN u.id END DESC
 LIMIT :page_size;

-- name: list_users_by_last_sign_in(filters jsonb, among text[], backward boolean, place timestamptz, id uuid,
--                                  page_size integer)
SELECT u.id, o.last_sign_in_at::text AS place
  FROM user_objects AS o
  JOIN filtered_users(:filters, :among::uuid[]) AS u ON u.id = o.user_id
 WHERE CASE WHEN :backward THEN (o.last_sign_in_at, o.user_id) > (:place, :id)
            ELSE (o.last_sign_in_at, o.user_id) < (:place, :id) END
 ORDER BY CASE WHEN :backward THEN o.last_sign_in_at END, CASE WHEN :backward THEN o.user_id END,
          CASE WHEN NOT :backward THEN o.last_sign_in_at END DESC,
          CASE WHEN NOT :backward THEN o.user_id END DESC
 LIMIT :page_size;

-- name: list_users_by_email(filters jsonb, among text[], backward boolean, place text, page_size integer)
SELECT u.id, u.email AS place
  FROM filtered_users(:filters, :among::uuid[]) AS u
 WHERE CASE WHEN :backward THEN u.email < :place ELSE u.email > :place END
 ORDER BY CASE WHEN :backward THEN u.email END DESC, CASE WHEN NOT :backward THEN u.email END
 LIMIT :page_size;

-- name: list_users_by_phone(filters jsonb, among text[], backward boolean, place text, page_size integer)
SELECT u.id, u.phone AS place
  FROM filtered_users(:filters, :among::uuid[]) AS u
 WHERE CASE WHEN :backward THEN u.phone < :place ELSE u.phone > :place END
 ORDER BY CASE WHEN :backward THEN u.phone END DESC, CASE WHEN NOT :backward THEN u.phone END
 LIMIT :page_size;

-- name: list_users_by_id(filters jsonb, among text[], backward boolean, place uuid, page_size integer)
SELECT u.id, u.id AS place
  FROM filtered_users(:filters, :among::uuid[]) AS u
 WHERE CASE WHEN :backward THEN u.id < :place ELSE u.id > :place END
 ORDER BY CASE WHEN :backward THEN u.id END DESC, CASE WHEN NOT :backward THEN u.id END
 LIMIT :page_size;

-- name: few_users_of_provider(provider text, few integer)
-- These statements return null if there are more than a few.
SELECT CASE WHEN count(*) <= :few THEN coalesce(array_agg(user_id::text), '{}') END AS ids
  FROM (SELECT user_id FROM identities WHERE provider = :provider LIMIT :few + 1) AS found;

-- name: few_users_with_factor(few integer)
SELECT CASE WHEN count(*) <= :few THEN coalesce(array_agg(user_id::text), '{}') END AS ids
  FROM (SELECT user_id FROM factors WHERE verified_at IS NOT NULL LIMIT :few + 1) AS found;

-- name: few_users_by_sign_in(within interval, not_within interval, few integer)
SELECT CASE WHEN count(*) <= :few THEN coalesce(array_agg(user_id::text), '{}') END AS ids
  FROM (SELECT user_id
          FROM user_objects
         WHERE last_sign_in_at >= coalesce(now() - :within, '-infinity')
           AND last_sign_in_at < coalesce(now() - :not_within, 'infinity')
         LIMIT :few + 1) AS found;

-- name: few_users_of_provider_by_sign_in(provider text, within interval, not_within interval, few integer)
SELECT CASE WHEN count(*) <= :few THEN coalesce(array_agg(user_id::text), '{}') END AS ids
  FROM (SELECT o.user_id
          FROM user_objects AS o
          JOIN identities AS i ON i.user_id = o.user_id AND i.provider = :provider
         WHERE o.last_sign_in_at >= coalesce(now() - :within, '-infinity')
           AND o.last_sign_in_at < coalesce(now() - :not_within, 'infinity')
         LIMIT :few + 1) AS found;

-- name: few_users_of_provider_with_factor(provider text, few integer)
SELECT CASE WHEN count(*) <= :few THEN coalesce(array_agg(user_id::text), '{}') END AS ids
  FROM (SELECT i.user_id
          FROM identities AS i
         WHERE i.provider = :provider
           AND EXISTS (SELECT FROM factors AS f WHERE f.user_id = i.user_id AND f.verified_at IS NOT NULL)
         LIMIT :few + 1) AS found;

-- name: few_users_with_factor_by_sign_in(within interval, not_within interval, few integer)
SELECT CASE WHEN count(*) <= :few THEN coalesce(array_agg(user_id::text), '{}') END AS ids
  FROM (SELECT o.user_id
          FROM user_objects AS o
         WHERE o.last_sign_in_at >= coalesce(now() - :within, '-infinity')
           AND o.last_sign_in_at < coalesce(now() - :not_within, 'infinity')
           AND EXISTS (SELECT FROM factors AS f WHERE f.user_id = o.user_id AND f.verified_at IS NOT NULL)
         LIMIT :few + 1) AS found;

-- name: sample_users(percent double precision)
SELECT id FROM users TABLESAMPLE SYSTEM (:percent) REPEATABLE (1);

-- name: count_filtered_users(filters jsonb, among text[])
SELECT count(*) AS total FROM filtered_users(:filters, :among::uuid[]);

-- name: estimate_users()
SELECT greatest(reltuples, 0)::bigint AS total FROM pg_class WHERE oid = 'users'::regclass;

-- name: describe_users(ids text[])
-- In the order of `ids`.
SELECT u.id,
       u.email,
       u.phone,
       u.user_metadata ->> 'name' AS name,
       u.role,
       is_anonymous(u) AS is_anonymous,
       coalesce(u.email_confirmed_at, u.phone_confirmed_at) IS NOT NULL AS is_confirmed,
       coalesce(u.banned_until > now(), false) AS is_banned,
       EXISTS (SELECT FROM factors WHERE user_id = u.id AND verified_at IS NOT NULL) AS has_factor,
       ARRAY(SELECT i.provider FROM identities AS i WHERE i.user_id = u.id ORDER BY i.created_at, i.provider)
         AS providers,
       iso_8601(u.created_at) AS created_at,
       iso_8601(u.last_sign_in_at) AS last_sign_in_at
  FROM unnest(:ids::uuid[]) WITH ORDINALITY AS page (id, place)
  JOIN users AS u ON u.id = page.id
 ORDER BY page.place;
