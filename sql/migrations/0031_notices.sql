-- Notices wait for others of their kind, and codes leave first. Those that a node of 0.3.0 writes leave with
-- the codes, as there; it also sends what a node of this release writes.
ALTER TABLE outbox ADD COLUMN is_notice boolean NOT NULL DEFAULT false;
CREATE INDEX outbox_queues ON outbox (channel, is_notice, next_attempt_at)
  WHERE outcome IS NULL AND channel <> 'webhook';
