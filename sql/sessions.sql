-- name: sign_in(session_id uuid, email text, phone text, is_right boolean, checked_password_hash text,
--               new_password_hash text, password_failures integer[], provider text, admin_only boolean,
--               email_confirm_required boolean, phone_confirm_required boolean, sessions_per_user integer,
--               refresh_token_lifetime integer, session_timebox integer, mfa_required text, ip inet,
--               network text, user_agent text, browser text, tells boolean, notify_sign_in boolean,
--               audience text, origin jsonb)
--   -> row (tries?, seconds_left?, refused_for?, user_id?, password_hash?, user_object?, session_id?,
--     counter?, aal?, amr?, lacks_step?, issued_at?, admin_since?, recorded?)
-- Records the verdict on a password, and opens a session if the verdict may be revealed and the user may sign
-- in. Otherwise `state` is the kind of the refusing limit, an error_code, `password_changed` if the hash
-- differs from the checked one, or `new_sign_in` if this transaction must notify the user and `tells` is
-- false.
WITH judged AS MATERIALIZED (
  SELECT v.tries, v.seconds_left, v.refused_for, v.known, own_hash(v.known) AS password_hash, n.is_new,
         CASE WHEN v.refused_by IS NOT NULL THEN v.refused_by
              WHEN NOT :is_right OR (v.known).id IS NULL THEN 'invalid_credentials'
              WHEN own_hash(v.known) IS DISTINCT FROM :checked_password_hash THEN 'password_changed'
              ELSE coalesce(sign_in_refusal(v.known, :provider, :email_confirm_required,
                                            :phone_confirm_required, :admin_only),
                            CASE WHEN (v.known).password_hash = :checked_password_hash
                                 THEN CASE WHEN :tells OR NOT n.is_new THEN 'live'
                                           ELSE 'new_sign_in' END END,
                            'invalid_credentials') END AS state
    FROM record_password_verdict(:email, :phone, :network, :is_right, :password_failures) AS v
   CROSS JOIN LATERAL (
         SELECT :notify_sign_in AND is_new_sign_in(v.known, :network, :browser) AS is_new) AS n
), signed_in AS (
  UPDATE users AS u
     SET last_sign_in_at = now(), password_hash = coalesce(:new_password_hash, u.password_hash)
    FROM judged
   WHERE u.id = (judged.known).id AND judged.state = 'live'
  RETURNING u.*
), used AS (
  UPDATE identities AS i
     SET last_sign_in_at = now()
    FROM signed_in
   WHERE i.user_id = signed_in.id AND i.provider = :provider
  RETURNING i.id
), opened AS MATERIALIZED (
  SELECT with_audience(written_user_object(signed_in::users)::text, :audience) AS user_object,
         s.id AS session_id, s.counter, s.aal, methods_of(s) AS amr,
         lacks_step(signed_in::users, s.aal, :mfa_required,
                    locked_has_second_step(signed_in.id)) AS lacks_step,
         floor(extract(epoch FROM now()))::bigint AS issued_at,
         iso_8601(signed_in.admin_since) AS admin_since,
         record_acts(:origin, signed_in.id, signed_in.email, '{signed_in}', '{auth.login}',
                     jsonb_build_object('method', 'password', 'session_id', s.id)) AS recorded
    FROM signed_in
    -- Before the user object is built from it.
    LEFT JOIN used ON true
   CROSS JOIN begin_session(:session_id, signed_in.id, 'password', :ip, :network, :user_agent,
                            :sessions_per_user, :refresh_token_lifetime, :session_timebox) AS s
)
SELECT judged.state, judged.tries, judged.seconds_left, judged.refused_for, (judged.known).id AS user_id,
       judged.password_hash, judged.is_new, opened.*
  FROM judged
  LEFT JOIN opened ON true;

-- name: refresh_session(session_id uuid, counter bigint, decides text, reuse_interval integer,
--                       rotation boolean, refresh_limit integer, refresh_limit_seconds integer,
--                       refresh_token_lifetime integer, session_timebox integer, mfa_required text,
--                       audience text, origin jsonb)
--   -> row? (commits?, recorded?)
-- `select_refresh_refusal` returns why there is no row. With a token hook, `begin_refresh` has counted the
-- refresh, and `decides` is the digest from before the call of the hook.
UPDATE sessions AS s
   SET (counter, used_counter, successor_counter, refreshed_at, refreshes, counted_until) = (
         SELECT * FROM refreshed(s, :counter, :rotation, :reuse_interval,
                                 CASE WHEN :decides IS NULL THEN :refresh_limit_seconds END)),
       echoes = refreshed_echoes(s, :counter, :rotation, :reuse_interval)
  FROM users AS u
  JOIN user_objects AS copy ON copy.user_id = u.id
 WHERE s.id = :session_id
   AND u.id = s.user_id
   AND s.grant_id IS NULL
   -- A session that lacks a step gets tokens of the audience `second_step`.
   AND caller_state(u, s, NULL, :refresh_token_lifetime, :session_timebox,
                    s.aal, 'session', :mfa_required) = 'live'
   AND refresh_refusal(s, :counter, CASE WHEN :decides IS NULL THEN :refresh_limit END) IS NULL
   AND CASE WHEN :decides IS NULL THEN true ELSE what_decides(copy.object, s) = :decides END
