-- A webhook as administrators see it: without its secrets.
CREATE OR REPLACE FUNCTION webhook_object(webhook webhooks) RETURNS jsonb
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

-- One event on its way to one webhook, and what became of it.
CREATE OR REPLACE FUNCTION delivery_object(message outbox) RETURNS jsonb
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

-- Whether there may be one webhook more. Of those that ask at once each waits for the one before: seen after the lock.
CREATE OR REPLACE FUNCTION has_room_for_webhook(most integer) RETURNS boolean
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7239004118);
  RETURN (SELECT count(*) < most FROM webhooks);
END
$$;
