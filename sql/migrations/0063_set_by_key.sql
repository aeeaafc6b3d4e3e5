-- Usable from 0061
-- What an administrative key, its links and their sessions have set. Of rows from before, and of nodes of 0.7.0, nobody
-- knows; but a user with a password or address of a key may have been signed in by it.
ALTER TABLE users ADD password_set_at timestamptz;
ALTER TABLE users ALTER password_set_at SET DEFAULT now();
ALTER TABLE identities ADD by_key boolean;
ALTER TABLE sessions ADD by_key boolean;
ALTER TABLE factors ADD by_key boolean;
ALTER TABLE recovery_codes ADD by_key boolean;
ALTER TABLE one_time_tokens ADD by_key boolean;
ALTER TABLE authorization_codes ADD by_key boolean;
ALTER TABLE identity_providers ADD by_key boolean;
UPDATE sessions AS s
   SET by_key = true
  FROM users AS u
 WHERE u.id = s.user_id AND s.ended_at IS NULL
   AND (u.password_by_key OR u.email_by_key IS NOT NULL OR u.phone_by_key IS NOT NULL);
