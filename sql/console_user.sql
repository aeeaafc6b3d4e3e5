-- name: select_user_facts(id uuid) -> row? (invited_at?, invitation_lasts?)
-- `invited_at` is null once the invitation is accepted.
SELECT u.user_metadata::jsonb, u.app_metadata::jsonb,
       CASE WHEN has_open_invitation(u) THEN iso_8601(u.invited_at) END AS invited_at,
       invitation_lasts(u) AS invitation_lasts,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
                 'provider', i.provider, 'subject', i.subject, 'data', i.identity_data,
                 'last_sign_in_at', iso_8601(i.last_sign_in_at)
               ) ORDER BY i.created_at, i.id), '[]')
          FROM identities AS i
         WHERE i.user_id = u.id) AS identities,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
                 'id', f.id, 'type', f.factor_type, 'name', f.friendly_name,
                 'last_used_at', iso_8601(f.last_used_at),
                 'added_at', iso_8601(coalesce(f.verified_at, f.created_at)), 'is_verified', f.verified_at IS NOT NULL
               ) ORDER BY coalesce(f.verified_at, f.created_at), f.id), '[]')
          FROM factors AS f
         WHERE f.user_id = u.id AND (f.verified_at IS NOT NULL OR f.factor_type = 'passkey')) AS factors
  FROM users AS u
 WHERE u.id = :id;

-- name: list_any_sessions(user_id uuid, refresh_token_lifetime integer, session_timebox integer,
--                         most integer) -> rows (provider?)
SELECT s.id::text, host(s.ip) AS ip, s.user_agent, s.aal, s.opened_by IS NOT NULL AS is_of_client,
       jsonb_path_query_first(s.amr, '$[*].provider') #>> '{}' AS provider,
       iso_8601(s.created_at) AS created_at, iso_8601(s.refreshed_at) AS refreshed_at
  FROM own_sessions(:user_id, :refresh_token_lifetime, :session_timebox) AS s
 ORDER BY s.refreshed_at DESC, s.id
 LIMIT :most;

-- name: select_any_session(user_id uuid, id uuid) -> row?
-- `opened` counts the application sessions that end with it.
SELECT s.id::text, s.user_id::text, s.user_agent, iso_8601(s.refreshed_at) AS refreshed_at,
       (SELECT count(*) FROM sessions AS o WHERE o.user_id = s.user_id AND o.opened_by = s.id
                                             AND end_of(o) IS NULL) AS opened
  FROM sessions AS s
 WHERE s.user_id = :user_id AND s.id = :id AND end_of(s) IS NULL;

-- name: list_messages_of(user_id uuid, most integer) -> rows (last_error?, response?)
SELECT m.id::text, m.kind, m.recipient, iso_8601(m.created_at) AS created_at,
       coalesce(m.outcome, 'waiting') AS outcome, m.last_error, m.response
  FROM outbox AS m
 WHERE m.user_id = :user_id AND m.channel <> 'webhook'
 ORDER BY m.created_at DESC, m.id
 LIMIT :most;

-- name: select_effects(id uuid, refresh_token_lifetime integer, session_timebox integer)
--   -> row? (email?, new_email?, phone?, new_phone?, banned_until?)
-- The effects of an act on a user, in numbers.
SELECT u.id::text, u.role, u.email, u.new_email, u.phone, u.new_phone, u.user_metadata::jsonb, u.app_metadata::jsonb,
       CASE WHEN is_banned(u) THEN iso_8601(u.banned_until) END AS banned_until,
       (SELECT count(*) FROM own_sessions(u.id, :refresh_token_lifetime, :session_timebox)) AS sessions,
       (SELECT count(*)
          FROM sessions AS s
         WHERE s.user_id = u.id AND s.grant_id IS NOT NULL
           AND is_live(s, :refresh_token_lifetime, :session_timebox)) AS client_sessions,
       (SELECT count(*)
          FROM one_time_tokens AS t
         WHERE t.user_id = u.id AND t.spent_at IS NULL AND t.expires_at > now()
           AND t.purpose <> 'undo') AS links,
       (SELECT count(*) FROM identities AS i WHERE i.user_id = u.id) AS identities,
       (SELECT count(*) FROM api_keys AS k WHERE k.user_id = u.id) AS api_keys,
       (SELECT count(*) FROM factors AS f
         WHERE f.user_id = u.id AND (f.verified_at IS NOT NULL OR f.factor_type = 'passkey')) AS factors
  FROM users AS u
 WHERE u.id = :id;
