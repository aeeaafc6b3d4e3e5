


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
	CONSTRAINT session_end_reason_check CHECK ((VALUE = ANY (ARRAY['logout'::text, 'ended_by_user'::text, 'ended_by_admin'::text, 'refresh_token_reused'::text, 'password_changed'::text, 'email_changed'::text, 'banned'::text, 'address_proved'::text, 'email_restored'::text, 'authorization_code_reused'::text, 'too_many_sessions'::text, 'way_to_sign_in_removed'::text, 'change_undone'::text, 'factor_added'::text])));



CREATE DOMAIN public.user_metadata AS jsonb
	CONSTRAINT user_metadata_size CHECK ((octet_length((VALUE)::text) <= 8192));



CREATE FUNCTION public.added_to(owner uuid, since timestamp with time zone) RETURNS TABLE(id uuid, type text, added_at timestamp with time zone, label text)
    LANGUAGE sql STABLE ROWS 1
    AS $$
  SELECT i.id, CASE WHEN is_address THEN i.provider ELSE 'identity' END, moment,
         CASE WHEN is_address THEN i.identity_data ->> i.provider
              ELSE concat_ws(' ', i.provider, i.identity_data ->> 'email') END
    FROM identities AS i
    JOIN users AS u ON u.id = i.user_id
   CROSS JOIN LATERAL (SELECT i.provider IN ('email', 'phone')) AS kind (is_address)
   CROSS JOIN LATERAL (SELECT CASE WHEN is_address THEN i.updated_at ELSE i.created_at END) AS added (moment)
   WHERE i.user_id = owner AND moment >= since AND moment > u.created_at + interval '1 microsecond'
   UNION ALL
  SELECT f.id, f.factor_type, f.verified_at, f.friendly_name
    FROM factors AS f
   WHERE f.user_id = owner AND f.verified_at >= since
$$;


SET default_tablespace = '';

SET default_table_access_method = heap;


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



CREATE FUNCTION public.audit_entries(subject uuid, done_by text, wanted_action text, since timestamp with time zone, until timestamp with time zone, wanted_request_id text, before_at timestamp with time zone, before_id uuid, most integer) RETURNS SETOF public.audit_log
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT a.*
    FROM audit_log AS a
   WHERE is_listed(a, subject, wanted_action, since, until, wanted_request_id)
     AND (done_by IS NULL
          OR coalesce(a.actor_id::text, a.actor) = done_by
             AND a.actor <> 'anonymous' AND (a.actor <> 'user' OR a.user_id IS DISTINCT FROM a.actor_id))
     AND (before_at IS NULL OR (a.at, a.id) < (before_at, before_id))
   ORDER BY a.at DESC, a.id DESC
   LIMIT most
$$;



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
    reauthenticated_at timestamp with time zone,
    aal text DEFAULT 'aal1'::text NOT NULL,
    amr jsonb,
    factor_id uuid,
    opened_by uuid,
    CONSTRAINT sessions_ended_check CHECK (((ended_at IS NULL) = (end_reason IS NULL)))
)
WITH (fillfactor='70');



CREATE FUNCTION public.authenticated_at(s public.sessions) RETURNS timestamp with time zone
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT CASE WHEN s.opened_by IS NULL THEN greatest(s.created_at, s.reauthenticated_at)
              ELSE coalesce(s.reauthenticated_at, 'epoch') END
$$;



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
    converted_at timestamp with time zone,
    CONSTRAINT users_made_by_check CHECK ((made_by = ANY (ARRAY['signup'::text, 'administrator'::text, 'message'::text, 'invitation'::text, 'link'::text, 'oauth'::text, 'anonymous'::text])))
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



CREATE FUNCTION public.caller_state(u public.users, s public.sessions, expires_at bigint, lifetime integer, timebox integer, aal text, level text, required text) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT CASE
    WHEN lacks_level(u, s, aal, level, required)
         AND caller_state(u, s, expires_at, lifetime, timebox) = 'live'
    THEN 'insufficient_aal'
    ELSE caller_state(u, s, expires_at, lifetime, timebox)
  END
$$;



CREATE FUNCTION public.can_sign_in(owner uuid, usable text[]) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
  SELECT EXISTS (
    SELECT
      FROM identities AS i
      JOIN users AS u ON u.id = i.user_id
     WHERE i.user_id = owner AND i.provider = ANY (usable)
       AND CASE i.provider WHEN 'email' THEN u.email_proved WHEN 'phone' THEN u.phone_proved ELSE true END
  ) OR 'passkey' = ANY (usable)
       AND EXISTS (SELECT FROM factors WHERE user_id = owner AND factor_type = 'passkey')
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



CREATE FUNCTION public.end_session_and_opened(owner uuid, session uuid, reason text) RETURNS void
    LANGUAGE sql
    AS $$
  DELETE FROM authorization_codes WHERE user_id = owner AND opened_by = session AND session_id IS NULL;
  UPDATE sessions
     SET ended_at = now(), end_reason = reason
   WHERE user_id = owner AND ended_at IS NULL AND session IN (id, opened_by)
$$;



CREATE FUNCTION public.end_sessions(owner uuid, kept uuid, reason text) RETURNS void
    LANGUAGE sql
    AS $$
  DELETE FROM authorization_codes WHERE user_id = owner AND session_id IS NULL;
  UPDATE sessions
     SET ended_at = now(), end_reason = reason
   WHERE user_id = owner AND ended_at IS NULL AND id IS DISTINCT FROM kept
$$;



CREATE FUNCTION public.factor_has_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM FROM users WHERE id = coalesce(NEW.user_id, OLD.user_id) FOR NO KEY UPDATE;
  PERFORM write_user_object(id) FROM users WHERE id = coalesce(NEW.user_id, OLD.user_id);
  RETURN NULL;
END
$$;



CREATE TABLE public.factors (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    factor_type text NOT NULL,
    friendly_name text DEFAULT ''::text NOT NULL,
    verified_at timestamp with time zone,
    last_used_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    secret bytea,
    last_step bigint,
    credential_id bytea,
    public_key bytea,
    sign_count bigint,
    transports text[],
    aaguid uuid,
    backup_eligible boolean,
    backed_up boolean,
    CONSTRAINT factors_credential_check CHECK ((((credential_id IS NULL) = (public_key IS NULL)) AND ((credential_id IS NULL) = (sign_count IS NULL)))),
    CONSTRAINT factors_factor_type_check CHECK (
CASE factor_type
    WHEN 'totp'::text THEN ((secret IS NOT NULL) AND (credential_id IS NULL))
    WHEN 'webauthn'::text THEN ((secret IS NULL) AND ((verified_at IS NULL) = (credential_id IS NULL)))
    WHEN 'passkey'::text THEN ((secret IS NULL) AND (verified_at IS NOT NULL) AND (credential_id IS NOT NULL))
    ELSE false
END)
);



CREATE FUNCTION public.factor_object(f public.factors) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT jsonb_build_object(
    'id', f.id,
    'friendly_name', f.friendly_name,
    'factor_type', f.factor_type,
    'status', CASE WHEN f.verified_at IS NULL THEN 'unverified' ELSE 'verified' END,
    'created_at', iso_8601(f.created_at),
    'updated_at', iso_8601(f.updated_at)
  )
$$;



CREATE FUNCTION public.factors_member(owner uuid) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT CASE WHEN count(*) = 0 THEN '{}'
              ELSE jsonb_build_object('factors', jsonb_agg(factor_object(f) ORDER BY f.created_at, f.id)) END
    FROM factors AS f
   WHERE f.user_id = owner AND f.factor_type <> 'passkey'
$$;



CREATE FUNCTION public.filtered_users(filters jsonb, among uuid[]) RETURNS SETOF public.users
    LANGUAGE sql STABLE
    AS $$
  SELECT u.*
    FROM users AS u
   WHERE (among IS NULL OR u.id = ANY (among))
     AND (filters ->> 'email' IS NULL
          OR u.email >= filters ->> 'email' AND u.email < (filters ->> 'email') || chr(1114111))
     AND (filters ->> 'domain' IS NULL
          OR split_part(u.email, '@', 2) COLLATE "C" >= filters ->> 'domain'
             AND split_part(u.email, '@', 2) COLLATE "C" < (filters ->> 'domain') || chr(1114111))
     AND (filters ->> 'phone' IS NULL
          OR u.phone >= filters ->> 'phone' AND u.phone < (filters ->> 'phone') || chr(1114111))
     AND (filters ->> 'id' IS NULL
          OR u.id BETWEEN rpad(filters ->> 'id', 32, '0')::uuid AND rpad(filters ->> 'id', 32, 'f')::uuid)
     AND CASE filters ->> 'status'
           WHEN 'banned' THEN u.banned_until > now()
           WHEN 'unconfirmed' THEN u.email_confirmed_at IS NULL AND u.phone_confirmed_at IS NULL
                                   AND coalesce(u.email, u.phone) IS NOT NULL
           WHEN 'anonymous' THEN is_anonymous(u)
           WHEN 'administrator' THEN u.role = 'admin'
           ELSE true
         END
     AND (filters ->> 'provider' IS NULL
          OR EXISTS (SELECT FROM identities WHERE user_id = u.id AND provider = filters ->> 'provider'))
     AND (filters ->> 'has_factor' IS NULL
          OR (SELECT count(*) > 0 FROM factors WHERE user_id = u.id AND verified_at IS NOT NULL)
             = (filters ->> 'has_factor')::boolean)
     AND (filters ->> 'within' IS NULL OR u.last_sign_in_at >= now() - (filters ->> 'within')::interval)
     AND (filters ->> 'not_within' IS NULL
          OR (u.last_sign_in_at >= now() - (filters ->> 'not_within')::interval) IS NOT TRUE)
$$;



CREATE FUNCTION public.has_room_for_webhook(most integer) RETURNS boolean
    LANGUAGE sql
    AS $$
  SELECT pg_advisory_xact_lock(7239004118);
  SELECT count(*) < most FROM webhooks
$$;



CREATE FUNCTION public.has_verified_factor(owner uuid) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT EXISTS (SELECT FROM factors WHERE user_id = owner AND verified_at IS NOT NULL)
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
  SELECT jsonb_build_object(
    'id', i.id,
    'identity_id', i.id,
    'user_id', i.user_id,
    'identity_data', i.identity_data,
    'provider', i.provider,
    'last_sign_in_at', iso_8601(i.last_sign_in_at),
    'created_at', iso_8601(i.created_at),
    'updated_at', iso_8601(i.updated_at)
  )::json
$$;



CREATE FUNCTION public.is_anonymous(u public.users) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT u.made_by = 'anonymous' AND u.converted_at IS NULL
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
    restores jsonb,
    user_metadata public.user_metadata,
    user_agent text,
    asks_for_factor boolean DEFAULT false NOT NULL,
    CONSTRAINT one_time_tokens_code_check CHECK (((code_mac IS NULL) = (code_expires_at IS NULL))),
    CONSTRAINT one_time_tokens_purpose_check CHECK ((purpose = ANY (ARRAY['signup'::text, 'sms_signup'::text, 'invite'::text, 'magiclink'::text, 'recovery'::text, 'sms'::text, 'email_change'::text, 'phone_change'::text, 'email_restore'::text, 'reauthentication'::text, 'undo'::text])))
);



