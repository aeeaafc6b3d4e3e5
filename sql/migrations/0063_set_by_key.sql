-- Usable from 0061
-- What an administrative key, its links and their sessions have set. Rows of before, and of nodes of 0.7.0, say nothing.
ALTER TABLE users ADD password_set_at timestamptz;
ALTER TABLE users ALTER password_set_at SET DEFAULT now();
ALTER TABLE identities ADD by_key boolean;
ALTER TABLE sessions ADD by_key boolean;
ALTER TABLE factors ADD by_key boolean;
ALTER TABLE recovery_codes ADD by_key boolean;
ALTER TABLE one_time_tokens ADD by_key boolean;
ALTER TABLE authorization_codes ADD by_key boolean;
ALTER TABLE identity_providers ADD by_key boolean;
