


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
    CONSTRAINT users_made_by_check CHECK ((made_by = ANY (ARRAY['signup'::text, 'administrator'::text, 'message'::text, 'invitation'::text, 'link'::text, 'oauth'::text])))
)
WITH (fillfactor='80');



CREATE FUNCTION public.caller_state(u public.users, s public.sessions, expires_at bigint, lifetime integer, timebox integer) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT CASE
    WHEN to_timestamp(expires_at) <= now() THEN 'bad_jwt'
    WHEN u.banned_until > now() THEN 'user_banned'
    WHEN s.id IS NULL OR s.ended_at IS NOT NULL THEN 'session_not_found'
    WHEN session_expired(s, lifetime, timebox) THEN 'session_expired'
    ELSE 'live'
  END
$$;



CREATE FUNCTION public.count_up(counted_key text, seconds integer) RETURNS TABLE(count bigint, seconds_left double precision)
    LANGUAGE sql
    AS $$
  INSERT INTO failure_counts AS f (key, count, expires_at)
  SELECT counted_key, 1, now() + make_interval(secs => seconds) WHERE counted_key IS NOT NULL
  ON CONFLICT (key) DO UPDATE
     SET count = CASE WHEN f.expires_at <= now() THEN 1 ELSE f.count + 1 END,
         expires_at = CASE WHEN f.expires_at <= now() THEN excluded.expires_at ELSE f.expires_at END
  RETURNING f.count, extract(epoch FROM f.expires_at - now())::double precision
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



CREATE FUNCTION public.delivery_object(m public.outbox) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT jsonb_build_object(
    'id', m.id,
    'event', m.kind,
    'event_id', 'msg_' || (m.variables ->> 'event_id'),
    'status', coalesce(m.outcome, 'waiting'),
    'attempts', m.attempts,
    'last_error', m.last_error,
    'response', m.response,
    'created_at', iso_8601(m.created_at),
    'next_attempt_at', CASE WHEN m.outcome IS NULL THEN iso_8601(m.next_attempt_at) END,
    'finished_at', iso_8601(m.finished_at)
  )
$$;



CREATE FUNCTION public.end_sessions(owner uuid, kept uuid, reason text) RETURNS void
    LANGUAGE sql
    AS $$
  UPDATE sessions
     SET ended_at = now(), end_reason = reason
   WHERE user_id = owner AND ended_at IS NULL AND id IS DISTINCT FROM kept
$$;



CREATE FUNCTION public.has_room_for_webhook(most integer) RETURNS boolean
    LANGUAGE sql
    AS $$
  SELECT pg_advisory_xact_lock(7239004118);
  SELECT count(*) < most FROM webhooks
$$;



CREATE FUNCTION public.identities_of(owner uuid) RETURNS TABLE(objects json, providers text[])
    LANGUAGE sql STABLE ROWS 1 PARALLEL SAFE
    AS $$
  SELECT coalesce(json_agg(identity_object(i) ORDER BY i.created_at, i.provider), '[]'::json),
         coalesce(array_agg(i.provider ORDER BY i.created_at, i.provider), '{}')
    FROM identities AS i
   WHERE i.user_id = owner
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
  SELECT coalesce(json_agg(identity_object(i) ORDER BY (i).created_at, (i).provider), '[]'::json),
         coalesce(array_agg((i).provider ORDER BY (i).created_at, (i).provider), '{}')
    FROM (SELECT written AS i WHERE written.id IS NOT NULL
           UNION ALL
          SELECT i FROM identities AS i WHERE i.user_id = owner AND i.id IS DISTINCT FROM written.id) AS every
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



