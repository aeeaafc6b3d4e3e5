-- Customers' providers as operators see them: their names on other pages, what they have opened, and who turned
-- them on.

-- name: list_mentions(providers text[], organizations text[]) -> rows (name?, organization_id?, organization?)
-- The providers and organizations that entries name by id. The log names a deleted provider, if it is among the newest
-- 1,000 that were deleted.
WITH present AS MATERIALIZED (
  SELECT p.id::text AS id, p.name, o.id::text AS organization_id, o.name AS organization
    FROM identity_providers AS p
    LEFT JOIN organizations AS o ON o.id = p.organization_id AND o.ended_at IS NULL
   WHERE p.id = ANY (:providers::uuid[])
)
SELECT 'provider' AS kind, id, name, organization_id, organization, true AS is_present FROM present
 UNION ALL
(SELECT DISTINCT ON (deleted.id)
        'provider', deleted.id, deleted.name, deleted.organization_id, deleted.organization, false
   FROM (SELECT a.details ->> 'provider_id' AS id, a.at,
                coalesce(a.details ->> 'provider_name',
                         CASE WHEN NOT a.details ? 'organization' THEN a.details ->> 'provider' END) AS name,
                a.details #>> '{organization,id}' AS organization_id,
                a.details #>> '{organization,slug}' AS organization
           FROM audit_log AS a
          WHERE a.action = 'provider_deleted' AND (SELECT count(*) FROM present) < cardinality(:providers)
          ORDER BY a.at DESC, a.id DESC
          LIMIT 1000) AS deleted
  WHERE deleted.id = ANY (:providers) AND NOT EXISTS (SELECT FROM present WHERE present.id = deleted.id)
  ORDER BY deleted.id, deleted.at DESC)
 UNION ALL
SELECT 'organization', o.id::text, o.name, NULL, NULL, o.ended_at IS NULL
  FROM organizations AS o
 WHERE o.id = ANY (:organizations::uuid[]);

-- name: list_providers_called(text text, lower_text text, identifier text, most integer) -> rows (slug?)
-- The providers with an id or identifier, else with a domain, else with a name: `rank` is 1, 2 or 3.
SELECT p.id, p.identifier, p.name, o.slug, called.rank
  FROM (SELECT p.id, 1 AS rank FROM identity_providers AS p
         WHERE p.id::text = :lower_text OR p.identifier IN (:text, :identifier)
         UNION ALL
        SELECT d.provider_id, 2 FROM identity_provider_domains AS d WHERE d.domain = :lower_text
         UNION ALL
        SELECT p.id, 3 FROM identity_providers AS p WHERE lower(p.name) = lower(:text)) AS called
  JOIN identity_providers AS p ON p.id = called.id
  LEFT JOIN organizations AS o ON o.id = p.organization_id AND o.ended_at IS NULL
 ORDER BY called.rank, p.created_at, p.id
 LIMIT :most;

-- name: list_entries_of_provider(id uuid) -> rows (actor_id?, actor_address?)
-- Who added a provider, and who turned it on and off last, while the log has the entries.
SELECT wanted.action AS name, iso_8601(a.at) AS at, a.actor, a.actor_id, a.details,
       coalesce(by.email, by.phone) AS actor_address, by.id IS NOT NULL AS has_actor
  FROM identity_providers AS p
 CROSS JOIN unnest('{provider_added, provider_enabled, provider_disabled}'::text[]) AS wanted (action)
 CROSS JOIN LATERAL (SELECT a.*
                       FROM audit_log AS a
                      WHERE a.action = wanted.action AND a.at >= p.created_at
                        AND a.details ->> 'provider_id' = p.id::text
                      ORDER BY a.at DESC, a.id DESC
                      LIMIT 1) AS a
  LEFT JOIN users AS by ON by.id = a.actor_id
 WHERE p.id = :id
 ORDER BY a.at, wanted.action;

