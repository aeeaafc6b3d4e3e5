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
    ended_at timestamp with time zone,
    end_reason text,
    CONSTRAINT sessions_end_reason_check CHECK ((((ended_at IS NULL) = (end_reason IS NULL)) AND (end_reason = ANY (ARRAY['logout'::text, 'ended_by_user'::text, 'refresh_token_reused'::text, 'password_changed'::text, 'too_many_sessions'::text]))))
)
WITH (fillfactor='70');
CREATE TABLE public.users (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    role text DEFAULT 'authenticated'::text NOT NULL,
    email text,
    email_confirmed_at timestamp with time zone,
    email_proved boolean DEFAULT false NOT NULL,
    phone text,
    phone_confirmed_at timestamp with time zone,
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
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT users_made_by_check CHECK ((made_by = ANY (ARRAY['signup'::text, 'admin'::text])))
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
CREATE FUNCTION public.iso_8601(moment timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;
CREATE FUNCTION public.merge_metadata(metadata jsonb, change jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
  SELECT coalesce(jsonb_object_agg(member.key, member.value) FILTER (WHERE member.value <> 'null'), '{}')
    FROM jsonb_each(metadata || coalesce(change, '{}')) AS member
$$;
CREATE FUNCTION public.refresh_token_is_stolen(session public.sessions, token_counter bigint, reuse_interval integer) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT token_counter < session.counter
     AND NOT (token_counter = session.counter - 1 AND session.refreshed_at > now() - make_interval(secs => reuse_interval))
$$;
CREATE FUNCTION public.session_expired(session public.sessions, lifetime integer, timebox integer) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT session.refreshed_at <= now() - make_interval(secs => lifetime)
      OR coalesce(session.created_at <= now() - make_interval(secs => timebox), false)
$$;
CREATE FUNCTION public.user_object(account public.users, identities json, providers text[], audience text) RETURNS json
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
  SELECT json_build_object(
    'id', account.id,
    'aud', audience,
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
CREATE FUNCTION public.void_one_time_tokens(owner uuid) RETURNS bigint
    LANGUAGE sql
    AS $$
  WITH voided AS (DELETE FROM one_time_tokens WHERE user_id = owner RETURNING id)
  SELECT count(*) FROM voided
$$;
CREATE TABLE public.latchkey_schema (
    digest text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.one_time_tokens (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    purpose text NOT NULL,
    token_hash bytea NOT NULL,
    target text NOT NULL,
    redirect_to text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT one_time_tokens_purpose_check CHECK ((purpose = ANY (ARRAY['signup'::text, 'email_change'::text, 'phone_change'::text])))
);
CREATE TABLE public.outbox (
    id uuid NOT NULL,
    user_id uuid,
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
    CONSTRAINT outbox_finished_check CHECK ((((outcome IS NULL) = (finished_at IS NULL)) AND ((outcome IS NULL) OR (secret IS NULL)))),
    CONSTRAINT outbox_outcome_check CHECK ((outcome = ANY (ARRAY['none'::text, 'sent'::text, 'void'::text, 'expired'::text])))
);
INSERT INTO public.identities VALUES ('da6c0940-e4a5-4524-bb11-0b0445a2eba9', '00000000-0000-4000-8000-000000000001', 'email', '00000000-0000-4000-8000-000000000001', '{"sub": "00000000-0000-4000-8000-000000000001", "email": "alice@example.com"}', NULL, '2026-11-21 18:19:15.407271+00', '2026-11-21 18:19:15.407271+00');
INSERT INTO public.identities VALUES ('f791014a-b37f-403e-8a16-f4b7423cb047', '00000000-0000-4000-8000-000000000002', 'email', '00000000-0000-4000-8000-000000000002', '{"sub": "00000000-0000-4000-8000-000000000002", "email": "dave@example.com"}', NULL, '2026-11-21 18:19:15.407271+00', '2026-11-21 18:19:15.407271+00');
INSERT INTO public.latchkey_schema VALUES ('first', '2026-11-21 18:19:15.407271+00');
INSERT INTO public.one_time_tokens VALUES ('d54e17ec-9cff-4d8f-84d7-b3d92e7c1e4d', '00000000-0000-4000-8000-000000000002', 'signup', '\x78', 'dave@example.com', NULL, '2026-11-21 18:19:15.407271+00', '2026-11-21 19:19:15.407271+00');
INSERT INTO public.outbox VALUES ('d86481df-6451-4510-807c-d828327d7d37', '00000000-0000-4000-8000-000000000002', 'signup', 'dave@example.com', '{}', '\x78', 'd54e17ec-9cff-4d8f-84d7-b3d92e7c1e4d', 0, '2026-11-21 18:19:15.407271+00', '2026-11-21 18:19:15.407271+00', NULL, NULL, NULL);
INSERT INTO public.outbox VALUES ('dc6c01a6-b480-41c0-ba77-38586f8c5839', NULL, 'none', NULL, '{}', NULL, NULL, 0, '2026-11-21 18:19:15.407271+00', '2026-11-21 18:19:15.407271+00', NULL, 'none', '2026-11-21 18:19:15.407271+00');
INSERT INTO public.sessions VALUES ('67659fb7-7626-4c51-b3a7-3f3530dd7d2f', '00000000-0000-4000-8000-000000000001', 0, 'password', NULL, NULL, '2026-11-21 18:19:15.407271+00', '2026-11-21 18:19:15.407271+00', '2026-11-21 18:19:15.407271+00', 'logout');
INSERT INTO public.sessions VALUES ('0c726131-acf4-49e5-b585-155792470f84', '00000000-0000-4000-8000-000000000002', 0, 'password', NULL, NULL, '2026-11-21 18:19:15.407271+00', '2026-11-21 18:19:15.407271+00', '2026-11-21 18:19:15.407271+00', 'logout');
INSERT INTO public.sessions VALUES ('184fedb8-7b41-4a65-9eed-58527040426c', '00000000-0000-4000-8000-000000000001', 0, 'password', NULL, NULL, '2026-11-21 18:19:15.407271+00', '2026-11-21 18:19:15.407271+00', NULL, NULL);
INSERT INTO public.sessions VALUES ('104d0517-8d0a-4c7c-8a47-69ba0379d4c8', '00000000-0000-4000-8000-000000000002', 0, 'password', NULL, NULL, '2026-11-21 18:19:15.407271+00', '2026-11-21 18:19:15.407271+00', NULL, NULL);
INSERT INTO public.users VALUES ('00000000-0000-4000-8000-000000000001', 'authenticated', 'alice@example.com', '2026-11-21 18:19:15.407271+00', true, NULL, NULL, '$2b$04$M111CCyR6Xs2wxO6.3Zd9e6IIh2mqCkBIQbN5K0TO4QDAIHQpGzEy', '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'admin', '2026-11-21 18:19:15.407271+00', '2026-11-21 18:19:15.407271+00');
INSERT INTO public.users VALUES ('00000000-0000-4000-8000-000000000002', 'authenticated', 'dave@example.com', NULL, false, NULL, NULL, '$2b$04$M111CCyR6Xs2wxO6.3Zd9e6IIh2mqCkBIQbN5K0TO4QDAIHQpGzEy', '{}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'signup', '2026-11-21 18:19:15.407271+00', '2026-11-21 18:19:15.407271+00');
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_provider_subject_key UNIQUE (provider, subject);
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_user_id_provider_key UNIQUE (user_id, provider);
ALTER TABLE ONLY public.one_time_tokens
    ADD CONSTRAINT one_time_tokens_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.one_time_tokens
    ADD CONSTRAINT one_time_tokens_token_hash_key UNIQUE (token_hash);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_email_key UNIQUE (email);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_phone_key UNIQUE (phone);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
CREATE INDEX one_time_tokens_user_id ON public.one_time_tokens USING btree (user_id);
CREATE INDEX outbox_waiting ON public.outbox USING btree (next_attempt_at) WHERE (outcome IS NULL);
CREATE INDEX sessions_live ON public.sessions USING btree (user_id, created_at) WHERE (ended_at IS NULL);
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.one_time_tokens
    ADD CONSTRAINT one_time_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
