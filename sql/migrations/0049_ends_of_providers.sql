-- When a customer's provider was disabled, and its issuer in one spelling.
ALTER TABLE identity_providers ADD COLUMN disabled_at timestamptz;
UPDATE identity_providers SET disabled_at = updated_at WHERE NOT enabled;
UPDATE identity_providers SET issuer = rtrim(issuer, '/') WHERE issuer LIKE '%/';
