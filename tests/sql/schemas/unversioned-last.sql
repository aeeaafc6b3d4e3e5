SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE DOMAIN public.app_metadata AS jsonb
	CONSTRAINT app_metadata_size CHECK ((octet_length((VALUE)::text) <= 8192));
CREATE DOMAIN public.session_end_reason AS text
	CONSTRAINT session_end_reason_check CHECK ((VALUE = ANY (ARRAY['logout'::text, 'ended_by_user'::text, 'ended_by_admin'::text, 'refresh_token_reused'::text, 'password_changed'::text, 'email_changed'::text, 'banned'::text, 'address_proved'::text, 'email_restored'::text, 'authorization_code_reused'::text, 'too_many_sessions'::text])));
CREATE DOMAIN public.user_metadata AS jsonb
	CONSTRAINT user_metadata_size CHECK ((octet_length((VALUE)::text) <= 8192));
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.sessions (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    user_id uuid NOT NULL,
    counter bigint DEFAULT 0 NOT NULL,
    method text NOT NULL,
    ip inet,
    user_agent text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    refreshed_at timestamp with time zone DEFAULT now() NOT NULL,
    refreshes integer DEFAULT 0 NOT NULL,
    counted_until timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    end_reason public.session_end_reason,
    CONSTRAINT sessions_ended_check CHECK (((ended_at IS NULL) = (end_reason IS NULL)))
)
WITH (fillfactor='70');
CREATE TABLE public.users (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    role text DEFAULT 'authenticated'::text NOT NULL,
    email text COLLATE pg_catalog."C",
    email_confirmed_at timestamp with time zone,
    email_proved boolean DEFAULT false NOT NULL,
    phone text COLLATE pg_catalog."C",
    phone_confirmed_at timestamp with time zone,
    phone_proved boolean DEFAULT false NOT NULL,
    password_hash text,
    app_metadata public.app_metadata DEFAULT '{}'::jsonb NOT NULL,
    user_metadata public.user_metadata DEFAULT '{}'::jsonb NOT NULL,
    new_email text,
    email_change_sent_at timestamp with time zone,
    new_phone text,
    phone_change_sent_at timestamp with time zone,
    confirmation_sent_at timestamp with time zone,
    invited_at timestamp with time zone,
    last_sign_in_at timestamp with time zone,
    banned_until timestamp with time zone,
    admin_since timestamp with time zone,
    made_by text NOT NULL,
    signup_user_agent text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT users_made_by_check CHECK ((made_by = ANY (ARRAY['signup'::text, 'admin'::text, 'message'::text, 'invite'::text, 'link'::text, 'oauth'::text])))
)
WITH (fillfactor='80');
CREATE FUNCTION public.caller_state(caller public.users, session public.sessions, expires_at bigint, lifetime integer, timebox integer) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT CASE
    WHEN to_timestamp(expires_at) <= now() THEN 'bad_jwt'
    WHEN caller.banned_until > now() THEN 'user_banned'
    WHEN session.id IS NULL OR session.ended_at IS NOT NULL THEN 'session_not_found'
    WHEN session_expired(session, lifetime, timebox) THEN 'session_expired'
    ELSE 'live'
  END
$$;
CREATE FUNCTION public.caller_state_now(caller_id uuid, caller_session_id uuid, expires_at bigint, lifetime integer, timebox integer) RETURNS text
    LANGUAGE sql
    AS $$
  SELECT caller_state(account, session, expires_at, lifetime, timebox)
    FROM users AS account
    LEFT JOIN sessions AS session ON session.id = caller_session_id AND session.user_id = account.id
   WHERE account.id = caller_id
$$;
CREATE FUNCTION public.count_up(counted_key text, seconds integer) RETURNS TABLE(count bigint, seconds_left double precision)
    LANGUAGE sql
    AS $$
  INSERT INTO failure_counts AS counter (key, count, expires_at)
  SELECT counted_key, 1, now() + make_interval(secs => seconds) WHERE counted_key IS NOT NULL
  ON CONFLICT (key) DO UPDATE
     SET count = CASE WHEN counter.expires_at <= now() THEN 1 ELSE counter.count + 1 END,
         expires_at = CASE WHEN counter.expires_at <= now() THEN excluded.expires_at ELSE counter.expires_at END
  RETURNING counter.count, extract(epoch FROM counter.expires_at - now())::double precision
$$;
CREATE TABLE public.outbox (
    id uuid NOT NULL,
    user_id uuid,
    channel text,
    kind text NOT NULL,
    recipient text,
    variables jsonb DEFAULT '{}'::jsonb NOT NULL,
    secret bytea,
    one_time_token_id uuid,
    attempts integer DEFAULT 0 NOT NULL,
    next_attempt_at timestamp with time zone DEFAULT now() NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    outcome text,
    finished_at timestamp with time zone,
    last_error text,
    response text,
    CONSTRAINT outbox_channel_check CHECK ((channel = ANY (ARRAY['email'::text, 'sms'::text, 'webhook'::text]))),
    CONSTRAINT outbox_finished_check CHECK ((((outcome IS NULL) = (finished_at IS NULL)) AND ((outcome IS NULL) OR (secret IS NULL)))),
    CONSTRAINT outbox_outcome_check CHECK ((outcome = ANY (ARRAY['none'::text, 'sent'::text, 'void'::text, 'expired'::text, 'failed'::text]))),
    CONSTRAINT outbox_sendable_check CHECK (((outcome IS NOT NULL) OR ((channel IS NOT NULL) AND (recipient IS NOT NULL))))
);
CREATE FUNCTION public.delivery_object(message public.outbox) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT jsonb_build_object(
    'id', message.id,
    'event', message.kind,
    'event_id', 'msg_' || (message.variables ->> 'event_id'),
    'status', coalesce(message.outcome, 'waiting'),
    'attempts', message.attempts,
    'last_error', message.last_error,
    'response', message.response,
    'created_at', iso_8601(message.created_at),
    'next_attempt_at', CASE WHEN message.outcome IS NULL THEN iso_8601(message.next_attempt_at) END,
    'finished_at', iso_8601(message.finished_at)
  )
$$;
CREATE FUNCTION public.end_excess_sessions(owner uuid, most integer, lifetime integer, timebox integer) RETURNS bigint
    LANGUAGE sql
    AS $$
  WITH ended AS (
    UPDATE sessions
       SET ended_at = now(), end_reason = 'too_many_sessions'
     WHERE ended_at IS NULL
       AND id = ANY (ARRAY(SELECT session.id
                             FROM sessions AS session
                            WHERE session.user_id = owner AND session.ended_at IS NULL AND NOT session_expired(session, lifetime, timebox)
                            ORDER BY session.created_at DESC
                           OFFSET most - 1))
    RETURNING id
  )
  SELECT count(*) FROM ended
