-- The part of a URL for administrators without the service role key: paths and queries often contain secrets.
CREATE OR REPLACE FUNCTION origin_of(webhook_url text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT substring(webhook_url FROM '^[^/]*//[^/?#]+')
$$;

CREATE OR REPLACE FUNCTION webhook_object(w webhooks) RETURNS jsonb
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

CREATE OR REPLACE FUNCTION delivery_object(m outbox) RETURNS jsonb
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