CREATE FUNCTION public.is_good_link(t public.one_time_tokens) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT t.spent_at IS NULL AND t.expires_at > now()
     AND (t.purpose IN ('undo', 'email_restore') OR t.user_metadata IS NOT NULL
          OR 3 > (SELECT count(*)
                    FROM one_time_tokens AS newer
                   WHERE newer.user_id = t.user_id AND newer.purpose = t.purpose
                     AND newer.user_metadata IS NULL AND newer.created_at > t.created_at))
$$;



CREATE FUNCTION public.is_last_administrator(u public.users) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF u.role <> 'admin' THEN
    RETURN false;
  END IF;
  PERFORM lock_administrators();
  RETURN NOT EXISTS (SELECT
                       FROM users AS other
                      WHERE other.role = 'admin' AND other.id <> u.id
                        AND (other.banned_until > now()) IS NOT TRUE);
END
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



CREATE FUNCTION public.lacks_level(u public.users, s public.sessions, aal text, level text, required text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT least(s.aal, aal) < 'aal2'
     AND (level = 'second_factor'
          OR level IN ('aal1', 'aal2', 'proof')
             AND (required = 'all' OR required = 'admins' AND u.role = 'admin')
          OR level IN ('aal2', 'proof', 'enrol') AND has_verified_factor(u.id))
$$;



CREATE FUNCTION public.lock_administrators() RETURNS void
    LANGUAGE sql
    AS $$
  SELECT pg_advisory_xact_lock(7239004121)
$$;



CREATE FUNCTION public.locked_caller_state(user_id uuid, session_id uuid, expires_at bigint, lifetime integer, timebox integer, reauthenticated boolean, age integer) RETURNS text
    LANGUAGE sql
    AS $$
  SELECT CASE
    WHEN state = 'live' AND NOT reauthenticated
         AND authenticated_at(s) <= now() - make_interval(secs => age)
    THEN 'reauthentication_needed'
    ELSE state
  END
    FROM users AS u
    LEFT JOIN sessions AS s ON s.id = locked_caller_state.session_id AND s.user_id = u.id
   CROSS JOIN caller_state(u, s, expires_at, lifetime, timebox) AS state
   WHERE u.id = locked_caller_state.user_id
$$;



CREATE FUNCTION public.locked_caller_state(user_id uuid, session_id uuid, expires_at bigint, lifetime integer, timebox integer, reauthenticated boolean, age integer, aal text, level text, required text, needs_proof boolean) RETURNS text
    LANGUAGE sql
    AS $$
  SELECT CASE
    WHEN state IN ('live', 'reauthentication_needed')
         -- Unqualified, `aal` would be the column of the session.
         AND lacks_level(u, s, locked_caller_state.aal, level, required)
    THEN 'insufficient_aal'
    WHEN state = 'live' AND needs_proof AND NOT reauthenticated
         AND (proved_at(s) > now() - make_interval(secs => age)) IS NOT TRUE
    THEN 'reauthentication_needed'
    ELSE state
  END
    FROM users AS u
    LEFT JOIN sessions AS s ON s.id = locked_caller_state.session_id AND s.user_id = u.id
   CROSS JOIN locked_caller_state(u.id, locked_caller_state.session_id, expires_at, lifetime, timebox,
                                  reauthenticated, age) AS state
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



CREATE FUNCTION public.methods_of(s public.sessions) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT coalesce(s.amr, jsonb_build_array(jsonb_build_object(
           'method', s.method, 'timestamp', floor(extract(epoch FROM s.created_at))::bigint)))
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



CREATE FUNCTION public.origin_of(webhook_url text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT substring(webhook_url FROM '^[^/]*//[^/?#]+')
$$;



CREATE FUNCTION public.outbox_target(channel text, recipient text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT CASE channel WHEN 'email' THEN split_part(recipient, '@', -1) ELSE channel END
$$;



CREATE FUNCTION public.page_of_users(wanted_email text, wanted_role text, prefix text, sort text, descending boolean, page_size integer, page_offset bigint) RETURNS SETOF uuid
    LANGUAGE sql STABLE ROWS 20
    AS $$
  SELECT page_of_users(wanted_email, wanted_role, prefix, sort, descending, page_size, page_offset, NULL)
$$;



CREATE FUNCTION public.page_of_users(wanted_email text, wanted_role text, prefix text, sort text, descending boolean, page_size integer, page_offset bigint, anonymous boolean) RETURNS SETOF uuid
    LANGUAGE plpgsql STABLE ROWS 20
    AS $$
BEGIN
  RETURN QUERY
    SELECT id
      FROM users
     WHERE is_listed(users, wanted_email, wanted_role, prefix)
       AND (anonymous IS NULL OR is_anonymous(users) = anonymous)
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



CREATE FUNCTION public.passkey_object(f public.factors) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'id', f.id,
    'friendly_name', f.friendly_name,
    'created_at', iso_8601(f.created_at),
    'last_used_at', iso_8601(f.last_used_at)
  ))
$$;



CREATE FUNCTION public.place_in_moment(name text) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT CASE name WHEN 'user_created' THEN 0 WHEN 'signed_in' THEN 2 WHEN 'ended' THEN 3 ELSE 1 END
$$;



CREATE FUNCTION public.proved_at(s public.sessions) RETURNS timestamp with time zone
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT CASE WHEN s.method = 'anonymous' THEN s.reauthenticated_at ELSE authenticated_at(s) END
$$;



CREATE FUNCTION public.record_acts(origin jsonb, subject uuid, email text, acts text[], events text[], details jsonb DEFAULT '{}'::jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
  -- A request that signs a user in has no access token yet, so that user is the actor.
  signs_in CONSTANT boolean := origin ->> 'actor' = 'anonymous' AND 'signed_in' = ANY (acts);
BEGIN
  INSERT INTO audit_log (action, user_id, actor, actor_id, ip, network, user_agent, request_id, details)
  SELECT act, subject,
         CASE WHEN signs_in THEN 'user' ELSE origin ->> 'actor' END,
         CASE WHEN signs_in THEN subject ELSE (origin ->> 'actor_id')::uuid END,
         (origin ->> 'ip')::inet, origin ->> 'network', origin ->> 'user_agent', origin ->> 'request_id',
         jsonb_strip_nulls(details || jsonb_build_object('administrator', origin ->> 'administrator'))
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



CREATE FUNCTION public.remove_factors(owner uuid, ids uuid[]) RETURNS SETOF public.factors
    LANGUAGE sql
    AS $$
  UPDATE sessions SET aal = 'aal1', factor_id = NULL WHERE user_id = owner AND factor_id = ANY (ids);
  DELETE FROM recovery_codes
   WHERE user_id = owner
     AND NOT EXISTS (SELECT FROM factors
                      WHERE user_id = owner AND verified_at IS NOT NULL AND id <> ALL (ids));
  DELETE FROM factors WHERE user_id = owner AND id = ANY (ids) RETURNING *
$$;



CREATE FUNCTION public.removed_secret(t public.one_time_tokens) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT decode(substr(t.restores ->> 'secret', 3), 'hex')
   WHERE t.purpose = 'undo' AND t.spent_at IS NULL AND t.restores ->> 'provider' = 'factor'
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



CREATE FUNCTION public.spend_code(address text, macs bytea[], purposes text[]) RETURNS SETOF public.one_time_tokens
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF cardinality(macs) = 0 OR (SELECT count FROM count_up('code ' || address, 86400)) > 20 THEN
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
             spent_at = CASE WHEN t.code_mac = ANY (macs) THEN now() END
       WHERE t.target = address AND t.purpose = ANY (purposes) AND t.code_mac IS NOT NULL
         AND t.tries < 5 AND t.spent_at IS NULL AND t.code_expires_at > now()
         AND NOT EXISTS (SELECT FROM one_time_tokens AS newer
                          WHERE newer.target = t.target AND newer.code_mac IS NOT NULL
                            AND newer.created_at > t.created_at)
      RETURNING t.*
    )
    SELECT * FROM tried WHERE tried.spent_at IS NOT NULL;
  IF FOUND THEN
    UPDATE failure_counts AS c SET count = greatest(c.count - 1, 0) WHERE c.key = 'code ' || address;
  END IF;
END
$$;



CREATE FUNCTION public.spend_code(address text, mac bytea, purposes text[]) RETURNS SETOF public.one_time_tokens
    LANGUAGE sql
    AS $$
  SELECT * FROM spend_code(address, array_remove(ARRAY[mac], NULL), purposes)
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
  WITH attempt AS (
    SELECT ARRAY['login ' || address || ' ' || network]
             || CASE WHEN is_stranger THEN ARRAY['account ' || address] END
             || ARRAY['user ' || u.id || ' ' || network]
             || CASE WHEN is_stranger THEN ARRAY['user ' || u.id] END AS keys
      FROM users AS u
     WHERE u.email = address OR u.phone = address
  )
  UPDATE failure_counts
     SET count = greatest(count - 1, 0)
   WHERE key = ANY (ARRAY(SELECT f.key
                            FROM attempt
                            JOIN failure_counts AS f ON f.key = ANY (attempt.keys)
                           ORDER BY array_position(attempt.keys, f.key)
                             FOR UPDATE OF f))
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
  SELECT * FROM timeline_of(owner, lifetime, timebox, most, NULL, 'infinity', 0, owner)
$$;



CREATE FUNCTION public.timeline_of(owner uuid, lifetime integer, timebox integer, most bigint, wanted text, before timestamp with time zone, place integer, last_id uuid) RETURNS TABLE(at timestamp with time zone, id uuid, kind text, name text, reason text, count bigint, actor text, actor_id uuid, ip inet, user_agent text, request_id text, details jsonb)
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT item.*
    FROM (
      (SELECT a.at, a.id, entry.kind, a.action AS name, a.reason, a.count::bigint, a.actor, a.actor_id, a.ip,
              a.user_agent, a.request_id, a.details
         FROM audit_log AS a
        CROSS JOIN LATERAL (SELECT CASE WHEN a.reason IS NULL THEN 'act' ELSE 'refusal' END) AS entry (kind)
        WHERE a.user_id = owner AND a.at <= before
          AND (a.at, place_in_moment(a.action), a.id) < (before, place, last_id)
          AND (wanted IS NULL OR entry.kind = wanted)
        ORDER BY a.at DESC, place_in_moment(a.action) DESC, a.id DESC
        LIMIT most)
       UNION ALL
      SELECT s.at, s.id, 'session', s.name, s.reason, s.count, NULL, NULL, s.ip, s.user_agent, NULL, s.details
        FROM timeline_of_sessions(owner, lifetime, timebox) AS s
       WHERE wanted IS NULL OR wanted = 'session'
       UNION ALL
      SELECT coalesce(m.finished_at, m.created_at), m.id,
             CASE m.channel WHEN 'webhook' THEN 'event' ELSE 'message' END, m.kind,
             NULL, 1, NULL, NULL, NULL, NULL, NULL,
             message_details(m, coalesce(origin_of(w.url), m.recipient))
        FROM outbox AS m
        LEFT JOIN webhooks AS w ON m.channel = 'webhook' AND w.id::text = m.recipient
       WHERE m.user_id = owner AND m.channel IS NOT NULL
         AND (wanted IS NULL OR wanted = CASE m.channel WHEN 'webhook' THEN 'event' ELSE 'message' END)
    ) AS item
   WHERE (item.at, place_in_moment(item.name), item.id) < (before, place, last_id)
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



CREATE FUNCTION public.undone_since(acting_session uuid, changed_at timestamp with time zone) RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    AS $$
  SELECT least(changed_at - interval '7 days', (SELECT created_at FROM sessions WHERE id = acting_session))
$$;



CREATE FUNCTION public.user_has_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM write_user_object(NEW.id);
  RETURN NULL;
END
$$;



CREATE FUNCTION public.user_is_confirmed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  NEW.converted_at := clock_timestamp();
  RETURN NEW;
END
$$;



CREATE FUNCTION public.user_object(u public.users, identities json, providers text[]) RETURNS json
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT (jsonb_build_object(
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
    'is_anonymous', is_anonymous(u),
    'created_at', iso_8601(u.created_at),
    'updated_at', iso_8601(u.updated_at)
  ) || factors_member(u.id))::json
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
  UPDATE users
     SET new_email = NULL, email_change_sent_at = NULL, new_phone = NULL, phone_change_sent_at = NULL
   WHERE id = owner AND (new_email IS NOT NULL OR new_phone IS NOT NULL);
  WITH voided AS (
    DELETE FROM one_time_tokens
     WHERE user_id = owner AND purpose NOT IN ('undo', 'email_restore') AND spent_at IS NULL
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
  INSERT INTO user_objects (user_id, object, last_sign_in_at)
  SELECT u.id, user_object(u, linked.objects, linked.providers)::text,
         coalesce(u.last_sign_in_at, '-infinity')
    FROM users AS u
   CROSS JOIN identities_of(u.id) AS linked
   WHERE u.id = owner
  ON CONFLICT (user_id) DO UPDATE
     SET object = excluded.object, last_sign_in_at = excluded.last_sign_in_at
$$;



CREATE TABLE public.authorization_codes (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    user_id uuid NOT NULL,
    code_hash bytea NOT NULL,
    code_challenge text NOT NULL,
    method text NOT NULL,
    session_id uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    opened_by uuid
);



CREATE TABLE public.browser_sessions (
    token_hash bytea NOT NULL,
    user_id uuid NOT NULL,
    session_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);



CREATE TABLE public.dev_inbox (
    id uuid NOT NULL,
    sealed bytea NOT NULL,
    kept_at timestamp with time zone DEFAULT now() NOT NULL
);



CREATE TABLE public.factor_challenges (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    user_id uuid,
    session_id uuid,
    factor_id uuid,
    purpose text NOT NULL,
    challenge bytea,
    tries integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT factor_challenges_purpose_check CHECK ((purpose = ANY (ARRAY['totp'::text, 'webauthn'::text, 'passkey_registration'::text, 'passkey_authentication'::text])))
);



CREATE TABLE public.failure_counts (
    key text NOT NULL,
    count bigint NOT NULL,
    expires_at timestamp with time zone NOT NULL
)
WITH (fillfactor='70');



CREATE TABLE public.hourly_counts (
    hour timestamp with time zone NOT NULL,
    name text NOT NULL,
    count bigint NOT NULL
);



CREATE TABLE public.key_fingerprints (
    setting text NOT NULL,
    fingerprint text NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL
);



CREATE TABLE public.known_networks (
    user_id uuid NOT NULL,
    network text NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL
);



CREATE TABLE public.last_done (
    task text NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
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



CREATE TABLE public.probes (
    token_hash bytea NOT NULL,
    seen jsonb,
    expires_at timestamp with time zone NOT NULL
);



CREATE TABLE public.recovery_codes (
    user_id uuid NOT NULL,
    code_mac bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    used_at timestamp with time zone
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
    object text NOT NULL,
    last_sign_in_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL
)
WITH (fillfactor='80');



INSERT INTO public.audit_log VALUES ('41125338-5c4f-48c7-95d3-d64f0491965a', '2026-11-22 08:53:29.354678+00', 'user_created', NULL, '5cbc0a68-8f35-45b4-b344-88c0bac32994', 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'c0b9ecaf-cb24-4ab6-9cff-f63275632de7', 1, '{"by": "administrator", "role": "authenticated"}');
INSERT INTO public.audit_log VALUES ('b0c9ca94-6142-425c-8e46-298a9fcf3e80', '2026-11-22 08:53:29.387742+00', 'user_created', NULL, 'dfed7b82-9bc3-4e04-b501-2ed224a12ee3', 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '3de4de4d-d7f4-4261-90fb-1331564db307', 1, '{"by": "administrator", "role": "admin"}');
INSERT INTO public.audit_log VALUES ('98f276bf-494e-416b-cdc0-0fe07dcb9241', '2026-11-22 08:53:29.415133+00', 'sign_in_refused', 'invalid_credentials', '5cbc0a68-8f35-45b4-b344-88c0bac32994', 'anonymous', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'a24908cf-6202-401b-9357-f0bc3739f4fd', 1, '{"of": 10, "tries": null}');
INSERT INTO public.audit_log VALUES ('8ea6b4ae-a586-4dbe-88f6-b92dd7ce0659', '2026-11-22 08:53:30.235294+00', 'signed_in', NULL, '5cbc0a68-8f35-45b4-b344-88c0bac32994', 'user', '5cbc0a68-8f35-45b4-b344-88c0bac32994', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'ea53aa94-bf55-47bd-bcab-9fa62e1859db', 1, '{"method": "password", "session_id": "8d31d072-e333-4550-98c3-613480df7be7"}');
INSERT INTO public.audit_log VALUES ('40c38326-7e9a-48f0-810a-628cbfc43397', '2026-11-22 08:53:30.298656+00', 'email_change_requested', NULL, '5cbc0a68-8f35-45b4-b344-88c0bac32994', 'user', '5cbc0a68-8f35-45b4-b344-88c0bac32994', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '623cfe50-3f79-45cb-a5d3-0229d2be6f86', 1, '{"new_email": "new@example.com"}');
INSERT INTO public.audit_log VALUES ('bc2ab760-64ad-4535-8f23-831a38996460', '2026-11-22 08:53:30.345673+00', 'user_created', NULL, 'eeef633f-9d3c-4d59-b5b4-af1696fe0ee6', 'anonymous', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '1c7772ad-3844-4d3f-960c-bc70ff788877', 1, '{"by": "signup", "method": "password"}');
INSERT INTO public.audit_log VALUES ('8a13b3ad-8d91-4527-ac21-0fadae0a96fc', '2026-11-22 08:53:30.375839+00', 'webhook_created', NULL, NULL, 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'c09b687b-76d2-432d-95e4-77f66bd2358c', 1, '{"url": "https://192.0.1.1", "webhook_id": "144d8422-1ea6-4699-a527-5b0d007c020a"}');
INSERT INTO public.audit_log VALUES ('fe4706b5-43da-4dce-add1-9102355c8166', '2026-11-22 08:53:30.387301+00', 'message_requested', NULL, 'eeef633f-9d3c-4d59-b5b4-af1696fe0ee6', 'anonymous', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '57472240-b4a5-4dfe-a339-3079d69e59b2', 1, '{"is_sent": true, "purpose": "magiclink"}');
INSERT INTO public.audit_log VALUES ('a1534564-4309-4202-88e5-4eb72e77ea89', '2026-11-22 08:53:30.403811+00', 'user_created', NULL, '78d1f5ac-175f-49b6-9df3-dfc4ccb1a74e', 'user', '78d1f5ac-175f-49b6-9df3-dfc4ccb1a74e', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '61a5942c-f6df-4f06-a847-5313a3443cc8', 1, '{"by": "anonymous", "method": "anonymous", "session_id": "3abb8166-3f1a-4937-8cc0-5efbb9f34e4d"}');
INSERT INTO public.audit_log VALUES ('10b059d7-806a-492f-8dbb-cda118b6bf98', '2026-11-22 08:53:30.403811+00', 'signed_in', NULL, '78d1f5ac-175f-49b6-9df3-dfc4ccb1a74e', 'user', '78d1f5ac-175f-49b6-9df3-dfc4ccb1a74e', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '61a5942c-f6df-4f06-a847-5313a3443cc8', 1, '{"by": "anonymous", "method": "anonymous", "session_id": "3abb8166-3f1a-4937-8cc0-5efbb9f34e4d"}');
INSERT INTO public.audit_log VALUES ('06b0f7f9-6d8a-4f4f-b917-49849fa48ebc', '2026-11-22 08:53:30.423964+00', 'user_created', NULL, '32904d4f-ca57-4587-ac94-3a941193dbf3', 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '5308ecfd-75a4-4ba5-b384-2f5c0a094a90', 1, '{"by": "administrator", "role": "authenticated"}');
INSERT INTO public.audit_log VALUES ('ddf99c25-efd6-423a-a487-d4f5b4551679', '2026-11-22 08:53:30.4418+00', 'signed_in', NULL, '32904d4f-ca57-4587-ac94-3a941193dbf3', 'user', '32904d4f-ca57-4587-ac94-3a941193dbf3', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '7ec9108e-adee-4fcc-b490-bcb1e8758244', 1, '{"method": "password", "session_id": "4297537e-e17b-4182-b8a6-291f3e486d2c"}');
INSERT INTO public.audit_log VALUES ('d3125133-b031-4f24-adb7-9ac3e8089536', '2026-11-22 08:53:30.53984+00', 'factor_added', NULL, '32904d4f-ca57-4587-ac94-3a941193dbf3', 'user', '32904d4f-ca57-4587-ac94-3a941193dbf3', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'fe4e940f-aff0-4f86-9d63-c07a3bc7d3d6', 1, '{"factor_type": "totp"}');
INSERT INTO public.audit_log VALUES ('b2b9cbde-b916-4505-a882-d38906915296', '2026-11-22 08:53:30.583933+00', 'recovery_codes_created', NULL, '32904d4f-ca57-4587-ac94-3a941193dbf3', 'user', '32904d4f-ca57-4587-ac94-3a941193dbf3', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '716bcfd5-727d-4896-998f-e38862e7be8a', 1, '{}');
INSERT INTO public.audit_log VALUES ('93b58560-4dec-4e7e-9fae-199a9e7e546e', '2026-11-22 08:53:30.612706+00', 'passkey_added', NULL, '32904d4f-ca57-4587-ac94-3a941193dbf3', 'user', '32904d4f-ca57-4587-ac94-3a941193dbf3', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '6d1ae197-b800-400c-a559-a1b799605eca', 1, '{"passkey": "Passkey"}');
INSERT INTO public.audit_log VALUES ('99b6dce1-fb12-40a1-bcc5-d4f8f4b1969a', '2026-11-22 08:53:30.640518+00', 'user_created', NULL, '21ec9b2e-7fb2-456d-b279-89dd022bf501', 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'a62349db-1311-49a3-ade0-3501df73a8d6', 1, '{"by": "administrator", "role": "authenticated"}');
INSERT INTO public.audit_log VALUES ('77ce0ced-e5cd-4520-a900-e2a264938714', '2026-11-22 08:53:30.65102+00', 'signed_in', NULL, '21ec9b2e-7fb2-456d-b279-89dd022bf501', 'user', '21ec9b2e-7fb2-456d-b279-89dd022bf501', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '97243052-5787-44e8-a11b-f22d1b280a0a', 1, '{"method": "password", "session_id": "840461ff-57d5-43e1-a200-9011725348ab"}');
INSERT INTO public.audit_log VALUES ('dd04d7b9-3de7-450b-aa68-fdbd189ba28f', '2026-11-22 08:53:30.700248+00', 'factor_added', NULL, '21ec9b2e-7fb2-456d-b279-89dd022bf501', 'user', '21ec9b2e-7fb2-456d-b279-89dd022bf501', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '6f0c0a2e-a2c4-4232-92d6-41fdd786a000', 1, '{"factor_type": "totp"}');
INSERT INTO public.audit_log VALUES ('1d47ca81-58f6-49d6-80c4-d92164f52ab7', '2026-11-22 08:53:30.710583+00', 'factor_removed', NULL, '21ec9b2e-7fb2-456d-b279-89dd022bf501', 'user', '21ec9b2e-7fb2-456d-b279-89dd022bf501', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '5cf81d5a-021c-4ee9-acf4-dd98bf10ddb7', 1, '{"factor_type": "totp"}');
INSERT INTO public.audit_log VALUES ('8925f8eb-0b8f-4755-a360-828f6989e91f', '2026-11-22 08:53:30.806515+00', 'signed_in', NULL, '5cbc0a68-8f35-45b4-b344-88c0bac32994', 'user', '5cbc0a68-8f35-45b4-b344-88c0bac32994', '127.0.0.1', '127.0.0.1', 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'bf01094f-2a68-4152-8b2d-c4de82ffcbbf', 1, '{"method": "password", "session_id": "a085819b-323b-4e6f-945d-d07be5ee1aa4"}');






INSERT INTO public.browser_sessions VALUES ('\xb9a92fb2c7adf2b1586c78a1a06896bb1dea2caee0fcf464fe216eee8c1269be', '5cbc0a68-8f35-45b4-b344-88c0bac32994', 'a085819b-323b-4e6f-945d-d07be5ee1aa4', '2026-11-22 08:53:30.815606+00');






INSERT INTO public.factor_challenges VALUES ('2a784b0d-ff57-41be-8d87-8e40c5df5e83', '32904d4f-ca57-4587-ac94-3a941193dbf3', '4297537e-e17b-4182-b8a6-291f3e486d2c', 'b90655d0-5879-4f9c-a974-d7efcad46cfe', 'totp', NULL, 0, '2026-11-22 08:53:30.46128+00', '2026-11-22 08:58:30.46128+00');
INSERT INTO public.factor_challenges VALUES ('115c7fcb-3954-49a3-a859-c484a8bfe9da', '32904d4f-ca57-4587-ac94-3a941193dbf3', '4297537e-e17b-4182-b8a6-291f3e486d2c', 'b90655d0-5879-4f9c-a974-d7efcad46cfe', 'totp', NULL, 0, '2026-11-22 08:53:30.632293+00', '2026-11-22 08:58:30.632293+00');



INSERT INTO public.factors VALUES ('b90655d0-5879-4f9c-a974-d7efcad46cfe', '32904d4f-ca57-4587-ac94-3a941193dbf3', 'totp', '', '2026-11-22 08:53:30.53984+00', '2026-11-22 08:53:30.53984+00', '2026-11-22 08:53:30.46128+00', '2026-11-22 08:53:30.53984+00', '\x0a7bc6a561d528d03547b6a0a80e6825569b639870fdb4a548340469ca11e9596c636d5b9d1a9937a1c4a293ef540cd6ebfba187b5404219b5f99d12a2eb1495', 59844586, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.factors VALUES ('a382f9cc-3bc2-4541-8b07-3c54e62da026', '32904d4f-ca57-4587-ac94-3a941193dbf3', 'passkey', 'Passkey', '2026-11-22 08:53:30.612706+00', NULL, '2026-11-22 08:53:30.612706+00', '2026-11-22 08:53:30.612706+00', NULL, NULL, '\xf639d80b338672b0a234833681e6f6101200f746471bb8735f3b7261eb07f45d', '\xa50102032620012158200fa0dc1164ec373dff0c6436379266f72579cbb46cb65e2671144ef762dc3ca3225820575d5bd823a44dbf8a3888a2d5ad9880b0ae8eb7006431573dc17551e9818249', 0, '{internal,hybrid}', '00000000-0000-0000-0000-000000000000', false, false);



INSERT INTO public.failure_counts VALUES ('totp 32904d4f-ca57-4587-ac94-3a941193dbf3', 0, '2026-11-23 08:53:30.53984+00');
INSERT INTO public.failure_counts VALUES ('totp 21ec9b2e-7fb2-456d-b279-89dd022bf501', 0, '2026-11-23 08:53:30.700248+00');






INSERT INTO public.identities VALUES ('919ce9da-a89f-4390-884f-58eadf4483bb', 'dfed7b82-9bc3-4e04-b501-2ed224a12ee3', 'email', 'dfed7b82-9bc3-4e04-b501-2ed224a12ee3', '{"sub": "dfed7b82-9bc3-4e04-b501-2ed224a12ee3", "email": "carol@example.com"}', NULL, '2026-11-22 08:53:29.387742+00', '2026-11-22 08:53:29.387742+00');
INSERT INTO public.identities VALUES ('c4828a75-4773-42b7-aaa6-95864defdc8c', 'eeef633f-9d3c-4d59-b5b4-af1696fe0ee6', 'email', 'eeef633f-9d3c-4d59-b5b4-af1696fe0ee6', '{"sub": "eeef633f-9d3c-4d59-b5b4-af1696fe0ee6", "email": "dave@example.com"}', NULL, '2026-11-22 08:53:30.345673+00', '2026-11-22 08:53:30.345673+00');
INSERT INTO public.identities VALUES ('a215fabb-369b-42f4-9a7a-ad9880e6aab8', '32904d4f-ca57-4587-ac94-3a941193dbf3', 'email', '32904d4f-ca57-4587-ac94-3a941193dbf3', '{"sub": "32904d4f-ca57-4587-ac94-3a941193dbf3", "email": "erin@example.com"}', '2026-11-22 08:53:30.4418+00', '2026-11-22 08:53:30.423964+00', '2026-11-22 08:53:30.423964+00');
INSERT INTO public.identities VALUES ('54cafef2-2938-4df9-8186-dff930ec6f62', '21ec9b2e-7fb2-456d-b279-89dd022bf501', 'email', '21ec9b2e-7fb2-456d-b279-89dd022bf501', '{"sub": "21ec9b2e-7fb2-456d-b279-89dd022bf501", "email": "frank@example.com"}', '2026-11-22 08:53:30.65102+00', '2026-11-22 08:53:30.640518+00', '2026-11-22 08:53:30.640518+00');
INSERT INTO public.identities VALUES ('7bb049de-f03a-4a48-93d8-f8a212031acc', '5cbc0a68-8f35-45b4-b344-88c0bac32994', 'email', '5cbc0a68-8f35-45b4-b344-88c0bac32994', '{"sub": "5cbc0a68-8f35-45b4-b344-88c0bac32994", "email": "alice@example.com"}', '2026-11-22 08:53:30.806515+00', '2026-11-22 08:53:29.354678+00', '2026-11-22 08:53:29.354678+00');






INSERT INTO public.known_networks VALUES ('5cbc0a68-8f35-45b4-b344-88c0bac32994', '127.0.0.1', '2026-11-22 08:53:30.235294+00');
INSERT INTO public.known_networks VALUES ('78d1f5ac-175f-49b6-9df3-dfc4ccb1a74e', '127.0.0.1', '2026-11-22 08:53:30.403811+00');
INSERT INTO public.known_networks VALUES ('32904d4f-ca57-4587-ac94-3a941193dbf3', '127.0.0.1', '2026-11-22 08:53:30.4418+00');
INSERT INTO public.known_networks VALUES ('21ec9b2e-7fb2-456d-b279-89dd022bf501', '127.0.0.1', '2026-11-22 08:53:30.65102+00');









INSERT INTO public.one_time_tokens VALUES ('519c566e-4db4-44c9-a720-6732bf4a99a5', '5cbc0a68-8f35-45b4-b344-88c0bac32994', 'email_change', 'new@example.com', '\x9c3940df3d190330adae2d38ede191f0822c8ef9e9ec0d1565ef9bb703e20373', '\xe4d241001451185f95b9927b9b1bca36532f154ae78d98f0de1c3d40731de6f6', '2026-11-22 09:53:30.298656+00', 0, NULL, NULL, NULL, '8d31d072-e333-4550-98c3-613480df7be7', '2026-11-22 08:53:30.298656+00', '2026-11-22 09:53:30.298656+00', NULL, NULL, NULL, NULL, false);
INSERT INTO public.one_time_tokens VALUES ('645513fc-1ec8-480b-ad8a-133c74735976', 'eeef633f-9d3c-4d59-b5b4-af1696fe0ee6', 'signup', 'dave@example.com', '\xf77e6a720bcccd559210e73e0ef941a50ddb4c4efe5aa451c8e92e607e69fd16', '\x5a2229e372a0b5477f3da3d0a22a95e2414addccfbed86e58e58faf2529aae85', '2026-11-22 09:53:30.345673+00', 0, NULL, NULL, 'latchkey1$2b$04$/uz.XRurqfi2Ac/iuk7DHO51A936BftdA1tSlzAK1dz3bKcJVuOAC', NULL, '2026-11-22 08:53:30.345673+00', '2026-11-22 09:53:30.345673+00', NULL, NULL, '{"name": "Dave"}', 'Werkzeug/3.1.9', false);
INSERT INTO public.one_time_tokens VALUES ('4835cbcd-56a5-46ae-8a7c-1c54d28f641a', 'eeef633f-9d3c-4d59-b5b4-af1696fe0ee6', 'magiclink', 'dave@example.com', '\x2d954318785b5357d995d313db678fdee790b711d49601961364d208eb8d7e7d', '\x1fbfc095c5284239fc63cf874a1a3434bc70c7cc5922b4748cbea03285a49c0f', '2026-11-22 09:53:30.387301+00', 0, NULL, NULL, NULL, NULL, '2026-11-22 08:53:30.387301+00', '2026-11-22 09:53:30.387301+00', NULL, NULL, NULL, NULL, false);
INSERT INTO public.one_time_tokens VALUES ('ae740a3b-7aea-462e-949d-5289587211c1', '32904d4f-ca57-4587-ac94-3a941193dbf3', 'undo', 'erin@example.com', '\xfb42b5124bc39147478aad47f5c9dec51dcf89062b10cd393b6754b2c556bb50', NULL, NULL, 0, NULL, NULL, NULL, '4297537e-e17b-4182-b8a6-291f3e486d2c', '2026-11-22 08:53:30.53984+00', '2026-11-29 08:53:30.53984+00', NULL, NULL, NULL, NULL, false);
INSERT INTO public.one_time_tokens VALUES ('3988d446-882e-49be-a751-753181130ee0', '32904d4f-ca57-4587-ac94-3a941193dbf3', 'undo', 'erin@example.com', '\x269732499f463b19c508451a84ef40d19a9104e573c145b5117d4ba57a2f7b9c', NULL, NULL, 0, NULL, NULL, NULL, '4297537e-e17b-4182-b8a6-291f3e486d2c', '2026-11-22 08:53:30.612706+00', '2026-11-29 08:53:30.612706+00', NULL, NULL, NULL, NULL, true);
INSERT INTO public.one_time_tokens VALUES ('84647c81-f2ef-450d-bac1-5cd8d1834325', '21ec9b2e-7fb2-456d-b279-89dd022bf501', 'undo', 'frank@example.com', '\x393350025f1ed42a7a9e75a780266a87d7856afcdea27d52e42d485f9bc9b1bb', NULL, NULL, 0, NULL, NULL, NULL, '840461ff-57d5-43e1-a200-9011725348ab', '2026-11-22 08:53:30.700248+00', '2026-11-29 08:53:30.700248+00', NULL, NULL, NULL, NULL, false);
INSERT INTO public.one_time_tokens VALUES ('b8f1b216-302f-45cc-9c5f-19c77a3c04a5', '21ec9b2e-7fb2-456d-b279-89dd022bf501', 'undo', 'frank@example.com', '\x44d766c4124d3139e63782b9f0d2334e2e67540b873c0810f394cedb1f34052f', NULL, NULL, 0, NULL, NULL, NULL, '840461ff-57d5-43e1-a200-9011725348ab', '2026-11-22 08:53:30.710583+00', '2026-11-29 08:53:30.710583+00', NULL, NULL, NULL, NULL, true);



INSERT INTO public.outbox VALUES ('da1e18fc-9041-4105-8052-fb836878e0c1', '5cbc0a68-8f35-45b4-b344-88c0bac32994', 'email', 'email_change', 'new@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9", "redirect_to": null}', '\x0a7bc6a5f564e2655d3cf863cea5cf459104688322b66b45755285553057d9df3a81f6c8195eb68ea6980bbd271fa47fb4907f2970f75db2469ac91165ab8e36b8dcd878acd8c38f49b2f5a3fa4421f1ecaf2006959616a240090abfa4e064faf9a7e104dc222fa3de79', '519c566e-4db4-44c9-a720-6732bf4a99a5', 0, '2026-11-22 08:53:30.298656+00', '2026-11-22 08:53:30.298656+00', '2026-11-22 09:53:30.298656+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('57b14b1d-61b0-4349-ae50-f21f6fa36186', 'eeef633f-9d3c-4d59-b5b4-af1696fe0ee6', 'email', 'signup', 'dave@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9", "redirect_to": null}', '\x0a7bc6a5bae73a09a1118daee6315bee33784c9de43b357512df24787646b5ee74cffdee00ac86f699eab5f4ae0b15641e9f86d42bbb374fa5402991851dc499d468d3680fcf397aa4ee92dae72e9183a86a020424fced13af93a9f6ead2dcc6739270608970bce9b067', '645513fc-1ec8-480b-ad8a-133c74735976', 0, '2026-11-22 08:53:30.345673+00', '2026-11-22 08:53:30.345673+00', '2026-11-22 09:53:30.345673+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('7a8bb03f-11f2-4253-8239-ce92842456d6', 'eeef633f-9d3c-4d59-b5b4-af1696fe0ee6', 'email', 'magiclink', 'dave@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9", "redirect_to": null}', '\x0a7bc6a5cb590c7ac4ef6858b651ef9b7e5f114a9fe273f4c315e1aac2c9ad0c3421c9579f6a63194d89a5a60b7caf1feb876405cf7fbfda042a7fbc6bae78f3c0ac56c0edabbd1072d041bd8745c5dbe9617c083ce1b3e0eb55c721269b5f3c1534e6218bb9aaf03809', '4835cbcd-56a5-46ae-8a7c-1c54d28f641a', 0, '2026-11-22 08:53:30.387301+00', '2026-11-22 08:53:30.387301+00', '2026-11-22 09:53:30.387301+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('1a8c2b5e-17cb-4ad1-9a44-daf5fe78428d', '78d1f5ac-175f-49b6-9df3-dfc4ccb1a74e', 'webhook', 'user.created', '144d8422-1ea6-4699-a527-5b0d007c020a', '{"data": {"user": {"id": "78d1f5ac-175f-49b6-9df3-dfc4ccb1a74e", "email": null}}, "event_id": "b6a4e647-9367-4d1a-b93b-d31e7284dcd7", "timestamp": "2026-11-22T08:53:30.403811Z"}', NULL, NULL, 0, '2026-11-22 08:53:30.403811+00', '2026-11-22 08:53:30.403811+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('8d7fdf1b-0c4d-41d2-b3ea-be2ac41daf69', '78d1f5ac-175f-49b6-9df3-dfc4ccb1a74e', 'webhook', 'auth.login', '144d8422-1ea6-4699-a527-5b0d007c020a', '{"data": {"user": {"id": "78d1f5ac-175f-49b6-9df3-dfc4ccb1a74e", "email": null}}, "event_id": "48f65e78-3e57-480a-999c-dbe3b77b5dc2", "timestamp": "2026-11-22T08:53:30.403811Z"}', NULL, NULL, 0, '2026-11-22 08:53:30.403811+00', '2026-11-22 08:53:30.403811+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('dd88d7ae-7b5f-4023-bed1-70d945f9e950', '32904d4f-ca57-4587-ac94-3a941193dbf3', 'webhook', 'user.created', '144d8422-1ea6-4699-a527-5b0d007c020a', '{"data": {"user": {"id": "32904d4f-ca57-4587-ac94-3a941193dbf3", "email": "erin@example.com"}}, "event_id": "132f8bb5-8345-4fd9-856a-d5e05981acce", "timestamp": "2026-11-22T08:53:30.423964Z"}', NULL, NULL, 0, '2026-11-22 08:53:30.423964+00', '2026-11-22 08:53:30.423964+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('3a9f4344-f1b7-4455-93b9-4e0ad015ca16', '32904d4f-ca57-4587-ac94-3a941193dbf3', 'webhook', 'auth.login', '144d8422-1ea6-4699-a527-5b0d007c020a', '{"data": {"user": {"id": "32904d4f-ca57-4587-ac94-3a941193dbf3", "email": "erin@example.com"}}, "event_id": "e3599e11-6faf-43f5-bfde-3cc4c96214c1", "timestamp": "2026-11-22T08:53:30.441800Z"}', NULL, NULL, 0, '2026-11-22 08:53:30.4418+00', '2026-11-22 08:53:30.4418+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('11726b31-46e1-4785-80f7-778d6159a714', '32904d4f-ca57-4587-ac94-3a941193dbf3', 'email', 'factor_added', 'erin@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9"}', '\x0a7bc6a53226245b6e4d9645c577e31480cb3f9715b6ef39bd5fc1bdf39aab5cc6867598d544fb578ab9154045d50f328198edbfa484cdda76466577cd3324853334f666ec45999d6ba3d41ee58178d27c5c12236d7da859', 'ae740a3b-7aea-462e-949d-5289587211c1', 0, '2026-11-22 08:53:30.53984+00', '2026-11-22 08:53:30.53984+00', '2026-11-29 08:53:30.53984+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('90625c98-bbac-4d18-8b9d-afc4cd8ae04a', '32904d4f-ca57-4587-ac94-3a941193dbf3', 'webhook', 'user.updated', '144d8422-1ea6-4699-a527-5b0d007c020a', '{"data": {"user": {"id": "32904d4f-ca57-4587-ac94-3a941193dbf3", "email": "erin@example.com"}}, "event_id": "f7f88b4a-eae0-4e57-b434-2c3512ce1277", "timestamp": "2026-11-22T08:53:30.539840Z"}', NULL, NULL, 0, '2026-11-22 08:53:30.53984+00', '2026-11-22 08:53:30.53984+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('85569c3a-25d4-400c-a2dc-e444f8c13151', '32904d4f-ca57-4587-ac94-3a941193dbf3', 'email', 'recovery_codes_created', 'erin@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9"}', NULL, NULL, 0, '2026-11-22 08:53:30.583933+00', '2026-11-22 08:53:30.583933+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('7688f77e-b8f8-4c6a-8335-959fa46759ec', '32904d4f-ca57-4587-ac94-3a941193dbf3', 'email', 'passkey_added', 'erin@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9"}', '\x0a7bc6a5676928da11d3dc5c1afc5abb0c4eea8b07c60b09602d204bb53c85802675e4f695366afd5f8bbb6aae66386ff5ee036c045366334bc1378f7d651866a20ac999c3a638d24687c79f2af00c7fc676fea86805242a', '3988d446-882e-49be-a751-753181130ee0', 0, '2026-11-22 08:53:30.612706+00', '2026-11-22 08:53:30.612706+00', '2026-11-29 08:53:30.612706+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('352fcdaa-a70b-4e72-a66b-b638336baf26', '32904d4f-ca57-4587-ac94-3a941193dbf3', 'webhook', 'user.updated', '144d8422-1ea6-4699-a527-5b0d007c020a', '{"data": {"user": {"id": "32904d4f-ca57-4587-ac94-3a941193dbf3", "email": "erin@example.com"}}, "event_id": "bdfe1a18-5cca-4d27-8ca8-9e33e2ee8051", "timestamp": "2026-11-22T08:53:30.612706Z"}', NULL, NULL, 0, '2026-11-22 08:53:30.612706+00', '2026-11-22 08:53:30.612706+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('651660a7-6f60-4738-a2d7-ea6bb41722b9', '21ec9b2e-7fb2-456d-b279-89dd022bf501', 'webhook', 'user.created', '144d8422-1ea6-4699-a527-5b0d007c020a', '{"data": {"user": {"id": "21ec9b2e-7fb2-456d-b279-89dd022bf501", "email": "frank@example.com"}}, "event_id": "9bea1412-0ef1-4188-b422-b41b2179c2fc", "timestamp": "2026-11-22T08:53:30.640518Z"}', NULL, NULL, 0, '2026-11-22 08:53:30.640518+00', '2026-11-22 08:53:30.640518+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('fca4dd78-2f47-4ee5-a460-f76e1cdb4b1b', '21ec9b2e-7fb2-456d-b279-89dd022bf501', 'webhook', 'auth.login', '144d8422-1ea6-4699-a527-5b0d007c020a', '{"data": {"user": {"id": "21ec9b2e-7fb2-456d-b279-89dd022bf501", "email": "frank@example.com"}}, "event_id": "3c2b8b1e-639b-46ce-b915-8ddc5688c586", "timestamp": "2026-11-22T08:53:30.651020Z"}', NULL, NULL, 0, '2026-11-22 08:53:30.65102+00', '2026-11-22 08:53:30.65102+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('aba0804b-b713-40de-97a2-a242bd352897', '21ec9b2e-7fb2-456d-b279-89dd022bf501', 'email', 'factor_added', 'frank@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9"}', '\x0a7bc6a5977d4698abaf9f5efa66281be42ebd0433f01a76ac4601ca163ea9b0c9b37cf6b636d188cbea0913c79cfa365aa366a1ba40b08fb885e02d60dfc9feec61f11904748e37341f72e259a47a57dac72941be69e920', '84647c81-f2ef-450d-bac1-5cd8d1834325', 0, '2026-11-22 08:53:30.700248+00', '2026-11-22 08:53:30.700248+00', '2026-11-29 08:53:30.700248+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('5ebcb73d-f77c-4094-8049-44947d0d3d8b', '21ec9b2e-7fb2-456d-b279-89dd022bf501', 'webhook', 'user.updated', '144d8422-1ea6-4699-a527-5b0d007c020a', '{"data": {"user": {"id": "21ec9b2e-7fb2-456d-b279-89dd022bf501", "email": "frank@example.com"}}, "event_id": "74af18cc-61be-4e14-8b52-3a47a0166742", "timestamp": "2026-11-22T08:53:30.700248Z"}', NULL, NULL, 0, '2026-11-22 08:53:30.700248+00', '2026-11-22 08:53:30.700248+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('0309d2bb-e0a6-4430-91a7-d7f84576ea32', '21ec9b2e-7fb2-456d-b279-89dd022bf501', 'email', 'factor_removed', 'frank@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9"}', '\x0a7bc6a5a17c7f9ce3d3d481cb80d9c612779caa9e37123fb49cb68106390e9633cc0d0abee7d4a8e0d7e3f0d610cadda9ff5989b082d49c929048762752b3bd6d1d535a6695c050b497d7f4e3b9511731c3e54d86bdec16', 'b8f1b216-302f-45cc-9c5f-19c77a3c04a5', 0, '2026-11-22 08:53:30.710583+00', '2026-11-22 08:53:30.710583+00', '2026-11-29 08:53:30.710583+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('ce3cc334-d05a-451f-987f-5488ec4ea934', '21ec9b2e-7fb2-456d-b279-89dd022bf501', 'webhook', 'user.updated', '144d8422-1ea6-4699-a527-5b0d007c020a', '{"data": {"user": {"id": "21ec9b2e-7fb2-456d-b279-89dd022bf501", "email": "frank@example.com"}}, "event_id": "cfaad12d-15f0-48ff-a40b-a13891a6dfcf", "timestamp": "2026-11-22T08:53:30.710583Z"}', NULL, NULL, 0, '2026-11-22 08:53:30.710583+00', '2026-11-22 08:53:30.710583+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('44656f22-9b95-4fc0-bd58-7281c3c6071a', '5cbc0a68-8f35-45b4-b344-88c0bac32994', 'webhook', 'auth.login', '144d8422-1ea6-4699-a527-5b0d007c020a', '{"data": {"user": {"id": "5cbc0a68-8f35-45b4-b344-88c0bac32994", "email": "alice@example.com"}}, "event_id": "270b4616-e3fa-4341-b194-90d9cef22162", "timestamp": "2026-11-22T08:53:30.806515Z"}', NULL, NULL, 0, '2026-11-22 08:53:30.806515+00', '2026-11-22 08:53:30.806515+00', NULL, NULL, NULL, NULL, NULL);






INSERT INTO public.recovery_codes VALUES ('32904d4f-ca57-4587-ac94-3a941193dbf3', '\x89ddab9e83cbe3936177c63b727439e82729890f6c1a0c50a20344533fbbc572', '2026-11-22 08:53:30.583933+00', NULL);
INSERT INTO public.recovery_codes VALUES ('32904d4f-ca57-4587-ac94-3a941193dbf3', '\xb164f7cae7ec4dd8e6d295ff2dfe44b20890069a00dc5bc34602b072d9b61459', '2026-11-22 08:53:30.583933+00', NULL);
INSERT INTO public.recovery_codes VALUES ('32904d4f-ca57-4587-ac94-3a941193dbf3', '\x60e99bdbcac9a888be7e94d67985cbc4610ef9f39bd712f34915e4ed33fe3a6d', '2026-11-22 08:53:30.583933+00', NULL);
INSERT INTO public.recovery_codes VALUES ('32904d4f-ca57-4587-ac94-3a941193dbf3', '\x9db717bf28fb39fb24505b722551aad1fa3b4a1f3f358dd9c5d1277f8c9e3771', '2026-11-22 08:53:30.583933+00', NULL);
INSERT INTO public.recovery_codes VALUES ('32904d4f-ca57-4587-ac94-3a941193dbf3', '\x3bb13c6c8732977bb7a8a68cd81c998c1a13c476928b158f707edba9711a762f', '2026-11-22 08:53:30.583933+00', NULL);
INSERT INTO public.recovery_codes VALUES ('32904d4f-ca57-4587-ac94-3a941193dbf3', '\x62fcd5c07f75e8045b2afa8cd3b751d2886dc7c3730c61e72e36b9c867e3f240', '2026-11-22 08:53:30.583933+00', NULL);
INSERT INTO public.recovery_codes VALUES ('32904d4f-ca57-4587-ac94-3a941193dbf3', '\x5b7dbf6ba06302b3f0b4f8c115793d9f76a81f43aab88ca4d7bd4b40dd6819f1', '2026-11-22 08:53:30.583933+00', NULL);
INSERT INTO public.recovery_codes VALUES ('32904d4f-ca57-4587-ac94-3a941193dbf3', '\xfa44ceb191acbc5a1bb5667ab45c1ec61a72939ce9f206a744794e67965f572d', '2026-11-22 08:53:30.583933+00', NULL);
INSERT INTO public.recovery_codes VALUES ('32904d4f-ca57-4587-ac94-3a941193dbf3', '\x87a693a57713947aca9c7216954fb6f5915f16557e8fff865a8d8d41533e86e0', '2026-11-22 08:53:30.583933+00', NULL);
INSERT INTO public.recovery_codes VALUES ('32904d4f-ca57-4587-ac94-3a941193dbf3', '\x0f148a6831001c976250db4259cf73b9926ec87ef3b285332c13f1ba09b716e7', '2026-11-22 08:53:30.583933+00', NULL);






INSERT INTO public.schema_version VALUES (15, '2026-11-22 08:53:28.252249+00', '16b4f674f39212733fda5e85810afb1209c02f09535be11f2e9163037d9a6d78');



INSERT INTO public.sessions VALUES ('8d31d072-e333-4550-98c3-613480df7be7', '5cbc0a68-8f35-45b4-b344-88c0bac32994', 0, 'password', '127.0.0.1', 'Werkzeug/3.1.9', '2026-11-22 08:53:30.235294+00', '2026-11-22 08:53:30.235294+00', 0, '2026-11-22 08:53:30.235294+00', NULL, NULL, NULL, 'aal1', NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('3abb8166-3f1a-4937-8cc0-5efbb9f34e4d', '78d1f5ac-175f-49b6-9df3-dfc4ccb1a74e', 0, 'anonymous', '127.0.0.1', 'Werkzeug/3.1.9', '2026-11-22 08:53:30.403811+00', '2026-11-22 08:53:30.403811+00', 0, '2026-11-22 08:53:30.403811+00', NULL, NULL, NULL, 'aal1', NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('4297537e-e17b-4182-b8a6-291f3e486d2c', '32904d4f-ca57-4587-ac94-3a941193dbf3', 2, 'password', '127.0.0.1', 'Werkzeug/3.1.9', '2026-11-22 08:53:30.4418+00', '2026-11-22 08:53:30.53984+00', 0, '2026-11-22 08:53:30.4418+00', NULL, NULL, '2026-11-22 08:53:30.53984+00', 'aal2', '[{"method": "password", "timestamp": 1795337610}, {"method": "totp", "timestamp": 1795337610}]', 'b90655d0-5879-4f9c-a974-d7efcad46cfe', NULL);
INSERT INTO public.sessions VALUES ('840461ff-57d5-43e1-a200-9011725348ab', '21ec9b2e-7fb2-456d-b279-89dd022bf501', 2, 'password', '127.0.0.1', 'Werkzeug/3.1.9', '2026-11-22 08:53:30.65102+00', '2026-11-22 08:53:30.700248+00', 0, '2026-11-22 08:53:30.65102+00', NULL, NULL, '2026-11-22 08:53:30.700248+00', 'aal1', '[{"method": "password", "timestamp": 1795337610}, {"method": "totp", "timestamp": 1795337610}]', NULL, NULL);
INSERT INTO public.sessions VALUES ('a085819b-323b-4e6f-945d-d07be5ee1aa4', '5cbc0a68-8f35-45b4-b344-88c0bac32994', 0, 'password', '127.0.0.1', 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', '2026-11-22 08:53:30.806515+00', '2026-11-22 08:53:30.806515+00', 0, '2026-11-22 08:53:30.806515+00', NULL, NULL, NULL, 'aal1', NULL, NULL, NULL);






INSERT INTO public.user_objects VALUES ('dfed7b82-9bc3-4e04-b501-2ed224a12ee3', '{"id": "dfed7b82-9bc3-4e04-b501-2ed224a12ee3", "role": "admin", "email": "carol@example.com", "phone": null, "new_email": null, "new_phone": null, "created_at": "2026-11-22T08:53:29.387742Z", "identities": [{"id": "919ce9da-a89f-4390-884f-58eadf4483bb", "user_id": "dfed7b82-9bc3-4e04-b501-2ed224a12ee3", "provider": "email", "created_at": "2026-11-22T08:53:29.387742Z", "updated_at": "2026-11-22T08:53:29.387742Z", "identity_id": "919ce9da-a89f-4390-884f-58eadf4483bb", "identity_data": {"sub": "dfed7b82-9bc3-4e04-b501-2ed224a12ee3", "email": "carol@example.com"}, "last_sign_in_at": null}], "invited_at": null, "updated_at": "2026-11-22T08:53:29.387742Z", "app_metadata": {"provider": "email", "providers": ["email"]}, "banned_until": null, "confirmed_at": "2026-11-22T08:53:29.387742Z", "is_anonymous": false, "user_metadata": {}, "last_sign_in_at": null, "email_confirmed_at": "2026-11-22T08:53:29.387742Z", "phone_confirmed_at": null, "confirmation_sent_at": null, "email_change_sent_at": null, "phone_change_sent_at": null}', '-infinity');
INSERT INTO public.user_objects VALUES ('eeef633f-9d3c-4d59-b5b4-af1696fe0ee6', '{"id": "eeef633f-9d3c-4d59-b5b4-af1696fe0ee6", "role": "authenticated", "email": "dave@example.com", "phone": null, "new_email": null, "new_phone": null, "created_at": "2026-11-22T08:53:30.345673Z", "identities": [{"id": "c4828a75-4773-42b7-aaa6-95864defdc8c", "user_id": "eeef633f-9d3c-4d59-b5b4-af1696fe0ee6", "provider": "email", "created_at": "2026-11-22T08:53:30.345673Z", "updated_at": "2026-11-22T08:53:30.345673Z", "identity_id": "c4828a75-4773-42b7-aaa6-95864defdc8c", "identity_data": {"sub": "eeef633f-9d3c-4d59-b5b4-af1696fe0ee6", "email": "dave@example.com"}, "last_sign_in_at": null}], "invited_at": null, "updated_at": "2026-11-22T08:53:30.345673Z", "app_metadata": {"provider": "email", "providers": ["email"]}, "banned_until": null, "confirmed_at": null, "is_anonymous": false, "user_metadata": {"name": "Dave"}, "last_sign_in_at": null, "email_confirmed_at": null, "phone_confirmed_at": null, "confirmation_sent_at": "2026-11-22T08:53:30.345673Z", "email_change_sent_at": null, "phone_change_sent_at": null}', '-infinity');
INSERT INTO public.user_objects VALUES ('78d1f5ac-175f-49b6-9df3-dfc4ccb1a74e', '{"id": "78d1f5ac-175f-49b6-9df3-dfc4ccb1a74e", "role": "authenticated", "email": null, "phone": null, "new_email": null, "new_phone": null, "created_at": "2026-11-22T08:53:30.403811Z", "identities": [], "invited_at": null, "updated_at": "2026-11-22T08:53:30.403811Z", "app_metadata": {"provider": null, "providers": []}, "banned_until": null, "confirmed_at": null, "is_anonymous": true, "user_metadata": {}, "last_sign_in_at": "2026-11-22T08:53:30.403811Z", "email_confirmed_at": null, "phone_confirmed_at": null, "confirmation_sent_at": null, "email_change_sent_at": null, "phone_change_sent_at": null}', '2026-11-22 08:53:30.403811+00');
INSERT INTO public.user_objects VALUES ('5cbc0a68-8f35-45b4-b344-88c0bac32994', '{"id": "5cbc0a68-8f35-45b4-b344-88c0bac32994", "role": "authenticated", "email": "alice@example.com", "phone": null, "new_email": "new@example.com", "new_phone": null, "created_at": "2026-11-22T08:53:29.354678Z", "identities": [{"id": "7bb049de-f03a-4a48-93d8-f8a212031acc", "user_id": "5cbc0a68-8f35-45b4-b344-88c0bac32994", "provider": "email", "created_at": "2026-11-22T08:53:29.354678Z", "updated_at": "2026-11-22T08:53:29.354678Z", "identity_id": "7bb049de-f03a-4a48-93d8-f8a212031acc", "identity_data": {"sub": "5cbc0a68-8f35-45b4-b344-88c0bac32994", "email": "alice@example.com"}, "last_sign_in_at": "2026-11-22T08:53:30.806515Z"}], "invited_at": null, "updated_at": "2026-11-22T08:53:30.298656Z", "app_metadata": {"provider": "email", "providers": ["email"]}, "banned_until": null, "confirmed_at": "2026-11-22T08:53:29.354678Z", "is_anonymous": false, "user_metadata": {}, "last_sign_in_at": "2026-11-22T08:53:30.806515Z", "email_confirmed_at": "2026-11-22T08:53:29.354678Z", "phone_confirmed_at": null, "confirmation_sent_at": null, "email_change_sent_at": "2026-11-22T08:53:30.298656Z", "phone_change_sent_at": null}', '2026-11-22 08:53:30.806515+00');
INSERT INTO public.user_objects VALUES ('32904d4f-ca57-4587-ac94-3a941193dbf3', '{"id": "32904d4f-ca57-4587-ac94-3a941193dbf3", "role": "authenticated", "email": "erin@example.com", "phone": null, "factors": [{"id": "b90655d0-5879-4f9c-a974-d7efcad46cfe", "status": "verified", "created_at": "2026-11-22T08:53:30.461280Z", "updated_at": "2026-11-22T08:53:30.539840Z", "factor_type": "totp", "friendly_name": ""}], "new_email": null, "new_phone": null, "created_at": "2026-11-22T08:53:30.423964Z", "identities": [{"id": "a215fabb-369b-42f4-9a7a-ad9880e6aab8", "user_id": "32904d4f-ca57-4587-ac94-3a941193dbf3", "provider": "email", "created_at": "2026-11-22T08:53:30.423964Z", "updated_at": "2026-11-22T08:53:30.423964Z", "identity_id": "a215fabb-369b-42f4-9a7a-ad9880e6aab8", "identity_data": {"sub": "32904d4f-ca57-4587-ac94-3a941193dbf3", "email": "erin@example.com"}, "last_sign_in_at": "2026-11-22T08:53:30.441800Z"}], "invited_at": null, "updated_at": "2026-11-22T08:53:30.423964Z", "app_metadata": {"provider": "email", "providers": ["email"]}, "banned_until": null, "confirmed_at": "2026-11-22T08:53:30.423964Z", "is_anonymous": false, "user_metadata": {}, "last_sign_in_at": "2026-11-22T08:53:30.441800Z", "email_confirmed_at": "2026-11-22T08:53:30.423964Z", "phone_confirmed_at": null, "confirmation_sent_at": null, "email_change_sent_at": null, "phone_change_sent_at": null}', '2026-11-22 08:53:30.4418+00');
INSERT INTO public.user_objects VALUES ('21ec9b2e-7fb2-456d-b279-89dd022bf501', '{"id": "21ec9b2e-7fb2-456d-b279-89dd022bf501", "role": "authenticated", "email": "frank@example.com", "phone": null, "new_email": null, "new_phone": null, "created_at": "2026-11-22T08:53:30.640518Z", "identities": [{"id": "54cafef2-2938-4df9-8186-dff930ec6f62", "user_id": "21ec9b2e-7fb2-456d-b279-89dd022bf501", "provider": "email", "created_at": "2026-11-22T08:53:30.640518Z", "updated_at": "2026-11-22T08:53:30.640518Z", "identity_id": "54cafef2-2938-4df9-8186-dff930ec6f62", "identity_data": {"sub": "21ec9b2e-7fb2-456d-b279-89dd022bf501", "email": "frank@example.com"}, "last_sign_in_at": "2026-11-22T08:53:30.651020Z"}], "invited_at": null, "updated_at": "2026-11-22T08:53:30.640518Z", "app_metadata": {"provider": "email", "providers": ["email"]}, "banned_until": null, "confirmed_at": "2026-11-22T08:53:30.640518Z", "is_anonymous": false, "user_metadata": {}, "last_sign_in_at": "2026-11-22T08:53:30.651020Z", "email_confirmed_at": "2026-11-22T08:53:30.640518Z", "phone_confirmed_at": null, "confirmation_sent_at": null, "email_change_sent_at": null, "phone_change_sent_at": null}', '2026-11-22 08:53:30.65102+00');



INSERT INTO public.users VALUES ('dfed7b82-9bc3-4e04-b501-2ed224a12ee3', 'admin', 'carol@example.com', '2026-11-22 08:53:29.387742+00', true, NULL, NULL, false, 'latchkey1$2b$04$injMffJ0oVnshCMMGoiP0.gFlAiSOFPzBVfRahZbfoIi9wlEshARm', '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 08:53:29.387742+00', 'administrator', NULL, '2026-11-22 08:53:29.387742+00', '2026-11-22 08:53:29.387742+00', NULL);
INSERT INTO public.users VALUES ('eeef633f-9d3c-4d59-b5b4-af1696fe0ee6', 'authenticated', 'dave@example.com', NULL, false, NULL, NULL, false, 'latchkey1$2b$04$/uz.XRurqfi2Ac/iuk7DHO51A936BftdA1tSlzAK1dz3bKcJVuOAC', '{}', '{"name": "Dave"}', NULL, NULL, NULL, NULL, '2026-11-22 08:53:30.345673+00', NULL, NULL, NULL, NULL, 'signup', 'Werkzeug/3.1.9', '2026-11-22 08:53:30.345673+00', '2026-11-22 08:53:30.345673+00', NULL);
INSERT INTO public.users VALUES ('78d1f5ac-175f-49b6-9df3-dfc4ccb1a74e', 'authenticated', NULL, NULL, false, NULL, NULL, false, NULL, '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 08:53:30.403811+00', NULL, NULL, 'anonymous', NULL, '2026-11-22 08:53:30.403811+00', '2026-11-22 08:53:30.403811+00', NULL);
INSERT INTO public.users VALUES ('32904d4f-ca57-4587-ac94-3a941193dbf3', 'authenticated', 'erin@example.com', '2026-11-22 08:53:30.423964+00', true, NULL, NULL, false, 'latchkey1$2b$04$injMffJ0oVnshCMMGoiP0.gFlAiSOFPzBVfRahZbfoIi9wlEshARm', '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 08:53:30.4418+00', NULL, NULL, 'administrator', NULL, '2026-11-22 08:53:30.423964+00', '2026-11-22 08:53:30.423964+00', NULL);
INSERT INTO public.users VALUES ('21ec9b2e-7fb2-456d-b279-89dd022bf501', 'authenticated', 'frank@example.com', '2026-11-22 08:53:30.640518+00', true, NULL, NULL, false, 'latchkey1$2b$04$injMffJ0oVnshCMMGoiP0.gFlAiSOFPzBVfRahZbfoIi9wlEshARm', '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 08:53:30.65102+00', NULL, NULL, 'administrator', NULL, '2026-11-22 08:53:30.640518+00', '2026-11-22 08:53:30.640518+00', NULL);
INSERT INTO public.users VALUES ('5cbc0a68-8f35-45b4-b344-88c0bac32994', 'authenticated', 'alice@example.com', '2026-11-22 08:53:29.354678+00', true, NULL, NULL, false, 'latchkey1$2b$04$injMffJ0oVnshCMMGoiP0.gFlAiSOFPzBVfRahZbfoIi9wlEshARm', '{}', '{}', 'new@example.com', '2026-11-22 08:53:30.298656+00', NULL, NULL, NULL, NULL, '2026-11-22 08:53:30.806515+00', NULL, NULL, 'administrator', NULL, '2026-11-22 08:53:29.354678+00', '2026-11-22 08:53:30.298656+00', NULL);



INSERT INTO public.webhooks VALUES ('144d8422-1ea6-4699-a527-5b0d007c020a', 'https://192.0.1.1/events', NULL, '{user.created,user.updated,user.deleted,auth.login,auth.logout}', '\x0a7bc6a561ba9699ec3d360e241cfcd7f5a45c6f3df789a41825f4a526dcfcacbc7946996efbf4c7ee3943eaa7a57d173acd93a0b5d2e8f8380ecb8c56f0d5e8719d961a60be56223ac0f9dc480673c80723', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 08:53:30.375839+00', '2026-11-22 08:53:30.375839+00');



ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (id);



ALTER TABLE ONLY public.authorization_codes
    ADD CONSTRAINT authorization_codes_code_hash_key UNIQUE (code_hash);



ALTER TABLE ONLY public.authorization_codes
    ADD CONSTRAINT authorization_codes_pkey PRIMARY KEY (id);



ALTER TABLE ONLY public.browser_sessions
    ADD CONSTRAINT browser_sessions_pkey PRIMARY KEY (token_hash);



ALTER TABLE ONLY public.browser_sessions
    ADD CONSTRAINT browser_sessions_session_id_key UNIQUE (session_id);



ALTER TABLE ONLY public.dev_inbox
    ADD CONSTRAINT dev_inbox_pkey PRIMARY KEY (id);



ALTER TABLE ONLY public.factor_challenges
    ADD CONSTRAINT factor_challenges_pkey PRIMARY KEY (id);



ALTER TABLE ONLY public.factors
    ADD CONSTRAINT factors_credential_id_key UNIQUE (credential_id);



ALTER TABLE ONLY public.factors
    ADD CONSTRAINT factors_pkey PRIMARY KEY (id);



ALTER TABLE ONLY public.failure_counts
    ADD CONSTRAINT failure_counts_pkey PRIMARY KEY (key);



ALTER TABLE ONLY public.hourly_counts
    ADD CONSTRAINT hourly_counts_pkey PRIMARY KEY (hour, name);



ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_pkey PRIMARY KEY (id);



ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_provider_subject_key UNIQUE (provider, subject) INCLUDE (user_id);



ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_user_id_provider_key UNIQUE (user_id, provider);



ALTER TABLE ONLY public.key_fingerprints
    ADD CONSTRAINT key_fingerprints_pkey PRIMARY KEY (setting, fingerprint);



ALTER TABLE ONLY public.known_networks
    ADD CONSTRAINT known_networks_pkey PRIMARY KEY (user_id, network);



ALTER TABLE ONLY public.last_done
    ADD CONSTRAINT last_done_pkey PRIMARY KEY (task);



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



ALTER TABLE ONLY public.probes
    ADD CONSTRAINT probes_pkey PRIMARY KEY (token_hash);



ALTER TABLE ONLY public.recovery_codes
    ADD CONSTRAINT recovery_codes_pkey PRIMARY KEY (user_id, code_mac);



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



CREATE INDEX audit_log_done_by ON public.audit_log USING btree (COALESCE((actor_id)::text, actor), at, id) WHERE ((actor <> 'anonymous'::text) AND ((actor <> 'user'::text) OR (user_id IS DISTINCT FROM actor_id)));



CREATE INDEX audit_log_request_id ON public.audit_log USING btree (request_id) WHERE (request_id IS NOT NULL);



CREATE INDEX audit_log_user_id ON public.audit_log USING btree (user_id, at, id) WHERE (user_id IS NOT NULL);



CREATE INDEX authorization_codes_expires_at ON public.authorization_codes USING btree (expires_at);



CREATE INDEX authorization_codes_user_id ON public.authorization_codes USING btree (user_id);



CREATE INDEX browser_sessions_user_id ON public.browser_sessions USING btree (user_id);



CREATE INDEX dev_inbox_kept_at ON public.dev_inbox USING btree (kept_at);



CREATE INDEX factor_challenges_expires_at ON public.factor_challenges USING btree (expires_at);



CREATE INDEX factor_challenges_factor_id ON public.factor_challenges USING btree (factor_id);



CREATE INDEX factor_challenges_user_id ON public.factor_challenges USING btree (user_id);



CREATE UNIQUE INDEX factors_friendly_name_key ON public.factors USING btree (user_id, friendly_name) WHERE ((friendly_name <> ''::text) AND (verified_at IS NOT NULL) AND (factor_type <> 'passkey'::text));



CREATE INDEX factors_unverified ON public.factors USING btree (created_at) WHERE (verified_at IS NULL);



CREATE INDEX factors_user_id ON public.factors USING btree (user_id, created_at);



CREATE INDEX failure_counts_expires_at ON public.failure_counts USING btree (expires_at);



CREATE INDEX failure_counts_key ON public.failure_counts USING btree (key COLLATE "C");



CREATE INDEX known_networks_seen_at ON public.known_networks USING btree (seen_at);



CREATE INDEX oauth_flows_expires_at ON public.oauth_flows USING btree (expires_at);



CREATE INDEX oauth_flows_user_id ON public.oauth_flows USING btree (user_id) WHERE (user_id IS NOT NULL);



CREATE INDEX one_time_tokens_expires_at ON public.one_time_tokens USING btree (expires_at);



CREATE INDEX one_time_tokens_target ON public.one_time_tokens USING btree (target) WHERE (code_mac IS NOT NULL);



CREATE INDEX one_time_tokens_user_id ON public.one_time_tokens USING btree (user_id, purpose, created_at);



CREATE INDEX outbox_address ON public.outbox USING btree (recipient, created_at) WHERE (channel <> 'webhook'::text);



CREATE INDEX outbox_events ON public.outbox USING btree (recipient, created_at, id) WHERE (channel = 'webhook'::text);



CREATE INDEX outbox_events_waiting ON public.outbox USING btree (recipient, next_attempt_at) WHERE ((channel = 'webhook'::text) AND (outcome IS NULL));



CREATE INDEX outbox_failed_events ON public.outbox USING btree (recipient, created_at, id) WHERE ((channel = 'webhook'::text) AND (outcome = 'failed'::text));



CREATE INDEX outbox_finished ON public.outbox USING btree (finished_at) WHERE (outcome IS NOT NULL);



CREATE INDEX outbox_messages ON public.outbox USING btree (COALESCE(outcome, 'waiting'::text), created_at, id) WHERE (channel <> 'webhook'::text);



CREATE INDEX outbox_messages_waiting ON public.outbox USING btree (channel, next_attempt_at) WHERE ((outcome IS NULL) AND (channel <> 'webhook'::text));



CREATE INDEX outbox_user_id ON public.outbox USING btree (user_id) WHERE (user_id IS NOT NULL);



CREATE INDEX request_counts_expires_at ON public.request_counts USING btree (expires_at);



CREATE INDEX sessions_created_at ON public.sessions USING btree (created_at) WHERE (ended_at IS NULL);



CREATE INDEX sessions_ended_at ON public.sessions USING btree (ended_at) WHERE (ended_at IS NOT NULL);



CREATE INDEX sessions_user_id ON public.sessions USING btree (user_id, created_at);



CREATE INDEX spent_id_tokens_expires_at ON public.spent_id_tokens USING btree (expires_at);



CREATE INDEX user_objects_last_sign_in_at ON public.user_objects USING btree (last_sign_in_at, user_id);



CREATE INDEX users_anonymous ON public.users USING btree (created_at, id) WHERE ((made_by = 'anonymous'::text) AND (converted_at IS NULL));



CREATE INDEX users_banned ON public.users USING btree (created_at, id) WHERE (banned_until IS NOT NULL);



CREATE INDEX users_created_at ON public.users USING btree (created_at, id);



CREATE INDEX users_email_domain ON public.users USING btree (split_part(email, '@'::text, 2));



CREATE INDEX users_new_email ON public.users USING btree (new_email) WHERE (new_email IS NOT NULL);



CREATE INDEX users_new_phone ON public.users USING btree (new_phone) WHERE (new_phone IS NOT NULL);



CREATE INDEX users_role ON public.users USING btree (role, created_at, id) WHERE (role <> 'authenticated'::text);



CREATE INDEX users_unconfirmed ON public.users USING btree (created_at, id) WHERE ((email_confirmed_at IS NULL) AND (phone_confirmed_at IS NULL) AND (COALESCE(email, phone) IS NOT NULL));



CREATE INDEX users_unproved ON public.users USING btree (created_at) WHERE ((made_by = ANY (ARRAY['signup'::text, 'message'::text])) AND (NOT email_proved) AND (NOT phone_proved));



CREATE TRIGGER factors_object AFTER INSERT OR DELETE OR UPDATE OF friendly_name, verified_at, updated_at ON public.factors FOR EACH ROW EXECUTE FUNCTION public.factor_has_changed();



CREATE TRIGGER identities_object AFTER INSERT OR DELETE OR UPDATE ON public.identities FOR EACH ROW EXECUTE FUNCTION public.identity_has_changed();



CREATE TRIGGER outbox_notify AFTER INSERT ON public.outbox FOR EACH ROW EXECUTE FUNCTION public.notify_of_message();



CREATE TRIGGER users_converted BEFORE UPDATE OF email_confirmed_at, phone_confirmed_at ON public.users FOR EACH ROW WHEN ((public.is_anonymous(new.*) AND (COALESCE(new.email_confirmed_at, new.phone_confirmed_at) IS NOT NULL))) EXECUTE FUNCTION public.user_is_confirmed();



CREATE TRIGGER users_object AFTER INSERT OR UPDATE ON public.users FOR EACH ROW EXECUTE FUNCTION public.user_has_changed();



ALTER TABLE ONLY public.authorization_codes
    ADD CONSTRAINT authorization_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;



ALTER TABLE ONLY public.browser_sessions
    ADD CONSTRAINT browser_sessions_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id) ON DELETE CASCADE;



ALTER TABLE ONLY public.browser_sessions
    ADD CONSTRAINT browser_sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;



ALTER TABLE ONLY public.factor_challenges
    ADD CONSTRAINT factor_challenges_factor_id_fkey FOREIGN KEY (factor_id) REFERENCES public.factors(id) ON DELETE CASCADE;



ALTER TABLE ONLY public.factor_challenges
    ADD CONSTRAINT factor_challenges_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;



ALTER TABLE ONLY public.factors
    ADD CONSTRAINT factors_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;



ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;



ALTER TABLE ONLY public.known_networks
    ADD CONSTRAINT known_networks_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;



ALTER TABLE ONLY public.oauth_flows
    ADD CONSTRAINT oauth_flows_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;



ALTER TABLE ONLY public.one_time_tokens
    ADD CONSTRAINT one_time_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;



ALTER TABLE ONLY public.recovery_codes
    ADD CONSTRAINT recovery_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;



ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;



ALTER TABLE ONLY public.user_objects
    ADD CONSTRAINT user_objects_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;