$$;
CREATE FUNCTION public.end_session_of_code(session_id uuid) RETURNS boolean
    LANGUAGE sql
    AS $$
  WITH ended AS (
    UPDATE sessions
       SET ended_at = coalesce(ended_at, now()), end_reason = coalesce(end_reason, 'authorization_code_reused')
     WHERE id = session_id
    RETURNING id
  )
  SELECT EXISTS (SELECT FROM ended)
$$;
CREATE FUNCTION public.end_sessions(owner uuid, kept uuid, reason text) RETURNS bigint
    LANGUAGE sql
    AS $$
  WITH ended AS (
    UPDATE sessions
       SET ended_at = now(), end_reason = reason
     WHERE user_id = owner AND ended_at IS NULL AND id IS DISTINCT FROM kept
    RETURNING id
  )
  SELECT count(*) FROM ended
$$;
CREATE FUNCTION public.has_identity(owner uuid, wanted_provider text, wanted_subject text) RETURNS boolean
    LANGUAGE sql
    AS $$
  SELECT EXISTS (SELECT FROM identities WHERE user_id = owner AND provider = wanted_provider AND subject = wanted_subject)
$$;
CREATE FUNCTION public.has_room_for_webhook(most integer) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7239004118);
  RETURN (SELECT count(*) < most FROM webhooks);
END
$$;
CREATE FUNCTION public.identities_of(owner uuid) RETURNS TABLE(objects json, providers text[])
    LANGUAGE sql STABLE ROWS 1 PARALLEL SAFE
    AS $$
  SELECT coalesce(json_agg(identity_object(identity) ORDER BY identity.created_at, identity.provider), '[]'::json),
         coalesce(array_agg(identity.provider ORDER BY identity.created_at, identity.provider), '{}')
    FROM identities AS identity
   WHERE identity.user_id = owner
