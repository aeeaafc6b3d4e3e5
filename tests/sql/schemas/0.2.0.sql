


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
  -- A request that signs a user in has no access token yet: the actor is that user.
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



INSERT INTO public.audit_log VALUES ('227d019b-75eb-4142-a48d-0e457af216ad', '2026-11-22 05:45:01.128906+00', 'user_created', NULL, '9c8694d9-6404-45f3-9b90-2ba06d66a015', 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'a87803c3-f7f0-46f8-bda6-b6a1561fee9b', 1, '{"by": "administrator", "role": "authenticated"}');
INSERT INTO public.audit_log VALUES ('857ef13e-1484-4028-942d-1ba94df93f09', '2026-11-22 05:45:01.331352+00', 'user_created', NULL, '38258bfb-fd7b-4ac8-a0a7-a40adfde2d8c', 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '8ab3a4d6-e5a0-4ca2-a013-c6f46d788675', 1, '{"by": "administrator", "role": "admin"}');
INSERT INTO public.audit_log VALUES ('839f3d85-c0c7-5d58-44e0-c0a0e50a3a18', '2026-11-22 05:45:01.443663+00', 'sign_in_refused', 'invalid_credentials', '9c8694d9-6404-45f3-9b90-2ba06d66a015', 'anonymous', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '318074df-a95d-41ac-ba68-ca4209616b4d', 1, '{"of": 10, "tries": null}');
INSERT INTO public.audit_log VALUES ('9a362324-b03d-4dfd-91ea-dee0f264572f', '2026-11-22 05:45:03.323209+00', 'signed_in', NULL, '9c8694d9-6404-45f3-9b90-2ba06d66a015', 'user', '9c8694d9-6404-45f3-9b90-2ba06d66a015', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'd2641fea-ff73-4caa-af10-46cca1789852', 1, '{"method": "password", "session_id": "cc494505-3546-4897-8868-8b882e94dbac"}');
INSERT INTO public.audit_log VALUES ('af9317aa-23a3-4ca4-8db7-47182ac31493', '2026-11-22 05:45:03.445562+00', 'email_change_requested', NULL, '9c8694d9-6404-45f3-9b90-2ba06d66a015', 'user', '9c8694d9-6404-45f3-9b90-2ba06d66a015', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '6138b54a-1b07-454f-bd7a-e82cf512dac1', 1, '{"new_email": "new@example.com"}');
INSERT INTO public.audit_log VALUES ('d8a69d4f-4cb9-43a2-8473-26f5720062aa', '2026-11-22 05:45:03.565862+00', 'user_created', NULL, 'f3bafb87-4bf8-4fd4-9d9d-f60d0806e37d', 'anonymous', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '21db4528-3fa2-4480-a7c1-6730a6ebfc77', 1, '{"by": "signup", "method": "password"}');
INSERT INTO public.audit_log VALUES ('72f1360a-c22f-459c-aa8a-a1385cabb539', '2026-11-22 05:45:03.679301+00', 'webhook_created', NULL, NULL, 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '655e24c7-3721-4b26-9c90-15f275c7d7d8', 1, '{"url": "https://192.0.1.1", "webhook_id": "a998df4c-d312-4fa2-935a-d4cf68dd6ebd"}');
INSERT INTO public.audit_log VALUES ('9b7de5ad-7b73-4b3e-9dfe-5a5552991883', '2026-11-22 05:45:03.705942+00', 'message_requested', NULL, 'f3bafb87-4bf8-4fd4-9d9d-f60d0806e37d', 'anonymous', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '4765bb25-6488-473a-9a4a-e8b7ba6b4f1d', 1, '{"is_sent": true, "purpose": "magiclink"}');
INSERT INTO public.audit_log VALUES ('33c8d729-7b8c-4b48-911d-642f0c76f495', '2026-11-22 05:45:03.730536+00', 'user_created', NULL, '75533362-043b-4d12-bc94-a1a73c030837', 'user', '75533362-043b-4d12-bc94-a1a73c030837', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '2afc6c74-c4a5-414e-aa63-2bdae0220526', 1, '{"by": "anonymous", "method": "anonymous", "session_id": "5fcf37e7-fcf8-43fc-8df0-dbf5aafb7a54"}');
INSERT INTO public.audit_log VALUES ('ff36ff17-f343-411a-8157-b33db40b955d', '2026-11-22 05:45:03.730536+00', 'signed_in', NULL, '75533362-043b-4d12-bc94-a1a73c030837', 'user', '75533362-043b-4d12-bc94-a1a73c030837', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '2afc6c74-c4a5-414e-aa63-2bdae0220526', 1, '{"by": "anonymous", "method": "anonymous", "session_id": "5fcf37e7-fcf8-43fc-8df0-dbf5aafb7a54"}');
INSERT INTO public.audit_log VALUES ('da39d0cb-b484-4012-8d69-11fd151a29ce', '2026-11-22 05:45:03.817072+00', 'user_created', NULL, '05da0197-e4e9-444a-96d9-8dd6373bad34', 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'bd51b786-2eeb-464b-9a5b-c682745c7c64', 1, '{"by": "administrator", "role": "authenticated"}');
INSERT INTO public.audit_log VALUES ('86d1e696-a08b-4658-af7d-5b9b1ed66eb2', '2026-11-22 05:45:03.83236+00', 'signed_in', NULL, '05da0197-e4e9-444a-96d9-8dd6373bad34', 'user', '05da0197-e4e9-444a-96d9-8dd6373bad34', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '30d8335f-a356-4826-b6e1-7ee30ffd3fee', 1, '{"method": "password", "session_id": "ee0f0c5b-ccd7-4596-885d-7623e0fad799"}');
INSERT INTO public.audit_log VALUES ('95024fd9-71a3-49c8-af68-d660f635ce94', '2026-11-22 05:45:03.920477+00', 'factor_added', NULL, '05da0197-e4e9-444a-96d9-8dd6373bad34', 'user', '05da0197-e4e9-444a-96d9-8dd6373bad34', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '53511cad-bc81-4235-ab08-40f05a591b8b', 1, '{"factor_type": "totp"}');
INSERT INTO public.audit_log VALUES ('46a4434b-4732-43b0-baba-8fb25286e766', '2026-11-22 05:45:04.011185+00', 'recovery_codes_created', NULL, '05da0197-e4e9-444a-96d9-8dd6373bad34', 'user', '05da0197-e4e9-444a-96d9-8dd6373bad34', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'eaf1212c-28bf-411e-9ebb-a7457aeecca9', 1, '{}');
INSERT INTO public.audit_log VALUES ('112eedc7-220e-4422-8394-6057cf4fe8cd', '2026-11-22 05:45:04.046816+00', 'passkey_added', NULL, '05da0197-e4e9-444a-96d9-8dd6373bad34', 'user', '05da0197-e4e9-444a-96d9-8dd6373bad34', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '795d4064-ac34-4b3b-8ff0-eed00df1d527', 1, '{"passkey": "Passkey"}');
INSERT INTO public.audit_log VALUES ('ec9a33da-f51d-4771-b3c4-33cda6f76cdb', '2026-11-22 05:45:04.072974+00', 'user_created', NULL, '73d4eb99-6200-4701-a7c5-69549cc6e0f4', 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '8de9fc8a-e895-4d3d-8545-7e707b48edfe', 1, '{"by": "administrator", "role": "authenticated"}');
INSERT INTO public.audit_log VALUES ('985c228b-2532-4a82-b525-e86d017cf2d3', '2026-11-22 05:45:04.080572+00', 'signed_in', NULL, '73d4eb99-6200-4701-a7c5-69549cc6e0f4', 'user', '73d4eb99-6200-4701-a7c5-69549cc6e0f4', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'b39c473d-1d7f-40d4-842b-f9a52e80d6ae', 1, '{"method": "password", "session_id": "104cf28d-0f86-4368-8120-0ed55b9cc5c8"}');
INSERT INTO public.audit_log VALUES ('afccfabf-f407-4fcc-8d77-5aee6a10580a', '2026-11-22 05:45:04.12652+00', 'factor_added', NULL, '73d4eb99-6200-4701-a7c5-69549cc6e0f4', 'user', '73d4eb99-6200-4701-a7c5-69549cc6e0f4', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '7d4c452e-27bc-4df8-8b1c-4d0e00a5c5cf', 1, '{"factor_type": "totp"}');
INSERT INTO public.audit_log VALUES ('5146cee2-c722-4dfa-a4c8-f77c89f67e3f', '2026-11-22 05:45:04.145754+00', 'factor_removed', NULL, '73d4eb99-6200-4701-a7c5-69549cc6e0f4', 'user', '73d4eb99-6200-4701-a7c5-69549cc6e0f4', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '6f1e2343-ea7e-4afe-a6e7-816566add4da', 1, '{"factor_type": "totp"}');
INSERT INTO public.audit_log VALUES ('ca82b39f-74c7-4d56-bab2-189b39d935ac', '2026-11-22 05:45:04.836347+00', 'signed_in', NULL, '9c8694d9-6404-45f3-9b90-2ba06d66a015', 'user', '9c8694d9-6404-45f3-9b90-2ba06d66a015', '127.0.0.1', '127.0.0.1', 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'd250dedf-b1c5-4dd8-9a8e-797597219e94', 1, '{"method": "password", "session_id": "8a2d1d5a-12f2-40b0-be12-dc3d218e62d3"}');






