


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
    first_factor_at timestamp with time zone,
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
  UPDATE users SET first_factor_at = NEW.verified_at
   WHERE id = NEW.user_id AND NEW.verified_at < coalesce(first_factor_at, 'infinity');
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
  WITH logged AS MATERIALIZED (
    SELECT a.at, a.id, entry.kind, a.action AS name, a.reason, a.count::bigint, a.actor, a.actor_id, a.ip,
           a.user_agent, a.request_id, a.details
      FROM audit_log AS a
     CROSS JOIN LATERAL (SELECT CASE WHEN a.reason IS NULL THEN 'act' ELSE 'refusal' END) AS entry (kind)
     WHERE a.user_id = owner AND a.at <= before
       AND (a.at, place_in_moment(a.action), a.id) < (before, place, last_id)
       AND (wanted IS NULL OR wanted IN ('act', 'refusal') AND entry.kind = wanted)
     ORDER BY a.at DESC, place_in_moment(a.action) DESC, a.id DESC
     LIMIT most
  ), reach AS MATERIALIZED (
    SELECT CASE WHEN count(*) < most THEN '-infinity' ELSE min(logged.at) END AS since FROM logged
  )
  SELECT item.*
    FROM (
      SELECT * FROM logged
       UNION ALL
      SELECT s.at, s.id, 'session', s.name, s.reason, s.count, NULL, NULL, s.ip, s.user_agent, NULL, s.details
        FROM reach
       CROSS JOIN timeline_of_sessions(owner, lifetime, timebox, most, reach.since, before, place, last_id)
               AS s
       WHERE wanted IS NULL OR wanted = 'session'
       UNION ALL
      SELECT coalesce(m.finished_at, m.created_at), m.id,
             CASE m.channel WHEN 'webhook' THEN 'event' ELSE 'message' END, m.kind,
             NULL, 1, NULL, NULL, NULL, NULL, NULL,
             message_details(m, coalesce(origin_of(w.url), m.recipient))
        FROM reach
        JOIN outbox AS m ON m.user_id = owner AND coalesce(m.finished_at, m.created_at) >= reach.since
        LEFT JOIN webhooks AS w ON m.channel = 'webhook' AND w.id::text = m.recipient
       WHERE m.channel IS NOT NULL
         AND (wanted IS NULL OR wanted = CASE m.channel WHEN 'webhook' THEN 'event' ELSE 'message' END)
    ) AS item
   WHERE (item.at, place_in_moment(item.name), item.id) < (before, place, last_id)
$$;



CREATE FUNCTION public.timeline_of_sessions(owner uuid, lifetime integer, timebox integer, most bigint, since timestamp with time zone, before timestamp with time zone, place integer, last_id uuid) RETURNS TABLE(at timestamp with time zone, id uuid, name text, reason text, count bigint, ip inet, user_agent text, details jsonb)
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  (SELECT s.created_at, s.id, 'began', NULL::text, 1::bigint, s.ip, s.user_agent,
          jsonb_build_object('method', s.method)
     FROM sessions AS s
    WHERE s.user_id = owner AND s.created_at BETWEEN since AND before
      AND (s.created_at, place_in_moment('began'), s.id) < (before, place, last_id)
      AND NOT EXISTS (SELECT
                        FROM audit_log AS a
                       WHERE a.user_id = owner AND a.at = s.created_at AND a.action = 'signed_in')
    ORDER BY s.created_at DESC, s.id DESC
    LIMIT most)
   UNION ALL
  (SELECT s.ended_at, min(s.id::text)::uuid, 'ended', s.end_reason, count(*), NULL, NULL, '{}'
     FROM sessions AS s
    WHERE s.user_id = owner AND s.ended_at BETWEEN since AND before
      AND NOT EXISTS (SELECT
                        FROM audit_log AS a
                       WHERE a.user_id = owner AND a.at = s.ended_at
                         AND a.action IN ('session_ended', 'signed_out', 'refresh_token_reused',
                                          'authorization_code_reused'))
    GROUP BY s.ended_at, s.end_reason
   HAVING (s.ended_at, place_in_moment('ended'), min(s.id::text)::uuid) < (before, place, last_id)
    ORDER BY s.ended_at DESC, min(s.id::text) DESC
    LIMIT most)
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