$$;
CREATE TABLE public.identities (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    user_id uuid NOT NULL,
    provider text NOT NULL,
    subject text NOT NULL,
    identity_data jsonb NOT NULL,
    last_sign_in_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE FUNCTION public.identities_with(written public.identities, owner uuid) RETURNS TABLE(objects json, providers text[])
    LANGUAGE sql STABLE ROWS 1 PARALLEL SAFE
    AS $$
  SELECT coalesce(json_agg(identity_object(identity) ORDER BY (identity).created_at, (identity).provider), '[]'::json),
         coalesce(array_agg((identity).provider ORDER BY (identity).created_at, (identity).provider), '{}')
    FROM (SELECT written AS identity WHERE written.id IS NOT NULL
           UNION ALL
          SELECT identity FROM identities AS identity WHERE identity.user_id = owner AND identity.id IS DISTINCT FROM written.id) AS every
$$;
CREATE FUNCTION public.identity_has_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM FROM users WHERE id IN (OLD.user_id, NEW.user_id) ORDER BY id FOR NO KEY UPDATE;
  PERFORM write_user_object(id) FROM users WHERE id IN (OLD.user_id, NEW.user_id);
  RETURN NULL;
END
$$;
CREATE FUNCTION public.identity_object(identity public.identities) RETURNS json
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT json_build_object(
    'id', identity.id,
    'identity_id', identity.id,
    'user_id', identity.user_id,
    'identity_data', identity.identity_data,
    'provider', identity.provider,
    'last_sign_in_at', iso_8601(identity.last_sign_in_at),
    'created_at', iso_8601(identity.created_at),
    'updated_at', iso_8601(identity.updated_at)
  )
$$;
CREATE TABLE public.one_time_tokens (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    purpose text NOT NULL,
    target text NOT NULL,
    token_hash bytea,
    code_mac bytea,
    code_expires_at timestamp with time zone,
    tries integer DEFAULT 0 NOT NULL,
    redirect_to text,
    code_challenge text,
    password_hash text,
    session_id uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    spent_at timestamp with time zone,
    CONSTRAINT one_time_tokens_code_check CHECK (((code_mac IS NULL) = (code_expires_at IS NULL))),
    CONSTRAINT one_time_tokens_purpose_check CHECK ((purpose = ANY (ARRAY['signup'::text, 'sms_signup'::text, 'invite'::text, 'magiclink'::text, 'recovery'::text, 'sms'::text, 'email_change'::text, 'phone_change'::text, 'email_restore'::text, 'reauthentication'::text])))
);
CREATE FUNCTION public.is_good_link(token public.one_time_tokens) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT token.spent_at IS NULL AND token.expires_at > now()
     AND (token.purpose = 'email_restore'
          OR 3 > (SELECT count(*)
                    FROM one_time_tokens AS newer
                   WHERE newer.user_id = token.user_id AND newer.purpose = token.purpose AND newer.created_at > token.created_at))
$$;
CREATE FUNCTION public.is_janitors_turn() RETURNS boolean
    LANGUAGE sql
    AS $$
  SELECT pg_try_advisory_xact_lock(7239004117)
$$;
CREATE FUNCTION public.is_listed(account public.users, wanted_email text, wanted_role text, prefix text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT (wanted_email IS NULL OR account.email = wanted_email)
     AND (wanted_role IS NULL OR account.role = wanted_role)
     AND (prefix IS NULL
          OR account.email >= prefix AND account.email < prefix || chr(1114111)
          OR account.phone >= prefix AND account.phone < prefix || chr(1114111)
          OR split_part(account.email, '@', 2) COLLATE "C" >= prefix
             AND split_part(account.email, '@', 2) COLLATE "C" < prefix || chr(1114111))
$$;
CREATE TABLE public.audit_log (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    action text NOT NULL,
    reason text,
    user_id uuid,
    actor text NOT NULL,
    actor_id uuid,
    ip inet,
    network text,
    user_agent text,
    request_id text,
    count integer DEFAULT 1 NOT NULL,
    details jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT audit_log_actor_check CHECK ((actor = ANY (ARRAY['user'::text, 'service_role'::text, 'anonymous'::text, 'command'::text, 'service'::text])))
);
CREATE FUNCTION public.is_listed(entry public.audit_log, subject uuid, wanted_action text, since timestamp with time zone, until timestamp with time zone, wanted_request_id text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT (subject IS NULL OR entry.user_id = subject)
     AND (wanted_action IS NULL OR entry.action = wanted_action)
     AND (since IS NULL OR entry.at >= since)
     AND (until IS NULL OR entry.at < until)
     AND (wanted_request_id IS NULL OR entry.request_id = wanted_request_id)
$$;
CREATE FUNCTION public.is_unused_sign_up(account public.users) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT account.made_by = 'signup' AND account.email_confirmed_at IS NULL AND account.phone_confirmed_at IS NULL
     AND account.last_sign_in_at IS NULL AND (account.banned_until > now()) IS NOT TRUE
$$;
CREATE FUNCTION public.iso_8601(moment timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;
CREATE FUNCTION public.made_user_objects() RETURNS TABLE(user_id uuid, object text)
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT account.id, user_object(account, linked.objects, linked.providers)::text
    FROM users AS account
   CROSS JOIN identities_of(account.id) AS linked
$$;
CREATE FUNCTION public.merge_metadata(metadata jsonb, change jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT coalesce(jsonb_object_agg(member.key, member.value) FILTER (WHERE member.value <> 'null'), '{}')
    FROM jsonb_each(metadata || coalesce(change, '{}')) AS member
$$;
CREATE FUNCTION public.message_details(message public.outbox, target text) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT jsonb_build_object(
    'id', message.id,
    'channel', message.channel,
    'recipient', target,
    'outcome', coalesce(message.outcome, 'waiting'),
    'attempts', message.attempts,
    'last_error', message.last_error,
    'response', message.response,
    'written_at', iso_8601(message.created_at),
    'next_attempt_at', CASE WHEN message.outcome IS NULL THEN iso_8601(message.next_attempt_at) END
  )
$$;
CREATE FUNCTION public.other_identities(owner uuid, one uuid, usable text[]) RETURNS bigint
    LANGUAGE sql
    AS $$
  SELECT count(*) FROM identities WHERE user_id = owner AND id <> one AND provider = ANY (usable)
$$;
CREATE FUNCTION public.outbox_target(channel text, recipient text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT CASE channel WHEN 'email' THEN split_part(recipient, '@', -1) ELSE channel END
$$;
CREATE FUNCTION public.page_of_users(wanted_email text, wanted_role text, prefix text, sort text, descending boolean, page_size integer, page_offset bigint) RETURNS SETOF uuid
    LANGUAGE plpgsql STABLE ROWS 20
    AS $$
BEGIN
  RETURN QUERY
    SELECT id
      FROM users
     WHERE is_listed(users, wanted_email, wanted_role, prefix)
     ORDER BY CASE WHEN sort = 'created_at' AND NOT descending THEN created_at
                   WHEN sort = 'updated_at' AND NOT descending THEN updated_at END,
              CASE WHEN sort = 'created_at' AND descending THEN created_at
                   WHEN sort = 'updated_at' AND descending THEN updated_at END DESC,
              CASE WHEN sort = 'last_sign_in_at' AND NOT descending THEN last_sign_in_at END,
              CASE WHEN sort = 'last_sign_in_at' AND descending THEN last_sign_in_at END DESC NULLS LAST,
              CASE WHEN sort = 'email' AND NOT descending THEN email END,
              CASE WHEN sort = 'email' AND descending THEN email END DESC NULLS LAST,
              CASE WHEN NOT descending THEN id END,
              CASE WHEN descending THEN id END DESC
     LIMIT page_size OFFSET page_offset;
END
$$;
CREATE FUNCTION public.place_in_moment(name text) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT CASE name WHEN 'user_created' THEN 0 WHEN 'signed_in' THEN 2 WHEN 'ended' THEN 3 ELSE 1 END
$$;
CREATE FUNCTION public.record_acts(origin jsonb, subject uuid, email text, acts text[], events text[], details jsonb DEFAULT '{}'::jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
  -- Whoever signs in by a request is the one who acts in it.
  signs_in CONSTANT boolean := origin ->> 'actor' = 'anonymous' AND 'signed_in' = ANY (acts);
BEGIN
  INSERT INTO audit_log (action, user_id, actor, actor_id, ip, network, user_agent, request_id, details)
  SELECT act, subject,
         CASE WHEN signs_in THEN 'user' ELSE origin ->> 'actor' END,
         CASE WHEN signs_in THEN subject ELSE (origin ->> 'actor_id')::uuid END,
         (origin ->> 'ip')::inet, origin ->> 'network', origin ->> 'user_agent', origin ->> 'request_id', jsonb_strip_nulls(details)
    FROM unnest(acts) AS act
   WHERE act IS NOT NULL;
  WITH event AS MATERIALIZED (
    SELECT kind, gen_random_uuid() AS id FROM unnest(events) AS kind WHERE kind IS NOT NULL
  )
  INSERT INTO outbox (id, user_id, channel, kind, recipient, variables)
  SELECT gen_random_uuid(), subject, 'webhook', event.kind, webhook.id,
         jsonb_build_object('event_id', event.id, 'timestamp', iso_8601(now()),
                            'data', jsonb_build_object('user', jsonb_build_object('id', subject, 'email', email)))
    FROM event
    JOIN webhooks AS webhook ON event.kind = ANY (webhook.events) AND webhook.disabled_at IS NULL;
END
$$;
CREATE FUNCTION public.record_refusal(origin jsonb, subject uuid, refused_act text, error_code text, told jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
  minute CONSTANT timestamptz := date_trunc('minute', now());
  sum CONSTANT text := concat_ws('|', minute, subject, refused_act, error_code, origin ->> 'network', origin ->> 'actor', origin ->> 'actor_id');
BEGIN
  INSERT INTO audit_log AS refusal (id, at, action, reason, user_id, actor, actor_id, ip, network, user_agent, request_id, details)
  VALUES (encode(substr(sha256(convert_to(sum, 'UTF8')), 1, 16), 'hex')::uuid, now(), refused_act, error_code, subject,
          origin ->> 'actor', (origin ->> 'actor_id')::uuid, (origin ->> 'ip')::inet, origin ->> 'network', origin ->> 'user_agent',
          origin ->> 'request_id', told)
  ON CONFLICT (id) DO UPDATE
     SET count = refusal.count + 1, user_agent = excluded.user_agent, request_id = excluded.request_id, details = excluded.details;
END
$$;
CREATE FUNCTION public.refresh_token_is_stolen(session public.sessions, token_counter bigint, reuse_interval integer) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT token_counter < session.counter
     AND NOT (token_counter = session.counter - 1 AND session.refreshed_at > now() - make_interval(secs => reuse_interval))
$$;
CREATE FUNCTION public.refreshes_used_up(session public.sessions, most integer) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT coalesce(session.refreshes >= most, false) AND session.counted_until > now()
$$;
CREATE FUNCTION public.sensitive_state_now(caller_id uuid, caller_session_id uuid, expires_at bigint, lifetime integer, timebox integer, reauthenticated boolean, age integer) RETURNS text
    LANGUAGE sql
    AS $$
  SELECT CASE WHEN state = 'live' AND NOT reauthenticated AND session_is_old(caller_session_id, age) THEN 'reauthentication_needed' ELSE state END
    FROM caller_state_now(caller_id, caller_session_id, expires_at, lifetime, timebox) AS state
$$;
CREATE FUNCTION public.session_expired(session public.sessions, lifetime integer, timebox integer) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT session.refreshed_at <= now() - make_interval(secs => lifetime)
      OR coalesce(session.created_at <= now() - make_interval(secs => timebox), false)
$$;
CREATE FUNCTION public.session_is_old(session_id uuid, age integer) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT coalesce((SELECT created_at <= now() - make_interval(secs => age) FROM sessions WHERE id = session_id), false)
$$;
CREATE FUNCTION public.signed_up_by_phone(account public.users) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT account.made_by = 'signup'
     AND EXISTS (SELECT FROM identities WHERE user_id = account.id AND provider = 'phone' AND created_at = account.created_at)
$$;
CREATE FUNCTION public.spend_code(address text, mac bytea, purposes text[]) RETURNS SETOF public.one_time_tokens
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF mac IS NULL OR (SELECT count FROM count_up('code ' || address, 86400)) > 20 THEN
    RETURN;
  END IF;
  PERFORM account.id
     FROM users AS account
    WHERE account.id = ANY (ARRAY(SELECT token.user_id FROM one_time_tokens AS token WHERE token.target = address AND token.code_mac IS NOT NULL))
    ORDER BY account.id
      FOR UPDATE;
  RETURN QUERY
    WITH tried AS (
      UPDATE one_time_tokens AS token
         SET tries = token.tries + 1,
             spent_at = CASE WHEN token.code_mac = mac THEN now() END
       WHERE token.target = address AND token.purpose = ANY (purposes) AND token.code_mac IS NOT NULL
         AND token.tries < 5 AND token.spent_at IS NULL AND token.code_expires_at > now()
         AND NOT EXISTS (SELECT FROM one_time_tokens AS newer
                          WHERE newer.user_id = token.user_id AND newer.purpose = token.purpose AND newer.code_mac IS NOT NULL
                            AND newer.created_at > token.created_at)
      RETURNING token.*
    )
    SELECT * FROM tried WHERE tried.spent_at IS NOT NULL;
  IF FOUND THEN
    UPDATE failure_counts AS counter SET count = greatest(counter.count - 1, 0) WHERE counter.key = 'code ' || address;
  END IF;
END
$$;
CREATE FUNCTION public.spend_link(hash bytea, purposes text[]) RETURNS SETOF public.one_time_tokens
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM account.id FROM users AS account JOIN one_time_tokens AS token ON token.user_id = account.id WHERE token.token_hash = hash
      FOR UPDATE OF account;
  RETURN QUERY
    UPDATE one_time_tokens AS token
       SET spent_at = now()
     WHERE token.token_hash = hash AND token.purpose = ANY (purposes) AND is_good_link(token)
    RETURNING token.*;
END
$$;
CREATE FUNCTION public.take_back_attempt(address text, network text, is_stranger boolean) RETURNS void
    LANGUAGE sql
    AS $$
  UPDATE failure_counts
     SET count = greatest(count - 1, 0)
   WHERE key = ANY (ARRAY(SELECT counter.key
                            FROM failure_counts AS counter
                           WHERE counter.key = 'login ' || address || ' ' || network
                              OR (is_stranger AND counter.key = 'account ' || address)
                           -- First the one that begin_password_attempt counts first: two that count the same can't wait for each other.
                           ORDER BY counter.key DESC
                             FOR UPDATE))
$$;
CREATE FUNCTION public.take_from_quota(keys text[], amounts integer[], seconds integer[]) RETURNS TABLE(seconds_left double precision, amount integer, remaining integer, resets_in double precision)
    LANGUAGE plpgsql
    AS $$
DECLARE
  counted record;
BEGIN
  seconds_left := 0;
  FOR place IN 1 .. coalesce(array_length(keys, 1), 0) LOOP
    SELECT * INTO counted FROM count_up(keys[place], seconds[place]);
    -- One that refuses has less than nothing left.
    IF remaining IS NULL OR amounts[place] - counted.count < remaining THEN
      amount := amounts[place];
      remaining := amounts[place] - counted.count;
      resets_in := counted.seconds_left;
    END IF;
    IF remaining < 0 THEN
      remaining := 0;
      seconds_left := resets_in;
      EXIT;
    END IF;
  END LOOP;
  RETURN NEXT;
END
$$;
CREATE FUNCTION public.timeline_of(owner uuid, lifetime integer, timebox integer, most bigint) RETURNS TABLE(at timestamp with time zone, id uuid, kind text, name text, reason text, count bigint, actor text, actor_id uuid, ip inet, user_agent text, request_id text, details jsonb)
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  (SELECT act.at, act.id, CASE WHEN act.reason IS NULL THEN 'act' ELSE 'refusal' END, act.action, act.reason, act.count::bigint,
          act.actor, act.actor_id, act.ip, act.user_agent, act.request_id, act.details
     FROM audit_log AS act
    WHERE act.user_id = owner
    ORDER BY act.at DESC, place_in_moment(act.action) DESC, act.id DESC
    LIMIT most)
   UNION ALL
  -- One transaction has one now(), so what a statement has done and what it has written down of that are of the same moment.
  SELECT session.created_at, session.id, 'session', 'began', NULL::text, 1::bigint, NULL::text, NULL::uuid, session.ip, session.user_agent,
         NULL::text, jsonb_build_object('method', session.method)
    FROM sessions AS session
   WHERE session.user_id = owner
     AND NOT EXISTS (SELECT FROM audit_log AS act WHERE act.user_id = owner AND act.at = session.created_at AND act.action = 'signed_in')
   UNION ALL
  SELECT ended.at, ended.id, 'session', 'ended', ended.reason, ended.count, NULL::text, NULL::uuid, NULL::inet, NULL::text, NULL::text,
         '{}'::jsonb
    FROM (SELECT session.ended_at AS at, min(session.id::text)::uuid AS id, session.end_reason AS reason, count(*) AS count
            FROM sessions AS session
           WHERE session.user_id = owner AND session.ended_at IS NOT NULL
           GROUP BY session.ended_at, session.end_reason) AS ended
   WHERE NOT EXISTS (SELECT
                       FROM audit_log AS act
                      WHERE act.user_id = owner AND act.at = ended.at
                        AND act.action IN ('session_ended', 'signed_out', 'refresh_token_reused', 'authorization_code_reused'))
   UNION ALL
  SELECT least(session.refreshed_at + make_interval(secs => lifetime), session.created_at + make_interval(secs => timebox)), session.id,
         'session', 'expired', NULL::text, 1::bigint, NULL::text, NULL::uuid, NULL::inet, NULL::text, NULL::text, '{}'::jsonb
    FROM sessions AS session
   WHERE session.user_id = owner AND session.ended_at IS NULL AND session_expired(session, lifetime, timebox)
   UNION ALL
  SELECT coalesce(message.finished_at, message.created_at), message.id, 'message', message.kind, NULL::text, 1::bigint, NULL::text, NULL::uuid,
         NULL::inet, NULL::text, NULL::text, message_details(message, message.recipient)
    FROM outbox AS message
   WHERE message.user_id = owner AND message.channel IN ('email', 'sms')
   UNION ALL
  SELECT coalesce(message.finished_at, message.created_at), message.id, 'event', message.kind, NULL::text, 1::bigint, NULL::text, NULL::uuid,
         NULL::inet, NULL::text, NULL::text, message_details(message, coalesce(webhook.url, message.recipient))
    FROM outbox AS message
    LEFT JOIN webhooks AS webhook ON webhook.id::text = message.recipient
   WHERE message.user_id = owner AND message.channel = 'webhook'
$$;
CREATE FUNCTION public.user_has_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM write_user_object(NEW.id);
  RETURN NULL;
END
$$;
CREATE FUNCTION public.user_object(account public.users, identities json, providers text[]) RETURNS json
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT json_build_object(
    'id', account.id,
    'role', account.role,
    'email', account.email,
    'email_confirmed_at', iso_8601(account.email_confirmed_at),
    'phone', account.phone,
    'phone_confirmed_at', iso_8601(account.phone_confirmed_at),
    'confirmed_at', iso_8601(least(account.email_confirmed_at, account.phone_confirmed_at)),
    'confirmation_sent_at', iso_8601(account.confirmation_sent_at),
    'invited_at', iso_8601(account.invited_at),
    'last_sign_in_at', iso_8601(account.last_sign_in_at),
    'app_metadata', account.app_metadata || jsonb_build_object('provider', providers[1], 'providers', providers),
    'user_metadata', account.user_metadata,
    'identities', identities,
    'new_email', account.new_email,
    'email_change_sent_at', iso_8601(account.email_change_sent_at),
    'new_phone', account.new_phone,
    'phone_change_sent_at', iso_8601(account.phone_change_sent_at),
    'banned_until', iso_8601(account.banned_until),
    'is_anonymous', false,
    'created_at', iso_8601(account.created_at),
    'updated_at', iso_8601(account.updated_at)
  )
$$;
CREATE FUNCTION public.user_object(account public.users, identities json, providers text[], audience text) RETURNS json
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT with_audience(user_object(account, identities, providers)::text, audience)::json
$$;
CREATE FUNCTION public.void_email_restores(owner uuid, since timestamp with time zone) RETURNS bigint
    LANGUAGE sql
    AS $$
  WITH voided AS (
    DELETE FROM one_time_tokens WHERE user_id = owner AND purpose = 'email_restore' AND created_at > since RETURNING id
  )
  SELECT count(*) FROM voided
$$;
CREATE FUNCTION public.void_one_time_tokens(owner uuid) RETURNS bigint
    LANGUAGE sql
    AS $$
  DELETE FROM authorization_codes WHERE user_id = owner AND session_id IS NULL;
  WITH voided AS (
    DELETE FROM one_time_tokens WHERE user_id = owner AND purpose <> 'email_restore' AND spent_at IS NULL RETURNING id
  )
  SELECT count(*) FROM voided
$$;
CREATE TABLE public.webhooks (
    id uuid NOT NULL,
    url text NOT NULL,
    description text,
    events text[] NOT NULL,
    secret bytea NOT NULL,
    previous_secret bytea,
    previous_secret_expires_at timestamp with time zone,
    failing_since timestamp with time zone,
    retry_at timestamp with time zone,
    disabled_at timestamp with time zone,
    disabled_reason text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT webhooks_disabled_check CHECK ((((disabled_at IS NULL) = (disabled_reason IS NULL)) AND (disabled_reason = ANY (ARRAY['by_administrator'::text, 'gone'::text, 'failing'::text])))),
    CONSTRAINT webhooks_events_check CHECK (((cardinality(events) > 0) AND (events <@ ARRAY['user.created'::text, 'user.updated'::text, 'user.deleted'::text, 'auth.login'::text, 'auth.logout'::text])))
);
CREATE FUNCTION public.webhook_object(webhook public.webhooks) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT jsonb_build_object(
    'id', webhook.id,
    'url', webhook.url,
    'description', webhook.description,
    'events', webhook.events,
    'disabled', webhook.disabled_at IS NOT NULL,
    'disabled_at', iso_8601(webhook.disabled_at),
    'disabled_reason', webhook.disabled_reason,
    'failing_since', iso_8601(webhook.failing_since),
    'previous_secret_expires_at', CASE WHEN webhook.previous_secret_expires_at > now() THEN iso_8601(webhook.previous_secret_expires_at) END,
    'created_at', iso_8601(webhook.created_at),
    'updated_at', iso_8601(webhook.updated_at)
  )
$$;
CREATE FUNCTION public.with_audience(object text, audience text) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT '{"aud": ' || to_json(audience) || ', ' || substr(object, 2)
$$;
CREATE FUNCTION public.write_user_object(owner uuid) RETURNS void
    LANGUAGE sql
    AS $$
  INSERT INTO user_objects (user_id, object)
  SELECT made.user_id, made.object FROM made_user_objects() AS made WHERE made.user_id = owner
  ON CONFLICT (user_id) DO UPDATE SET object = excluded.object
$$;
CREATE TABLE public.authorization_codes (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    user_id uuid NOT NULL,
    code_hash bytea NOT NULL,
    code_challenge text NOT NULL,
    method text NOT NULL,
    session_id uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE public.dev_inbox (
    id uuid NOT NULL,
    sealed bytea NOT NULL,
    kept_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.failure_counts (
    key text NOT NULL,
    count bigint NOT NULL,
    expires_at timestamp with time zone NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE public.known_networks (
    user_id uuid NOT NULL,
    network text NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.latchkey_schema (
    digest text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.oauth_flows (
    id uuid NOT NULL,
    state_hash bytea NOT NULL,
    browser_hash bytea,
    provider text NOT NULL,
    secrets bytea NOT NULL,
    redirect_to text,
    code_challenge text,
    user_id uuid,
    session_id uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE UNLOGGED TABLE public.request_counts (
    key text NOT NULL,
    count bigint NOT NULL,
    expires_at timestamp with time zone NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE public.spent_id_tokens (
    token_hash bytea NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE public.user_objects (
    user_id uuid NOT NULL,
    object text NOT NULL
)
WITH (fillfactor='80');
INSERT INTO public.audit_log VALUES ('436afa6f-c7ca-4c85-bd13-872f63c18251', '2026-11-21 18:18:58.260838+00', 'user_created', NULL, '4ec277d2-e8fc-4bec-9a3e-799a6b1f727b', 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '039a48c8-127b-44a6-ad6b-c624440a42ae', 1, '{"by": "administrator", "role": "authenticated"}');
INSERT INTO public.audit_log VALUES ('f9e8e865-4306-43a2-ba82-fcca8eed4060', '2026-11-21 18:19:01.022188+00', 'user_created', NULL, '9af89b2e-ccef-4deb-8061-ad61c4d45450', 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '65edd20a-cfa7-4472-ab20-5e986be8f921', 1, '{"by": "administrator", "role": "admin"}');
INSERT INTO public.audit_log VALUES ('1acb10d6-177a-0917-a640-e8f0698af099', '2026-11-21 18:19:01.076613+00', 'sign_in_refused', 'invalid_credentials', '4ec277d2-e8fc-4bec-9a3e-799a6b1f727b', 'anonymous', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'a98d718b-324e-45fd-a1b8-22ffebe90b82', 1, '{"of": 10, "tries": null}');
INSERT INTO public.audit_log VALUES ('cf6b2154-3d85-4547-8d6f-f54ada5cd026', '2026-11-21 18:19:01.101919+00', 'signed_in', NULL, '4ec277d2-e8fc-4bec-9a3e-799a6b1f727b', 'user', '4ec277d2-e8fc-4bec-9a3e-799a6b1f727b', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '04924ddf-759f-453c-ac9a-420463ac3718', 1, '{"method": "password", "session_id": "3b9e1358-fb5f-43d8-b26c-580bb81bd2d6"}');
INSERT INTO public.audit_log VALUES ('b61673a4-609d-48ff-98c2-4c91af8cdf16', '2026-11-21 18:19:01.175487+00', 'email_change_requested', NULL, '4ec277d2-e8fc-4bec-9a3e-799a6b1f727b', 'user', '4ec277d2-e8fc-4bec-9a3e-799a6b1f727b', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'e8edd704-285e-48a4-a91b-c9b3945aeafe', 1, '{"new_email": "new@example.com"}');
INSERT INTO public.audit_log VALUES ('f2d742e6-a28d-46c1-8e7d-ab4ca36761ae', '2026-11-21 18:19:01.267288+00', 'user_created', NULL, 'b8350f46-21a7-4cc1-b05f-8d3b79bd742f', 'anonymous', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'cb7e775c-db43-4c52-a3a0-41a5d24db218', 1, '{"by": "signup", "method": "password"}');
INSERT INTO public.audit_log VALUES ('b533ee4e-32b2-4496-a681-d762f12517e6', '2026-11-21 18:19:01.323478+00', 'webhook_created', NULL, NULL, 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '9f01f59a-c2c3-447d-a318-f425fd0a5886', 1, '{"url": "https://192.0.1.1/events", "webhook_id": "67094a51-6a04-42e0-a184-71da1b202551"}');
INSERT INTO public.identities VALUES ('b6b1690b-6822-49b9-b530-43588c72f7c7', '9af89b2e-ccef-4deb-8061-ad61c4d45450', 'email', '9af89b2e-ccef-4deb-8061-ad61c4d45450', '{"sub": "9af89b2e-ccef-4deb-8061-ad61c4d45450", "email": "carol@example.com"}', NULL, '2026-11-21 18:19:01.022188+00', '2026-11-21 18:19:01.022188+00');
INSERT INTO public.identities VALUES ('5753cbd9-3f5e-40c7-9dd4-412a1e3ac4c6', '4ec277d2-e8fc-4bec-9a3e-799a6b1f727b', 'email', '4ec277d2-e8fc-4bec-9a3e-799a6b1f727b', '{"sub": "4ec277d2-e8fc-4bec-9a3e-799a6b1f727b", "email": "alice@example.com"}', '2026-11-21 18:19:01.101919+00', '2026-11-21 18:18:58.260838+00', '2026-11-21 18:18:58.260838+00');
INSERT INTO public.identities VALUES ('3dd36e09-f5fa-4096-9a7d-ee89868ddfc4', 'b8350f46-21a7-4cc1-b05f-8d3b79bd742f', 'email', 'b8350f46-21a7-4cc1-b05f-8d3b79bd742f', '{"sub": "b8350f46-21a7-4cc1-b05f-8d3b79bd742f", "email": "dave@example.com"}', NULL, '2026-11-21 18:19:01.267288+00', '2026-11-21 18:19:01.267288+00');
INSERT INTO public.known_networks VALUES ('4ec277d2-e8fc-4bec-9a3e-799a6b1f727b', '127.0.0.1', '2026-11-21 18:19:01.101919+00');
INSERT INTO public.latchkey_schema VALUES ('cc125a1230892bf04dd1b55e948243c13801e0e764e52a4d872f90f5b345c689', '2026-11-21 18:18:57.594293+00');
INSERT INTO public.one_time_tokens VALUES ('8b9053df-a0ff-411f-a850-1c939255490b', '4ec277d2-e8fc-4bec-9a3e-799a6b1f727b', 'email_change', 'new@example.com', '\x4bd669a5f7936e2972d08ae08bd7c5289266f1c4c420b6a1b1a467cdcdc72b04', '\xfde64de4f5c2d606cdac1479e13d6ad999d27541c6b9950fa50d6959688201e0', '2026-11-21 19:19:01.175487+00', 0, NULL, NULL, NULL, '3b9e1358-fb5f-43d8-b26c-580bb81bd2d6', '2026-11-21 18:19:01.175487+00', '2026-11-21 19:19:01.175487+00', NULL);
INSERT INTO public.one_time_tokens VALUES ('b14be388-7834-4b9c-99b0-31923242694d', 'b8350f46-21a7-4cc1-b05f-8d3b79bd742f', 'signup', 'dave@example.com', '\x6a4a789791561daa85fa1c0ec3c2522fca7f0c234de36bbfe936e95e7b20ad91', '\x4bfa98e2810ddd55a56c551d05101c702a396d83404760252c81dfbb24f969a2', '2026-11-21 19:19:01.267288+00', 0, NULL, NULL, NULL, NULL, '2026-11-21 18:19:01.267288+00', '2026-11-21 19:19:01.267288+00', NULL);
INSERT INTO public.outbox VALUES ('1a7e1183-3fe9-4ec1-812e-f7e8bc1f52eb', '4ec277d2-e8fc-4bec-9a3e-799a6b1f727b', 'email', 'email_change', 'new@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9", "redirect_to": null}', '\x44482df53fa8c1b8c7978b037a3b8f987338d6e20b3e8de1fce6cb11ca3fc4f81305e93cf51ce45279d8d657684320d9f67963704a08ec2839c93ba7ae540e5b34544ec74b65fc0d9c8976d013b48e8c6e4060f7acf5f96262bbec316321ce8bfb1988836a54bb014ade', '8b9053df-a0ff-411f-a850-1c939255490b', 0, '2026-11-21 18:19:01.175487+00', '2026-11-21 18:19:01.175487+00', '2026-11-21 19:19:01.175487+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('a4d442de-60a0-449f-8841-50b5b2807920', 'b8350f46-21a7-4cc1-b05f-8d3b79bd742f', 'email', 'signup', 'dave@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9", "redirect_to": null}', '\x44482df5e08f116c3ac6897d5c853028c3eb5a7d99eb449c025701a81de1620010a37d284e828f96e8ea52ec43bab6cad1905a711e4791975c80835210d6b9d5c7a139c4423fccbdd09224cf84fdaddcc1e4cf5e723b198c89e359521a5b1d2207772e269389729d5e10', 'b14be388-7834-4b9c-99b0-31923242694d', 0, '2026-11-21 18:19:01.267288+00', '2026-11-21 18:19:01.267288+00', '2026-11-21 19:19:01.267288+00', NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('3b9e1358-fb5f-43d8-b26c-580bb81bd2d6', '4ec277d2-e8fc-4bec-9a3e-799a6b1f727b', 0, 'password', '127.0.0.1', 'Werkzeug/3.1.9', '2026-11-21 18:19:01.101919+00', '2026-11-21 18:19:01.101919+00', 0, '2026-11-21 18:19:01.101919+00', NULL, NULL);
INSERT INTO public.user_objects VALUES ('4ec277d2-e8fc-4bec-9a3e-799a6b1f727b', '{"id" : "4ec277d2-e8fc-4bec-9a3e-799a6b1f727b", "role" : "authenticated", "email" : "alice@example.com", "email_confirmed_at" : "2026-11-21T18:18:58.260838Z", "phone" : null, "phone_confirmed_at" : null, "confirmed_at" : "2026-11-21T18:18:58.260838Z", "confirmation_sent_at" : null, "invited_at" : null, "last_sign_in_at" : "2026-11-21T18:19:01.101919Z", "app_metadata" : {"provider": "email", "providers": ["email"]}, "user_metadata" : {}, "identities" : [{"id" : "5753cbd9-3f5e-40c7-9dd4-412a1e3ac4c6", "identity_id" : "5753cbd9-3f5e-40c7-9dd4-412a1e3ac4c6", "user_id" : "4ec277d2-e8fc-4bec-9a3e-799a6b1f727b", "identity_data" : {"sub": "4ec277d2-e8fc-4bec-9a3e-799a6b1f727b", "email": "alice@example.com"}, "provider" : "email", "last_sign_in_at" : "2026-11-21T18:19:01.101919Z", "created_at" : "2026-11-21T18:18:58.260838Z", "updated_at" : "2026-11-21T18:18:58.260838Z"}], "new_email" : "new@example.com", "email_change_sent_at" : "2026-11-21T18:19:01.175487Z", "new_phone" : null, "phone_change_sent_at" : null, "banned_until" : null, "is_anonymous" : false, "created_at" : "2026-11-21T18:18:58.260838Z", "updated_at" : "2026-11-21T18:19:01.175487Z"}');
INSERT INTO public.user_objects VALUES ('9af89b2e-ccef-4deb-8061-ad61c4d45450', '{"id" : "9af89b2e-ccef-4deb-8061-ad61c4d45450", "role" : "admin", "email" : "carol@example.com", "email_confirmed_at" : "2026-11-21T18:19:01.022188Z", "phone" : null, "phone_confirmed_at" : null, "confirmed_at" : "2026-11-21T18:19:01.022188Z", "confirmation_sent_at" : null, "invited_at" : null, "last_sign_in_at" : null, "app_metadata" : {"provider": "email", "providers": ["email"]}, "user_metadata" : {}, "identities" : [{"id" : "b6b1690b-6822-49b9-b530-43588c72f7c7", "identity_id" : "b6b1690b-6822-49b9-b530-43588c72f7c7", "user_id" : "9af89b2e-ccef-4deb-8061-ad61c4d45450", "identity_data" : {"sub": "9af89b2e-ccef-4deb-8061-ad61c4d45450", "email": "carol@example.com"}, "provider" : "email", "last_sign_in_at" : null, "created_at" : "2026-11-21T18:19:01.022188Z", "updated_at" : "2026-11-21T18:19:01.022188Z"}], "new_email" : null, "email_change_sent_at" : null, "new_phone" : null, "phone_change_sent_at" : null, "banned_until" : null, "is_anonymous" : false, "created_at" : "2026-11-21T18:19:01.022188Z", "updated_at" : "2026-11-21T18:19:01.022188Z"}');
INSERT INTO public.user_objects VALUES ('b8350f46-21a7-4cc1-b05f-8d3b79bd742f', '{"id" : "b8350f46-21a7-4cc1-b05f-8d3b79bd742f", "role" : "authenticated", "email" : "dave@example.com", "email_confirmed_at" : null, "phone" : null, "phone_confirmed_at" : null, "confirmed_at" : null, "confirmation_sent_at" : "2026-11-21T18:19:01.267288Z", "invited_at" : null, "last_sign_in_at" : null, "app_metadata" : {"provider": "email", "providers": ["email"]}, "user_metadata" : {"name": "Dave"}, "identities" : [{"id" : "3dd36e09-f5fa-4096-9a7d-ee89868ddfc4", "identity_id" : "3dd36e09-f5fa-4096-9a7d-ee89868ddfc4", "user_id" : "b8350f46-21a7-4cc1-b05f-8d3b79bd742f", "identity_data" : {"sub": "b8350f46-21a7-4cc1-b05f-8d3b79bd742f", "email": "dave@example.com"}, "provider" : "email", "last_sign_in_at" : null, "created_at" : "2026-11-21T18:19:01.267288Z", "updated_at" : "2026-11-21T18:19:01.267288Z"}], "new_email" : null, "email_change_sent_at" : null, "new_phone" : null, "phone_change_sent_at" : null, "banned_until" : null, "is_anonymous" : false, "created_at" : "2026-11-21T18:19:01.267288Z", "updated_at" : "2026-11-21T18:19:01.267288Z"}');
INSERT INTO public.users VALUES ('9af89b2e-ccef-4deb-8061-ad61c4d45450', 'admin', 'carol@example.com', '2026-11-21 18:19:01.022188+00', true, NULL, NULL, false, '$2b$04$K6z0hRJQE4RT1QZSeSWgXOMegKdRfQd635p.LViQ5F.ETy6BqJo66', '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-21 18:19:01.022188+00', 'admin', NULL, '2026-11-21 18:19:01.022188+00', '2026-11-21 18:19:01.022188+00');
INSERT INTO public.users VALUES ('4ec277d2-e8fc-4bec-9a3e-799a6b1f727b', 'authenticated', 'alice@example.com', '2026-11-21 18:18:58.260838+00', true, NULL, NULL, false, '$2b$04$y.uMhifMoC8xKbIsqmRrJ.LGQo7AdRk9mUQd6RIxO1ZcYDAakPCx.', '{}', '{}', 'new@example.com', '2026-11-21 18:19:01.175487+00', NULL, NULL, NULL, NULL, '2026-11-21 18:19:01.101919+00', NULL, NULL, 'admin', NULL, '2026-11-21 18:18:58.260838+00', '2026-11-21 18:19:01.175487+00');
INSERT INTO public.users VALUES ('b8350f46-21a7-4cc1-b05f-8d3b79bd742f', 'authenticated', 'dave@example.com', NULL, false, NULL, NULL, false, '$2b$04$LhxjC3mag/qVF6ilOqK9../2J8e7BdXBIyB6ayXDb5C1jDQBFIqn6', '{}', '{"name": "Dave"}', NULL, NULL, NULL, NULL, '2026-11-21 18:19:01.267288+00', NULL, NULL, NULL, NULL, 'signup', 'Werkzeug/3.1.9', '2026-11-21 18:19:01.267288+00', '2026-11-21 18:19:01.267288+00');
INSERT INTO public.webhooks VALUES ('67094a51-6a04-42e0-a184-71da1b202551', 'https://192.0.1.1/events', NULL, '{user.created,user.updated,user.deleted,auth.login,auth.logout}', '\x44482df5a987e34a7a94cabfaad813798ec3fa8c205ff70fa5f9c97ded3a47de429305148cd5bbb958405b4066134b9bb1fc3439910d7c9652d90cf2277f802549744cc0ff1a0e3969754f07511cfa0204e5', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-21 18:19:01.323478+00', '2026-11-21 18:19:01.323478+00');
ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.authorization_codes
    ADD CONSTRAINT authorization_codes_code_hash_key UNIQUE (code_hash);
ALTER TABLE ONLY public.authorization_codes
    ADD CONSTRAINT authorization_codes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.dev_inbox
    ADD CONSTRAINT dev_inbox_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.failure_counts
    ADD CONSTRAINT failure_counts_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_provider_subject_key UNIQUE (provider, subject);
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_user_id_provider_key UNIQUE (user_id, provider);
ALTER TABLE ONLY public.known_networks
    ADD CONSTRAINT known_networks_pkey PRIMARY KEY (user_id, network);
ALTER TABLE ONLY public.oauth_flows
    ADD CONSTRAINT oauth_flows_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.oauth_flows
    ADD CONSTRAINT oauth_flows_state_hash_key UNIQUE (state_hash);
ALTER TABLE ONLY public.one_time_tokens
    ADD CONSTRAINT one_time_tokens_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.one_time_tokens
    ADD CONSTRAINT one_time_tokens_token_hash_key UNIQUE (token_hash);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.request_counts
    ADD CONSTRAINT request_counts_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.spent_id_tokens
    ADD CONSTRAINT spent_id_tokens_pkey PRIMARY KEY (token_hash);
ALTER TABLE ONLY public.user_objects
    ADD CONSTRAINT user_objects_pkey PRIMARY KEY (user_id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_email_key UNIQUE (email);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_phone_key UNIQUE (phone);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (id);
CREATE INDEX audit_log_action ON public.audit_log USING btree (action, at, id);
CREATE INDEX audit_log_at ON public.audit_log USING btree (at, id);
CREATE INDEX audit_log_request_id ON public.audit_log USING btree (request_id) WHERE (request_id IS NOT NULL);
CREATE INDEX audit_log_user_id ON public.audit_log USING btree (user_id, at, id) WHERE (user_id IS NOT NULL);
CREATE INDEX authorization_codes_expires_at ON public.authorization_codes USING btree (expires_at);
CREATE INDEX authorization_codes_user_id ON public.authorization_codes USING btree (user_id);
CREATE INDEX dev_inbox_kept_at ON public.dev_inbox USING btree (kept_at);
CREATE INDEX failure_counts_expires_at ON public.failure_counts USING btree (expires_at);
CREATE INDEX failure_counts_key ON public.failure_counts USING btree (key COLLATE "C");
CREATE INDEX known_networks_seen_at ON public.known_networks USING btree (seen_at);
CREATE INDEX oauth_flows_expires_at ON public.oauth_flows USING btree (expires_at);
CREATE INDEX one_time_tokens_expires_at ON public.one_time_tokens USING btree (expires_at);
CREATE INDEX one_time_tokens_target ON public.one_time_tokens USING btree (target) WHERE (code_mac IS NOT NULL);
CREATE INDEX one_time_tokens_user_id ON public.one_time_tokens USING btree (user_id, purpose, created_at);
CREATE INDEX outbox_address ON public.outbox USING btree (recipient, created_at) WHERE (channel <> 'webhook'::text);
CREATE INDEX outbox_events ON public.outbox USING btree (recipient, created_at, id) WHERE (channel = 'webhook'::text);
CREATE INDEX outbox_events_waiting ON public.outbox USING btree (recipient, next_attempt_at) WHERE ((channel = 'webhook'::text) AND (outcome IS NULL));
CREATE INDEX outbox_finished ON public.outbox USING btree (finished_at) WHERE (outcome IS NOT NULL);
CREATE INDEX outbox_messages_waiting ON public.outbox USING btree (channel, next_attempt_at) WHERE ((outcome IS NULL) AND (channel <> 'webhook'::text));
CREATE INDEX outbox_user_id ON public.outbox USING btree (user_id) WHERE (user_id IS NOT NULL);
CREATE INDEX request_counts_expires_at ON public.request_counts USING btree (expires_at);
CREATE INDEX sessions_created_at ON public.sessions USING btree (created_at) WHERE (ended_at IS NULL);
CREATE INDEX sessions_ended_at ON public.sessions USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX sessions_user_id ON public.sessions USING btree (user_id, created_at);
CREATE INDEX spent_id_tokens_expires_at ON public.spent_id_tokens USING btree (expires_at);
CREATE INDEX users_created_at ON public.users USING btree (created_at, id);
CREATE INDEX users_email_domain ON public.users USING btree (split_part(email, '@'::text, 2));
CREATE INDEX users_new_email ON public.users USING btree (new_email) WHERE (new_email IS NOT NULL);
CREATE INDEX users_new_phone ON public.users USING btree (new_phone) WHERE (new_phone IS NOT NULL);
CREATE INDEX users_role ON public.users USING btree (role, created_at, id) WHERE (role <> 'authenticated'::text);
CREATE TRIGGER identities_object AFTER INSERT OR DELETE OR UPDATE ON public.identities FOR EACH ROW EXECUTE FUNCTION public.identity_has_changed();
CREATE TRIGGER users_object AFTER INSERT OR UPDATE ON public.users FOR EACH ROW EXECUTE FUNCTION public.user_has_changed();
ALTER TABLE ONLY public.authorization_codes
    ADD CONSTRAINT authorization_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.known_networks
    ADD CONSTRAINT known_networks_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.oauth_flows
    ADD CONSTRAINT oauth_flows_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.one_time_tokens
    ADD CONSTRAINT one_time_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.user_objects
    ADD CONSTRAINT user_objects_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
