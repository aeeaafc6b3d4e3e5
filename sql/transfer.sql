-- name: begin_import() -> row
-- Plans that were made while the tables were empty scan them for each row, in triggers too. Between two
-- statements of an import, a busy machine may need more than the three seconds that other acts have.
SELECT set_config('enable_seqscan', 'off', true) AS scans,
       set_config('idle_in_transaction_session_timeout', '0', true) AS timeout;

-- name: find_taken_keys(ids text[], addresses text[], providers text[], subjects text[],
--                       credential_ids text[]) -> rows
-- Compares with arrays, because a join could be planned as a scan for each row.
SELECT id::text AS key, id AS user_id FROM users WHERE id = ANY (:ids::uuid[])
UNION ALL
SELECT email, id FROM users WHERE email = ANY (:addresses) AND NOT (gives_way(users) AND role <> 'admin')
UNION ALL
SELECT phone, id FROM users WHERE phone = ANY (:addresses) AND NOT (gives_way(users) AND role <> 'admin')
UNION ALL
SELECT provider || ' ' || subject, user_id
  FROM identities
 WHERE provider = ANY (:providers) AND subject = ANY (:subjects)
UNION ALL
SELECT 'credential \x' || encode(credential_id, 'hex'), user_id
  FROM factors
 WHERE credential_id = ANY (:credential_ids::bytea[]);

-- name: import_users(users jsonb, import_id uuid, origin jsonb) -> rows
-- Returns no row for a user whose id or address is now taken. All batches of an import share one entry of the
-- audit log.
WITH wanted AS (
  SELECT u.*, element.record -> 'identities' AS identities
    FROM jsonb_array_elements(:users -> 'users') AS element (record)
   CROSS JOIN jsonb_populate_record(NULL::users, element.record) AS u
), created AS (
  INSERT INTO users (id, role, email, email_confirmed_at, email_proved, phone, phone_confirmed_at,
                     phone_proved, password_hash, app_metadata, user_metadata, invited_at, last_sign_in_at,
                     banned_until, admin_since, made_by, created_at, password_vouched)
  SELECT id, role, email, email_confirmed_at, email_proved, phone, phone_confirmed_at, phone_proved,
         password_hash, merge_metadata('{}', app_metadata), merge_metadata('{}', user_metadata), invited_at,
         last_sign_in_at, banned_until, admin_since, 'import', created_at, password_hash IS NOT NULL
    FROM wanted
  ON CONFLICT DO NOTHING
  RETURNING id, role
), identity AS (
  INSERT INTO identities (user_id, provider, subject, identity_data, last_sign_in_at, created_at)
  SELECT created.id, i.provider, i.subject, i.identity_data, i.last_sign_in_at, i.created_at
    FROM created
    JOIN wanted USING (id)
   CROSS JOIN jsonb_populate_recordset(NULL::identities, wanted.identities) AS i
   -- An identity of a customer's provider that is not here would count as a way to sign in.
   WHERE NOT starts_with(i.provider, 'sso:')
      OR EXISTS (SELECT FROM identity_providers AS p WHERE provider_name(p) = i.provider)
), recorded AS (
  SELECT record_import(:origin, :import_id, count(*), count(*) FILTER (WHERE role = 'admin'))
    FROM created
  HAVING count(*) > 0
)
SELECT created.id::text FROM created CROSS JOIN recorded;

-- name: import_factors(factors jsonb)
WITH factor AS (
  INSERT INTO factors SELECT * FROM jsonb_populate_recordset(NULL::factors, :factors -> 'factors')
  RETURNING user_id, verified_at
)
UPDATE users AS u
   SET first_factor_at = first.at
  FROM (SELECT user_id, min(verified_at) AS at FROM factor GROUP BY user_id) AS first
 WHERE u.id = first.user_id;

-- name: import_api_keys(api_keys jsonb)
INSERT INTO api_keys
SELECT made.*
  FROM jsonb_array_elements(:api_keys -> 'api_keys') AS key
 CROSS JOIN jsonb_populate_record(
         NULL::api_keys, jsonb_build_object('refreshes', 0, 'counted_until', now()) || key
           || jsonb_build_object('provider_term', term_of_identity((key ->> 'user_id')::uuid))) AS made
ON CONFLICT DO NOTHING;

-- name: export_users(after uuid, page_size integer) -> rows (factors?, api_keys?)
-- Anonymous users have nothing to sign in with. The data of a sign-up that nobody confirmed may be a stranger's,
-- and an import would vouch for its password. Sessions are not exported.
SELECT u.id::text,
       json_build_object(
         'id', u.id,
         'email', u.email,
         'email_verified', u.email_confirmed_at IS NOT NULL,
         'email_confirmed_at', iso_8601(u.email_confirmed_at),
         'email_proved', u.email_proved,
         'phone', u.phone,
         'phone_verified', u.phone_confirmed_at IS NOT NULL,
         'phone_confirmed_at', iso_8601(u.phone_confirmed_at),
         'phone_proved', u.phone_proved,
         'password_hash', u.password_hash,
         'role', u.role,
         'user_metadata', u.user_metadata,
         'app_metadata', u.app_metadata,
         'invited_at', iso_8601(u.invited_at),
         'last_sign_in_at', iso_8601(u.last_sign_in_at),
         'banned_until', CASE WHEN is_banned(u) THEN iso_8601(u.banned_until) END,
         'admin_since', iso_8601(u.admin_since),
         'created_at', iso_8601(u.created_at),
         'identities', (
           SELECT coalesce(json_agg(json_build_object(
                    'provider', i.provider,
                    'subject', i.subject,
                    'identity_data', i.identity_data,
                    'created_at', iso_8601(i.created_at),
                    'last_sign_in_at', iso_8601(i.last_sign_in_at)
                  ) ORDER BY i.created_at, i.provider), '[]')
             FROM identities AS i
            WHERE i.user_id = u.id
         )
       )::text AS record,
       (SELECT jsonb_agg(to_jsonb(f) ORDER BY f.created_at, f.id)
          FROM factors AS f
         WHERE f.user_id = u.id AND f.verified_at IS NOT NULL)::text AS factors,
       (SELECT json_agg(json_build_object(
                 'id', k.id,
                 'name', k.name,
                 'key_mac', encode(k.key_mac, 'hex'),
                 'scopes', k.scopes,
                 'created_at', iso_8601(k.created_at),
                 'expires_at', iso_8601(k.expires_at),
                 'aal', k.aal
               ) ORDER BY k.created_at, k.id)
          FROM api_keys AS k
         WHERE k.user_id = u.id AND NOT is_over(k.provider_term))::text AS api_keys
  FROM users AS u
 WHERE (:after IS NULL OR u.id > :after) AND NOT is_anonymous(u) AND NOT (gives_way(u) AND u.role <> 'admin')
 ORDER BY u.id
 LIMIT :page_size;

-- name: has_users() -> row
SELECT EXISTS (SELECT FROM users) AS any;
