ALTER TABLE oauth_clients ADD COLUMN metadata_url text;
ALTER TABLE oauth_clients ADD COLUMN fetched_until timestamptz;
ALTER TABLE oauth_clients ADD COLUMN is_blocked boolean NOT NULL DEFAULT false;
