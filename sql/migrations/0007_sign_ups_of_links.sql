ALTER TABLE one_time_tokens ADD COLUMN user_metadata user_metadata, ADD COLUMN user_agent text;
