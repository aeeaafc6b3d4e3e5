-- Paths and queries of webhook URLs may contain secrets. Administrators read the audit log.
UPDATE audit_log
   SET details = details || jsonb_build_object('url', substring(details ->> 'url' FROM '^[^/]*//[^/?#]+'))
 WHERE action IN ('webhook_created', 'webhook_changed', 'webhook_secret_rotated', 'webhook_enabled',
                  'webhook_disabled', 'webhook_deleted', 'webhook_tested', 'event_redelivered')
   AND details ? 'url';
