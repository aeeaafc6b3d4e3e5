-- What a requirement or the end of an organization changes for its members. A page looks at `most` members, and
-- `members` is one more if there are others.

-- name: list_without_factor(organization_id uuid, most integer, page_size integer, page_offset bigint) -> row
-- The members without a second factor or passkey, in the order in which they joined.
WITH members AS MATERIALIZED (
  SELECT m.user_id, m.created_at
    FROM memberships AS m
   WHERE m.organization_id = :organization_id
   ORDER BY m.created_at, m.user_id
   LIMIT :most + 1
), lacking AS MATERIALIZED (
  SELECT m.user_id, m.created_at
    FROM (SELECT * FROM members ORDER BY created_at, user_id LIMIT :most) AS m
   CROSS JOIN factors_of(m.user_id) AS own
   WHERE own.oldest IS NULL
)
SELECT (SELECT count(*) FROM members) AS members, (SELECT count(*) FROM lacking) AS lacking,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('user_id', u.id, 'name', name_of(u.user_metadata), 'email', u.email)
                                  ORDER BY page.created_at, page.user_id), '[]')::text
          FROM (SELECT * FROM lacking ORDER BY created_at, user_id LIMIT :page_size OFFSET :page_offset) AS page
          JOIN users AS u ON u.id = page.user_id) AS listed;

-- name: list_without_own_sign_in(organization_id uuid, most integer, page_size integer, page_offset bigint) -> row
-- The members whom no provider of the organization signs in yet. `cause` is why none may, and null if one may; members
-- with a cause come first. Owners do not learn which member administers the service.
WITH members AS MATERIALIZED (
  SELECT m.user_id, m.created_at
    FROM memberships AS m
   WHERE m.organization_id = :organization_id
   ORDER BY m.created_at, m.user_id
   LIMIT :most + 1
), lacking AS MATERIALIZED (
  SELECT m.user_id, m.created_at, CASE WHEN u.role = 'admin' THEN 'otherwise'
                                       WHEN NOT u.email_proved THEN 'unproved'
                                       WHEN p.id IS NULL THEN 'elsewhere' END AS cause
    FROM (SELECT * FROM members ORDER BY created_at, user_id LIMIT :most) AS m
    JOIN users AS u ON u.id = m.user_id
    LEFT JOIN identity_provider_domains AS d ON u.email_proved AND d.domain = split_part(u.email, '@', 2)
    LEFT JOIN identity_providers AS p ON p.id = d.provider_id AND p.organization_id = :organization_id AND p.is_on
    -- LIMIT: a look into an index for each member, not a scan of all identities.
    LEFT JOIN LATERAL (SELECT i.id FROM identities AS i WHERE i.user_id = u.id AND i.provider = provider_name(p)
                        LIMIT 1) AS linked ON true
   WHERE u.role = 'admin' OR p.id IS NULL OR linked.id IS NULL
)
SELECT (SELECT count(*) FROM members) AS members, (SELECT count(*) FROM lacking) AS lacking,
       (SELECT count(*) FROM lacking WHERE cause IS NOT NULL) AS unable,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('user_id', u.id, 'name', name_of(u.user_metadata), 'email', u.email,
                                                     'cause', page.cause)
                                  ORDER BY page.cause IS NULL, page.created_at, page.user_id), '[]')::text
          FROM (SELECT * FROM lacking
                 ORDER BY cause IS NULL, created_at, user_id
                 LIMIT :page_size OFFSET :page_offset) AS page
          JOIN users AS u ON u.id = page.user_id) AS listed;

-- name: count_older_sign_ins(organization_id uuid, ages integer[], most integer) -> row
-- For each age in seconds, the members who have not signed in since; at a provider of the organization if it requires one.
WITH members AS MATERIALIZED (
  SELECT m.user_id, m.created_at
    FROM memberships AS m
   WHERE m.organization_id = :organization_id
   ORDER BY m.created_at, m.user_id
   LIMIT :most + 1
), required AS MATERIALIZED (
  SELECT o.needs_own_provider, providers_of(o) AS providers FROM organizations AS o WHERE o.id = :organization_id
), newest AS MATERIALIZED (
  SELECT (SELECT max(CASE WHEN required.needs_own_provider THEN (
                            SELECT least(authenticated_at(s), to_timestamp(max((step ->> 'timestamp')::bigint)))
                              FROM jsonb_array_elements(methods_of(s)) AS step
                             WHERE step ->> 'provider' = ANY (required.providers)
                            HAVING count(*) > 0)
                          ELSE authenticated_at(s) END)
            FROM sessions AS s
           WHERE s.user_id = m.user_id AND s.grant_id IS NULL AND end_of(s) IS NULL) AS at
    FROM (SELECT * FROM members ORDER BY created_at, user_id LIMIT :most) AS m, required
)
SELECT (SELECT count(*) FROM members) AS members,
       (SELECT jsonb_agg((SELECT count(*) FROM newest
                           WHERE (newest.at > now() - make_interval(secs => asked.age)) IS NOT TRUE)
                         ORDER BY asked.place)
          FROM unnest(:ages) WITH ORDINALITY AS asked (age, place)) AS older;

-- name: count_what_ends(organization_id uuid, most integer) -> row
SELECT (SELECT count(*)
          FROM (SELECT FROM memberships AS m WHERE m.organization_id = :organization_id LIMIT :most + 1) AS members) AS members,
       (SELECT count(*)
          FROM organization_invitations AS i
         WHERE i.organization_id = :organization_id AND i.expires_at > now()) AS invitations,
       (SELECT count(*) FROM identity_providers AS p WHERE p.organization_id = :organization_id) AS providers;
