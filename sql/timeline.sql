-- name: list_timeline(user_id uuid, refresh_token_lifetime integer, session_timebox integer,
--                     page_size integer, page_offset bigint)
--   -> rows (reason?, actor?, actor_id?, ip?, user_agent?, request_id?)
SELECT iso_8601(item.at) AS at, item.kind, item.name, item.reason, item.count, item.actor, item.actor_id,
       host(item.ip) AS ip, item.user_agent, item.request_id, item.details, :user_id AS user_id
  FROM timeline_of(:user_id, :refresh_token_lifetime, :session_timebox, :page_offset + :page_size) AS item
 ORDER BY item.at DESC, place_in_moment(item.name) DESC, item.id DESC
 LIMIT :page_size OFFSET :page_offset;

-- name: list_timeline_before(user_id uuid, refresh_token_lifetime integer, session_timebox integer,
--                            kind text, before_at timestamptz, before_place integer, before_id uuid,
--                            page_size bigint)
--   -> rows (reason?, actor?, actor_id?, ip?, user_agent?, request_id?)
-- Starts with the newest without a cursor. One row more than `page_size` shows that there are older ones.
SELECT iso_8601(item.at) AS at, place_in_moment(item.name) AS place, item.id::text, item.kind, item.name,
       item.reason, item.count, item.actor, item.actor_id, host(item.ip) AS ip, item.user_agent,
       item.request_id, item.details, :user_id AS user_id
  FROM timeline_of(:user_id, :refresh_token_lifetime, :session_timebox, :page_size + 1, :kind,
                   coalesce(:before_at, 'infinity'), coalesce(:before_place, 0),
                   coalesce(:before_id, :user_id)) AS item
 ORDER BY item.at DESC, place_in_moment(item.name) DESC, item.id DESC
 LIMIT :page_size + 1;

-- name: count_timeline(user_id uuid, refresh_token_lifetime integer, session_timebox integer, most integer)
--   -> row (addresses?)
-- `addresses` is null for an unknown user.
SELECT (SELECT array_remove(ARRAY[email, phone, new_email, new_phone], NULL)
          FROM users
         WHERE id = :user_id) AS addresses,
       (SELECT count(*)
          FROM (SELECT
                  FROM timeline_of(:user_id, :refresh_token_lifetime, :session_timebox, :most)
                 LIMIT :most) AS items) AS total;

-- name: list_request_acts(request_id text, most integer) -> rows (reason?, actor_id?, user_id?, address?)
SELECT iso_8601(a.at) AS at,
       CASE WHEN a.reason IS NULL THEN 'act' ELSE 'refusal' END AS kind, a.action AS name,
       a.reason, a.count, a.actor, a.actor_id, host(a.ip) AS ip, a.user_agent, a.request_id,
       a.details, a.user_id, coalesce(u.email, u.phone) AS address
  FROM audit_log AS a
  LEFT JOIN users AS u ON u.id = a.user_id
 WHERE a.request_id = :request_id
 ORDER BY a.at, a.id
 LIMIT :most;

-- name: list_messages_to(recipient text, most integer)
--   -> rows (reason?, actor?, actor_id?, ip?, user_agent?, request_id?)
SELECT iso_8601(coalesce(m.finished_at, m.created_at)) AS at, 'message' AS kind, m.kind AS name,
       NULL::text AS reason, 1 AS count, NULL::text AS actor, NULL::uuid AS actor_id,
       NULL::text AS ip, NULL::text AS user_agent, NULL::text AS request_id,
       message_details(m, m.recipient) AS details, m.user_id
  FROM outbox AS m
 WHERE m.recipient = :recipient AND m.channel <> 'webhook'
 ORDER BY m.created_at DESC
 LIMIT :most;

-- name: select_last_message(user_id uuid, kinds text[]) -> row?
-- If a message is not sent within a minute, nothing delivers its channel.
SELECT m.id::text, 'message' AS kind, m.kind AS name, message_details(m, m.recipient) AS details,
       coalesce(m.outcome IN ('failed', 'expired'),
                m.last_error IS NOT NULL OR m.created_at < now() - interval '1 minute') AS is_stuck
  FROM outbox AS m
 WHERE m.user_id = :user_id AND m.channel <> 'webhook' AND m.kind = ANY (:kinds)
 ORDER BY m.created_at DESC
 LIMIT 1;

