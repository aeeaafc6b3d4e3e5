ALTER TABLE known_networks ADD COLUMN passed_at timestamptz, ADD COLUMN mail_proved_at timestamptz;
-- A password is enough to make a network known. Only sessions at aal2 tell where a second step was passed.
INSERT INTO known_networks (user_id, network, passed_at)
SELECT s.user_id, here.network, max(coalesce(s.reauthenticated_at, s.created_at))
  FROM sessions AS s
 CROSS JOIN LATERAL (SELECT CASE family(s.ip) WHEN 4 THEN host(s.ip)
                                 ELSE network(set_masklen(s.ip, 64))::text END) AS here (network)
 WHERE s.ended_at IS NULL AND s.aal = 'aal2' AND s.ip IS NOT NULL
 GROUP BY s.user_id, here.network
ON CONFLICT (user_id, network) DO UPDATE SET passed_at = excluded.passed_at;