RETURNING s.id AS session_id, s.counter, s.aal, methods_of(s) AS amr,
          with_audience(copy.object, :audience) AS user_object,
          -- The copy saves users without a factor the look-up, which takes 30 µs. Metadata that contains the
          -- text only causes the look-up.
          lacks_step(u, s.aal, :mfa_required,
                     copy.object LIKE '%"factors": [%' AND has_second_step(u.id)) AS lacks_step,
          s.refreshes, extract(epoch FROM s.counted_until - now())::float AS seconds_left,
          floor(extract(epoch FROM now()))::bigint AS issued_at,
          -- If a crash loses the counter, the client's token is ahead of the session. This is accepted.
          set_config('synchronous_commit', 'off', true) AS commits,
          CASE WHEN refresh_act(s, :counter, :rotation, :origin) IS NOT NULL
               THEN record_acts(:origin, u.id, u.email, ARRAY[refresh_act(s, :counter, :rotation, :origin)],
                                '{}', jsonb_build_object('session_id', s.id)) END AS recorded;

-- name: select_refresh_refusal(session_id uuid, counter bigint, refresh_limit integer,
--                              refresh_token_lifetime integer, session_timebox integer, mfa_required text)
--   -> row?
SELECT coalesce(CASE WHEN known.state IN ('user_banned', 'session_expired') THEN known.state
                     WHEN known.state = 'live' AND s.grant_id IS NULL
                     THEN refresh_refusal(s, :counter, :refresh_limit) END,
                'refresh_token_not_found') AS state,
       s.user_id,
       extract(epoch FROM s.counted_until - now())::float AS seconds_left
  FROM sessions AS s
  JOIN users AS u ON u.id = s.user_id
 CROSS JOIN caller_state(u, s, NULL, :refresh_token_lifetime, :session_timebox,
                         s.aal, 'session', :mfa_required) AS known (state)
 WHERE s.id = :session_id;

-- name: end_reused_session(session_id uuid, client_id uuid, origin jsonb) -> row? (recorded?)
-- For a dead token, which stays dead. Also ends the sessions that this one opened. It waits for the user's
-- row, which a statement that holds the session's row must not do: transactions that have locked the user
-- wait for it.
WITH owner AS (
  SELECT u.id, u.email FROM users AS u JOIN sessions AS s ON s.user_id = u.id WHERE s.id = :session_id
     FOR UPDATE OF u
), ended AS (
  SELECT owner.id, owner.email, end_access(owner.id, :session_id, 'refresh_token_reused') AS found FROM owner
)
SELECT ended.found,
       CASE WHEN ended.found
            THEN record_acts(:origin, ended.id, ended.email, '{refresh_token_reused}', '{}',
                             jsonb_build_object('session_id', :session_id, 'client_id', :client_id))
       END AS recorded
  FROM ended;

-- name: select_sessions(caller_id uuid, caller_session_id uuid, refresh_token_lifetime integer,
--                       session_timebox integer, page_size integer, page_offset bigint)
--   -> row? (banned_until?, converted_at?, oldest_factor_at?, method?, aal?,
--            session_created_at?, refreshed_at?, ended_at?, first_passkey_at?)
WITH live AS (
  SELECT * FROM live_sessions(:caller_id, :refresh_token_lifetime, :session_timebox)
)
SELECT caller.*,
       (SELECT count(*) FROM live) AS total,
       (SELECT coalesce(jsonb_object_agg(id, opened_by), '{}')
          FROM live WHERE opened_by IS NOT NULL) AS openers,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
                 'id', page.id,
                 'created_at', iso_8601(page.created_at),
                 'refreshed_at', iso_8601(page.refreshed_at),
                 -- The user agent of the browser, not of the application's backend, which redeemed the code.
                 'user_agent', coalesce(opener.user_agent, page.user_agent),
                 'ip', host(coalesce(opener.ip, page.ip)),
                 'current', page.id = :caller_session_id
               ) ORDER BY page.created_at DESC, page.id), '[]')::text
          FROM (SELECT * FROM live ORDER BY created_at DESC, id LIMIT :page_size OFFSET :page_offset) AS page
          LEFT JOIN sessions AS opener ON opener.id = page.opened_by
       ) AS sessions
  FROM caller_facts(:caller_id, :caller_session_id) AS caller;