CREATE FUNCTION public.identity_object(i public.identities) RETURNS json
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT json_build_object(
    'id', i.id,
    'identity_id', i.id,
    'user_id', i.user_id,
    'identity_data', i.identity_data,
    'provider', i.provider,
    'last_sign_in_at', iso_8601(i.last_sign_in_at),
    'created_at', iso_8601(i.created_at),
    'updated_at', iso_8601(i.updated_at)
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



CREATE FUNCTION public.is_good_link(t public.one_time_tokens) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT t.spent_at IS NULL AND t.expires_at > now()
     AND (t.purpose = 'email_restore'
          OR 3 > (SELECT count(*)
                    FROM one_time_tokens AS newer
                   WHERE newer.user_id = t.user_id AND newer.purpose = t.purpose
                     AND newer.created_at > t.created_at))
$$;



CREATE FUNCTION public.is_listed(u public.users, wanted_email text, wanted_role text, prefix text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT (wanted_email IS NULL OR u.email = wanted_email)
     AND (wanted_role IS NULL OR u.role = wanted_role)
     AND (prefix IS NULL
          OR u.email >= prefix AND u.email < prefix || chr(1114111)
          OR u.phone >= prefix AND u.phone < prefix || chr(1114111)
          OR split_part(u.email, '@', 2) COLLATE "C" >= prefix
             AND split_part(u.email, '@', 2) COLLATE "C" < prefix || chr(1114111))
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



CREATE FUNCTION public.is_unused_sign_up(u public.users) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT u.made_by = 'signup' AND u.last_sign_in_at IS NULL
     AND u.email_confirmed_at IS NULL AND u.phone_confirmed_at IS NULL
     AND (u.banned_until > now()) IS NOT TRUE
$$;



CREATE FUNCTION public.iso_8601(moment timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;



CREATE FUNCTION public.locked_caller_state(user_id uuid, session_id uuid, expires_at bigint, lifetime integer, timebox integer, reauthenticated boolean, age integer) RETURNS text
    LANGUAGE sql
    AS $$
  SELECT CASE
    WHEN state = 'live' AND NOT reauthenticated AND s.created_at <= now() - make_interval(secs => age)
    THEN 'reauthentication_needed'
    ELSE state
  END
    FROM users AS u
    LEFT JOIN sessions AS s ON s.id = locked_caller_state.session_id AND s.user_id = u.id
   CROSS JOIN caller_state(u, s, expires_at, lifetime, timebox) AS state
   WHERE u.id = locked_caller_state.user_id
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



CREATE FUNCTION public.notify_of_message() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM pg_notify('outbox', '');
  RETURN NULL;
END
$$;



CREATE FUNCTION public.open_session(owner uuid, method text, ip inet, network text, user_agent text, most integer, lifetime integer, timebox integer) RETURNS SETOF public.sessions
    LANGUAGE sql ROWS 1
    AS $$
  INSERT INTO known_networks AS known (user_id, network) VALUES (owner, network)
  ON CONFLICT ON CONSTRAINT known_networks_pkey DO UPDATE
     SET seen_at = now() WHERE known.seen_at < now() - interval '1 day';
  UPDATE sessions
     SET ended_at = now(), end_reason = 'too_many_sessions'
   WHERE id = ANY (ARRAY(SELECT s.id
                           FROM sessions AS s
                          WHERE s.user_id = owner AND s.ended_at IS NULL
                            AND NOT session_expired(s, lifetime, timebox)
                          ORDER BY s.created_at DESC
                         OFFSET most - 1));
  INSERT INTO sessions (user_id, method, ip, user_agent) VALUES (owner, method, ip, user_agent) RETURNING *
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
  -- A request that signs a user in has no access token yet: the actor is that user.
  signs_in CONSTANT boolean := origin ->> 'actor' = 'anonymous' AND 'signed_in' = ANY (acts);
BEGIN
  INSERT INTO audit_log (action, user_id, actor, actor_id, ip, network, user_agent, request_id, details)
  SELECT act, subject,
         CASE WHEN signs_in THEN 'user' ELSE origin ->> 'actor' END,
         CASE WHEN signs_in THEN subject ELSE (origin ->> 'actor_id')::uuid END,
         (origin ->> 'ip')::inet, origin ->> 'network', origin ->> 'user_agent', origin ->> 'request_id',
         jsonb_strip_nulls(details)
    FROM unnest(acts) AS act
   WHERE act IS NOT NULL;

  WITH event AS MATERIALIZED (
    SELECT kind, gen_random_uuid() AS id FROM unnest(events) AS kind WHERE kind IS NOT NULL
  )
  INSERT INTO outbox (id, user_id, channel, kind, recipient, variables)
  SELECT gen_random_uuid(), subject, 'webhook', event.kind, w.id,
         jsonb_build_object('event_id', event.id, 'timestamp', iso_8601(now()),
                            'data', jsonb_build_object(
                              'user', jsonb_build_object('id', subject, 'email', email)))
    FROM event
    JOIN webhooks AS w ON event.kind = ANY (w.events) AND w.disabled_at IS NULL;
END
$$;



CREATE FUNCTION public.record_refusal(origin jsonb, subject uuid, refused_act text, error_code text, details jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
  same CONSTANT text := concat_ws('|', date_trunc('minute', now()), subject, refused_act, error_code,
                                  origin ->> 'network', origin ->> 'actor', origin ->> 'actor_id');
BEGIN
  INSERT INTO audit_log AS refusal (
    id, at, action, reason, user_id, actor, actor_id, ip, network, user_agent, request_id, details
  )
  VALUES (
    encode(substr(sha256(convert_to(same, 'UTF8')), 1, 16), 'hex')::uuid, now(), refused_act, error_code,
    subject, origin ->> 'actor', (origin ->> 'actor_id')::uuid, (origin ->> 'ip')::inet, origin ->> 'network',
    origin ->> 'user_agent', origin ->> 'request_id', record_refusal.details
  )
  ON CONFLICT (id) DO UPDATE
     SET count = refusal.count + 1, user_agent = excluded.user_agent, request_id = excluded.request_id,
         details = excluded.details;
END
$$;



CREATE FUNCTION public.refresh_token_is_stolen(s public.sessions, token_counter bigint, reuse_interval integer) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT token_counter < s.counter
     AND NOT (token_counter = s.counter - 1
              AND s.refreshed_at > now() - make_interval(secs => reuse_interval))
$$;



CREATE FUNCTION public.refreshes_used_up(s public.sessions, most integer) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT coalesce(s.refreshes >= most, false) AND s.counted_until > now()
$$;



CREATE FUNCTION public.session_expired(s public.sessions, lifetime integer, timebox integer) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT s.refreshed_at <= now() - make_interval(secs => lifetime)
      OR coalesce(s.created_at <= now() - make_interval(secs => timebox), false)
$$;



CREATE FUNCTION public.sign_in_refusal(u public.users, provider text, email_required boolean, phone_required boolean, admin_only boolean) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT CASE
    WHEN u.banned_until > now() THEN 'user_banned'
    WHEN provider = 'email' AND email_required AND u.email_confirmed_at IS NULL THEN 'email_not_confirmed'
    WHEN provider = 'phone' AND phone_required AND u.phone_confirmed_at IS NULL THEN 'phone_not_confirmed'
    WHEN admin_only AND u.role <> 'admin' THEN 'not_admin'
  END
$$;



CREATE FUNCTION public.signed_up_by_phone(u public.users) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT u.made_by = 'signup'
     AND EXISTS (SELECT FROM identities
                  WHERE user_id = u.id AND provider = 'phone' AND created_at = u.created_at)
$$;



CREATE FUNCTION public.spend_code(address text, mac bytea, purposes text[]) RETURNS SETOF public.one_time_tokens
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF mac IS NULL OR (SELECT count FROM count_up('code ' || address, 86400)) > 20 THEN
    RETURN;
  END IF;
  PERFORM FROM users AS u
    WHERE u.id = ANY (ARRAY(SELECT t.user_id FROM one_time_tokens AS t
                             WHERE t.target = address AND t.code_mac IS NOT NULL))
    ORDER BY u.id
      FOR UPDATE;
  RETURN QUERY
    WITH tried AS (
      UPDATE one_time_tokens AS t
         SET tries = t.tries + 1,
             spent_at = CASE WHEN t.code_mac = mac THEN now() END
       WHERE t.target = address AND t.purpose = ANY (purposes) AND t.code_mac IS NOT NULL
         AND t.tries < 5 AND t.spent_at IS NULL AND t.code_expires_at > now()
         AND NOT EXISTS (SELECT FROM one_time_tokens AS newer
                          WHERE newer.user_id = t.user_id AND newer.purpose = t.purpose
                            AND newer.code_mac IS NOT NULL AND newer.created_at > t.created_at)
      RETURNING t.*
    )
    SELECT * FROM tried WHERE tried.spent_at IS NOT NULL;
  IF FOUND THEN
    UPDATE failure_counts AS c SET count = greatest(c.count - 1, 0) WHERE c.key = 'code ' || address;
  END IF;
END
$$;



CREATE FUNCTION public.spend_link(hash bytea, purposes text[]) RETURNS SETOF public.one_time_tokens
    LANGUAGE sql
    AS $$
  SELECT FROM users AS u JOIN one_time_tokens AS t ON t.user_id = u.id
   WHERE t.token_hash = hash
     FOR UPDATE OF u;
  UPDATE one_time_tokens AS t
     SET spent_at = now()
   WHERE t.token_hash = hash AND t.purpose = ANY (purposes) AND is_good_link(t)
  RETURNING t.*
$$;



CREATE FUNCTION public.take_back_attempt(address text, network text, is_stranger boolean) RETURNS void
    LANGUAGE sql
    AS $$
  UPDATE failure_counts
     SET count = greatest(count - 1, 0)
   WHERE key = ANY (ARRAY(SELECT f.key
                            FROM failure_counts AS f
                           WHERE f.key = 'login ' || address || ' ' || network
                              OR (is_stranger AND f.key = 'account ' || address)
                           -- In the order in which begin_password_attempt locks them, to avoid deadlocks.
                           ORDER BY f.key DESC
                             FOR UPDATE))
$$;



CREATE FUNCTION public.take_from_quota(keys text[], amounts integer[], seconds integer[]) RETURNS TABLE(seconds_left double precision, amount integer, remaining integer, resets_in double precision)
    LANGUAGE plpgsql
    AS $$
DECLARE
  counted record;
BEGIN
  seconds_left := 0;
  FOR i IN 1 .. coalesce(array_length(keys, 1), 0) LOOP
    SELECT * INTO counted FROM count_up(keys[i], seconds[i]);
    IF remaining IS NULL OR amounts[i] - counted.count < remaining THEN
      amount := amounts[i];
      remaining := amounts[i] - counted.count;
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



CREATE FUNCTION public.tell_administrators(webhook_url text, most integer) RETURNS void
    LANGUAGE sql
    AS $$
  INSERT INTO outbox (id, user_id, channel, kind, recipient, variables)
  SELECT gen_random_uuid(), id, 'email', 'webhook_disabled', email,
         jsonb_build_object('webhook_url', webhook_url, 'locale', user_metadata ->> 'locale')
    FROM users
   WHERE role = 'admin' AND email_confirmed_at IS NOT NULL AND email IS NOT NULL
     AND (banned_until > now()) IS NOT TRUE
   ORDER BY created_at, id
   LIMIT most
$$;



CREATE FUNCTION public.timeline_of(owner uuid, lifetime integer, timebox integer, most bigint) RETURNS TABLE(at timestamp with time zone, id uuid, kind text, name text, reason text, count bigint, actor text, actor_id uuid, ip inet, user_agent text, request_id text, details jsonb)
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  (SELECT a.at, a.id, CASE WHEN a.reason IS NULL THEN 'act' ELSE 'refusal' END, a.action, a.reason,
          a.count::bigint, a.actor, a.actor_id, a.ip, a.user_agent, a.request_id, a.details
     FROM audit_log AS a
    WHERE a.user_id = owner
    ORDER BY a.at DESC, place_in_moment(a.action) DESC, a.id DESC
    LIMIT most)
   UNION ALL
  SELECT s.at, s.id, 'session', s.name, s.reason, s.count, NULL, NULL, s.ip, s.user_agent, NULL, s.details
    FROM timeline_of_sessions(owner, lifetime, timebox) AS s
   UNION ALL
  SELECT coalesce(m.finished_at, m.created_at), m.id,
         CASE m.channel WHEN 'webhook' THEN 'event' ELSE 'message' END, m.kind,
         NULL, 1, NULL, NULL, NULL, NULL, NULL, message_details(m, coalesce(w.url, m.recipient))
    FROM outbox AS m
    LEFT JOIN webhooks AS w ON m.channel = 'webhook' AND w.id::text = m.recipient
   WHERE m.user_id = owner AND m.channel IS NOT NULL
$$;



CREATE FUNCTION public.timeline_of_sessions(owner uuid, lifetime integer, timebox integer) RETURNS TABLE(at timestamp with time zone, id uuid, name text, reason text, count bigint, ip inet, user_agent text, details jsonb)
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT s.created_at, s.id, 'began', NULL::text, 1::bigint, s.ip, s.user_agent,
         jsonb_build_object('method', s.method)
    FROM sessions AS s
   WHERE s.user_id = owner
     AND NOT EXISTS (SELECT
                       FROM audit_log AS a
                      WHERE a.user_id = owner AND a.at = s.created_at AND a.action = 'signed_in')
   UNION ALL
  SELECT s.ended_at, min(s.id::text)::uuid, 'ended', s.end_reason, count(*), NULL, NULL, '{}'
    FROM sessions AS s
   WHERE s.user_id = owner AND s.ended_at IS NOT NULL
     AND NOT EXISTS (SELECT
                       FROM audit_log AS a
                      WHERE a.user_id = owner AND a.at = s.ended_at
                        AND a.action IN ('session_ended', 'signed_out', 'refresh_token_reused',
                                         'authorization_code_reused'))
   GROUP BY s.ended_at, s.end_reason
   UNION ALL
  SELECT least(s.refreshed_at + make_interval(secs => lifetime),
               s.created_at + make_interval(secs => timebox)),
         s.id, 'expired', NULL, 1, NULL, NULL, '{}'
    FROM sessions AS s
   WHERE s.user_id = owner AND s.ended_at IS NULL AND session_expired(s, lifetime, timebox)
$$;



CREATE FUNCTION public.user_has_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM write_user_object(NEW.id);
  RETURN NULL;
END
$$;



CREATE FUNCTION public.user_object(u public.users, identities json, providers text[]) RETURNS json
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT json_build_object(
    'id', u.id,
    'role', u.role,
    'email', u.email,
    'email_confirmed_at', iso_8601(u.email_confirmed_at),
    'phone', u.phone,
    'phone_confirmed_at', iso_8601(u.phone_confirmed_at),
    'confirmed_at', iso_8601(least(u.email_confirmed_at, u.phone_confirmed_at)),
    'confirmation_sent_at', iso_8601(u.confirmation_sent_at),
    'invited_at', iso_8601(u.invited_at),
    'last_sign_in_at', iso_8601(u.last_sign_in_at),
    'app_metadata', u.app_metadata || jsonb_build_object('provider', providers[1], 'providers', providers),
    'user_metadata', u.user_metadata,
    'identities', identities,
    'new_email', u.new_email,
    'email_change_sent_at', iso_8601(u.email_change_sent_at),
    'new_phone', u.new_phone,
    'phone_change_sent_at', iso_8601(u.phone_change_sent_at),
    'banned_until', iso_8601(u.banned_until),
    'is_anonymous', false,
    'created_at', iso_8601(u.created_at),
    'updated_at', iso_8601(u.updated_at)
  )
$$;



CREATE FUNCTION public.user_object(u public.users, identities json, providers text[], audience text) RETURNS json
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT with_audience(user_object(u, identities, providers)::text, audience)::json
$$;



CREATE FUNCTION public.void_one_time_tokens(owner uuid) RETURNS bigint
    LANGUAGE sql
    AS $$
  DELETE FROM authorization_codes WHERE user_id = owner AND session_id IS NULL;
  WITH voided AS (
    DELETE FROM one_time_tokens
     WHERE user_id = owner AND purpose <> 'email_restore' AND spent_at IS NULL
    RETURNING id
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



CREATE FUNCTION public.webhook_object(w public.webhooks) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT jsonb_build_object(
    'id', w.id,
    'url', w.url,
    'description', w.description,
    'events', w.events,
    'disabled', w.disabled_at IS NOT NULL,
    'disabled_at', iso_8601(w.disabled_at),
    'disabled_reason', w.disabled_reason,
    'failing_since', iso_8601(w.failing_since),
    'previous_secret_expires_at',
      CASE WHEN w.previous_secret_expires_at > now() THEN iso_8601(w.previous_secret_expires_at) END,
    'created_at', iso_8601(w.created_at),
    'updated_at', iso_8601(w.updated_at)
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
  SELECT u.id, user_object(u, linked.objects, linked.providers)::text
    FROM users AS u
   CROSS JOIN identities_of(u.id) AS linked
   WHERE u.id = owner
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



CREATE TABLE public.schema_version (
    version integer NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    functions_digest text
);



CREATE TABLE public.spent_id_tokens (
    token_hash bytea NOT NULL,
    expires_at timestamp with time zone NOT NULL
);



CREATE TABLE public.user_objects (
    user_id uuid NOT NULL,
    object text NOT NULL
)
WITH (fillfactor='80');



INSERT INTO public.audit_log VALUES ('2471296f-2103-4c64-81c7-1c6d520eedd6', '2026-11-21 21:58:46.362011+00', 'user_created', NULL, 'b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d', 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '379066db-c0e4-4160-873a-8488d384858c', 1, '{"by": "administrator", "role": "authenticated"}');
INSERT INTO public.audit_log VALUES ('242bb3e5-5f19-40e3-8e6c-bfafbbf90874', '2026-11-21 21:58:46.42459+00', 'user_created', NULL, 'fffc17f8-80c7-41cb-a7ef-b86fd7c30f36', 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '1fa62bc7-835c-4774-8926-a0eb30ab15b9', 1, '{"by": "administrator", "role": "admin"}');
INSERT INTO public.audit_log VALUES ('f68a5d2a-146f-4bf6-40de-26f4b94ffa35', '2026-11-21 21:58:46.432723+00', 'sign_in_refused', 'invalid_credentials', 'b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d', 'anonymous', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '12975b3a-46ca-4f39-8797-b719bb49a45e', 1, '{"of": 10, "tries": null}');
INSERT INTO public.audit_log VALUES ('3e8db628-c2c8-4deb-82f7-18437f1fddc1', '2026-11-21 21:58:46.436659+00', 'signed_in', NULL, 'b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d', 'user', 'b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '0f584593-98a8-4490-9c4d-be85dc6d0ea4', 1, '{"method": "password", "session_id": "1bcd9153-2d93-4c7d-8cc4-13eace98c207"}');
INSERT INTO public.audit_log VALUES ('242794e6-a526-4085-94a0-17552112a753', '2026-11-21 21:58:46.449109+00', 'email_change_requested', NULL, 'b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d', 'user', 'b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'f2489ac1-6839-4383-bdfc-da93eb4ff6de', 1, '{"new_email": "new@example.com"}');
INSERT INTO public.audit_log VALUES ('00fa4511-c58f-4415-ad54-71801b9ee57c', '2026-11-21 21:58:46.457244+00', 'user_created', NULL, '6199327e-dec5-4a5e-8dae-215ab0287a3d', 'anonymous', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '89913d12-6843-42ad-9371-7d803963bcd0', 1, '{"by": "signup", "method": "password"}');
INSERT INTO public.audit_log VALUES ('66bc566d-c181-4f44-bead-c645bbb55e0a', '2026-11-21 21:58:46.468262+00', 'webhook_created', NULL, NULL, 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'c0084a88-91c9-4ee9-8da1-3574d6a7d520', 1, '{"url": "https://192.0.1.1/events", "webhook_id": "fc841749-bb94-423a-be4b-d2f4433a4dbf"}');












INSERT INTO public.identities VALUES ('ec649c39-ff43-416a-8911-b95667132f5c', 'fffc17f8-80c7-41cb-a7ef-b86fd7c30f36', 'email', 'fffc17f8-80c7-41cb-a7ef-b86fd7c30f36', '{"sub": "fffc17f8-80c7-41cb-a7ef-b86fd7c30f36", "email": "carol@example.com"}', NULL, '2026-11-21 21:58:46.42459+00', '2026-11-21 21:58:46.42459+00');
INSERT INTO public.identities VALUES ('a6a15844-e016-4ea4-91ac-d55267537585', 'b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d', 'email', 'b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d', '{"sub": "b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d", "email": "alice@example.com"}', '2026-11-21 21:58:46.436659+00', '2026-11-21 21:58:46.362011+00', '2026-11-21 21:58:46.362011+00');
INSERT INTO public.identities VALUES ('3f8b4c8d-1bb0-4e1f-bbaf-a500847d46f2', '6199327e-dec5-4a5e-8dae-215ab0287a3d', 'email', '6199327e-dec5-4a5e-8dae-215ab0287a3d', '{"sub": "6199327e-dec5-4a5e-8dae-215ab0287a3d", "email": "dave@example.com"}', NULL, '2026-11-21 21:58:46.457244+00', '2026-11-21 21:58:46.457244+00');



INSERT INTO public.known_networks VALUES ('b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d', '127.0.0.1', '2026-11-21 21:58:46.436659+00');






INSERT INTO public.one_time_tokens VALUES ('5f0236c4-21d6-48ca-99f7-00063ab4d9fa', 'b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d', 'email_change', 'new@example.com', '\xb373161b833c5b864c1a068761857995ffe4cd2b8aa6c479a27ae62aed577290', '\x313d4f6bc5abe4a04b39664c97af1f8925fdf1012926e8c7f6c901053e54a777', '2026-11-21 22:58:46.449109+00', 0, NULL, NULL, NULL, '1bcd9153-2d93-4c7d-8cc4-13eace98c207', '2026-11-21 21:58:46.449109+00', '2026-11-21 22:58:46.449109+00', NULL);
INSERT INTO public.one_time_tokens VALUES ('fd8625da-c184-4d20-b4ed-427a990081b9', '6199327e-dec5-4a5e-8dae-215ab0287a3d', 'signup', 'dave@example.com', '\x748f61b92f1cf8ca14656926cf43b83c70b053165a81d65d1a2d9392316efb44', '\x84e34902d5b2cbdd5ac218f2ad79d79291b9018592ad0090e0642a35d82b3362', '2026-11-21 22:58:46.457244+00', 0, NULL, NULL, NULL, NULL, '2026-11-21 21:58:46.457244+00', '2026-11-21 22:58:46.457244+00', NULL);



INSERT INTO public.outbox VALUES ('6f76bb87-3882-446e-bb91-01c81cb317d1', 'b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d', 'email', 'email_change', 'new@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9", "redirect_to": null}', '\xff41f64d10675df1fad6cf07704e7fdd908a046fd50263eb176d5da883e717a4140bc889b34186cb5dac927c16968d9a365542dbeedf6dcdc6b616a28a17f230e501dfc385d6d01698b798246f25a633ae1fa54e8270eb97348bb75b828f5505cd7a89283028aa6588d4', '5f0236c4-21d6-48ca-99f7-00063ab4d9fa', 0, '2026-11-21 21:58:46.449109+00', '2026-11-21 21:58:46.449109+00', '2026-11-21 22:58:46.449109+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('22bdb2ae-2bd9-4c4e-ae73-676858dc6194', '6199327e-dec5-4a5e-8dae-215ab0287a3d', 'email', 'signup', 'dave@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9", "redirect_to": null}', '\xff41f64d070f4d334b916d31e530d0451db02218ded9dfa047aa8f4cc955c3f4f070311b4ae5c77ca186e962a10d720d620e68963aa718fce33fd25a0d5c1555c3ae24645a75c0b4cafd34c5e65ccc6943a0272420e980eed091ac3aea8ae1e776ba3a1610eb82e8e8bc', 'fd8625da-c184-4d20-b4ed-427a990081b9', 0, '2026-11-21 21:58:46.457244+00', '2026-11-21 21:58:46.457244+00', '2026-11-21 22:58:46.457244+00', NULL, NULL, NULL, NULL);






INSERT INTO public.schema_version VALUES (1, '2026-11-21 21:58:46.295513+00', '2e934e5d1eb8d4ecd3ce10722b1789f2771c94fc8883078c66e1686532e21c6b');



INSERT INTO public.sessions VALUES ('1bcd9153-2d93-4c7d-8cc4-13eace98c207', 'b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d', 0, 'password', '127.0.0.1', 'Werkzeug/3.1.9', '2026-11-21 21:58:46.436659+00', '2026-11-21 21:58:46.436659+00', 0, '2026-11-21 21:58:46.436659+00', NULL, NULL);






INSERT INTO public.user_objects VALUES ('fffc17f8-80c7-41cb-a7ef-b86fd7c30f36', '{"id" : "fffc17f8-80c7-41cb-a7ef-b86fd7c30f36", "role" : "admin", "email" : "carol@example.com", "email_confirmed_at" : "2026-11-21T21:58:46.424590Z", "phone" : null, "phone_confirmed_at" : null, "confirmed_at" : "2026-11-21T21:58:46.424590Z", "confirmation_sent_at" : null, "invited_at" : null, "last_sign_in_at" : null, "app_metadata" : {"provider": "email", "providers": ["email"]}, "user_metadata" : {}, "identities" : [{"id" : "ec649c39-ff43-416a-8911-b95667132f5c", "identity_id" : "ec649c39-ff43-416a-8911-b95667132f5c", "user_id" : "fffc17f8-80c7-41cb-a7ef-b86fd7c30f36", "identity_data" : {"sub": "fffc17f8-80c7-41cb-a7ef-b86fd7c30f36", "email": "carol@example.com"}, "provider" : "email", "last_sign_in_at" : null, "created_at" : "2026-11-21T21:58:46.424590Z", "updated_at" : "2026-11-21T21:58:46.424590Z"}], "new_email" : null, "email_change_sent_at" : null, "new_phone" : null, "phone_change_sent_at" : null, "banned_until" : null, "is_anonymous" : false, "created_at" : "2026-11-21T21:58:46.424590Z", "updated_at" : "2026-11-21T21:58:46.424590Z"}');
INSERT INTO public.user_objects VALUES ('b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d', '{"id" : "b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d", "role" : "authenticated", "email" : "alice@example.com", "email_confirmed_at" : "2026-11-21T21:58:46.362011Z", "phone" : null, "phone_confirmed_at" : null, "confirmed_at" : "2026-11-21T21:58:46.362011Z", "confirmation_sent_at" : null, "invited_at" : null, "last_sign_in_at" : "2026-11-21T21:58:46.436659Z", "app_metadata" : {"provider": "email", "providers": ["email"]}, "user_metadata" : {}, "identities" : [{"id" : "a6a15844-e016-4ea4-91ac-d55267537585", "identity_id" : "a6a15844-e016-4ea4-91ac-d55267537585", "user_id" : "b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d", "identity_data" : {"sub": "b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d", "email": "alice@example.com"}, "provider" : "email", "last_sign_in_at" : "2026-11-21T21:58:46.436659Z", "created_at" : "2026-11-21T21:58:46.362011Z", "updated_at" : "2026-11-21T21:58:46.362011Z"}], "new_email" : "new@example.com", "email_change_sent_at" : "2026-11-21T21:58:46.449109Z", "new_phone" : null, "phone_change_sent_at" : null, "banned_until" : null, "is_anonymous" : false, "created_at" : "2026-11-21T21:58:46.362011Z", "updated_at" : "2026-11-21T21:58:46.449109Z"}');
INSERT INTO public.user_objects VALUES ('6199327e-dec5-4a5e-8dae-215ab0287a3d', '{"id" : "6199327e-dec5-4a5e-8dae-215ab0287a3d", "role" : "authenticated", "email" : "dave@example.com", "email_confirmed_at" : null, "phone" : null, "phone_confirmed_at" : null, "confirmed_at" : null, "confirmation_sent_at" : "2026-11-21T21:58:46.457244Z", "invited_at" : null, "last_sign_in_at" : null, "app_metadata" : {"provider": "email", "providers": ["email"]}, "user_metadata" : {"name": "Dave"}, "identities" : [{"id" : "3f8b4c8d-1bb0-4e1f-bbaf-a500847d46f2", "identity_id" : "3f8b4c8d-1bb0-4e1f-bbaf-a500847d46f2", "user_id" : "6199327e-dec5-4a5e-8dae-215ab0287a3d", "identity_data" : {"sub": "6199327e-dec5-4a5e-8dae-215ab0287a3d", "email": "dave@example.com"}, "provider" : "email", "last_sign_in_at" : null, "created_at" : "2026-11-21T21:58:46.457244Z", "updated_at" : "2026-11-21T21:58:46.457244Z"}], "new_email" : null, "email_change_sent_at" : null, "new_phone" : null, "phone_change_sent_at" : null, "banned_until" : null, "is_anonymous" : false, "created_at" : "2026-11-21T21:58:46.457244Z", "updated_at" : "2026-11-21T21:58:46.457244Z"}');



INSERT INTO public.users VALUES ('fffc17f8-80c7-41cb-a7ef-b86fd7c30f36', 'admin', 'carol@example.com', '2026-11-21 21:58:46.42459+00', true, NULL, NULL, false, '$2b$04$dCJhF3C5.yYgeQgI3kXTDObDzeynnf7taszWesR2pMJP9hDpHoOZW', '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-21 21:58:46.42459+00', 'administrator', NULL, '2026-11-21 21:58:46.42459+00', '2026-11-21 21:58:46.42459+00');
INSERT INTO public.users VALUES ('b5ddf3a6-d238-4bdd-be2e-39fedb1fb42d', 'authenticated', 'alice@example.com', '2026-11-21 21:58:46.362011+00', true, NULL, NULL, false, '$2b$04$BhRf3g8.9cKkaXuw3.Jx2uuovh/Z2N.qdPuoMRL2FGW.Kcz/IA9Vi', '{}', '{}', 'new@example.com', '2026-11-21 21:58:46.449109+00', NULL, NULL, NULL, NULL, '2026-11-21 21:58:46.436659+00', NULL, NULL, 'administrator', NULL, '2026-11-21 21:58:46.362011+00', '2026-11-21 21:58:46.449109+00');
INSERT INTO public.users VALUES ('6199327e-dec5-4a5e-8dae-215ab0287a3d', 'authenticated', 'dave@example.com', NULL, false, NULL, NULL, false, '$2b$04$ldjfKArW7JwuF/JylKww4eCDDk9YwRedoP/LFqf7i7rjv.HBzzNpq', '{}', '{"name": "Dave"}', NULL, NULL, NULL, NULL, '2026-11-21 21:58:46.457244+00', NULL, NULL, NULL, NULL, 'signup', 'Werkzeug/3.1.9', '2026-11-21 21:58:46.457244+00', '2026-11-21 21:58:46.457244+00');



INSERT INTO public.webhooks VALUES ('fc841749-bb94-423a-be4b-d2f4433a4dbf', 'https://192.0.1.1/events', NULL, '{user.created,user.updated,user.deleted,auth.login,auth.logout}', '\xff41f64d5c982c5f1203637fd8b0501501d633ab8a64ef2615d318e78beb79f288aebf2301e244d0c6a4fc0ef4cabc83539724abf0ffd0ca804e0aa471e633ab652c7f968e2d41eeec0bdf52734b17e43ab6', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-21 21:58:46.468262+00', '2026-11-21 21:58:46.468262+00');



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



ALTER TABLE ONLY public.schema_version
    ADD CONSTRAINT schema_version_pkey PRIMARY KEY (version);



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



CREATE TRIGGER outbox_notify AFTER INSERT ON public.outbox FOR EACH ROW EXECUTE FUNCTION public.notify_of_message();



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




