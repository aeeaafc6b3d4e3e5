ALTER TABLE outbox ADD COLUMN is_notice boolean NOT NULL DEFAULT false;
CREATE INDEX outbox_queues ON outbox (channel, is_notice, next_attempt_at)
  WHERE outcome IS NULL AND channel <> 'webhook';
