-- Run only by `latchkey backup` and `latchkey restore`.

-- name: export_snapshot() -> row
SELECT pg_export_snapshot() AS snapshot,
       iso_8601(now()) AS created_at,
       (SELECT coalesce(usable_from, version) FROM schema_version ORDER BY version DESC LIMIT 1) AS schema_version,
       current_schema() AS schema,
       current_setting('server_version_num')::integer / 10000 AS postgres;

-- name: compose_count_of_rows() -> row
-- Returns a statement that counts the rows of each table. Unlogged tables are not backed up.
SELECT string_agg(format('SELECT %L AS name, count(*) AS rows FROM %I.%I', c.relname, n.nspname, c.relname),
                  ' UNION ALL ' ORDER BY c.relname) AS statement
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND n.nspname = current_schema();

-- name: compose_grants_of_operator(role text, tables text[]) -> row
-- Returns statements that let a role use all but our tables, whatever their row level security says.
SELECT format('ALTER ROLE %I BYPASSRLS; ', :role) || string_agg(needed.statement, '; ') AS statement
  FROM (SELECT n.oid, n.nspname
          FROM pg_namespace AS n
         WHERE n.nspname <> 'information_schema' AND NOT starts_with(n.nspname, 'pg_')) AS place
 CROSS JOIN LATERAL (
   SELECT format('GRANT USAGE ON SCHEMA %I TO %I', place.nspname, :role) AS statement
    UNION ALL
   SELECT format('GRANT ALL ON %s %I.%I TO %I', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
                 place.nspname, c.relname, :role)
     FROM pg_class AS c
    WHERE c.relnamespace = place.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
      AND (place.nspname <> current_schema() OR c.relname <> ALL (:tables))
 ) AS needed;

-- name: select_restore_target() -> row
-- Postgres hides the type of other roles' backends.
SELECT current_database() AS name,
       EXISTS (SELECT FROM pg_tables WHERE schemaname = current_schema()) AS has_tables,
       pg_has_role(d.datdba, 'MEMBER') AND (r.rolcreatedb OR r.rolsuper) AS is_replaceable,
       (SELECT count(*)
          FROM pg_stat_activity AS a
         WHERE a.datname = d.datname AND a.pid <> pg_backend_pid() AND a.usesysid IS NOT NULL
           AND coalesce(a.backend_type, 'client backend') = 'client backend'
       ) AS clients
  FROM pg_database AS d
  JOIN pg_roles AS r ON r.rolname = current_user
 WHERE d.datname = current_database();

-- name: select_place(expected text) -> row (schema?)
SELECT current_schema() AS schema, quote_ident(current_user) AS role, quote_ident(:expected) AS expected;

-- name: select_database(name text) -> row
SELECT EXISTS (SELECT FROM pg_database WHERE datname = :name) AS exists;

-- name: try_lock_restore() -> row
SELECT pg_try_advisory_lock(7239004120) AS is_ours;

-- name: void_restored(resend boolean)
-- Withdraws pending changes with their links: POST /resend would send a link without its `by_key`.
WITH links AS (DELETE FROM one_time_tokens WHERE spent_at IS NULL),
     changes AS (
       UPDATE users
          SET new_email = NULL, email_change_sent_at = NULL, new_phone = NULL, phone_change_sent_at = NULL
        WHERE new_email IS NOT NULL OR new_phone IS NOT NULL
     ),
     codes AS (DELETE FROM authorization_codes),
     typed AS (DELETE FROM typed_addresses),
     sign_ins AS (DELETE FROM oauth_flows),
     requests AS (DELETE FROM oauth_requests),
     challenges AS (DELETE FROM factor_challenges),
     -- A restored database has no backup yet.
     backups AS (DELETE FROM last_done WHERE task IN ('backup', 'verified_backup')),
     restored AS (
       INSERT INTO last_done (task) VALUES ('restore') ON CONFLICT (task) DO UPDATE SET at = now()
     )
UPDATE outbox
   SET outcome = 'void', finished_at = now(), secret = NULL, last_error = 'restored from a backup'
 WHERE outcome IS NULL AND NOT :resend;

