-- Usable from 0047
ALTER TABLE sessions ADD COLUMN echoes jsonb;
ALTER TABLE users ADD COLUMN password_vouched boolean;
-- Nobody else could set these.
UPDATE users
   SET password_vouched = true
 WHERE made_by IN ('administrator', 'import', 'link') AND password_hash IS NOT NULL
   AND NOT email_proved AND NOT phone_proved AND last_sign_in_at IS NULL;
