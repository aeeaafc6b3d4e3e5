ALTER TABLE oauth_clients DROP CONSTRAINT oauth_clients_grant_types_check;
ALTER TABLE oauth_clients ADD CONSTRAINT oauth_clients_grant_types_check CHECK (
  cardinality(grant_types) > 0
  AND grant_types <@ ARRAY['authorization_code', 'refresh_token', 'client_credentials',
                           'urn:ietf:params:oauth:grant-type:device_code']
  AND NOT ('client_credentials' = ANY (grant_types) AND secret_hash IS NULL)
  AND NOT ('urn:ietf:params:oauth:grant-type:device_code' = ANY (grant_types) AND is_dynamic)
);
ALTER TABLE oauth_requests ALTER COLUMN id_hash DROP NOT NULL;
ALTER TABLE oauth_requests ALTER COLUMN browser_hash DROP NOT NULL;
ALTER TABLE oauth_requests ALTER COLUMN redirect_uri DROP NOT NULL;
ALTER TABLE oauth_requests ADD COLUMN user_code_mac bytea CONSTRAINT oauth_requests_user_code_mac_key UNIQUE;
ALTER TABLE oauth_requests ADD COLUMN ip inet;
ALTER TABLE oauth_requests ADD COLUMN user_agent text;
ALTER TABLE oauth_requests ADD COLUMN poll_interval integer;
ALTER TABLE oauth_requests ADD COLUMN polled_at timestamptz;
ALTER TABLE oauth_requests ADD COLUMN decision text;
ALTER TABLE oauth_requests ADD CONSTRAINT oauth_requests_way_check CHECK (
  CASE WHEN user_code_mac IS NULL
       THEN id_hash IS NOT NULL AND browser_hash IS NOT NULL AND redirect_uri IS NOT NULL
       ELSE id_hash IS NULL AND code_hash IS NOT NULL AND poll_interval IS NOT NULL END
);
ALTER TABLE oauth_requests ADD CONSTRAINT oauth_requests_decision_check CHECK (
  decision IN ('approved', 'denied')
);