-- name: end_all_access(reason text, reach text, keys_up_to text, with_grants boolean)
-- The access may have ended since the backup.
SELECT end_held(u.id, NULL, :reason, :reach, :keys_up_to, :with_grants, clock_timestamp())
  FROM users AS u
 WHERE holds_anything(u.id, 'infinity');

-- name: list_sealed_secrets() -> rows
SELECT 'webhook' AS kind, w.id::text, w.secret FROM webhooks AS w
 UNION ALL
SELECT 'provider', p.id::text, p.client_secret FROM identity_providers AS p
 UNION ALL
SELECT 'OpenID key', k.id, k.sealed FROM openid_keys AS k;

-- name: count_stale_user_objects() -> row
-- Rows that would sort a user wrongly, or leave it out of the list.
SELECT count(*) AS total
  FROM users AS u
  LEFT JOIN user_objects AS copy ON copy.user_id = u.id
 WHERE copy.last_sign_in_at IS DISTINCT FROM coalesce(u.last_sign_in_at, '-infinity');

-- What decides: `latchkey restore` compares these rows of the restored database with those of the one that it
-- replaces, which may be of another release since 0.7.0. `terms` is what an operator or a user may have changed.

-- name: list_deciding_users(after uuid, most integer, with_sessions boolean) -> rows
-- Sessions, API keys and grants only where the restore keeps them. `is_passing`: deleted by the janitor as well.
SELECT u.id::text, coalesce(u.email, u.phone, u.id::text) AS name,
       jsonb_build_object(
         'role', u.role, 'email', u.email, 'phone', u.phone, 'app_metadata', u.app_metadata,
         'banned_until', CASE WHEN u.banned_until > now() THEN least(u.banned_until, '9000-01-01') END,
         -- Null for a ban without an end, which is one until 9999.
         'ban_minutes', CASE WHEN u.banned_until < '9000-01-01'
                             THEN ceil(extract(epoch FROM u.banned_until - now()) / 60)::bigint END,
         'password', CASE WHEN u.password_hash IS NOT NULL
                          THEN coalesce(to_jsonb(u) ->> 'password_set_at', '') END,
         'is_passing', u.role = 'authenticated' AND u.email_confirmed_at IS NULL AND u.phone_confirmed_at IS NULL
                       AND (u.made_by = 'anonymous' AND u.converted_at IS NULL
                            OR u.made_by IN ('signup', 'message') AND u.last_sign_in_at IS NULL),
         'factors', ARRAY(SELECT f.id FROM factors AS f WHERE f.user_id = u.id AND f.verified_at IS NOT NULL),
         -- No factors, but the first use would sign in.
         'unused_passkeys', ARRAY(SELECT f.id FROM factors AS f
                                   WHERE f.user_id = u.id AND f.verified_at IS NULL AND f.factor_type = 'passkey'),
         'identities', (SELECT coalesce(jsonb_object_agg(concat(i.provider, ' ', i.subject), i.provider), '{}')
                          FROM identities AS i WHERE i.user_id = u.id AND i.provider NOT IN ('email', 'phone')),
         'sessions', ARRAY(SELECT s.id FROM sessions AS s
                            WHERE :with_sessions AND s.user_id = u.id AND s.ended_at IS NULL),
         'access', ARRAY(SELECT k.id FROM api_keys AS k WHERE :with_sessions AND k.user_id = u.id
                          UNION ALL
                         SELECT g.id FROM oauth_grants AS g WHERE :with_sessions AND g.user_id = u.id)) AS terms
  FROM users AS u
 WHERE :after IS NULL OR u.id > :after
 ORDER BY u.id
 LIMIT :most;

-- name: list_deciding_memberships(after_user uuid, after_organization uuid, most integer) -> rows
SELECT concat_ws(' ', m.user_id, m.organization_id) AS id,
       concat(coalesce(u.email, u.phone, u.id::text), ' in ', o.slug) AS name,
       jsonb_build_object('role', m.role) AS terms,
       m.user_id::text, m.organization_id::text
  FROM memberships AS m
  JOIN organizations AS o ON o.id = m.organization_id
  JOIN users AS u ON u.id = m.user_id
 WHERE (:after_user IS NULL OR (m.user_id, m.organization_id) > (:after_user, :after_organization)) AND o.ended_at IS NULL
 ORDER BY m.user_id, m.organization_id
 LIMIT :most;

