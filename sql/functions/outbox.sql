-- Inserts a mail or an SMS, in the owner's language. `token_id` is the one-time token that the secret belongs to; without a
-- lifetime the message does not expire. Kind `none` sends nothing: a request for an unknown address writes a row too, and so
-- takes as long as one for a known address.
CREATE OR REPLACE FUNCTION write_message(
  message_id uuid, owner uuid, kind text, recipient text, variables jsonb, secret bytea DEFAULT NULL, token_id uuid DEFAULT NULL,
  lifetime integer DEFAULT NULL
) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  INSERT INTO outbox (
    id, user_id, channel, kind, recipient, variables, secret, one_time_token_id, expires_at, outcome, finished_at
  )
  SELECT message_id, owner,
         CASE WHEN is_sent THEN CASE WHEN recipient LIKE '%@%' THEN 'email' ELSE 'sms' END END,
         kind,
         CASE WHEN is_sent THEN recipient END,
         variables || jsonb_build_object('locale', (SELECT u.user_metadata ->> 'locale' FROM users AS u WHERE u.id = owner)),
         CASE WHEN is_sent THEN secret END,
         CASE WHEN is_sent THEN token_id END,
         now() + make_interval(secs => lifetime),
         CASE WHEN NOT is_sent THEN 'none' END,
         CASE WHEN NOT is_sent THEN now() END
    FROM (VALUES (kind <> 'none')) AS message (is_sent)
$$;

-- Where a message goes, as far as slowness is concerned: one mail host, or the provider of all SMS. An event's webhook is its own.
CREATE OR REPLACE FUNCTION outbox_target(channel text, recipient text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE channel WHEN 'email' THEN split_part(recipient, '@', -1) ELSE channel END
$$;

-- What became of a message, as the timeline tells it.
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

-- Wakes the delivery processes at commit. Kind `none` too: a request for an unknown address takes as long as any other.
CREATE OR REPLACE FUNCTION notify_of_message() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM pg_notify('outbox', '');
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER outbox_notify AFTER INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION notify_of_message();
