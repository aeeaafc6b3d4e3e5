-- Whether a listing has a row of the audit log: about this user, of this action, in this time, of this request (each null: no matter).
CREATE OR REPLACE FUNCTION is_listed(entry audit_log, subject uuid, wanted_action text, since timestamptz, until timestamptz, wanted_request_id text)
  RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT (subject IS NULL OR entry.user_id = subject)
     AND (wanted_action IS NULL OR entry.action = wanted_action)
     AND (since IS NULL OR entry.at >= since)
     AND (until IS NULL OR entry.at < until)
     AND (wanted_request_id IS NULL OR entry.request_id = wanted_request_id)
$$;

-- Writes down what a statement has done to a user: a row of the audit log for each of `acts`, and a message to each webhook that
-- wants to hear of one of `events`; nulls among them are left out. `origin` is where the request comes from, as every statement
-- that calls this is given it. To be called where it is certain to run: in RETURNING, or in the last SELECT.
CREATE OR REPLACE FUNCTION record_acts(origin jsonb, subject uuid, email text, acts text[], events text[], details jsonb DEFAULT '{}') RETURNS void
  LANGUAGE plpgsql VOLATILE
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

-- Writes down that something was refused: once a minute for each user, action, reason and network, with the count and what was told
-- last. So a flood can't fill the disk.
CREATE OR REPLACE FUNCTION record_refusal(origin jsonb, subject uuid, refused_act text, error_code text, told jsonb) RETURNS void
  LANGUAGE plpgsql VOLATILE
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
