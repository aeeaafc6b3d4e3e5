-- Writes an email or SMS in the transaction that it reports. Without an address nothing is sent: a request
-- for an unknown address then takes as long as any other. The first notice of a kind is due at once, the next
-- ones ten minutes or, by SMS, an hour after the previous one, so that `join_notice` can add to them.
CREATE OR REPLACE FUNCTION write_message_at(
  moment timestamptz, message_id uuid, owner uuid, message_kind text, address text, given jsonb, sealed bytea = NULL,
  token uuid = NULL, expiry timestamptz = NULL, delay float = 0, is_notice boolean = false
) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  INSERT INTO outbox (id, user_id, kind, channel, recipient, variables, secret, one_time_token_id, expires_at,
                      is_notice, created_at, next_attempt_at, outcome, finished_at)
  SELECT message_id, owner, message_kind,
         CASE WHEN address LIKE '%@%' THEN 'email' WHEN address IS NOT NULL THEN 'sms' END, address,
         given || jsonb_build_object('locale', user_metadata ->> 'locale'), sealed, token, expiry, is_notice,
         moment, greatest(moment, due_at + make_interval(mins => CASE WHEN address LIKE '%@%' THEN 10 ELSE 60 END))
           + make_interval(secs => delay),
         CASE WHEN address IS NULL THEN 'none' END, CASE WHEN address IS NULL THEN moment END
    FROM (SELECT max(coalesce(finished_at, next_attempt_at)) AS due_at
            FROM outbox AS m
           WHERE recipient = address AND user_id = owner AND kind = message_kind
             AND m.is_notice AND write_message_at.is_notice) AS last
    LEFT JOIN users ON users.id = owner
$$;

-- Whether a waiting message is not late: it waits for an application, or it is a notice that waits for others
-- of its kind or for the next window of the total.
CREATE OR REPLACE FUNCTION waits_for_others(m outbox) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT m.channel = 'logout' OR m.is_notice AND m.attempts = 0 AND m.next_attempt_at > now()
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

-- When an event that an administrator requests is due: before all others, because a failing webhook gets only
-- one.
CREATE OR REPLACE FUNCTION first_turn(webhook_id text) RETURNS timestamptz
  LANGUAGE sql STABLE
AS $$
  SELECT least(now(), min(m.next_attempt_at) - interval '1 millisecond')
    FROM outbox AS m
   WHERE m.channel = 'webhook' AND m.outcome IS NULL AND m.recipient = first_turn.webhook_id
$$;

-- NOTIFY locks the whole instance of Postgres until its transaction is on disk. So a transaction of ours
-- learns from an INFO that it wrote a message, and notifies after its commit; any other one notifies by
-- itself. Kind `none` also notifies, so that a request for an unknown address takes as long as any other.
CREATE OR REPLACE FUNCTION notify_of_message() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  IF current_setting('latchkey.notifies_after_commit', true) = 'on' THEN
    RAISE INFO 'a message was written';
  ELSE
    PERFORM pg_notify('outbox', '');
  END IF;
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER outbox_notify AFTER INSERT ON outbox
  FOR EACH ROW EXECUTE FUNCTION notify_of_message();
