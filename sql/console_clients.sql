-- name: search_clients(before_at timestamptz, before_id uuid, most integer, counted integer,
--                      searched integer) -> rows
SELECT page.id,
       jsonb_build_object(
         'name', page.name, 'is_public', page.secret_hash IS NULL, 'is_dynamic', page.is_dynamic,
         'metadata_url', page.metadata_url, 'is_blocked', page.refuses_all,
         'has_previous_secret', coalesce(page.previous_secret_expires_at > now(), false),
         'created_at', iso_8601(page.created_at), 'grants', used.grants,
         'last_used_at', iso_8601(used.last_used_at)
       ) AS details
  FROM (SELECT *, refuses_all(c)
          FROM oauth_clients AS c
         WHERE :before_at IS NULL OR (c.created_at, c.id) < (:before_at, :before_id)
         ORDER BY c.created_at DESC, c.id DESC
         LIMIT :most) AS page
 CROSS JOIN use_of_client(page.id, :counted, :searched) AS used
 ORDER BY page.created_at DESC, page.id DESC;

-- name: select_client_use(id uuid, counted integer, searched integer) -> row (last_used_at?)
SELECT grants, iso_8601(last_used_at) AS last_used_at FROM use_of_client(:id, :counted, :searched);

-- name: search_client_grants(client_id uuid, before_at timestamptz, before_id uuid, most integer) -> rows
SELECT g.id, g.user_id, coalesce(u.email, u.phone) AS address, u.role = 'admin' AS is_administrator,
       jsonb_build_object(
         'scopes', g.scopes, 'granted_at', iso_8601(g.granted_at),
         'last_used_at', (SELECT iso_8601(max(s.refreshed_at)) FROM sessions AS s WHERE s.grant_id = g.id)
       ) AS details
  FROM oauth_grants AS g
  JOIN users AS u ON u.id = g.user_id
 WHERE g.client_id = :client_id
   AND (:before_at IS NULL OR (g.granted_at, g.id) < (:before_at, :before_id))
 ORDER BY g.granted_at DESC, g.id DESC
 LIMIT :most;

-- name: list_grants_of_user(user_id uuid, most integer) -> rows
SELECT c.id, c.name, g.scopes, iso_8601(g.granted_at) AS granted_at,
       (SELECT iso_8601(max(s.refreshed_at)) FROM sessions AS s WHERE s.grant_id = g.id) AS last_used_at
  FROM oauth_grants AS g
  JOIN oauth_clients AS c ON c.id = g.client_id
 WHERE g.user_id = :user_id
 ORDER BY g.granted_at DESC, g.id DESC
 LIMIT :most;

-- name: select_grant_of_user(user_id uuid, client_id uuid, refresh_token_lifetime integer,
--                             session_timebox integer) -> row?
SELECT c.id, c.name,
       (SELECT count(*)
          FROM sessions AS s
         WHERE s.grant_id = g.id AND is_live(s, :refresh_token_lifetime, :session_timebox)) AS sessions
  FROM oauth_grants AS g
  JOIN oauth_clients AS c ON c.id = g.client_id
 WHERE g.user_id = :user_id AND g.client_id = :client_id;
