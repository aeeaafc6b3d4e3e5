-- name: write_grant(user_id uuid, client_id uuid, scopes text[])
INSERT INTO oauth_grants (user_id, client_id, scopes)
VALUES (:user_id, :client_id, :scopes)
ON CONFLICT ON CONSTRAINT oauth_grants_user_id_client_id_key DO UPDATE
   SET scopes = excluded.scopes, granted_at = now();