INSERT INTO public.audit_log VALUES ('10d82fdb-770c-4df2-b926-b097976a50d8', '2026-11-22 09:13:12.015299+00', 'user_created', NULL, '80880d06-7e0a-44b5-a726-674aab337b7b', 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'a85cac65-fe10-4ee9-a3c7-0f4c3da22e21', 1, '{"by": "administrator", "role": "authenticated"}');
INSERT INTO public.audit_log VALUES ('1ed1059c-dd70-4f25-8cc8-8030a49d4309', '2026-11-22 09:13:12.0517+00', 'user_created', NULL, '7bb9e65f-123a-477f-9283-331925cb1def', 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'b4006bcd-fca3-43ce-b371-cfbffa1b8884', 1, '{"by": "administrator", "role": "admin"}');
INSERT INTO public.audit_log VALUES ('50cf732d-4a98-740d-cb55-37a91325ae4a', '2026-11-22 09:13:12.095002+00', 'sign_in_refused', 'invalid_credentials', '80880d06-7e0a-44b5-a726-674aab337b7b', 'anonymous', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '93b21ba1-35eb-4dd9-8cf2-a0e69235bfb6', 1, '{"of": 10, "tries": null}');
INSERT INTO public.audit_log VALUES ('ba90e463-069b-43ba-8b48-c364a8a78c1d', '2026-11-22 09:13:13.263183+00', 'signed_in', NULL, '80880d06-7e0a-44b5-a726-674aab337b7b', 'user', '80880d06-7e0a-44b5-a726-674aab337b7b', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'd8ddbcc1-6227-4ee5-a93e-e166952f7999', 1, '{"method": "password", "session_id": "ab87d0a7-e17c-4530-958c-6358029184f1"}');
INSERT INTO public.audit_log VALUES ('113469ea-68dd-4c7f-abb5-e7a2affffeb1', '2026-11-22 09:13:13.404034+00', 'email_change_requested', NULL, '80880d06-7e0a-44b5-a726-674aab337b7b', 'user', '80880d06-7e0a-44b5-a726-674aab337b7b', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'fbe4972d-34a2-4632-b01a-28daa87d07f6', 1, '{"new_email": "new@example.com"}');
INSERT INTO public.audit_log VALUES ('25a2fddd-9365-453f-9d7a-310b95f8d59c', '2026-11-22 09:13:13.504944+00', 'user_created', NULL, '0f457742-b52b-43a1-9a3b-ac7cd86f7789', 'anonymous', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '2a920f01-da4a-4d16-be5f-268a3ec77eb2', 1, '{"by": "signup", "method": "password"}');
INSERT INTO public.audit_log VALUES ('efc005e1-e72b-411e-b17c-4ed2539ca981', '2026-11-22 09:13:13.550208+00', 'webhook_created', NULL, NULL, 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '1a71c067-7264-4632-82da-06a96208052e', 1, '{"url": "https://192.0.1.1", "webhook_id": "da837730-fef6-4676-9a33-690ef86078c5"}');
INSERT INTO public.audit_log VALUES ('ed009f4b-aee2-489f-af8e-112f8186af27', '2026-11-22 09:13:13.569951+00', 'message_requested', NULL, '0f457742-b52b-43a1-9a3b-ac7cd86f7789', 'anonymous', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'eb6c2c4e-8929-46a9-b8da-e32b0b0800da', 1, '{"is_sent": true, "purpose": "magiclink"}');
INSERT INTO public.audit_log VALUES ('7a08d176-ec81-41e6-959c-0b1df646aa1c', '2026-11-22 09:13:13.601622+00', 'user_created', NULL, '2901feb6-1d4a-488c-8972-43b460eb24e0', 'user', '2901feb6-1d4a-488c-8972-43b460eb24e0', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '5a17d5b6-aad9-44d3-b417-316c8f85407c', 1, '{"by": "anonymous", "method": "anonymous", "session_id": "e451ebf3-92d9-4d68-9643-202c64d567be"}');
INSERT INTO public.audit_log VALUES ('dfb20a87-616a-42cb-b756-fa453c83f1e0', '2026-11-22 09:13:13.601622+00', 'signed_in', NULL, '2901feb6-1d4a-488c-8972-43b460eb24e0', 'user', '2901feb6-1d4a-488c-8972-43b460eb24e0', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '5a17d5b6-aad9-44d3-b417-316c8f85407c', 1, '{"by": "anonymous", "method": "anonymous", "session_id": "e451ebf3-92d9-4d68-9643-202c64d567be"}');
INSERT INTO public.audit_log VALUES ('46aac038-0e54-4814-8ada-f84e9be5ae4a', '2026-11-22 09:13:13.639306+00', 'user_created', NULL, '50da516c-ea88-43e4-9078-86985b2a960e', 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '715a0f8b-fb26-4772-8d70-2cd5c8d9fde2', 1, '{"by": "administrator", "role": "authenticated"}');
INSERT INTO public.audit_log VALUES ('3f9149e0-f7d4-46bc-92a4-9b2ae2fdc77b', '2026-11-22 09:13:13.662232+00', 'signed_in', NULL, '50da516c-ea88-43e4-9078-86985b2a960e', 'user', '50da516c-ea88-43e4-9078-86985b2a960e', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '160b1151-1924-4958-baf3-02adea71b34f', 1, '{"method": "password", "session_id": "389c306d-5e7f-4e3f-a07a-229833f0f441"}');
INSERT INTO public.audit_log VALUES ('7d146780-47c5-42d6-b39f-d8762731cea2', '2026-11-22 09:13:13.807368+00', 'factor_added', NULL, '50da516c-ea88-43e4-9078-86985b2a960e', 'user', '50da516c-ea88-43e4-9078-86985b2a960e', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '00db5d2e-07cb-44c3-a37e-d049325f13f1', 1, '{"factor_type": "totp"}');
INSERT INTO public.audit_log VALUES ('50abf2bc-1f09-4db7-b5b4-7f2001a3d1f7', '2026-11-22 09:13:13.881622+00', 'recovery_codes_created', NULL, '50da516c-ea88-43e4-9078-86985b2a960e', 'user', '50da516c-ea88-43e4-9078-86985b2a960e', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '2a06f4ee-322a-4cc7-bbb9-9069eb9f5cc2', 1, '{}');
INSERT INTO public.audit_log VALUES ('6d45327c-28d5-4ea5-b666-8dd829c704d0', '2026-11-22 09:13:13.952403+00', 'passkey_added', NULL, '50da516c-ea88-43e4-9078-86985b2a960e', 'user', '50da516c-ea88-43e4-9078-86985b2a960e', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '1340c69b-74a8-43db-b3f9-3f5e6ec349ce', 1, '{"passkey": "Passkey"}');
INSERT INTO public.audit_log VALUES ('64d7463a-3659-4044-ac6c-5529348d22b7', '2026-11-22 09:13:14.017778+00', 'user_created', NULL, 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', 'service_role', NULL, '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', 'a1e066cf-69ef-4e12-abb8-0bc916284b30', 1, '{"by": "administrator", "role": "authenticated"}');
INSERT INTO public.audit_log VALUES ('1f612200-8d52-4ca6-9b1d-56e584a9c7b5', '2026-11-22 09:13:14.042158+00', 'signed_in', NULL, 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', 'user', 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '3108bd22-1710-457a-adf1-2539423935df', 1, '{"method": "password", "session_id": "9964259b-36a9-4635-af2b-3f71eff41e27"}');
INSERT INTO public.audit_log VALUES ('bf583d38-234d-47be-af85-459b4f91524b', '2026-11-22 09:13:14.13302+00', 'factor_added', NULL, 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', 'user', 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '080d9cd2-5ee6-4752-8640-840d3ccebb45', 1, '{"factor_type": "totp"}');
INSERT INTO public.audit_log VALUES ('5451b187-856a-4e9b-af0f-0488574d4759', '2026-11-22 09:13:14.183594+00', 'factor_removed', NULL, 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', 'user', 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', '127.0.0.1', '127.0.0.1', 'Werkzeug/3.1.9', '24b7cfbe-4d34-4929-bffe-1f537d3f1a3c', 1, '{"factor_type": "totp"}');
INSERT INTO public.audit_log VALUES ('9e3e9ab8-5942-4e99-8915-f6cbf54d88b8', '2026-11-22 09:13:14.5954+00', 'signed_in', NULL, '80880d06-7e0a-44b5-a726-674aab337b7b', 'user', '80880d06-7e0a-44b5-a726-674aab337b7b', '127.0.0.1', '127.0.0.1', 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', '2e6df291-55b1-4e9f-b8b5-6d20f2a4a016', 1, '{"method": "password", "session_id": "740d2480-d811-4f3c-a4a3-02fb16737a10"}');






INSERT INTO public.browser_sessions VALUES ('\x20add3e03b9de2fc485e217baa4b10ecd6514e09088041b5b48650241b6af586', '80880d06-7e0a-44b5-a726-674aab337b7b', '740d2480-d811-4f3c-a4a3-02fb16737a10', '2026-11-22 09:13:14.611815+00');






INSERT INTO public.factor_challenges VALUES ('b07dd34e-9912-47df-b45b-b111a8fb7dc0', '50da516c-ea88-43e4-9078-86985b2a960e', '389c306d-5e7f-4e3f-a07a-229833f0f441', '8fe839f9-4c59-4b95-98b8-8c4a051e2d82', 'totp', NULL, 0, '2026-11-22 09:13:13.694492+00', '2026-11-22 09:18:13.694492+00');
INSERT INTO public.factor_challenges VALUES ('f2feec42-f3a4-47b2-921e-84548a667dbc', '50da516c-ea88-43e4-9078-86985b2a960e', '389c306d-5e7f-4e3f-a07a-229833f0f441', '8fe839f9-4c59-4b95-98b8-8c4a051e2d82', 'totp', NULL, 0, '2026-11-22 09:13:14.004631+00', '2026-11-22 09:18:14.004631+00');



INSERT INTO public.factors VALUES ('8fe839f9-4c59-4b95-98b8-8c4a051e2d82', '50da516c-ea88-43e4-9078-86985b2a960e', 'totp', '', '2026-11-22 09:13:13.807368+00', '2026-11-22 09:13:13.807368+00', '2026-11-22 09:13:13.694492+00', '2026-11-22 09:13:13.807368+00', '\xd1e86535178f9f05daf6990a04e5caedc6e980503b4be0afab17e5b479d5f85d3a2d5c383991b3b82d819321e9a0886262430d47f98ae912a327f10c8b0069a4', 59844625, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.factors VALUES ('8fb04390-1a09-46fa-bbba-ebcc67ed325d', '50da516c-ea88-43e4-9078-86985b2a960e', 'passkey', 'Passkey', '2026-11-22 09:13:13.952403+00', NULL, '2026-11-22 09:13:13.952403+00', '2026-11-22 09:13:13.952403+00', NULL, NULL, '\x0063968f05d1671572cb2602983a73e00859f66ce8581dd88abdf43930c12096', '\xa5010203262001215820020b881d90eca61f069f1b29a070ae2774b21f2d0a2d34816d3100446abf9c21225820f30310b5d99fe5d966ecbf0c9443e1f16b9809551252b6f73af0b92e73aee499', 0, '{internal,hybrid}', '00000000-0000-0000-0000-000000000000', false, false);



INSERT INTO public.failure_counts VALUES ('totp 50da516c-ea88-43e4-9078-86985b2a960e', 0, '2026-11-23 09:13:13.807368+00');
INSERT INTO public.failure_counts VALUES ('totp f7bed7be-59a3-4064-9a34-bd4eb3be5b39', 0, '2026-11-23 09:13:14.13302+00');






INSERT INTO public.identities VALUES ('c9f9ecc9-51da-4826-919a-ac2499cc5505', '7bb9e65f-123a-477f-9283-331925cb1def', 'email', '7bb9e65f-123a-477f-9283-331925cb1def', '{"sub": "7bb9e65f-123a-477f-9283-331925cb1def", "email": "carol@example.com"}', NULL, '2026-11-22 09:13:12.0517+00', '2026-11-22 09:13:12.0517+00');
INSERT INTO public.identities VALUES ('d8da2fb0-6e20-4734-96e2-62947cd7de1f', '0f457742-b52b-43a1-9a3b-ac7cd86f7789', 'email', '0f457742-b52b-43a1-9a3b-ac7cd86f7789', '{"sub": "0f457742-b52b-43a1-9a3b-ac7cd86f7789", "email": "dave@example.com"}', NULL, '2026-11-22 09:13:13.504944+00', '2026-11-22 09:13:13.504944+00');
INSERT INTO public.identities VALUES ('cd094963-7092-4758-b8d2-c835800d3801', '50da516c-ea88-43e4-9078-86985b2a960e', 'email', '50da516c-ea88-43e4-9078-86985b2a960e', '{"sub": "50da516c-ea88-43e4-9078-86985b2a960e", "email": "erin@example.com"}', '2026-11-22 09:13:13.662232+00', '2026-11-22 09:13:13.639306+00', '2026-11-22 09:13:13.639306+00');
INSERT INTO public.identities VALUES ('beb9563c-68b8-467c-8811-e2958c29df82', 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', 'email', 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', '{"sub": "f7bed7be-59a3-4064-9a34-bd4eb3be5b39", "email": "frank@example.com"}', '2026-11-22 09:13:14.042158+00', '2026-11-22 09:13:14.017778+00', '2026-11-22 09:13:14.017778+00');
INSERT INTO public.identities VALUES ('0a7285b8-5f79-4a49-93c0-781c9c4c3814', '80880d06-7e0a-44b5-a726-674aab337b7b', 'email', '80880d06-7e0a-44b5-a726-674aab337b7b', '{"sub": "80880d06-7e0a-44b5-a726-674aab337b7b", "email": "alice@example.com"}', '2026-11-22 09:13:14.5954+00', '2026-11-22 09:13:12.015299+00', '2026-11-22 09:13:12.015299+00');






INSERT INTO public.known_networks VALUES ('80880d06-7e0a-44b5-a726-674aab337b7b', '127.0.0.1', '2026-11-22 09:13:13.263183+00');
INSERT INTO public.known_networks VALUES ('2901feb6-1d4a-488c-8972-43b460eb24e0', '127.0.0.1', '2026-11-22 09:13:13.601622+00');
INSERT INTO public.known_networks VALUES ('50da516c-ea88-43e4-9078-86985b2a960e', '127.0.0.1', '2026-11-22 09:13:13.662232+00');
INSERT INTO public.known_networks VALUES ('f7bed7be-59a3-4064-9a34-bd4eb3be5b39', '127.0.0.1', '2026-11-22 09:13:14.042158+00');









INSERT INTO public.one_time_tokens VALUES ('22b25b58-71b2-4602-ba55-c1ae40e83466', '80880d06-7e0a-44b5-a726-674aab337b7b', 'email_change', 'new@example.com', '\xdab2cbb0084ecc5c99279f2c244c13a33b63f81454c1782b6ae44475260a779a', '\xe2af4efccb75a287621c7bad3635a9a79972d9c27f523f26b186d156e0778dc8', '2026-11-22 10:13:13.404034+00', 0, NULL, NULL, NULL, 'ab87d0a7-e17c-4530-958c-6358029184f1', '2026-11-22 09:13:13.404034+00', '2026-11-22 10:13:13.404034+00', NULL, NULL, NULL, NULL, false);
INSERT INTO public.one_time_tokens VALUES ('b5023d6c-ed13-4abb-83f9-afc44f6eeff0', '0f457742-b52b-43a1-9a3b-ac7cd86f7789', 'signup', 'dave@example.com', '\xa555f213d067b5651d209cfd49d8fccf42c141ca6045f6851ac7dc34a8ebcbcb', '\x4a34c791b9cd28ac8f092de8f50705460be92fb0bf7e471659a458f5c84428db', '2026-11-22 10:13:13.504944+00', 0, NULL, NULL, 'latchkey1$2b$04$j.v4njR8iuQSF5Ts3y9cYObRcCwHbWnLwlBbIPPl7LRLERuDQRGAC', NULL, '2026-11-22 09:13:13.504944+00', '2026-11-22 10:13:13.504944+00', NULL, NULL, '{"name": "Dave"}', 'Werkzeug/3.1.9', false);
INSERT INTO public.one_time_tokens VALUES ('0e8617f1-d4d1-44b6-9630-a42ff84c4df4', '0f457742-b52b-43a1-9a3b-ac7cd86f7789', 'magiclink', 'dave@example.com', '\x25ef0456a6bd658c0fa610cda8b12e6a85ac627b152f2e775ed2860c47d2d83a', '\xc12852a16879f2f64303f2e12aef0edad6ff4ebec19a063297f95cae543a933d', '2026-11-22 10:13:13.569951+00', 0, NULL, NULL, NULL, NULL, '2026-11-22 09:13:13.569951+00', '2026-11-22 10:13:13.569951+00', NULL, NULL, NULL, NULL, false);
INSERT INTO public.one_time_tokens VALUES ('8bb2ad69-224b-4058-8a26-eb78d5bb2d94', '50da516c-ea88-43e4-9078-86985b2a960e', 'undo', 'erin@example.com', '\x15f5a802c1705653ac6d7e43b99844b2809e1af7bc32e3f6e74850d30f4464b8', NULL, NULL, 0, NULL, NULL, NULL, '389c306d-5e7f-4e3f-a07a-229833f0f441', '2026-11-22 09:13:13.807368+00', '2026-11-29 09:13:13.807368+00', NULL, NULL, NULL, NULL, false);
INSERT INTO public.one_time_tokens VALUES ('259b913e-2cf5-4fda-80fb-9900f52d54f6', '50da516c-ea88-43e4-9078-86985b2a960e', 'undo', 'erin@example.com', '\x25deae4960c5be97b6495023fbd81e1b74511b7e20f032478e679f5885ce24e0', NULL, NULL, 0, NULL, NULL, NULL, '389c306d-5e7f-4e3f-a07a-229833f0f441', '2026-11-22 09:13:13.952403+00', '2026-11-29 09:13:13.952403+00', NULL, NULL, NULL, NULL, true);
INSERT INTO public.one_time_tokens VALUES ('f576f0e2-d897-4b98-a6c6-190c38de7cd8', 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', 'undo', 'frank@example.com', '\x813b5582810001043eb6f60b4351186658fa000eb006a05de1238a71c5e821ba', NULL, NULL, 0, NULL, NULL, NULL, '9964259b-36a9-4635-af2b-3f71eff41e27', '2026-11-22 09:13:14.13302+00', '2026-11-29 09:13:14.13302+00', NULL, NULL, NULL, NULL, false);
INSERT INTO public.one_time_tokens VALUES ('b3047caa-2ee3-4ff1-9ea9-c0a5821933f8', 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', 'undo', 'frank@example.com', '\x4711ba926082d4b73aeff2ff6df8428002cba3d15228bfd7accdf6f5dc70bad6', NULL, NULL, 0, NULL, NULL, NULL, '9964259b-36a9-4635-af2b-3f71eff41e27', '2026-11-22 09:13:14.183594+00', '2026-11-29 09:13:14.183594+00', NULL, NULL, NULL, NULL, true);



INSERT INTO public.outbox VALUES ('f92be68c-cbff-423e-aadd-41ecb411afea', '80880d06-7e0a-44b5-a726-674aab337b7b', 'email', 'email_change', 'new@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9", "redirect_to": null}', '\xd1e86535b6612655f91c0444dbf3e6dbbd028f85cf33542d1e1fb80e7d3ca280a72b4cc5d13a937af452d2c6ded8ad0f947c079f2bfd5e746560d6c1e9b55b9627eade2513ec7e0821ec2b05467a6023934fa9978625814f80430eef2d2c872033362d16e493212b0a12', '22b25b58-71b2-4602-ba55-c1ae40e83466', 0, '2026-11-22 09:13:13.404034+00', '2026-11-22 09:13:13.404034+00', '2026-11-22 10:13:13.404034+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('d5f7efcf-63b5-4894-ada0-37e8dc17383d', '0f457742-b52b-43a1-9a3b-ac7cd86f7789', 'email', 'signup', 'dave@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9", "redirect_to": null}', '\xd1e86535b2f0d890d14e7e19659ffdd4f8a614af7186d7a7b8d509749747cdd6adabdc07211ed88adf000bcc4e32aa601ee3870df722a949da523bc36a0e9fbfa23345e964a2567ed7d6155b91c5f8e14bd6928e9246e85e43820a384ee6e3f1cf0cd3c4383d76623a2f', 'b5023d6c-ed13-4abb-83f9-afc44f6eeff0', 0, '2026-11-22 09:13:13.504944+00', '2026-11-22 09:13:13.504944+00', '2026-11-22 10:13:13.504944+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('c20599da-a265-45c2-bd57-6bfc0a50c540', '0f457742-b52b-43a1-9a3b-ac7cd86f7789', 'email', 'magiclink', 'dave@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9", "redirect_to": null}', '\xd1e8653551a3f4d75b1fde94e0efae65971d147a85f37364dfeaad05269cfed47e572ca5e3d7a284de7c9ab67d82a176351cd16ad1b52a3e476cd5d3459fa198551c0fd69673b03cab9003ce342e24577152e48a777af65d8f3d9a6e89bdcc90406bfb778287cd386a24', '0e8617f1-d4d1-44b6-9630-a42ff84c4df4', 0, '2026-11-22 09:13:13.569951+00', '2026-11-22 09:13:13.569951+00', '2026-11-22 10:13:13.569951+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('6d09172d-1784-449c-a752-d9019e4e7994', '2901feb6-1d4a-488c-8972-43b460eb24e0', 'webhook', 'user.created', 'da837730-fef6-4676-9a33-690ef86078c5', '{"data": {"user": {"id": "2901feb6-1d4a-488c-8972-43b460eb24e0", "email": null}}, "event_id": "4fcc7ec6-f4cb-4d9a-b5c8-f13bfcf5af36", "timestamp": "2026-11-22T09:13:13.601622Z"}', NULL, NULL, 0, '2026-11-22 09:13:13.601622+00', '2026-11-22 09:13:13.601622+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('5ed6a16b-649b-4817-9d5f-cbd9913c1b2d', '2901feb6-1d4a-488c-8972-43b460eb24e0', 'webhook', 'auth.login', 'da837730-fef6-4676-9a33-690ef86078c5', '{"data": {"user": {"id": "2901feb6-1d4a-488c-8972-43b460eb24e0", "email": null}}, "event_id": "33efae38-dd11-447a-9823-9716b631fd58", "timestamp": "2026-11-22T09:13:13.601622Z"}', NULL, NULL, 0, '2026-11-22 09:13:13.601622+00', '2026-11-22 09:13:13.601622+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('a1ded120-a738-48c4-bfa7-1b307ab234fb', '50da516c-ea88-43e4-9078-86985b2a960e', 'webhook', 'user.created', 'da837730-fef6-4676-9a33-690ef86078c5', '{"data": {"user": {"id": "50da516c-ea88-43e4-9078-86985b2a960e", "email": "erin@example.com"}}, "event_id": "16d0f5ea-c42a-4a36-b8ed-1446ee5b10b9", "timestamp": "2026-11-22T09:13:13.639306Z"}', NULL, NULL, 0, '2026-11-22 09:13:13.639306+00', '2026-11-22 09:13:13.639306+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('f3128131-66b5-49cb-84dc-e8798ff286fb', '50da516c-ea88-43e4-9078-86985b2a960e', 'webhook', 'auth.login', 'da837730-fef6-4676-9a33-690ef86078c5', '{"data": {"user": {"id": "50da516c-ea88-43e4-9078-86985b2a960e", "email": "erin@example.com"}}, "event_id": "99b9c766-212e-47df-9386-89cda87e67af", "timestamp": "2026-11-22T09:13:13.662232Z"}', NULL, NULL, 0, '2026-11-22 09:13:13.662232+00', '2026-11-22 09:13:13.662232+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('74954369-5222-4f4d-906b-e0ea32b96bb7', '50da516c-ea88-43e4-9078-86985b2a960e', 'email', 'factor_added', 'erin@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9"}', '\xd1e86535bff0dbff50b81000d691466fbb2576de08611fe9b86e7cfee520c6ef2be6a0528164e306dcd7a69e55348de8db73cbc43701bea18076c98d5fa11cd5f4b135861d17778d097b2ef7576f1839ee97aa7326d43f9c', '8bb2ad69-224b-4058-8a26-eb78d5bb2d94', 0, '2026-11-22 09:13:13.807368+00', '2026-11-22 09:13:13.807368+00', '2026-11-29 09:13:13.807368+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('b65896b1-d516-45f6-970e-9add6814925a', '50da516c-ea88-43e4-9078-86985b2a960e', 'webhook', 'user.updated', 'da837730-fef6-4676-9a33-690ef86078c5', '{"data": {"user": {"id": "50da516c-ea88-43e4-9078-86985b2a960e", "email": "erin@example.com"}}, "event_id": "80d91b6b-2daf-46da-a27f-13f4b15d8eda", "timestamp": "2026-11-22T09:13:13.807368Z"}', NULL, NULL, 0, '2026-11-22 09:13:13.807368+00', '2026-11-22 09:13:13.807368+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('f14037c2-0901-4a5c-b599-836e5860fc2a', '50da516c-ea88-43e4-9078-86985b2a960e', 'email', 'recovery_codes_created', 'erin@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9"}', NULL, NULL, 0, '2026-11-22 09:13:13.881622+00', '2026-11-22 09:13:13.881622+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('3e724068-34f5-41e0-a55c-f939af7c7832', '50da516c-ea88-43e4-9078-86985b2a960e', 'email', 'passkey_added', 'erin@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9"}', '\xd1e8653548a5ffd8aaf698882fa5c488af6ffe9f7a37246a09f58d797ad98db946bfe2b1b575b4c44387a36cd411b693d9b1af33ccb6d3e7b0a0e7f88138662515dc59d197112a99c871465261a45a54570dafa15e41a4d1', '259b913e-2cf5-4fda-80fb-9900f52d54f6', 0, '2026-11-22 09:13:13.952403+00', '2026-11-22 09:13:13.952403+00', '2026-11-29 09:13:13.952403+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('9316fb5e-d584-48bc-af7c-18fb8507ee97', '50da516c-ea88-43e4-9078-86985b2a960e', 'webhook', 'user.updated', 'da837730-fef6-4676-9a33-690ef86078c5', '{"data": {"user": {"id": "50da516c-ea88-43e4-9078-86985b2a960e", "email": "erin@example.com"}}, "event_id": "b07980b2-f5fa-4f09-b5a7-65a125670696", "timestamp": "2026-11-22T09:13:13.952403Z"}', NULL, NULL, 0, '2026-11-22 09:13:13.952403+00', '2026-11-22 09:13:13.952403+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('6f7c31c2-f6d2-45d3-b3db-32fbfca2f185', 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', 'webhook', 'user.created', 'da837730-fef6-4676-9a33-690ef86078c5', '{"data": {"user": {"id": "f7bed7be-59a3-4064-9a34-bd4eb3be5b39", "email": "frank@example.com"}}, "event_id": "b643e275-42e0-4a09-98dd-a0d735b0cf33", "timestamp": "2026-11-22T09:13:14.017778Z"}', NULL, NULL, 0, '2026-11-22 09:13:14.017778+00', '2026-11-22 09:13:14.017778+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('99679389-6a1e-4752-80bc-f036b4242585', 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', 'webhook', 'auth.login', 'da837730-fef6-4676-9a33-690ef86078c5', '{"data": {"user": {"id": "f7bed7be-59a3-4064-9a34-bd4eb3be5b39", "email": "frank@example.com"}}, "event_id": "72ac1041-0940-4668-89a9-bb1c294b6a71", "timestamp": "2026-11-22T09:13:14.042158Z"}', NULL, NULL, 0, '2026-11-22 09:13:14.042158+00', '2026-11-22 09:13:14.042158+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('138d4f83-224d-4d24-91e3-7f4368f28935', 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', 'email', 'factor_added', 'frank@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9"}', '\xd1e865350330d8ee07ee6feb6eca002de6a941f90073d5dbf40f368712af1ac6bdbcf33b43313129e234348593d146d480aa816b0bc3e0c03a46783b10effbe10858856014143a101b36e2501fcc435359a89447a98d7b2d', 'f576f0e2-d897-4b98-a6c6-190c38de7cd8', 0, '2026-11-22 09:13:14.13302+00', '2026-11-22 09:13:14.13302+00', '2026-11-29 09:13:14.13302+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('7d7ba4d0-7bed-4287-b20b-f914e4a85a53', 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', 'webhook', 'user.updated', 'da837730-fef6-4676-9a33-690ef86078c5', '{"data": {"user": {"id": "f7bed7be-59a3-4064-9a34-bd4eb3be5b39", "email": "frank@example.com"}}, "event_id": "cd41f93b-f656-4e1b-85b1-184706be65f1", "timestamp": "2026-11-22T09:13:14.133020Z"}', NULL, NULL, 0, '2026-11-22 09:13:14.13302+00', '2026-11-22 09:13:14.13302+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('806fa00c-37d4-450c-a2a3-58b0ed930b5d', 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', 'email', 'factor_removed', 'frank@example.com', '{"locale": null, "languages": "", "user_agent": "Werkzeug/3.1.9"}', '\xd1e8653555cb32e16571147cb7627f9fe0f5bcdea70a3c44414c277abf575ed4e0d005c42abd6a133e343147e9b618030f91ec5298cf9b921008ce3a4e033a245aecdccddd3ebe781b9c3c4a3183ad5684084b9daeffc663', 'b3047caa-2ee3-4ff1-9ea9-c0a5821933f8', 0, '2026-11-22 09:13:14.183594+00', '2026-11-22 09:13:14.183594+00', '2026-11-29 09:13:14.183594+00', NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('391451ba-c99f-47a9-90da-26cf926240c9', 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', 'webhook', 'user.updated', 'da837730-fef6-4676-9a33-690ef86078c5', '{"data": {"user": {"id": "f7bed7be-59a3-4064-9a34-bd4eb3be5b39", "email": "frank@example.com"}}, "event_id": "83f35ee8-551c-4d64-b093-5c1dc475bdc4", "timestamp": "2026-11-22T09:13:14.183594Z"}', NULL, NULL, 0, '2026-11-22 09:13:14.183594+00', '2026-11-22 09:13:14.183594+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('0545e1ee-276f-448b-b172-f00623e37584', '80880d06-7e0a-44b5-a726-674aab337b7b', 'webhook', 'auth.login', 'da837730-fef6-4676-9a33-690ef86078c5', '{"data": {"user": {"id": "80880d06-7e0a-44b5-a726-674aab337b7b", "email": "alice@example.com"}}, "event_id": "1b9ef5bf-4952-42eb-ad44-c740401b5785", "timestamp": "2026-11-22T09:13:14.595400Z"}', NULL, NULL, 0, '2026-11-22 09:13:14.5954+00', '2026-11-22 09:13:14.5954+00', NULL, NULL, NULL, NULL, NULL);






INSERT INTO public.recovery_codes VALUES ('50da516c-ea88-43e4-9078-86985b2a960e', '\x80d304250c6b965301013f6dcaf10b8f3682771194e090760ccd6d0a9dd8029f', '2026-11-22 09:13:13.881622+00', NULL);
INSERT INTO public.recovery_codes VALUES ('50da516c-ea88-43e4-9078-86985b2a960e', '\x46d74aeda1c2bd121ae18e4b6198bc3cff8a4eb2a4bd46300c47ff680e295cd3', '2026-11-22 09:13:13.881622+00', NULL);
INSERT INTO public.recovery_codes VALUES ('50da516c-ea88-43e4-9078-86985b2a960e', '\x5698afc4729846f632aea254d13b779f71601b8191cfbb7b1da3ca052de27886', '2026-11-22 09:13:13.881622+00', NULL);
INSERT INTO public.recovery_codes VALUES ('50da516c-ea88-43e4-9078-86985b2a960e', '\x072e8a02ac780d1d10e521222dba5f12cf3a916d109dea67f441f488c281b997', '2026-11-22 09:13:13.881622+00', NULL);
INSERT INTO public.recovery_codes VALUES ('50da516c-ea88-43e4-9078-86985b2a960e', '\x28d058425da4f1375c257b1338b3e5f90bef47a77b0381727a4de683a2f5f889', '2026-11-22 09:13:13.881622+00', NULL);
INSERT INTO public.recovery_codes VALUES ('50da516c-ea88-43e4-9078-86985b2a960e', '\xe755f95af25af12971c10d475b5b5af105b5c5a555baeb80ab36927ca33db8d2', '2026-11-22 09:13:13.881622+00', NULL);
INSERT INTO public.recovery_codes VALUES ('50da516c-ea88-43e4-9078-86985b2a960e', '\x3f0215924903a9af99d2ecd4fb191f1fc8a8a03b4d461e4f42b6623717ff3613', '2026-11-22 09:13:13.881622+00', NULL);
INSERT INTO public.recovery_codes VALUES ('50da516c-ea88-43e4-9078-86985b2a960e', '\xe7729bcba606cce6c50f7edf4f873fde039f41143cd3f3ba2605b506e319a1d8', '2026-11-22 09:13:13.881622+00', NULL);
INSERT INTO public.recovery_codes VALUES ('50da516c-ea88-43e4-9078-86985b2a960e', '\x3e568adbed2cebb5f0ce8942213bc28d3d83b5e43cdedd3417eccb183f1dddf2', '2026-11-22 09:13:13.881622+00', NULL);
INSERT INTO public.recovery_codes VALUES ('50da516c-ea88-43e4-9078-86985b2a960e', '\x0c72e35d45e87a563546fcc84b6d10c6f7f92c69fdddf1a1530fcddeadfecd20', '2026-11-22 09:13:13.881622+00', NULL);






INSERT INTO public.schema_version VALUES (16, '2026-11-22 09:13:10.697985+00', 'd215ef5be88f1198ed1d8b873e0237f0bb54a90b1887e863b12b1d2d78c9a182');



INSERT INTO public.sessions VALUES ('ab87d0a7-e17c-4530-958c-6358029184f1', '80880d06-7e0a-44b5-a726-674aab337b7b', 0, 'password', '127.0.0.1', 'Werkzeug/3.1.9', '2026-11-22 09:13:13.263183+00', '2026-11-22 09:13:13.263183+00', 0, '2026-11-22 09:13:13.263183+00', NULL, NULL, NULL, 'aal1', NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('e451ebf3-92d9-4d68-9643-202c64d567be', '2901feb6-1d4a-488c-8972-43b460eb24e0', 0, 'anonymous', '127.0.0.1', 'Werkzeug/3.1.9', '2026-11-22 09:13:13.601622+00', '2026-11-22 09:13:13.601622+00', 0, '2026-11-22 09:13:13.601622+00', NULL, NULL, NULL, 'aal1', NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('389c306d-5e7f-4e3f-a07a-229833f0f441', '50da516c-ea88-43e4-9078-86985b2a960e', 2, 'password', '127.0.0.1', 'Werkzeug/3.1.9', '2026-11-22 09:13:13.662232+00', '2026-11-22 09:13:13.807368+00', 0, '2026-11-22 09:13:13.662232+00', NULL, NULL, '2026-11-22 09:13:13.807368+00', 'aal2', '[{"method": "password", "timestamp": 1795338793}, {"method": "totp", "timestamp": 1795338793}]', '8fe839f9-4c59-4b95-98b8-8c4a051e2d82', NULL);
INSERT INTO public.sessions VALUES ('9964259b-36a9-4635-af2b-3f71eff41e27', 'f7bed7be-59a3-4064-9a34-bd4eb3be5b39', 2, 'password', '127.0.0.1', 'Werkzeug/3.1.9', '2026-11-22 09:13:14.042158+00', '2026-11-22 09:13:14.13302+00', 0, '2026-11-22 09:13:14.042158+00', NULL, NULL, '2026-11-22 09:13:14.13302+00', 'aal1', '[{"method": "password", "timestamp": 1795338794}, {"method": "totp", "timestamp": 1795338794}]', NULL, NULL);
INSERT INTO public.sessions VALUES ('740d2480-d811-4f3c-a4a3-02fb16737a10', '80880d06-7e0a-44b5-a726-674aab337b7b', 0, 'password', '127.0.0.1', 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', '2026-11-22 09:13:14.5954+00', '2026-11-22 09:13:14.5954+00', 0, '2026-11-22 09:13:14.5954+00', NULL, NULL, NULL, 'aal1', NULL, NULL, NULL);






INSERT INTO public.user_objects VALUES ('7bb9e65f-123a-477f-9283-331925cb1def', '{"id": "7bb9e65f-123a-477f-9283-331925cb1def", "role": "admin", "email": "carol@example.com", "phone": null, "new_email": null, "new_phone": null, "created_at": "2026-11-22T09:13:12.051700Z", "identities": [{"id": "c9f9ecc9-51da-4826-919a-ac2499cc5505", "user_id": "7bb9e65f-123a-477f-9283-331925cb1def", "provider": "email", "created_at": "2026-11-22T09:13:12.051700Z", "updated_at": "2026-11-22T09:13:12.051700Z", "identity_id": "c9f9ecc9-51da-4826-919a-ac2499cc5505", "identity_data": {"sub": "7bb9e65f-123a-477f-9283-331925cb1def", "email": "carol@example.com"}, "last_sign_in_at": null}], "invited_at": null, "updated_at": "2026-11-22T09:13:12.051700Z", "app_metadata": {"provider": "email", "providers": ["email"]}, "banned_until": null, "confirmed_at": "2026-11-22T09:13:12.051700Z", "is_anonymous": false, "user_metadata": {}, "last_sign_in_at": null, "email_confirmed_at": "2026-11-22T09:13:12.051700Z", "phone_confirmed_at": null, "confirmation_sent_at": null, "email_change_sent_at": null, "phone_change_sent_at": null}', '-infinity');
INSERT INTO public.user_objects VALUES ('0f457742-b52b-43a1-9a3b-ac7cd86f7789', '{"id": "0f457742-b52b-43a1-9a3b-ac7cd86f7789", "role": "authenticated", "email": "dave@example.com", "phone": null, "new_email": null, "new_phone": null, "created_at": "2026-11-22T09:13:13.504944Z", "identities": [{"id": "d8da2fb0-6e20-4734-96e2-62947cd7de1f", "user_id": "0f457742-b52b-43a1-9a3b-ac7cd86f7789", "provider": "email", "created_at": "2026-11-22T09:13:13.504944Z", "updated_at": "2026-11-22T09:13:13.504944Z", "identity_id": "d8da2fb0-6e20-4734-96e2-62947cd7de1f", "identity_data": {"sub": "0f457742-b52b-43a1-9a3b-ac7cd86f7789", "email": "dave@example.com"}, "last_sign_in_at": null}], "invited_at": null, "updated_at": "2026-11-22T09:13:13.504944Z", "app_metadata": {"provider": "email", "providers": ["email"]}, "banned_until": null, "confirmed_at": null, "is_anonymous": false, "user_metadata": {"name": "Dave"}, "last_sign_in_at": null, "email_confirmed_at": null, "phone_confirmed_at": null, "confirmation_sent_at": "2026-11-22T09:13:13.504944Z", "email_change_sent_at": null, "phone_change_sent_at": null}', '-infinity');
INSERT INTO public.user_objects VALUES ('2901feb6-1d4a-488c-8972-43b460eb24e0', '{"id": "2901feb6-1d4a-488c-8972-43b460eb24e0", "role": "authenticated", "email": null, "phone": null, "new_email": null, "new_phone": null, "created_at": "2026-11-22T09:13:13.601622Z", "identities": [], "invited_at": null, "updated_at": "2026-11-22T09:13:13.601622Z", "app_metadata": {"provider": null, "providers": []}, "banned_until": null, "confirmed_at": null, "is_anonymous": true, "user_metadata": {}, "last_sign_in_at": "2026-11-22T09:13:13.601622Z", "email_confirmed_at": null, "phone_confirmed_at": null, "confirmation_sent_at": null, "email_change_sent_at": null, "phone_change_sent_at": null}', '2026-11-22 09:13:13.601622+00');
INSERT INTO public.user_objects VALUES ('80880d06-7e0a-44b5-a726-674aab337b7b', '{"id": "80880d06-7e0a-44b5-a726-674aab337b7b", "role": "authenticated", "email": "alice@example.com", "phone": null, "new_email": "new@example.com", "new_phone": null, "created_at": "2026-11-22T09:13:12.015299Z", "identities": [{"id": "0a7285b8-5f79-4a49-93c0-781c9c4c3814", "user_id": "80880d06-7e0a-44b5-a726-674aab337b7b", "provider": "email", "created_at": "2026-11-22T09:13:12.015299Z", "updated_at": "2026-11-22T09:13:12.015299Z", "identity_id": "0a7285b8-5f79-4a49-93c0-781c9c4c3814", "identity_data": {"sub": "80880d06-7e0a-44b5-a726-674aab337b7b", "email": "alice@example.com"}, "last_sign_in_at": "2026-11-22T09:13:14.595400Z"}], "invited_at": null, "updated_at": "2026-11-22T09:13:13.404034Z", "app_metadata": {"provider": "email", "providers": ["email"]}, "banned_until": null, "confirmed_at": "2026-11-22T09:13:12.015299Z", "is_anonymous": false, "user_metadata": {}, "last_sign_in_at": "2026-11-22T09:13:14.595400Z", "email_confirmed_at": "2026-11-22T09:13:12.015299Z", "phone_confirmed_at": null, "confirmation_sent_at": null, "email_change_sent_at": "2026-11-22T09:13:13.404034Z", "phone_change_sent_at": null}', '2026-11-22 09:13:14.5954+00');
INSERT INTO public.user_objects VALUES ('50da516c-ea88-43e4-9078-86985b2a960e', '{"id": "50da516c-ea88-43e4-9078-86985b2a960e", "role": "authenticated", "email": "erin@example.com", "phone": null, "factors": [{"id": "8fe839f9-4c59-4b95-98b8-8c4a051e2d82", "status": "verified", "created_at": "2026-11-22T09:13:13.694492Z", "updated_at": "2026-11-22T09:13:13.807368Z", "factor_type": "totp", "friendly_name": ""}], "new_email": null, "new_phone": null, "created_at": "2026-11-22T09:13:13.639306Z", "identities": [{"id": "cd094963-7092-4758-b8d2-c835800d3801", "user_id": "50da516c-ea88-43e4-9078-86985b2a960e", "provider": "email", "created_at": "2026-11-22T09:13:13.639306Z", "updated_at": "2026-11-22T09:13:13.639306Z", "identity_id": "cd094963-7092-4758-b8d2-c835800d3801", "identity_data": {"sub": "50da516c-ea88-43e4-9078-86985b2a960e", "email": "erin@example.com"}, "last_sign_in_at": "2026-11-22T09:13:13.662232Z"}], "invited_at": null, "updated_at": "2026-11-22T09:13:13.639306Z", "app_metadata": {"provider": "email", "providers": ["email"]}, "banned_until": null, "confirmed_at": "2026-11-22T09:13:13.639306Z", "is_anonymous": false, "user_metadata": {}, "last_sign_in_at": "2026-11-22T09:13:13.662232Z", "email_confirmed_at": "2026-11-22T09:13:13.639306Z", "phone_confirmed_at": null, "confirmation_sent_at": null, "email_change_sent_at": null, "phone_change_sent_at": null}', '2026-11-22 09:13:13.662232+00');
INSERT INTO public.user_objects VALUES ('f7bed7be-59a3-4064-9a34-bd4eb3be5b39', '{"id": "f7bed7be-59a3-4064-9a34-bd4eb3be5b39", "role": "authenticated", "email": "frank@example.com", "phone": null, "new_email": null, "new_phone": null, "created_at": "2026-11-22T09:13:14.017778Z", "identities": [{"id": "beb9563c-68b8-467c-8811-e2958c29df82", "user_id": "f7bed7be-59a3-4064-9a34-bd4eb3be5b39", "provider": "email", "created_at": "2026-11-22T09:13:14.017778Z", "updated_at": "2026-11-22T09:13:14.017778Z", "identity_id": "beb9563c-68b8-467c-8811-e2958c29df82", "identity_data": {"sub": "f7bed7be-59a3-4064-9a34-bd4eb3be5b39", "email": "frank@example.com"}, "last_sign_in_at": "2026-11-22T09:13:14.042158Z"}], "invited_at": null, "updated_at": "2026-11-22T09:13:14.017778Z", "app_metadata": {"provider": "email", "providers": ["email"]}, "banned_until": null, "confirmed_at": "2026-11-22T09:13:14.017778Z", "is_anonymous": false, "user_metadata": {}, "last_sign_in_at": "2026-11-22T09:13:14.042158Z", "email_confirmed_at": "2026-11-22T09:13:14.017778Z", "phone_confirmed_at": null, "confirmation_sent_at": null, "email_change_sent_at": null, "phone_change_sent_at": null}', '2026-11-22 09:13:14.042158+00');



INSERT INTO public.users VALUES ('7bb9e65f-123a-477f-9283-331925cb1def', 'admin', 'carol@example.com', '2026-11-22 09:13:12.0517+00', true, NULL, NULL, false, 'latchkey1$2b$04$YbwOJzLCIrvf1Gs/5CqkMubHjW88UqP87r11gOmcI2lKCe3GM0OxC', '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 09:13:12.0517+00', 'administrator', NULL, '2026-11-22 09:13:12.0517+00', '2026-11-22 09:13:12.0517+00', NULL, NULL);
INSERT INTO public.users VALUES ('0f457742-b52b-43a1-9a3b-ac7cd86f7789', 'authenticated', 'dave@example.com', NULL, false, NULL, NULL, false, 'latchkey1$2b$04$j.v4njR8iuQSF5Ts3y9cYObRcCwHbWnLwlBbIPPl7LRLERuDQRGAC', '{}', '{"name": "Dave"}', NULL, NULL, NULL, NULL, '2026-11-22 09:13:13.504944+00', NULL, NULL, NULL, NULL, 'signup', 'Werkzeug/3.1.9', '2026-11-22 09:13:13.504944+00', '2026-11-22 09:13:13.504944+00', NULL, NULL);
INSERT INTO public.users VALUES ('2901feb6-1d4a-488c-8972-43b460eb24e0', 'authenticated', NULL, NULL, false, NULL, NULL, false, NULL, '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 09:13:13.601622+00', NULL, NULL, 'anonymous', NULL, '2026-11-22 09:13:13.601622+00', '2026-11-22 09:13:13.601622+00', NULL, NULL);
INSERT INTO public.users VALUES ('50da516c-ea88-43e4-9078-86985b2a960e', 'authenticated', 'erin@example.com', '2026-11-22 09:13:13.639306+00', true, NULL, NULL, false, 'latchkey1$2b$04$YbwOJzLCIrvf1Gs/5CqkMubHjW88UqP87r11gOmcI2lKCe3GM0OxC', '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 09:13:13.662232+00', NULL, NULL, 'administrator', NULL, '2026-11-22 09:13:13.639306+00', '2026-11-22 09:13:13.639306+00', NULL, '2026-11-22 09:13:13.807368+00');
INSERT INTO public.users VALUES ('f7bed7be-59a3-4064-9a34-bd4eb3be5b39', 'authenticated', 'frank@example.com', '2026-11-22 09:13:14.017778+00', true, NULL, NULL, false, 'latchkey1$2b$04$YbwOJzLCIrvf1Gs/5CqkMubHjW88UqP87r11gOmcI2lKCe3GM0OxC', '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 09:13:14.042158+00', NULL, NULL, 'administrator', NULL, '2026-11-22 09:13:14.017778+00', '2026-11-22 09:13:14.017778+00', NULL, '2026-11-22 09:13:14.13302+00');
INSERT INTO public.users VALUES ('80880d06-7e0a-44b5-a726-674aab337b7b', 'authenticated', 'alice@example.com', '2026-11-22 09:13:12.015299+00', true, NULL, NULL, false, 'latchkey1$2b$04$YbwOJzLCIrvf1Gs/5CqkMubHjW88UqP87r11gOmcI2lKCe3GM0OxC', '{}', '{}', 'new@example.com', '2026-11-22 09:13:13.404034+00', NULL, NULL, NULL, NULL, '2026-11-22 09:13:14.5954+00', NULL, NULL, 'administrator', NULL, '2026-11-22 09:13:12.015299+00', '2026-11-22 09:13:13.404034+00', NULL, NULL);



INSERT INTO public.webhooks VALUES ('da837730-fef6-4676-9a33-690ef86078c5', 'https://192.0.1.1/events', NULL, '{user.created,user.updated,user.deleted,auth.login,auth.logout}', '\xd1e86535784ee56135eaa815bdd4059818cca5e35d5ba511dbbde6f4da4b68caae7fa488a7ec0f3c1ea91c54f36a3052f03a71f987fb28811cf397a2861dd8410008ba0d525da94f691fd931151ba7075b87', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 09:13:13.550208+00', '2026-11-22 09:13:13.550208+00');



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



CREATE INDEX sessions_user_id_ended_at ON public.sessions USING btree (user_id, ended_at) WHERE (ended_at IS NOT NULL);



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