INSERT INTO public.browser_sessions VALUES ('\xbdf231a43373cb1c0b90659135fd1d5d0d007180679bd26a81da2cf0cfaf76cc', '9c8694d9-6404-45f3-9b90-2ba06d66a015', '8a2d1d5a-12f2-40b0-be12-dc3d218e62d3', '2026-11-22 05:45:04.865075+00');






INSERT INTO public.factor_challenges VALUES ('3b09acb2-9f98-4945-8874-3ea10dffae61', '05da0197-e4e9-444a-96d9-8dd6373bad34', 'ee0f0c5b-ccd7-4596-885d-7623e0fad799', '55e3fd7a-d55c-42c1-bd84-fd54d6c7291b', 'totp', NULL, 0, '2026-11-22 05:45:03.862464+00', '2026-11-22 05:50:03.862464+00');
INSERT INTO public.factor_challenges VALUES ('ec580dbe-4aeb-42b9-abef-830724a47008', '05da0197-e4e9-444a-96d9-8dd6373bad34', 'ee0f0c5b-ccd7-4596-885d-7623e0fad799', '55e3fd7a-d55c-42c1-bd84-fd54d6c7291b', 'totp', NULL, 0, '2026-11-22 05:45:04.066988+00', '2026-11-22 05:50:04.066988+00');