-- name: open_session(session_id uuid, user_id uuid, method text, sessions_per_user integer,
--                    refresh_token_lifetime integer, session_timebox integer, mfa_required text,
--                    ip inet, network text, user_agent text, browser text, notify_sign_in boolean,
--                    audience text) -> row
WITH signed_in AS (
  UPDATE users SET last_sign_in_at = now() WHERE id = :user_id RETURNING *
)
SELECT s.id AS session_id, s.counter, s.aal, methods_of(s) AS amr,
       lacks_step(signed_in::users, s.aal, :mfa_required, has_second_step(signed_in.id)) AS lacks_step,
       floor(extract(epoch FROM now()))::bigint AS issued_at,
       with_audience(user_object(signed_in::users)::text, :audience) AS user_object,
       -- The state of the user before the sign-in.
       (SELECT :notify_sign_in AND is_new_sign_in(u, :network, :browser) FROM users AS u WHERE id = :user_id)
         AS is_new
  FROM signed_in
 CROSS JOIN begin_session(:session_id, signed_in.id, :method, :ip, :network, :user_agent,
                         :sessions_per_user, :refresh_token_lifetime, :session_timebox) AS s;

-- name: raise_session(session_id uuid, method text, factor_id uuid, network text, audience text)
--   -> row (passed?)
-- Skips a counter, which voids all earlier refresh tokens: a thief may have them.
UPDATE sessions AS s
   SET aal = 'aal2',
       amr = with_second_step(methods_of(s), :method),
       factor_id = :factor_id, reauthenticated_at = now(), factor_proved_at = now(), first_passkey_at = NULL,
       counter = s.counter + 2, refreshed_at = now()
  FROM users AS u
 WHERE s.id = :session_id AND u.id = s.user_id
RETURNING s.id AS session_id, s.counter, s.aal, false AS lacks_step, methods_of(s) AS amr,
          floor(extract(epoch FROM now()))::bigint AS issued_at,
          with_audience(user_object(u)::text, :audience) AS user_object,
          know_network(s.user_id, :network) AS passed;

-- name: renew_session(session_id uuid, reuse_interval integer, mfa_required text, audience text) -> row?
-- A refresh that is not counted. Earlier tokens of the session stay valid.
UPDATE sessions AS s
   SET (counter, used_counter, successor_counter, refreshed_at, refreshes, counted_until) = (
         SELECT * FROM refreshed(s, s.counter, true, :reuse_interval, NULL)),
       echoes = refreshed_echoes(s, s.counter, true, :reuse_interval)
  FROM users AS u
 WHERE s.id = :session_id AND u.id = s.user_id
RETURNING s.id AS session_id, s.counter, s.aal, methods_of(s) AS amr,
          lacks_step(u, s.aal, :mfa_required, has_second_step(u.id)) AS lacks_step,
          floor(extract(epoch FROM now()))::bigint AS issued_at,
          with_audience(user_object(u)::text, :audience) AS user_object;

-- name: record_reauthentication(session_id uuid, is_by_code boolean, is_by_factor boolean,
--                               acted_at timestamptz)
UPDATE sessions
   SET reauthenticated_at = :acted_at,
       code_given_at = CASE WHEN :is_by_code THEN :acted_at ELSE code_given_at END,
       factor_proved_at = CASE WHEN :is_by_factor THEN :acted_at ELSE factor_proved_at END
 WHERE id = :session_id;

-- name: record_sign_in_of_provider(session_id uuid, provider text, auth_time double precision) -> row
-- `least` ignores an unknown time.
UPDATE sessions AS s
   SET reauthenticated_at = least(to_timestamp(:auth_time), now()), amr = methods_with(s, :provider)
 WHERE s.id = :session_id
RETURNING s.amr;

-- name: record_provider(session_id uuid, provider text) -> row
UPDATE sessions AS s SET amr = methods_with(s, :provider) WHERE s.id = :session_id RETURNING s.amr;

-- name: end_access(user_id uuid, session_id uuid, reason text, voids boolean)
-- `voids` also voids links and codes.
SELECT end_access(:user_id, :session_id, :reason), CASE WHEN :voids THEN void_tokens(:user_id) END;

-- name: end_holdings(user_id uuid, session_id uuid, reason text, reach text, keys_up_to text,
--                    with_grants boolean, voids boolean, acted_at timestamptz) -> row (voided?)
-- `voids` also voids links and codes.
SELECT end_holdings(:user_id, :session_id, :reason, :reach, :keys_up_to, :with_grants, :acted_at) AS ended,
       CASE WHEN :voids THEN void_tokens(:user_id) END AS voided;
