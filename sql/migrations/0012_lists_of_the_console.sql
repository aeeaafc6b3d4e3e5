ALTER TABLE user_objects ADD COLUMN last_sign_in_at timestamptz NOT NULL DEFAULT '-infinity';
CREATE INDEX user_objects_last_sign_in_at ON user_objects (last_sign_in_at, user_id);

CREATE INDEX users_banned ON users (created_at, id) WHERE banned_until IS NOT NULL;
CREATE INDEX users_unconfirmed ON users (created_at, id)
  WHERE email_confirmed_at IS NULL AND phone_confirmed_at IS NULL AND coalesce(email, phone) IS NOT NULL;
