-- Users that earlier releases imported stay those of an administrator.
ALTER TABLE users DROP CONSTRAINT users_made_by_check;
ALTER TABLE users ADD CONSTRAINT users_made_by_check CHECK (
  made_by IN ('signup', 'administrator', 'import', 'message', 'invitation', 'link', 'oauth', 'anonymous')
);
