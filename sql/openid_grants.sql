-- name: write_grant(user_id uuid, client_id uuid, scopes text[], redirect_uris text[], acted_at timestamptz)
INSERT INTO oauth_grants (user_id, client_id, scopes, redirect_uris, granted_at)
VALUES (:user_id, :client_id, :scopes, :redirect_uris, :acted_at)
ON CONFLICT ON CONSTRAINT oauth_grants_user_id_client_id_key DO UPDATE
   SET scopes = excluded.scopes, redirect_uris = excluded.redirect_uris, granted_at = excluded.granted_at;

-- name: select_grant(user_id uuid, client_id uuid) -> row?
SELECT id::text FROM oauth_grants WHERE user_id = :user_id AND client_id = :client_id;

-- name: remove_grants(user_id uuid, ids text[], client_id uuid) -> rows
-- Deletes grants by id, or of a client, with their sessions, and with codes that would open more.
WITH removed AS (
  DELETE FROM oauth_grants
   WHERE user_id = :user_id AND (id = ANY (:ids::uuid[]) OR client_id = :client_id)
  RETURNING client_id
), void AS (
  DELETE FROM oauth_requests
   WHERE user_id = :user_id AND client_id IN (SELECT client_id FROM removed) AND session_id IS NOT NULL
)
SELECT c.id::text AS client_id, c.name
  FROM removed
  JOIN oauth_clients AS c ON c.id = removed.client_id
 ORDER BY c.id;

-- name: select_grants(caller_id uuid, caller_session_id uuid)
--   -> row? (banned_until?, converted_at?, oldest_factor_at?, method?, aal?,
--            session_created_at?, refreshed_at?, ended_at?, first_passkey_at?)
SELECT caller.*,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
                 'client', jsonb_build_object('id', c.id, 'name', c.name,
                                              'uri', coalesce(c.metadata_url, c.uri),
                                              'logo_uri', c.logo_uri),
                 'scopes', o.scopes,
                 'granted_at', iso_8601(o.granted_at)
               ) ORDER BY o.granted_at DESC, o.id), '[]')::text
          FROM oauth_grants AS o
          JOIN oauth_clients AS c ON c.id = o.client_id
         WHERE o.user_id = :caller_id) AS grants
  FROM caller_facts(:caller_id, :caller_session_id) AS caller;
