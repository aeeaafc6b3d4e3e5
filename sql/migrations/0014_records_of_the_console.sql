CREATE INDEX outbox_messages ON outbox (coalesce(outcome, 'waiting'), created_at, id)
  WHERE channel <> 'webhook';
CREATE INDEX outbox_failed_events ON outbox (recipient, created_at, id)
  WHERE channel = 'webhook' AND outcome = 'failed';
CREATE INDEX audit_log_done_by ON audit_log (coalesce(actor_id::text, actor), at, id)
  WHERE actor <> 'anonymous' AND (actor <> 'user' OR user_id IS DISTINCT FROM actor_id);
