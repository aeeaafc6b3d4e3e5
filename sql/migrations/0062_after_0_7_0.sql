-- Usable from 0061
-- 0.7.0 wrote it for the last version of an upgrade alone, so that the others counted as themselves in its backups.
UPDATE schema_version SET usable_from = 55 WHERE version BETWEEN 56 AND 61 AND usable_from IS NULL;
-- Only nodes of 0.6.1 called these.
DROP FUNCTION IF EXISTS end_holdings(uuid, uuid, text, text, text, boolean, timestamptz);
DROP FUNCTION IF EXISTS end_refused_sessions(users, text, text, text, boolean, timestamptz);
DROP FUNCTION IF EXISTS filtered_users(jsonb, uuid[]);
DROP FUNCTION IF EXISTS has_access(uuid);
DROP FUNCTION IF EXISTS has_access(uuid, timestamptz);
DROP FUNCTION IF EXISTS identity_object(identities);
DROP FUNCTION IF EXISTS identity_provider_object(identity_providers);
DROP FUNCTION IF EXISTS linked_to(uuid);
DROP FUNCTION IF EXISTS may_use(users, oauth_clients);
DROP FUNCTION IF EXISTS may_use(users, oauth_clients, text);
DROP FUNCTION IF EXISTS record_refusal(jsonb, uuid, text, text, jsonb);
DROP FUNCTION IF EXISTS user_object_for(users, text);
DROP FUNCTION IF EXISTS user_object_with(users, jsonb, text[], text, text);
