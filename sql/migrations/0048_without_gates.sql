-- Gates are removed. Their sessions end, as when a client is deleted, and nobody can sign in to them; releases
-- from this one on do not list them.
UPDATE oauth_clients SET is_blocked = true, updated_at = now() WHERE gate_origin IS NOT NULL;
DELETE FROM oauth_requests AS r USING oauth_clients AS c WHERE c.id = r.client_id AND c.gate_origin IS NOT NULL;
DELETE FROM oauth_grants AS g USING oauth_clients AS c WHERE c.id = g.client_id AND c.gate_origin IS NOT NULL;
