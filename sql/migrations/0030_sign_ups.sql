-- Nodes of 0.3.0 take a null `password_hash` of several sign-ups as before.
ALTER TABLE users ADD COLUMN sign_up_hash text;
