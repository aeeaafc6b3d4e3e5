ALTER TABLE oauth_clients ADD COLUMN accepts_either_method boolean NOT NULL DEFAULT false;
ALTER TABLE oauth_clients ADD COLUMN policy_uri text NOT NULL DEFAULT '';
ALTER TABLE oauth_clients ADD COLUMN tos_uri text NOT NULL DEFAULT '';
