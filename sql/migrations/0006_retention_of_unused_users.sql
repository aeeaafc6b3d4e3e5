CREATE INDEX users_unproved ON users (created_at)
  WHERE made_by IN ('signup', 'message') AND NOT email_proved AND NOT phone_proved;
CREATE INDEX oauth_flows_user_id ON oauth_flows (user_id) WHERE user_id IS NOT NULL;
