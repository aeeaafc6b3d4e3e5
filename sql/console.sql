-- name: select_health()
SELECT current_setting('server_version') AS postgres,
       (SELECT max(version) FROM schema_version) AS schema_version,
       (SELECT iso_8601(at) FROM last_done WHERE task = 'delivery') AS delivered_at,
       (SELECT iso_8601(at) FROM last_done WHERE task = 'backup') AS backed_up_at,
       (SELECT count(*) FROM outbox WHERE outcome IS NULL AND channel <> 'webhook') AS waiting_messages,
       (SELECT iso_8601(min(created_at)) FROM outbox WHERE outcome IS NULL AND channel <> 'webhook')
         AS waiting_since;