INSERT INTO public.factors VALUES ('55e3fd7a-d55c-42c1-bd84-fd54d6c7291b', '05da0197-e4e9-444a-96d9-8dd6373bad34', 'totp', '', '2026-11-22 05:45:03.920477+00', '2026-11-22 05:45:03.920477+00', '2026-11-22 05:45:03.862464+00', '2026-11-22 05:45:03.920477+00', '\x547cfe025e48d0dda671462d15eb05f618d9f2f5f200f6420a4ac55241b1eb8955a64f107649e2959b2ba94c997e7c3a5a08d36b09032ae6b41b95119028518f', 59844209, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.factors VALUES ('33cd2f50-ce1a-49cc-bc6b-204c7128d87b', '05da0197-e4e9-444a-96d9-8dd6373bad34', 'passkey', 'Passkey', '2026-11-22 05:45:04.046816+00', NULL, '2026-11-22 05:45:04.046816+00', '2026-11-22 05:45:04.046816+00', NULL, NULL, '\xdda441af67b0938ff45099041fded40b789a4e7c41426a2dffd2d58d4e5e398d', '\xa50102032620012158206c219b81aa51bdcc4cfd6f45ac547761677569f043a1374ec3818b9a6498ed01225820e561c52010531cc798836bd2afa2caa720bd38c26ca3305427aca83ae409589d', 0, '{internal,hybrid}', '00000000-0000-0000-0000-000000000000', false, false);



INSERT INTO public.failure_counts VALUES ('totp 05da0197-e4e9-444a-96d9-8dd6373bad34', 0, '2026-11-23 05:45:03.920477+00');
INSERT INTO public.failure_counts VALUES ('totp 73d4eb99-6200-4701-a7c5-69549cc6e0f4', 0, '2026-11-23 05:45:04.12652+00');






INSERT INTO public.identities VALUES ('48e0ec6e-722f-44ba-bcfc-e13d34cd1761', '38258bfb-fd7b-4ac8-a0a7-a40adfde2d8c', 'email', '38258bfb-fd7b-4ac8-a0a7-a40adfde2d8c', '{"sub": "38258bfb-fd7b-4ac8-a0a7-a40adfde2d8c", "email": "carol@example.com"}', NULL, '2026-11-22 05:45:01.331352+00', '2026-11-22 05:45:01.331352+00');
INSERT INTO public.identities VALUES ('5db32d50-9f7e-4342-b825-4cb2d6591bfc', 'f3bafb87-4bf8-4fd4-9d9d-f60d0806e37d', 'email', 'f3bafb87-4bf8-4fd4-9d9d-f60d0806e37d', '{"sub": "f3bafb87-4bf8-4fd4-9d9d-f60d0806e37d", "email": "dave@example.com"}', NULL, '2026-11-22 05:45:03.565862+00', '2026-11-22 05:45:03.565862+00');
INSERT INTO public.identities VALUES ('f93cf187-f066-44db-be19-a4e18cb9cb09', '05da0197-e4e9-444a-96d9-8dd6373bad34', 'email', '05da0197-e4e9-444a-96d9-8dd6373bad34', '{"sub": "05da0197-e4e9-444a-96d9-8dd6373bad34", "email": "erin@example.com"}', '2026-11-22 05:45:03.83236+00', '2026-11-22 05:45:03.817072+00', '2026-11-22 05:45:03.817072+00');
INSERT INTO public.identities VALUES ('56df9336-33de-4386-92a7-a3777c23b1c4', '73d4eb99-6200-4701-a7c5-69549cc6e0f4', 'email', '73d4eb99-6200-4701-a7c5-69549cc6e0f4', '{"sub": "73d4eb99-6200-4701-a7c5-69549cc6e0f4", "email": "frank@example.com"}', '2026-11-22 05:45:04.080572+00', '2026-11-22 05:45:04.072974+00', '2026-11-22 05:45:04.072974+00');
INSERT INTO public.identities VALUES ('5e5222eb-7509-4334-a25c-da683c070611', '9c8694d9-6404-45f3-9b90-2ba06d66a015', 'email', '9c8694d9-6404-45f3-9b90-2ba06d66a015', '{"sub": "9c8694d9-6404-45f3-9b90-2ba06d66a015", "email": "alice@example.com"}', '2026-11-22 05:45:04.836347+00', '2026-11-22 05:45:01.128906+00', '2026-11-22 05:45:01.128906+00');






INSERT INTO public.known_networks VALUES ('9c8694d9-6404-45f3-9b90-2ba06d66a015', '127.0.0.1', '2026-11-22 05:45:03.323209+00');
INSERT INTO public.known_networks VALUES ('75533362-043b-4d12-bc94-a1a73c030837', '127.0.0.1', '2026-11-22 05:45:03.730536+00');
INSERT INTO public.known_networks VALUES ('05da0197-e4e9-444a-96d9-8dd6373bad34', '127.0.0.1', '2026-11-22 05:45:03.83236+00');
INSERT INTO public.known_networks VALUES ('73d4eb99-6200-4701-a7c5-69549cc6e0f4', '127.0.0.1', '2026-11-22 05:45:04.080572+00');









INSERT INTO public.one_time_tokens VALUES ('3320582b-d36e-48df-a57a-f5fdeac2db5f', '9c8694d9-6404-45f3-9b90-2ba06d66a015', 'email_change', 'new@example.com', '\xb52d8a422da75b0aa20a125095ac755892862431a4418fb5c7c9c244c79c04df', '\x4f6794b2b5b7753a646203bcedc3139d7dc4a3039945f3d74a5e3e218ffd6524', '2026-11-22 06:45:03.445562+00', 0, NULL, NULL, NULL, 'cc494505-3546-4897-8868-8b882e94dbac', '2026-11-22 05:45:03.445562+00', '2026-11-22 06:45:03.445562+00', NULL, NULL, NULL, NULL, false);
INSERT INTO public.one_time_tokens VALUES ('b32e418c-b80c-439b-83b3-ee26a163811f', 'f3bafb87-4bf8-4fd4-9d9d-f60d0806e37d', 'signup', 'dave@example.com', '\x2422cb9f3cc879390740d4ba60c229d7ad4ac54b419f8b4feaa7c636736e7095', '\xfe6de6fcabd95ff062a83e1efa2178940a3f86be444c6c9a8d0fe1e2a6ed071f', '2026-11-22 06:45:03.565862+00', 0, NULL, NULL, 'latchkey1$2b$04$eoHgxSt3BnCGVoibCcaUTutI4.H59/F8p5hxaLCUT87mVg.o/OY9K', NULL, '2026-11-22 05:45:03.565862+00', '2026-11-22 06:45:03.565862+00', NULL, NULL, '{"name": "Dave"}', 'Werkzeug/3.1.9', false);
INSERT INTO public.one_time_tokens VALUES ('b3e3d3ec-f0ae-471e-833b-7b19c68fffd6', 'f3bafb87-4bf8-4fd4-9d9d-f60d0806e37d', 'magiclink', 'dave@example.com', '\xa6d4f3552dc7bbbf02db4564fff0127692ba94a9ab5571d1687afa6e43d2919e', '\xb8cda3a3aceee0c0b11a5a59e68632e52bffab6db928b36fd33bcda9868e23e9', '2026-11-22 06:45:03.705942+00', 0, NULL, NULL, NULL, NULL, '2026-11-22 05:45:03.705942+00', '2026-11-22 06:45:03.705942+00', NULL, NULL, NULL, NULL, false);
INSERT INTO public.one_time_tokens VALUES ('1008eec0-caa8-49e7-84e4-b191e4bde0a2', '05da0197-e4e9-444a-96d9-8dd6373bad34', 'undo', 'erin@example.com', '\x6d1c466a1702c322fad865da4b94bf1c61a299f2793d7034b8ff4e20e4466345', NULL, NULL, 0, NULL, NULL, NULL, 'ee0f0c5b-ccd7-4596-885d-7623e0fad799', '2026-11-22 05:45:03.920477+00', '2026-11-29 05:45:03.920477+00', NULL, NULL, NULL, NULL, false);
INSERT INTO public.one_time_tokens VALUES ('469de586-b442-4a18-8683-1324ec69d9ca', '05da0197-e4e9-444a-96d9-8dd6373bad34', 'undo', 'erin@example.com', '\xb94431f4458ab4b99e4d09290100b5d74a05ed1be4e42f5f51e0faf79ec9ff28', NULL, NULL, 0, NULL, NULL, NULL, 'ee0f0c5b-ccd7-4596-885d-7623e0fad799', '2026-11-22 05:45:04.046816+00', '2026-11-29 05:45:04.046816+00', NULL, NULL, NULL, NULL, true);
INSERT INTO public.one_time_tokens VALUES ('00943232-cae0-4312-a115-1813c0a32c97', '73d4eb99-6200-4701-a7c5-69549cc6e0f4', 'undo', 'frank@example.com', '\xd4979bf11fc0cc70c9d28d4af3aa4abf20fa859f03d66ee4534dae9d125c7747', NULL, NULL, 0, NULL, NULL, NULL, '104cf28d-0f86-4368-8120-0ed55b9cc5c8', '2026-11-22 05:45:04.12652+00', '2026-11-29 05:45:04.12652+00', NULL, NULL, NULL, NULL, false);
INSERT INTO public.one_time_tokens VALUES ('8fb06408-9f4e-4f30-a55b-f72f372beae0', '73d4eb99-6200-4701-a7c5-69549cc6e0f4', 'undo', 'frank@example.com', '\xe379e31e13b8167becd011e439923a7defbe7f403c8181980d21e9123bde3352', NULL, NULL, 0, NULL, NULL, NULL, '104cf28d-0f86-4368-8120-0ed55b9cc5c8', '2026-11-22 05:45:04.145754+00', '2026-11-29 05:45:04.145754+00', NULL, NULL, NULL, NULL, true);



INSERT INTO public.outbox VALUES ('cd4cb0b3-c764-4b35-a759-be0c6241218c', '9c8694d9-6404-45f3-9b90-2ba06d66a015', 'email', 'email_change', 'new@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9", "redirect_to": null}', '\x547cfe02722c4641cef1c5c772c30960baf4efae871590ef06c3188c629dc1ebe84fa6e2109888215f15b2c25c9a22fd1f7bb75b1d9c6ff4deb42b8aa8a4f067eca58e4598daf902b7f07a31632676dd9315547cc8e5aec6fa4ec0b2db3599e70e97572d6d7b6a60459d', '3320582b-d36e-48df-a57a-f5fdeac2db5f', 0, '2026-11-22 05:45:03.445562+00', '2026-11-22 05:45:03.445562+00', '2026-11-22 06:45:03.445562+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('a2d4b5a7-2476-409e-b084-32642a1b3a59', 'f3bafb87-4bf8-4fd4-9d9d-f60d0806e37d', 'email', 'signup', 'dave@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9", "redirect_to": null}', '\x547cfe02812ad4ec53d06803a6aca40cfd357b7b6ff4fffba5134cb1a79ab25ff3cf08524d31e5c01be1e53b228b37a6b5523603dbd66e1dcaf7fcbc4a1e01d482a71e011e641c1d72980ae883e64699e44fc7e7e21fca5b37a36433b323612d9b0f52098b54802f89b7', 'b32e418c-b80c-439b-83b3-ee26a163811f', 0, '2026-11-22 05:45:03.565862+00', '2026-11-22 05:45:03.565862+00', '2026-11-22 06:45:03.565862+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('731e3bdb-7603-42b6-9db7-ae0b03755ec4', 'f3bafb87-4bf8-4fd4-9d9d-f60d0806e37d', 'email', 'magiclink', 'dave@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9", "redirect_to": null}', '\x547cfe02127b56296104a04c5edcb580abe9d7fe2cc01704917b7b6e8cac710b6ab043e73aa19814fb61c5c7ad0aa8476527dfcdb1d8268dfbdfb7406ef23135e81cd1263f9f96274742576dd1d60ff312058607ea7255b51e42449f1ed80ec3634f5ca12d35bfd3a76d', 'b3e3d3ec-f0ae-471e-833b-7b19c68fffd6', 0, '2026-11-22 05:45:03.705942+00', '2026-11-22 05:45:03.705942+00', '2026-11-22 06:45:03.705942+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('ad46096f-b6b7-4d78-a382-4f51e10aa392', '75533362-043b-4d12-bc94-a1a73c030837', 'webhook', 'user.created', 'a998df4c-d312-4fa2-935a-d4cf68dd6ebd', '{"data": {"user": {"id": "75533362-043b-4d12-bc94-a1a73c030837", "email": null}}, "event_id": "5dbc2dff-04e4-4da7-ad7f-c887a8978833", "timestamp": "2026-11-22T05:45:03.730536Z"}', NULL, NULL, 0, '2026-11-22 05:45:03.730536+00', '2026-11-22 05:45:03.730536+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('139990d8-3324-44f1-8d0f-c9fb52c43ee9', '75533362-043b-4d12-bc94-a1a73c030837', 'webhook', 'auth.login', 'a998df4c-d312-4fa2-935a-d4cf68dd6ebd', '{"data": {"user": {"id": "75533362-043b-4d12-bc94-a1a73c030837", "email": null}}, "event_id": "7f0907d4-62ec-47b6-b4ba-695cf65846f1", "timestamp": "2026-11-22T05:45:03.730536Z"}', NULL, NULL, 0, '2026-11-22 05:45:03.730536+00', '2026-11-22 05:45:03.730536+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('dedbaff9-a137-42f0-95f2-d2090afcf69e', '05da0197-e4e9-444a-96d9-8dd6373bad34', 'webhook', 'user.created', 'a998df4c-d312-4fa2-935a-d4cf68dd6ebd', '{"data": {"user": {"id": "05da0197-e4e9-444a-96d9-8dd6373bad34", "email": "erin@example.com"}}, "event_id": "e329f4d9-de24-42fb-a46b-f8d7f437acc1", "timestamp": "2026-11-22T05:45:03.817072Z"}', NULL, NULL, 0, '2026-11-22 05:45:03.817072+00', '2026-11-22 05:45:03.817072+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('511233a9-031c-4926-9381-66a51c47af88', '05da0197-e4e9-444a-96d9-8dd6373bad34', 'webhook', 'auth.login', 'a998df4c-d312-4fa2-935a-d4cf68dd6ebd', '{"data": {"user": {"id": "05da0197-e4e9-444a-96d9-8dd6373bad34", "email": "erin@example.com"}}, "event_id": "58aa08cd-4c04-4a92-b5db-5eef2a817e78", "timestamp": "2026-11-22T05:45:03.832360Z"}', NULL, NULL, 0, '2026-11-22 05:45:03.83236+00', '2026-11-22 05:45:03.83236+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('ab498ff9-738a-4dfe-85ba-188eae57e6eb', '05da0197-e4e9-444a-96d9-8dd6373bad34', 'email', 'factor_added', 'erin@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9"}', '\x547cfe027194f2e1d4537bcb70ae8b537f1f6c1b175ff062c7c28324f6a0a76be6d35f1d6713caf4e7becfc8e583d2ba42ce92f14e2a010503fe00235e1377422665d748b76a097d44af6802a46cbb163f6968fb07dc5ee1', '1008eec0-caa8-49e7-84e4-b191e4bde0a2', 0, '2026-11-22 05:45:03.920477+00', '2026-11-22 05:45:03.920477+00', '2026-11-29 05:45:03.920477+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('f8a82378-190f-4c24-af9b-ec433f22def1', '05da0197-e4e9-444a-96d9-8dd6373bad34', 'webhook', 'user.updated', 'a998df4c-d312-4fa2-935a-d4cf68dd6ebd', '{"data": {"user": {"id": "05da0197-e4e9-444a-96d9-8dd6373bad34", "email": "erin@example.com"}}, "event_id": "9f35fda2-e218-4dc1-86a0-275610a7a3ff", "timestamp": "2026-11-22T05:45:03.920477Z"}', NULL, NULL, 0, '2026-11-22 05:45:03.920477+00', '2026-11-22 05:45:03.920477+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('b26013dc-8ebd-4828-aa35-a6092379d93c', '05da0197-e4e9-444a-96d9-8dd6373bad34', 'email', 'recovery_codes_created', 'erin@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9"}', NULL, NULL, 0, '2026-11-22 05:45:04.011185+00', '2026-11-22 05:45:04.011185+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('b33f1b35-1b95-4d79-961f-e77f7936ba72', '05da0197-e4e9-444a-96d9-8dd6373bad34', 'email', 'passkey_added', 'erin@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9"}', '\x547cfe02e1be423c4dc1da628e57916b4f44f832aa754e34d75fbbbd7c86137c2bf1a2bc8d9617edc39ba316122a06bf49c7a61b2ea4d8631a16e9fedb85faed8869dfcfcb26dcd6b11f7a028ac90d01c22a4b71b8ae8222', '469de586-b442-4a18-8683-1324ec69d9ca', 0, '2026-11-22 05:45:04.046816+00', '2026-11-22 05:45:04.046816+00', '2026-11-29 05:45:04.046816+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('d1ebb51f-a511-43cd-9c1f-99a39bf7483c', '05da0197-e4e9-444a-96d9-8dd6373bad34', 'webhook', 'user.updated', 'a998df4c-d312-4fa2-935a-d4cf68dd6ebd', '{"data": {"user": {"id": "05da0197-e4e9-444a-96d9-8dd6373bad34", "email": "erin@example.com"}}, "event_id": "c3275921-d00d-4fc2-a9a1-ff1d21982954", "timestamp": "2026-11-22T05:45:04.046816Z"}', NULL, NULL, 0, '2026-11-22 05:45:04.046816+00', '2026-11-22 05:45:04.046816+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('990978b2-d490-4676-b9ae-5ab8bb5fb506', '73d4eb99-6200-4701-a7c5-69549cc6e0f4', 'webhook', 'user.created', 'a998df4c-d312-4fa2-935a-d4cf68dd6ebd', '{"data": {"user": {"id": "73d4eb99-6200-4701-a7c5-69549cc6e0f4", "email": "frank@example.com"}}, "event_id": "42573a9d-34b2-40f2-9a5f-8f3f3dbd380a", "timestamp": "2026-11-22T05:45:04.072974Z"}', NULL, NULL, 0, '2026-11-22 05:45:04.072974+00', '2026-11-22 05:45:04.072974+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('6a4f1be0-e376-4cd1-bbba-75de87c07d61', '73d4eb99-6200-4701-a7c5-69549cc6e0f4', 'webhook', 'auth.login', 'a998df4c-d312-4fa2-935a-d4cf68dd6ebd', '{"data": {"user": {"id": "73d4eb99-6200-4701-a7c5-69549cc6e0f4", "email": "frank@example.com"}}, "event_id": "be428182-778a-4cbb-bdc6-7c55edc618f5", "timestamp": "2026-11-22T05:45:04.080572Z"}', NULL, NULL, 0, '2026-11-22 05:45:04.080572+00', '2026-11-22 05:45:04.080572+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('455ab5fe-6a29-463c-941c-52c03feaca0d', '73d4eb99-6200-4701-a7c5-69549cc6e0f4', 'email', 'factor_added', 'frank@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9"}', '\x547cfe02e48d166ef098408aad321163f58d569065bfc52036ff281b6c7f48a5ca28662a9c7e6d3fa532ab3bc868b040e6b283a551362b8f102ef498e703b1b3b67cfa8396352e8db91b1e1f0a137e1e214ffefb01eb1d54', '00943232-cae0-4312-a115-1813c0a32c97', 0, '2026-11-22 05:45:04.12652+00', '2026-11-22 05:45:04.12652+00', '2026-11-29 05:45:04.12652+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('b46ff5ac-32b1-47e2-8690-8ab03fc8c278', '73d4eb99-6200-4701-a7c5-69549cc6e0f4', 'webhook', 'user.updated', 'a998df4c-d312-4fa2-935a-d4cf68dd6ebd', '{"data": {"user": {"id": "73d4eb99-6200-4701-a7c5-69549cc6e0f4", "email": "frank@example.com"}}, "event_id": "5306c630-6f8b-4f12-a26c-97f1359198dc", "timestamp": "2026-11-22T05:45:04.126520Z"}', NULL, NULL, 0, '2026-11-22 05:45:04.12652+00', '2026-11-22 05:45:04.12652+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('ef10f61b-2724-45d8-92ca-a22f1aebbd39', '73d4eb99-6200-4701-a7c5-69549cc6e0f4', 'email', 'factor_removed', 'frank@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9"}', '\x547cfe02f714aa0642fdab1b51ada0b6c8c48246992d0a5482236ef30f30afb5d7194b86ee919e524050f0bf4bd7e161d5025b333e55046370c24bd28103a78f3123c7c92d00d859279373743c6f8b5d779e15b684767fec', '8fb06408-9f4e-4f30-a55b-f72f372beae0', 0, '2026-11-22 05:45:04.145754+00', '2026-11-22 05:45:04.145754+00', '2026-11-29 05:45:04.145754+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('44af397b-6628-44a0-82b4-399785545a64', '73d4eb99-6200-4701-a7c5-69549cc6e0f4', 'webhook', 'user.updated', 'a998df4c-d312-4fa2-935a-d4cf68dd6ebd', '{"data": {"user": {"id": "73d4eb99-6200-4701-a7c5-69549cc6e0f4", "email": "frank@example.com"}}, "event_id": "4ed53c2c-6762-44fe-88cf-0d764b973565", "timestamp": "2026-11-22T05:45:04.145754Z"}', NULL, NULL, 0, '2026-11-22 05:45:04.145754+00', '2026-11-22 05:45:04.145754+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('0e2d9115-dbac-40dd-bf4e-03f12471d911', '9c8694d9-6404-45f3-9b90-2ba06d66a015', 'webhook', 'auth.login', 'a998df4c-d312-4fa2-935a-d4cf68dd6ebd', '{"data": {"user": {"id": "9c8694d9-6404-45f3-9b90-2ba06d66a015", "email": "alice@example.com"}}, "event_id": "6b7a8a92-b500-471c-8d8d-cb59d41c3b6e", "timestamp": "2026-11-22T05:45:04.836347Z"}', NULL, NULL, 0, '2026-11-22 05:45:04.836347+00', '2026-11-22 05:45:04.836347+00', NULL, NULL, NULL, NULL, NULL);






INSERT INTO public.recovery_codes VALUES ('05da0197-e4e9-444a-96d9-8dd6373bad34', '\xe3641b082a3827e4c2c60b805cf280a5dce67c57b6f30363e7ba571f71db2bc8', '2026-11-22 05:45:04.011185+00', NULL);
INSERT INTO public.recovery_codes VALUES ('05da0197-e4e9-444a-96d9-8dd6373bad34', '\x22edff5a3291bb0b54550097c16034dcb6afe1e4c4051af8377bd5efa95df392', '2026-11-22 05:45:04.011185+00', NULL);
INSERT INTO public.recovery_codes VALUES ('05da0197-e4e9-444a-96d9-8dd6373bad34', '\xdcee8fd6cdd6a85a792d7decf0c53d298319d8ce0206b74038061774f1944927', '2026-11-22 05:45:04.011185+00', NULL);
INSERT INTO public.recovery_codes VALUES ('05da0197-e4e9-444a-96d9-8dd6373bad34', '\x86aa033f6eeed03a961671f4973113714118f605a77e6cd31767e6a1290f90b6', '2026-11-22 05:45:04.011185+00', NULL);
INSERT INTO public.recovery_codes VALUES ('05da0197-e4e9-444a-96d9-8dd6373bad34', '\x8ca7e0d371479a6e3ee7dfbc63b237d556907682ef8dc554f064892a639d65cb', '2026-11-22 05:45:04.011185+00', NULL);
INSERT INTO public.recovery_codes VALUES ('05da0197-e4e9-444a-96d9-8dd6373bad34', '\x35b54f5d98098328fffed19978818ce63ea8e0974f418eca688d72e9b06828ca', '2026-11-22 05:45:04.011185+00', NULL);
INSERT INTO public.recovery_codes VALUES ('05da0197-e4e9-444a-96d9-8dd6373bad34', '\x01cd7e7105e78640257e771ba874f673ed36eed098968adf6ee36d64734b90de', '2026-11-22 05:45:04.011185+00', NULL);
INSERT INTO public.recovery_codes VALUES ('05da0197-e4e9-444a-96d9-8dd6373bad34', '\xc385e96bccba38ade00e851e64a8dd0029997b25601457a846f38bbc9c009097', '2026-11-22 05:45:04.011185+00', NULL);
INSERT INTO public.recovery_codes VALUES ('05da0197-e4e9-444a-96d9-8dd6373bad34', '\xe215e707d3e321effa8b20e1c0838b81783ae92037a8e935d65eca1d0e869d5b', '2026-11-22 05:45:04.011185+00', NULL);
INSERT INTO public.recovery_codes VALUES ('05da0197-e4e9-444a-96d9-8dd6373bad34', '\xec33543071b65efa3227772384fb34de2c0e4ffd32e098624179c0b683692b0b', '2026-11-22 05:45:04.011185+00', NULL);






INSERT INTO public.schema_version VALUES (15, '2026-11-22 05:45:00.020372+00', 'f09dd2e681f13d8c8d6d872b6877656c0ee1400d9958594472a2c502359c2959');



INSERT INTO public.sessions VALUES ('cc494505-3546-4897-8868-8b882e94dbac', '9c8694d9-6404-45f3-9b90-2ba06d66a015', 0, 'password', '127.0.0.1', 'Werkzeug/3.1.9', '2026-11-22 05:45:03.323209+00', '2026-11-22 05:45:03.323209+00', 0, '2026-11-22 05:45:03.323209+00', NULL, NULL, NULL, 'aal1', NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('5fcf37e7-fcf8-43fc-8df0-dbf5aafb7a54', '75533362-043b-4d12-bc94-a1a73c030837', 0, 'anonymous', '127.0.0.1', 'Werkzeug/3.1.9', '2026-11-22 05:45:03.730536+00', '2026-11-22 05:45:03.730536+00', 0, '2026-11-22 05:45:03.730536+00', NULL, NULL, NULL, 'aal1', NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('ee0f0c5b-ccd7-4596-885d-7623e0fad799', '05da0197-e4e9-444a-96d9-8dd6373bad34', 2, 'password', '127.0.0.1', 'Werkzeug/3.1.9', '2026-11-22 05:45:03.83236+00', '2026-11-22 05:45:03.920477+00', 0, '2026-11-22 05:45:03.83236+00', NULL, NULL, '2026-11-22 05:45:03.920477+00', 'aal2', '[{"method": "password", "timestamp": 1795326303}, {"method": "totp", "timestamp": 1795326303}]', '55e3fd7a-d55c-42c1-bd84-fd54d6c7291b', NULL);
INSERT INTO public.sessions VALUES ('104cf28d-0f86-4368-8120-0ed55b9cc5c8', '73d4eb99-6200-4701-a7c5-69549cc6e0f4', 2, 'password', '127.0.0.1', 'Werkzeug/3.1.9', '2026-11-22 05:45:04.080572+00', '2026-11-22 05:45:04.12652+00', 0, '2026-11-22 05:45:04.080572+00', NULL, NULL, '2026-11-22 05:45:04.12652+00', 'aal1', '[{"method": "password", "timestamp": 1795326304}, {"method": "totp", "timestamp": 1795326304}]', NULL, NULL);
INSERT INTO public.sessions VALUES ('8a2d1d5a-12f2-40b0-be12-dc3d218e62d3', '9c8694d9-6404-45f3-9b90-2ba06d66a015', 0, 'password', '127.0.0.1', 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', '2026-11-22 05:45:04.836347+00', '2026-11-22 05:45:04.836347+00', 0, '2026-11-22 05:45:04.836347+00', NULL, NULL, NULL, 'aal1', NULL, NULL, NULL);






INSERT INTO public.user_objects VALUES ('38258bfb-fd7b-4ac8-a0a7-a40adfde2d8c', '{"id": "38258bfb-fd7b-4ac8-a0a7-a40adfde2d8c", "role": "admin", "email": "carol@example.com", "phone": null, "new_email": null, "new_phone": null, "created_at": "2026-11-22T05:45:01.331352Z", "identities": [{"id": "48e0ec6e-722f-44ba-bcfc-e13d34cd1761", "user_id": "38258bfb-fd7b-4ac8-a0a7-a40adfde2d8c", "provider": "email", "created_at": "2026-11-22T05:45:01.331352Z", "updated_at": "2026-11-22T05:45:01.331352Z", "identity_id": "48e0ec6e-722f-44ba-bcfc-e13d34cd1761", "identity_data": {"sub": "38258bfb-fd7b-4ac8-a0a7-a40adfde2d8c", "email": "carol@example.com"}, "last_sign_in_at": null}], "invited_at": null, "updated_at": "2026-11-22T05:45:01.331352Z", "app_metadata": {"provider": "email", "providers": ["email"]}, "banned_until": null, "confirmed_at": "2026-11-22T05:45:01.331352Z", "is_anonymous": false, "user_metadata": {}, "last_sign_in_at": null, "email_confirmed_at": "2026-11-22T05:45:01.331352Z", "phone_confirmed_at": null, "confirmation_sent_at": null, "email_change_sent_at": null, "phone_change_sent_at": null}', '-infinity');
INSERT INTO public.user_objects VALUES ('f3bafb87-4bf8-4fd4-9d9d-f60d0806e37d', '{"id": "f3bafb87-4bf8-4fd4-9d9d-f60d0806e37d", "role": "authenticated", "email": "dave@example.com", "phone": null, "new_email": null, "new_phone": null, "created_at": "2026-11-22T05:45:03.565862Z", "identities": [{"id": "5db32d50-9f7e-4342-b825-4cb2d6591bfc", "user_id": "f3bafb87-4bf8-4fd4-9d9d-f60d0806e37d", "provider": "email", "created_at": "2026-11-22T05:45:03.565862Z", "updated_at": "2026-11-22T05:45:03.565862Z", "identity_id": "5db32d50-9f7e-4342-b825-4cb2d6591bfc", "identity_data": {"sub": "f3bafb87-4bf8-4fd4-9d9d-f60d0806e37d", "email": "dave@example.com"}, "last_sign_in_at": null}], "invited_at": null, "updated_at": "2026-11-22T05:45:03.565862Z", "app_metadata": {"provider": "email", "providers": ["email"]}, "banned_until": null, "confirmed_at": null, "is_anonymous": false, "user_metadata": {"name": "Dave"}, "last_sign_in_at": null, "email_confirmed_at": null, "phone_confirmed_at": null, "confirmation_sent_at": "2026-11-22T05:45:03.565862Z", "email_change_sent_at": null, "phone_change_sent_at": null}', '-infinity');
INSERT INTO public.user_objects VALUES ('75533362-043b-4d12-bc94-a1a73c030837', '{"id": "75533362-043b-4d12-bc94-a1a73c030837", "role": "authenticated", "email": null, "phone": null, "new_email": null, "new_phone": null, "created_at": "2026-11-22T05:45:03.730536Z", "identities": [], "invited_at": null, "updated_at": "2026-11-22T05:45:03.730536Z", "app_metadata": {"provider": null, "providers": []}, "banned_until": null, "confirmed_at": null, "is_anonymous": true, "user_metadata": {}, "last_sign_in_at": "2026-11-22T05:45:03.730536Z", "email_confirmed_at": null, "phone_confirmed_at": null, "confirmation_sent_at": null, "email_change_sent_at": null, "phone_change_sent_at": null}', '2026-11-22 05:45:03.730536+00');
INSERT INTO public.user_objects VALUES ('9c8694d9-6404-45f3-9b90-2ba06d66a015', '{"id": "9c8694d9-6404-45f3-9b90-2ba06d66a015", "role": "authenticated", "email": "alice@example.com", "phone": null, "new_email": "new@example.com", "new_phone": null, "created_at": "2026-11-22T05:45:01.128906Z", "identities": [{"id": "5e5222eb-7509-4334-a25c-da683c070611", "user_id": "9c8694d9-6404-45f3-9b90-2ba06d66a015", "provider": "email", "created_at": "2026-11-22T05:45:01.128906Z", "updated_at": "2026-11-22T05:45:01.128906Z", "identity_id": "5e5222eb-7509-4334-a25c-da683c070611", "identity_data": {"sub": "9c8694d9-6404-45f3-9b90-2ba06d66a015", "email": "alice@example.com"}, "last_sign_in_at": "2026-11-22T05:45:04.836347Z"}], "invited_at": null, "updated_at": "2026-11-22T05:45:03.445562Z", "app_metadata": {"provider": "email", "providers": ["email"]}, "banned_until": null, "confirmed_at": "2026-11-22T05:45:01.128906Z", "is_anonymous": false, "user_metadata": {}, "last_sign_in_at": "2026-11-22T05:45:04.836347Z", "email_confirmed_at": "2026-11-22T05:45:01.128906Z", "phone_confirmed_at": null, "confirmation_sent_at": null, "email_change_sent_at": "2026-11-22T05:45:03.445562Z", "phone_change_sent_at": null}', '2026-11-22 05:45:04.836347+00');
INSERT INTO public.user_objects VALUES ('05da0197-e4e9-444a-96d9-8dd6373bad34', '{"id": "05da0197-e4e9-444a-96d9-8dd6373bad34", "role": "authenticated", "email": "erin@example.com", "phone": null, "factors": [{"id": "55e3fd7a-d55c-42c1-bd84-fd54d6c7291b", "status": "verified", "created_at": "2026-11-22T05:45:03.862464Z", "updated_at": "2026-11-22T05:45:03.920477Z", "factor_type": "totp", "friendly_name": ""}], "new_email": null, "new_phone": null, "created_at": "2026-11-22T05:45:03.817072Z", "identities": [{"id": "f93cf187-f066-44db-be19-a4e18cb9cb09", "user_id": "05da0197-e4e9-444a-96d9-8dd6373bad34", "provider": "email", "created_at": "2026-11-22T05:45:03.817072Z", "updated_at": "2026-11-22T05:45:03.817072Z", "identity_id": "f93cf187-f066-44db-be19-a4e18cb9cb09", "identity_data": {"sub": "05da0197-e4e9-444a-96d9-8dd6373bad34", "email": "erin@example.com"}, "last_sign_in_at": "2026-11-22T05:45:03.832360Z"}], "invited_at": null, "updated_at": "2026-11-22T05:45:03.817072Z", "app_metadata": {"provider": "email", "providers": ["email"]}, "banned_until": null, "confirmed_at": "2026-11-22T05:45:03.817072Z", "is_anonymous": false, "user_metadata": {}, "last_sign_in_at": "2026-11-22T05:45:03.832360Z", "email_confirmed_at": "2026-11-22T05:45:03.817072Z", "phone_confirmed_at": null, "confirmation_sent_at": null, "email_change_sent_at": null, "phone_change_sent_at": null}', '2026-11-22 05:45:03.83236+00');
INSERT INTO public.user_objects VALUES ('73d4eb99-6200-4701-a7c5-69549cc6e0f4', '{"id": "73d4eb99-6200-4701-a7c5-69549cc6e0f4", "role": "authenticated", "email": "frank@example.com", "phone": null, "new_email": null, "new_phone": null, "created_at": "2026-11-22T05:45:04.072974Z", "identities": [{"id": "56df9336-33de-4386-92a7-a3777c23b1c4", "user_id": "73d4eb99-6200-4701-a7c5-69549cc6e0f4", "provider": "email", "created_at": "2026-11-22T05:45:04.072974Z", "updated_at": "2026-11-22T05:45:04.072974Z", "identity_id": "56df9336-33de-4386-92a7-a3777c23b1c4", "identity_data": {"sub": "73d4eb99-6200-4701-a7c5-69549cc6e0f4", "email": "frank@example.com"}, "last_sign_in_at": "2026-11-22T05:45:04.080572Z"}], "invited_at": null, "updated_at": "2026-11-22T05:45:04.072974Z", "app_metadata": {"provider": "email", "providers": ["email"]}, "banned_until": null, "confirmed_at": "2026-11-22T05:45:04.072974Z", "is_anonymous": false, "user_metadata": {}, "last_sign_in_at": "2026-11-22T05:45:04.080572Z", "email_confirmed_at": "2026-11-22T05:45:04.072974Z", "phone_confirmed_at": null, "confirmation_sent_at": null, "email_change_sent_at": null, "phone_change_sent_at": null}', '2026-11-22 05:45:04.080572+00');



INSERT INTO public.users VALUES ('38258bfb-fd7b-4ac8-a0a7-a40adfde2d8c', 'admin', 'carol@example.com', '2026-11-22 05:45:01.331352+00', true, NULL, NULL, false, 'latchkey1$2b$04$iKIXXiXIdArNI2mX6Dv6F.PsdVQl8jnKuQqDi7ZPK/c3benhDZaXm', '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 05:45:01.331352+00', 'administrator', NULL, '2026-11-22 05:45:01.331352+00', '2026-11-22 05:45:01.331352+00', NULL);
INSERT INTO public.users VALUES ('f3bafb87-4bf8-4fd4-9d9d-f60d0806e37d', 'authenticated', 'dave@example.com', NULL, false, NULL, NULL, false, 'latchkey1$2b$04$eoHgxSt3BnCGVoibCcaUTutI4.H59/F8p5hxaLCUT87mVg.o/OY9K', '{}', '{"name": "Dave"}', NULL, NULL, NULL, NULL, '2026-11-22 05:45:03.565862+00', NULL, NULL, NULL, NULL, 'signup', 'Werkzeug/3.1.9', '2026-11-22 05:45:03.565862+00', '2026-11-22 05:45:03.565862+00', NULL);
INSERT INTO public.users VALUES ('75533362-043b-4d12-bc94-a1a73c030837', 'authenticated', NULL, NULL, false, NULL, NULL, false, NULL, '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 05:45:03.730536+00', NULL, NULL, 'anonymous', NULL, '2026-11-22 05:45:03.730536+00', '2026-11-22 05:45:03.730536+00', NULL);
INSERT INTO public.users VALUES ('05da0197-e4e9-444a-96d9-8dd6373bad34', 'authenticated', 'erin@example.com', '2026-11-22 05:45:03.817072+00', true, NULL, NULL, false, 'latchkey1$2b$04$iKIXXiXIdArNI2mX6Dv6F.PsdVQl8jnKuQqDi7ZPK/c3benhDZaXm', '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 05:45:03.83236+00', NULL, NULL, 'administrator', NULL, '2026-11-22 05:45:03.817072+00', '2026-11-22 05:45:03.817072+00', NULL);
INSERT INTO public.users VALUES ('73d4eb99-6200-4701-a7c5-69549cc6e0f4', 'authenticated', 'frank@example.com', '2026-11-22 05:45:04.072974+00', true, NULL, NULL, false, 'latchkey1$2b$04$iKIXXiXIdArNI2mX6Dv6F.PsdVQl8jnKuQqDi7ZPK/c3benhDZaXm', '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 05:45:04.080572+00', NULL, NULL, 'administrator', NULL, '2026-11-22 05:45:04.072974+00', '2026-11-22 05:45:04.072974+00', NULL);
INSERT INTO public.users VALUES ('9c8694d9-6404-45f3-9b90-2ba06d66a015', 'authenticated', 'alice@example.com', '2026-11-22 05:45:01.128906+00', true, NULL, NULL, false, 'latchkey1$2b$04$iKIXXiXIdArNI2mX6Dv6F.PsdVQl8jnKuQqDi7ZPK/c3benhDZaXm', '{}', '{}', 'new@example.com', '2026-11-22 05:45:03.445562+00', NULL, NULL, NULL, NULL, '2026-11-22 05:45:04.836347+00', NULL, NULL, 'administrator', NULL, '2026-11-22 05:45:01.128906+00', '2026-11-22 05:45:03.445562+00', NULL);



INSERT INTO public.webhooks VALUES ('a998df4c-d312-4fa2-935a-d4cf68dd6ebd', 'https://192.0.1.1/events', NULL, '{user.created,user.updated,user.deleted,auth.login,auth.logout}', '\x547cfe0289df476df108532c64530472a2bc29783a12174d631a9166fcb1655abc51e9ed039ed146037f5ea8cdda7a78285560aebe86e267d585e1a8292e2a0a53364bf33b029828bdd75ef7456275d73faa', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 05:45:03.679301+00', '2026-11-22 05:45:03.679301+00');



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




