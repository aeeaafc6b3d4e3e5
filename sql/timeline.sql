-- name: list_timeline(user_id uuid, refresh_token_lifetime integer, session_timebox integer, page_size integer, page_offset bigint)
-- A page of what has happened to a user, the newest first.
SELECT iso_8601(item.at) AS at, item.kind, item.name, item.reason, item.count, item.actor, item.actor_id, host(item.ip) AS ip, item.user_agent,
       item.request_id, item.details, :user_id AS user_id
  FROM timeline_of(:user_id, :refresh_token_lifetime, :session_timebox, :page_offset + :page_size) AS item
 ORDER BY item.at DESC, place_in_moment(item.name) DESC, item.id DESC
 LIMIT :page_size OFFSET :page_offset;

-- name: count_timeline(user_id uuid, refresh_token_lifetime integer, session_timebox integer, most integer)
-- How much has happened to a user, but counts no further than `most`; whether there is one; and the addresses that limits count for it.
SELECT EXISTS (SELECT FROM users WHERE id = :user_id) AS exists,
       (SELECT array_remove(ARRAY[email, phone, new_email, new_phone], NULL) FROM users WHERE id = :user_id) AS addresses,
       (SELECT count(*)
          FROM (SELECT FROM timeline_of(:user_id, :refresh_token_lifetime, :session_timebox, :most) LIMIT :most) AS found) AS total;

-- name: list_request_acts(request_id text, most integer)
-- What a request has done or was refused, the oldest first, and to whom.
SELECT iso_8601(act.at) AS at, CASE WHEN act.reason IS NULL THEN 'act' ELSE 'refusal' END AS kind, act.action AS name, act.reason, act.count,
       act.actor, act.actor_id, host(act.ip) AS ip, act.user_agent, act.request_id, act.details, act.user_id,
       coalesce(account.email, account.phone) AS address
  FROM audit_log AS act
  LEFT JOIN users AS account ON account.id = act.user_id
 WHERE act.request_id = :request_id
 ORDER BY act.at, act.id
 LIMIT :most;

-- name: list_messages_to(recipient text, most integer)
-- The newest messages to an address, and whom they were for.
SELECT iso_8601(coalesce(message.finished_at, message.created_at)) AS at, 'message' AS kind, message.kind AS name, NULL::text AS reason,
       1 AS count, NULL::text AS actor, NULL::uuid AS actor_id, NULL::text AS ip, NULL::text AS user_agent, NULL::text AS request_id,
       message_details(message, message.recipient) AS details, message.user_id
  FROM outbox AS message
 WHERE message.recipient = :recipient AND message.channel <> 'webhook'
 ORDER BY message.created_at DESC
 LIMIT :most;

-- name: select_summary(id uuid, email text, phone text, refresh_token_lifetime integer, session_timebox integer)
-- What decides whether a user can sign in; by id, email or phone. No row when there is no such user.
SELECT account.id,
       account.email,
       account.phone,
       account.role,
       account.made_by,
       account.password_hash IS NOT NULL AS has_password,
       account.new_email,
       account.new_phone,
       linked.providers,
       iso_8601(account.created_at) AS created_at,
       iso_8601(account.email_confirmed_at) AS email_confirmed_at,
       iso_8601(account.phone_confirmed_at) AS phone_confirmed_at,
       iso_8601(account.last_sign_in_at) AS last_sign_in_at,
       CASE WHEN account.banned_until > now() THEN iso_8601(account.banned_until) END AS banned_until,
       (SELECT count(*)
          FROM sessions AS session
         WHERE session.user_id = account.id AND session.ended_at IS NULL
           AND NOT session_expired(session, :refresh_token_lifetime, :session_timebox)) AS live_sessions
  FROM users AS account
  CROSS JOIN identities_of(account.id) AS linked
 WHERE account.id = :id OR account.email = :email OR account.phone = :phone;

-- name: list_pending_users(address text)
-- The users who are to confirm an address before it is theirs.
SELECT id, email, phone FROM users WHERE new_email = :address
 UNION
SELECT id, email, phone FROM users WHERE new_phone = :address
 ORDER BY id;

-- name: select_failure_counts(addresses text[], totals text[])
-- What counts against addresses at this moment: wrong passwords and codes, and messages; and the `totals`, by their keys.
SELECT counter.key, counter.count, iso_8601(counter.expires_at) AS until
  FROM unnest(:addresses) AS address
 CROSS JOIN (VALUES ('login '), ('account '), ('code '), ('message '), ('invite ')) AS prefix (text)
  JOIN failure_counts AS counter
    ON (counter.key COLLATE "C" = prefix.text || address
        OR counter.key COLLATE "C" >= prefix.text || address || ' ' AND counter.key COLLATE "C" < prefix.text || address || '!')
 WHERE counter.expires_at > now()
 UNION
SELECT counter.key, counter.count, iso_8601(counter.expires_at)
  FROM failure_counts AS counter
 WHERE counter.key = ANY (:totals) AND counter.expires_at > now()
 ORDER BY key;
