-- A key has the level of the session that made it. Once its user had verified a factor, only a session at
-- `aal2` could make a key.
ALTER TABLE api_keys ADD COLUMN aal text NOT NULL DEFAULT 'aal1';
UPDATE api_keys AS k
   SET aal = 'aal2'
 WHERE EXISTS (SELECT FROM factors AS f WHERE f.user_id = k.user_id AND f.verified_at < k.created_at);
