-- Notices wait for others of their kind, and codes leave first.
ALTER TABLE outbox ADD COLUMN is_notice boolean NOT NULL DEFAULT false;
CREATE INDEX outbox_queues ON outbox (channel, is_notice, next_attempt_at)
  WHERE outcome IS NULL AND channel <> 'webhook';
