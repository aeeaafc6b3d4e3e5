ALTER TABLE oauth_clients ADD COLUMN backchannel_logout_uri text NOT NULL DEFAULT '';
ALTER TABLE outbox DROP CONSTRAINT outbox_channel_check;
ALTER TABLE outbox ADD CONSTRAINT outbox_channel_check CHECK (
  channel IN ('email', 'sms', 'webhook', 'logout')
);
