-- When a sign-in first found the password in the file of leaked passwords.
ALTER TABLE users ADD COLUMN password_leaked_at timestamptz;
