CREATE OR REPLACE FUNCTION entry_is_listed(
  entry audit_log, subject uuid, wanted_action text, since timestamptz, until timestamptz,
  wanted_request_id text
) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT (subject IS NULL OR entry.user_id = subject)
     AND (wanted_action IS NULL OR entry.action = wanted_action)
     AND (since IS NULL OR entry.at >= since)
     AND (until IS NULL OR entry.at < until)
     AND (wanted_request_id IS NULL OR entry.request_id = wanted_request_id)
$$;

CREATE OR REPLACE FUNCTION entry_object(entry audit_log) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_build_object(
    'id', entry.id,
    'at', iso_8601(entry.at),
    'action', entry.action,
    'reason', entry.reason,
    'count', entry.count,
    'user_id', entry.user_id,
    'actor', entry.actor,
    'actor_id', entry.actor_id,
    'ip', host(entry.ip),
    'user_agent', entry.user_agent,
    'request_id', entry.request_id,
    'details', entry.details
  )
$$;

-- The role of requests only reads the audit log. These four functions write it as the owner. The search path
-- ends in pg_temp, where any role may create tables with the same names.

-- Writes the time of the act: the timeline of a user compares it with the times of sessions. Skips nulls in
-- the arrays. Call it where Postgres always evaluates it: in RETURNING, or in the final SELECT.
CREATE OR REPLACE FUNCTION record_acts_at(
  moment timestamptz, origin jsonb, subject uuid, email text, acts text[], events text[], details jsonb
) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  -- A request that signs a user up or in has no access token yet, so that user is the actor: timeline.OWN_ACTS.
  is_own CONSTANT boolean := origin ->> 'actor' = 'anonymous'
    AND acts && '{signed_in, api_key_used, user_created, identity_linked, membership_added}';
BEGIN
  INSERT INTO audit_log (at, action, user_id, actor, actor_id, ip, network, user_agent, request_id, details)
  SELECT moment, act, subject,
         CASE WHEN is_own THEN 'user' ELSE origin ->> 'actor' END,
         CASE WHEN is_own THEN subject ELSE (origin ->> 'actor_id')::uuid END,
         (origin ->> 'ip')::inet, origin ->> 'network', origin ->> 'user_agent', origin ->> 'request_id',
         jsonb_strip_nulls(details || jsonb_build_object('administrator', origin ->> 'administrator',
                                                         'system_user', origin ->> 'system_user'))
    FROM unnest(acts) AS act
   WHERE act IS NOT NULL;

  WITH event AS MATERIALIZED (
    SELECT kind, gen_random_uuid() AS id FROM unnest(events) AS kind WHERE kind IS NOT NULL
  )
  INSERT INTO outbox (id, user_id, channel, kind, recipient, variables)
  SELECT gen_random_uuid(), subject, 'webhook', event.kind, w.id,
         jsonb_build_object('event_id', event.id, 'timestamp', iso_8601(moment),
                            'data', jsonb_build_object(
                              'user', jsonb_build_object('id', subject, 'email', email)))
    FROM event
    JOIN webhooks AS w ON event.kind = ANY (w.events) AND w.disabled_at IS NULL;
END
$$;

-- Equal refusals of one minute share a row, so that a flood cannot fill the disk.
CREATE OR REPLACE FUNCTION record_refused(
  origin jsonb, subject uuid, refused_act text, error_code text, details jsonb
) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  same CONSTANT text := concat_ws('|', date_trunc('minute', now()), subject, refused_act, error_code,
                                  origin ->> 'network', origin ->> 'actor', origin ->> 'actor_id',
                                  record_refused.details #>> '{organization,id}');
BEGIN
  INSERT INTO audit_log AS refusal (
    id, at, action, reason, user_id, actor, actor_id, ip, network, user_agent, request_id, details
  )
  VALUES (
    encode(substr(sha256(convert_to(same, 'UTF8')), 1, 16), 'hex')::uuid, now(), refused_act, error_code,
    subject, origin ->> 'actor', (origin ->> 'actor_id')::uuid, (origin ->> 'ip')::inet, origin ->> 'network',
    origin ->> 'user_agent', origin ->> 'request_id', record_refused.details
  )
  ON CONFLICT (id) DO UPDATE
     SET count = refusal.count + 1, user_agent = excluded.user_agent, request_id = excluded.request_id,
         details = excluded.details;
END
$$;

-- All batches of an import share an entry.
CREATE OR REPLACE FUNCTION record_import(origin jsonb, import_id uuid, users bigint, administrators bigint)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  INSERT INTO audit_log AS entry (id, action, actor, details)
  VALUES (import_id, 'users_imported', origin ->> 'actor',
          jsonb_strip_nulls(jsonb_build_object('system_user', origin ->> 'system_user'))
          || jsonb_build_object('count', users, 'administrators', record_import.administrators))
  ON CONFLICT (id) DO UPDATE
     SET details = entry.details || jsonb_build_object(
           'count', (entry.details ->> 'count')::bigint + users,
           'administrators', (entry.details ->> 'administrators')::bigint + record_import.administrators)
   WHERE entry.action = 'users_imported';
END
$$;

-- Always keeps the entries of a day, the minimum of AUTH_AUDIT_RETENTION.
CREATE OR REPLACE FUNCTION delete_old_entries(ids uuid[]) RETURNS SETOF uuid
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  DELETE FROM audit_log WHERE id = ANY (ids) AND at <= now() - interval '1 day' RETURNING id
$$;

-- Not every role of the database may call functions that run as the owner.
REVOKE ALL ON FUNCTION record_acts_at, record_refused, record_import, delete_old_entries FROM PUBLIC;

-- The condition of the index audit_log_organization.
CREATE OR REPLACE FUNCTION is_of_organization(entry audit_log, organization_id text) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT entry.details ? 'organization' AND entry.details #>> '{organization,id}' = organization_id
$$;

-- `done_by` is the id of a user who acted on another user or on the service, or an actor that has no id. Find
-- what users do to themselves by `subject`.
CREATE OR REPLACE FUNCTION entries_before(
  subject uuid, done_by text, wanted_action text, organization_id text, since timestamptz, until timestamptz,
  wanted_request_id text, before_at timestamptz, before_id uuid, most integer
) RETURNS SETOF audit_log
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT a.*
    FROM audit_log AS a
   WHERE entry_is_listed(a, subject, wanted_action, since, until, wanted_request_id)
     AND (done_by IS NULL
          OR coalesce(a.actor_id::text, a.actor) = done_by
             AND a.actor <> 'anonymous' AND (a.actor <> 'user' OR a.user_id IS DISTINCT FROM a.actor_id))
     AND (organization_id IS NULL OR is_of_organization(a, organization_id))
     AND (before_at IS NULL OR (a.at, a.id) < (before_at, before_id))
   ORDER BY a.at DESC, a.id DESC
   LIMIT most
$$;