-- name: list_deciding_organizations() -> rows
-- A replaced database may have a schema without `max_age`.
SELECT o.id::text, o.slug AS name,
       jsonb_build_object('level', o.level, 'needs_own_provider', o.needs_own_provider,
                          'max_age', extract(epoch FROM (to_jsonb(o) ->> 'max_age')::interval)::integer) AS terms
  FROM organizations AS o
 WHERE o.ended_at IS NULL
 ORDER BY o.id;

-- name: list_deciding_invitations() -> rows
SELECT i.id::text, concat(i.email, ' to ', o.slug) AS name, jsonb_build_object('email', i.email) AS terms,
       o.id::text AS organization_id
  FROM organization_invitations AS i
  JOIN organizations AS o ON o.id = i.organization_id
 WHERE o.ended_at IS NULL AND i.expires_at > now()
 ORDER BY i.id;

-- name: list_deciding_domains() -> rows
SELECT concat_ws(' ', d.organization_id, d.domain) AS id, concat(d.domain, ' of ', o.slug) AS name, '{}'::jsonb AS terms,
       d.organization_id::text, d.domain
  FROM organization_domains AS d
  JOIN organizations AS o ON o.id = d.organization_id
 WHERE o.ended_at IS NULL AND d.proved_at IS NOT NULL
 ORDER BY d.organization_id, d.domain;

-- name: list_deciding_providers() -> rows (organization_id?)
-- `settings` decide whom the provider signs in, and as what.
SELECT p.id::text, p.name, p.organization_id::text,
       jsonb_build_object(
         'is_on', p.enabled OR p.is_on,
         'settings', jsonb_build_array(
           p.issuer, p.discovery_url, p.client_id, p.acceptable_client_ids, p.attribute_mapping, p.member_role,
           ARRAY(SELECT d.domain FROM identity_provider_domains AS d
                  WHERE d.provider_id = p.id ORDER BY d.domain COLLATE "C"))) AS terms
  FROM identity_providers AS p
 ORDER BY p.id;

-- name: list_deciding_clients() -> rows
-- Clients that registered themselves come and go. `lists` by the options of `latchkey clients update`; `trust` by
-- those that end it.
SELECT c.id::text, coalesce(nullif(c.name, ''), c.id::text) AS name,
       jsonb_build_object(
         'is_blocked', c.is_blocked AND NOT c.admits_members, 'is_passing', c.is_dynamic,
         'roles', c.allowed_roles, 'secret', encode(sha256(c.secret_hash), 'hex'), 'updated_at', c.updated_at,
         'organization', (SELECT o.slug FROM organizations AS o WHERE o.id = c.organization_id),
         'lists', jsonb_build_object('redirect-uri', c.redirect_uris, 'logout-uri', c.post_logout_redirect_uris,
                                     'resource', c.resources, 'grant', c.grant_types, 'scope', c.scopes),
         'trust', jsonb_build_object('ask-consent', c.skip_consent, 'pkce', NOT c.require_pkce,
                                     'no-introspects-sessions', c.introspects_sessions)) AS terms
  FROM oauth_clients AS c
 ORDER BY c.id;

-- name: list_deciding_admin_keys() -> rows
SELECT k.id::text, k.name, '{}'::jsonb AS terms FROM admin_keys AS k ORDER BY k.id;

-- name: list_deciding_webhooks() -> rows
-- The path of a URL may be secret.
SELECT w.id::text, coalesce(substring(w.url FROM '^[a-z]+://[^/?#@]+'), w.id::text) AS name,
       jsonb_build_object('is_on', w.disabled_at IS NULL, 'url', w.url, 'events', w.events) AS terms
  FROM webhooks AS w
 ORDER BY w.id;

-- name: list_deciding_openid_keys() -> rows
SELECT k.id COLLATE "C" AS id, k.id AS name, '{}'::jsonb AS terms FROM openid_keys AS k ORDER BY k.id COLLATE "C";
