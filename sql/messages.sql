-- name: count_message(address text, windows jsonb, site text, channel text, seconds integer)
--   -> row (amount?, remaining?, resets_in?, of_network?, seconds_left?)
-- Counts a request for a message in the windows of its recipient, of which the tightest is returned, and in
-- its network's tenth of the total of the channel. A null address is not proved, a null site has no tenth.
SELECT EXISTS (SELECT
                 FROM users AS u
                WHERE u.email = :address AND u.email_proved OR u.phone = :address AND u.phone_proved) AS is_proved,
       recipient.amount, recipient.remaining, recipient.resets_in, tenth.count AS of_network,
       tenth.seconds_left
  FROM take_from_windows(:windows) AS recipient
  LEFT JOIN LATERAL add_to_count((CASE WHEN :site IS NOT NULL THEN :channel || '_tenth' END, :site,
                                  NULL, NULL, :seconds)::failure_limit, 1) AS tenth ON true;

-- name: count_in_total(kind text, seconds integer) -> row
SELECT count, seconds_left FROM add_to_count((:kind, NULL, NULL, NULL, :seconds)::failure_limit, 1);

-- name: select_wait(windows jsonb) -> row
SELECT coalesce(max(extract(epoch FROM f.expires_at - now())), 0)::float AS seconds
  FROM jsonb_populate_recordset(NULL::failure_limit, :windows) AS l
  JOIN failure_counts AS f ON f.key = failure_key(l) AND f.count >= l.amount AND f.expires_at > now();

-- name: write_token(token_id uuid, user_id uuid, purpose text, target text, token_hash bytea,
--                   link_lifetime integer, code_mac bytea, code_lifetime integer, redirect_to text,
--                   code_challenge text, session_id uuid, password_hash text,
--                   user_metadata jsonb, user_agent text, browser_hash bytea, ip inet, by_key boolean,
--                   acted_at timestamptz)
-- Inserts no token if the user is null, so that a request for an unknown address runs the same statements. A
-- browser that asks again waits only for the new link. The link of a notice expires with the links to other
-- addresses, or a thief of the address could use it after the owner's has expired. `by_key` is also set if
-- the address is an administrative key's.
WITH forgotten AS (
  UPDATE one_time_tokens
     SET browser_hash = NULL
   WHERE browser_hash = :browser_hash AND target = :target AND purpose = :purpose AND spent_at IS NOT NULL
)
INSERT INTO one_time_tokens (id, user_id, purpose, target, token_hash, code_mac, redirect_to, code_challenge,
                             session_id, password_hash, user_metadata, user_agent, browser_hash, ip, by_key,
                             code_expires_at, expires_at, created_at)
SELECT :token_id, :user_id, :purpose, :target, :token_hash, :code_mac, :redirect_to, :code_challenge,
       :session_id, :password_hash, :user_metadata::user_metadata, :user_agent, :browser_hash, :ip,
       nullif(:by_key OR EXISTS (SELECT FROM users WHERE id = :user_id AND :target IN (email_by_key, phone_by_key)), false),
       :acted_at + make_interval(secs => :code_lifetime),
       least(:acted_at + make_interval(secs => coalesce(:link_lifetime, :code_lifetime)),
             (SELECT max(expires_at) FROM one_time_tokens AS t
               WHERE user_id = :user_id AND purpose = 'undo' AND :purpose = 'undo' AND target <> :target
                 AND token_hash IS NOT NULL AND is_good_link(t))),
       :acted_at
 WHERE :user_id IS NOT NULL;

-- name: write_message(message_id uuid, user_id uuid, kind text, recipient text, message_variables jsonb,
--                     message_secret bytea, token_id uuid, lifetime integer, longest_delay double precision,
--                     is_notice boolean, acted_at timestamptz)
SELECT write_message_at(:acted_at, :message_id, :user_id, :kind, :recipient, :message_variables, :message_secret,
                        :token_id,
                        coalesce((SELECT expires_at FROM one_time_tokens WHERE id = :token_id),
                                 :acted_at + make_interval(secs => :lifetime)),
                        random() * :longest_delay, :is_notice);

-- name: join_notice(user_id uuid, kind text, recipient text, change jsonb, acted_at timestamptz)
-- Adds a change to a notice that is not due yet, and lists the first twenty: `- 19` removes one more.
-- The user's row is locked. A notice with a void link is never sent.
UPDATE outbox AS m
   SET variables = variables || jsonb_build_object(
         'times', coalesce((variables ->> 'times')::integer, 1) + 1,
         'others', (coalesce(variables -> 'others', '[]')
                      || (:change || jsonb_build_object('at', iso_8601(:acted_at)))) - 19)
 WHERE recipient = :recipient AND user_id = :user_id AND kind = :kind AND is_notice AND outcome IS NULL
   AND attempts = 0 AND next_attempt_at > :acted_at
   AND (one_time_token_id IS NULL
        OR EXISTS (SELECT FROM one_time_tokens AS t WHERE t.id = m.one_time_token_id AND is_good_link(t)));