-- name: select_summary(id uuid, email text, phone text, refresh_token_lifetime integer,
--                      session_timebox integer, mfa_required text)
--   -> row? (email?, phone?, new_email?, new_phone?, email_confirmed_at?, phone_confirmed_at?,
--     last_sign_in_at?, banned_until?)
SELECT u.id, u.email, u.phone, u.role, u.made_by, is_anonymous(u) AS is_anonymous,
       u.password_hash IS NOT NULL AS has_password, u.new_email, u.new_phone, linked.providers,
       (SELECT coalesce(array_agg(concat_ws(' ', factor_type, nullif(friendly_name, ''))
                                  ORDER BY verified_at), '{}')
          FROM factors
         WHERE user_id = u.id AND verified_at IS NOT NULL) AS factors,
       EXISTS (SELECT FROM factors WHERE user_id = u.id AND factor_type = 'passkey' AND verified_at IS NOT NULL)
         AS has_passkey,
       (SELECT count(*) FROM recovery_codes WHERE user_id = u.id AND used_at IS NULL) AS recovery_codes,
       iso_8601(u.created_at) AS created_at, iso_8601(u.email_confirmed_at) AS email_confirmed_at,
       iso_8601(u.phone_confirmed_at) AS phone_confirmed_at, iso_8601(u.last_sign_in_at) AS last_sign_in_at,
       CASE WHEN is_banned(u) THEN iso_8601(u.banned_until) END AS banned_until,
       (SELECT count(*) FROM own_sessions(u.id, :refresh_token_lifetime, :session_timebox)) AS live_sessions,
       (SELECT coalesce(array_agg(coalesce(nullif(c.name, ''), c.id::text) ORDER BY o.granted_at, o.id), '{}')
          FROM oauth_grants AS o
          JOIN oauth_clients AS c ON c.id = o.client_id
         WHERE o.user_id = u.id) AS applications,
       opened.total AS sessions_of_applications, opened.below AS sessions_of_applications_below,
       made.total AS api_keys, made.below AS api_keys_below
  FROM users AS u
 CROSS JOIN linked_identities(u.id) AS linked
 CROSS JOIN LATERAL (SELECT :mfa_required = 'all' AND NOT is_anonymous(u)
                         OR :mfa_required = 'admins' AND u.role = 'admin' OR own.has_second_step
                       FROM factors_of(u.id) AS own) AS needed (is_step)
 -- Sessions that give no token because their level is too low.
 CROSS JOIN LATERAL (SELECT count(*) AS total,
                            count(*) FILTER (WHERE NOT is_banned(u) AND admits(c, u, s.resource, s.organization_id)
                                               AND s.aal < 'aal2' AND needed.is_step) AS below
                       FROM sessions AS s
                       JOIN oauth_grants AS o ON o.id = s.grant_id
                       JOIN oauth_clients AS c ON c.id = o.client_id
                      WHERE s.user_id = u.id AND is_live(s, :refresh_token_lifetime, :session_timebox)) AS opened
 CROSS JOIN LATERAL (SELECT count(*) AS total,
                            count(*) FILTER (WHERE NOT is_banned(u)
                                               AND k.aal < 'aal2' AND needed.is_step) AS below
                       FROM api_keys AS k
                      WHERE k.user_id = u.id AND is_live(k)) AS made
 WHERE u.id = :id OR u.email = :email OR u.phone = :phone;

-- name: select_refusal_by_hook(user_id uuid, reasons text[]) -> row?
-- The last refusal, unless the user has signed in since.
SELECT a.details ->> 'hook' AS hook, a.details ->> 'said' AS said, iso_8601(a.at) AS at
  FROM users AS u
  JOIN audit_log AS a ON a.user_id = u.id
 WHERE u.id = :user_id AND a.reason = ANY (:reasons) AND a.details ? 'hook'
   AND a.at > coalesce(u.last_sign_in_at, '-infinity')
 ORDER BY a.at DESC
 LIMIT 1;

-- name: list_pending_users(address text) -> rows (phone?)
SELECT id, email, phone FROM users WHERE new_email = :address OR new_phone = :address ORDER BY id;

-- name: select_failure_counts(subjects text[]) -> rows (subject?, network?, seconds?)
-- Includes the totals, which have no subject.
SELECT kind, subject, network, seconds, count, iso_8601(expires_at) AS until
  FROM failure_counts
 WHERE (subject = ANY (:subjects) OR subject IS NULL) AND expires_at > now()
 ORDER BY kind, subject, network NULLS FIRST, seconds;
