-- The target that may be slow: the recipient's mail host, or the SMS provider.
CREATE OR REPLACE FUNCTION outbox_target(channel text, recipient text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE channel WHEN 'email' THEN split_part(recipient, '@', -1) ELSE channel END
$$;

CREATE OR REPLACE FUNCTION message_details(message outbox, target text) RETURNS jsonb
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

-- When an event that an administrator asks for is due: before all others, of which a failing webhook gets
-- one.
CREATE OR REPLACE FUNCTION first_turn(webhook_id text) RETURNS timestamptz
  LANGUAGE sql STABLE
AS $$
  SELECT least(now(), min(m.next_attempt_at) - interval '1 millisecond')
    FROM outbox AS m
   WHERE m.channel = 'webhook' AND m.outcome IS NULL AND m.recipient = first_turn.webhook_id
$$;

-- Kind `none` notifies too, so that a request for an unknown address takes as long as any other.
CREATE OR REPLACE FUNCTION notify_of_message() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM pg_notify('outbox', '');
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER outbox_notify AFTER INSERT ON outbox
  FOR EACH ROW EXECUTE FUNCTION notify_of_message();
