-- name: count_needs_of_secret(key_ids bytea[], used_from double precision, used_until double precision,
--                              refresh_token_lifetime integer, session_timebox integer) -> rows
-- Counts the rows that become invalid without a secret key. Rows without a key id count by the time of the
-- key's use; refresh tokens are as old as the last refresh, and browser sessions have none.
WITH used AS (
  SELECT to_timestamp(:used_from) AS start, to_timestamp(:used_until) AS stop
)
SELECT 'sessions' AS what, count(*) AS rows
  FROM sessions AS s, used
 WHERE s.refreshed_at >= used.start AND s.refreshed_at < used.stop
   AND is_live(s, :refresh_token_lifetime, :session_timebox)
   AND NOT EXISTS (SELECT FROM browser_sessions AS b WHERE b.session_id = s.id)
 UNION ALL
SELECT 'codes', count(*)
  FROM one_time_tokens AS t, used
 WHERE t.code_mac IS NOT NULL AND t.spent_at IS NULL AND t.code_expires_at > now()
   AND t.created_at >= used.start AND t.created_at < used.stop
 UNION ALL
SELECT 'waiting messages', count(*)
  FROM outbox AS m
 WHERE m.outcome IS NULL AND m.channel <> 'webhook' AND substr(m.secret, 1, 4) = ANY (:key_ids)
 UNION ALL
SELECT 'webhooks', count(*)
  FROM webhooks AS w
 WHERE substr(w.secret, 1, 4) = ANY (:key_ids) OR substr(w.previous_secret, 1, 4) = ANY (:key_ids)
 UNION ALL
SELECT 'customers’ providers', count(*)
  FROM identity_providers AS p
 WHERE substr(p.client_secret, 1, 4) = ANY (:key_ids)
 UNION ALL
SELECT 'sign-ins with a provider', count(*)
  FROM oauth_flows AS f
 WHERE f.expires_at > now() AND substr(f.secrets, 1, 4) = ANY (:key_ids)
 UNION ALL
SELECT 'TOTP secrets', count(*)
  FROM (SELECT secret FROM factors UNION ALL SELECT removed_secret(t) FROM one_time_tokens AS t) AS f
 WHERE substr(f.secret, 1, 4) = ANY (:key_ids)
 UNION ALL
SELECT 'OpenID keys', count(*)
  FROM openid_keys AS k
 WHERE substr(k.sealed, 1, 4) = ANY (:key_ids)
 UNION ALL
SELECT 'API keys', count(*)
  FROM api_keys AS k
 WHERE substr(k.key_mac, 1, 4) = ANY (:key_ids) AND is_live(k)
 UNION ALL
SELECT 'administrative keys', count(*)
  FROM admin_keys AS k
 WHERE substr(k.key_mac, 1, 4) = ANY (:key_ids) AND (k.expires_at > now()) IS NOT FALSE
 UNION ALL
SELECT 'recovery codes', count(*)
  FROM recovery_codes AS r, used
 WHERE r.used_at IS NULL AND r.created_at >= used.start AND r.created_at < used.stop;

-- name: list_sealed_factors(newest bytea, after uuid, batch integer) -> rows
SELECT f.id::text, f.secret AS sealed
  FROM factors AS f
 WHERE substr(f.secret, 1, 4) <> :newest AND (f.id > :after) IS NOT FALSE
 ORDER BY f.id
 LIMIT :batch;

-- name: reseal_factor(id uuid, old bytea, sealed bytea)
UPDATE factors SET secret = :sealed WHERE id = :id AND secret = :old;

-- name: list_sealed_removed_factors(newest bytea, after uuid, batch integer) -> rows
-- Removed secrets that the link in the notice restores.
SELECT t.restores ->> 'id' AS id, removed_secret(t) AS sealed
  FROM one_time_tokens AS t
 WHERE substr(removed_secret(t), 1, 4) <> :newest AND ((t.restores ->> 'id')::uuid > :after) IS NOT FALSE
 ORDER BY (t.restores ->> 'id')::uuid
 LIMIT :batch;

-- name: reseal_removed_factor(id uuid, old bytea, sealed bytea)
UPDATE one_time_tokens AS t
   SET restores = t.restores || jsonb_build_object('secret', :sealed)
 WHERE t.restores ->> 'id' = :id::text AND removed_secret(t) = :old;

-- name: count_sessions_of_old_keys(user_id uuid, used_since double precision, refresh_token_lifetime integer,
--                                  session_timebox integer) -> row
SELECT count(*) AS total
  FROM sessions AS s
 WHERE s.user_id = :user_id AND s.refreshed_at < to_timestamp(:used_since)
   AND is_live(s, :refresh_token_lifetime, :session_timebox)
   AND NOT EXISTS (SELECT FROM browser_sessions AS b WHERE b.session_id = s.id);
