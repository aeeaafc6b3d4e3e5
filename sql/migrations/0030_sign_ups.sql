ALTER TABLE users ADD COLUMN sign_up_hash text;