-- name: count_opened_by_provider(id uuid, reach integer, refresh_token_lifetime integer,
--                                session_timebox integer) -> row?
-- What gives tokens in the present term of a provider. Reads at most `reach` rows of each.
SELECT opened.sessions, opened.of_applications, keys.total AS api_keys, joined.total AS members,
       opened.was_read = :reach OR keys.total = :reach AS has_more
  FROM identity_providers AS p
 CROSS JOIN LATERAL (SELECT count(*) AS was_read,
                            count(*) FILTER (WHERE s.is_live AND s.grant_id IS NULL) AS sessions,
                            count(*) FILTER (WHERE s.is_live AND s.grant_id IS NOT NULL) AS of_applications
                       FROM (SELECT s.grant_id, is_live(s, :refresh_token_lifetime, :session_timebox) AS is_live
                               FROM sessions AS s
                              WHERE s.provider_term = p.term AND s.ended_at IS NULL
                              LIMIT :reach) AS s) AS opened
 CROSS JOIN LATERAL (SELECT count(*) AS total
                       FROM (SELECT FROM api_keys AS k
                              WHERE k.provider_term = p.term AND is_live(k)
                              LIMIT :reach) AS k) AS keys
 CROSS JOIN LATERAL (SELECT count(*) AS total
                       FROM (SELECT FROM memberships AS m
                              WHERE m.provider_id = p.id
                              LIMIT :reach) AS m) AS joined
 WHERE p.id = :id;

-- name: count_unended_of_provider(id uuid, reach integer) -> row?
-- What a provider opened in earlier terms and no batch has ended yet. Nothing of it gives a token. Counts at most
-- `reach` rows of each.
WITH present AS MATERIALIZED (
  SELECT term FROM present_terms()
)
SELECT (SELECT count(*)
          FROM (SELECT
                  FROM terms_of_open_sessions() AS terms
                  JOIN sessions AS s ON s.provider_term = terms.term AND s.ended_at IS NULL
                 WHERE NOT EXISTS (SELECT FROM present WHERE present.term = terms.term)
                   AND jsonb_path_exists(s.amr, '$[*].provider ? (@ == $name)',
                                         jsonb_build_object('name', provider_name(p)))
                 LIMIT :reach) AS sessions) AS sessions_left,
       (SELECT count(*)
          FROM (SELECT
                  FROM api_keys AS k
                 WHERE k.provider_term IS NOT NULL
                   AND NOT EXISTS (SELECT FROM present WHERE present.term = k.provider_term)
                   AND EXISTS (SELECT FROM identities AS i
                                WHERE i.user_id = k.user_id AND i.provider = provider_name(p))
                 LIMIT :reach) AS keys) AS api_keys_left
  FROM identity_providers AS p
 WHERE p.id = :id;

-- name: select_requirement_of_provider(id uuid) -> row?
-- Whether members need the sign-in of the provider's organization, and may use another provider of it that is on.
SELECT o.needs_own_provider,
       EXISTS (SELECT FROM identity_providers AS other
                 JOIN identity_provider_domains AS d ON d.provider_id = other.id
                WHERE other.organization_id = o.id AND other.id <> p.id AND other.is_on) AS has_another
  FROM identity_providers AS p
  JOIN organizations AS o ON o.id = p.organization_id AND o.ended_at IS NULL
 WHERE p.id = :id;

-- name: list_requirements_on_member(user_id uuid) -> rows (max_age?)
-- The organizations of a user that require more than a sign-in, and what of it the user has. `own` are the names of
-- providers that are on and have an identity of the user, `on` of all that are on, `off` of the others.
SELECT o.id, o.slug, o.name, o.level, o.needs_own_provider, extract(epoch FROM o.max_age)::integer AS max_age,
       own_factors.has_second_step AS has_factor,
       coalesce(array_agg(p.name ORDER BY p.created_at, p.id) FILTER (WHERE p.is_on AND EXISTS (
         SELECT FROM identities AS i WHERE i.user_id = m.user_id AND i.provider = provider_name(p))), '{}') AS own,
       coalesce(array_agg(p.name ORDER BY p.created_at, p.id) FILTER (WHERE p.is_on), '{}') AS on,
       coalesce(array_agg(p.name ORDER BY p.created_at, p.id) FILTER (WHERE NOT p.is_on), '{}') AS off
  FROM memberships AS m
  JOIN organizations AS o ON o.id = m.organization_id
 CROSS JOIN factors_of(m.user_id) AS own_factors
  LEFT JOIN identity_providers AS p ON p.organization_id = o.id
 WHERE m.user_id = :user_id AND o.ended_at IS NULL AND (o.level > 'aal1' OR o.needs_own_provider OR o.max_age IS NOT NULL)
 GROUP BY o.id, m.user_id, own_factors.has_second_step
 ORDER BY o.slug;
