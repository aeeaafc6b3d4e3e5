ALTER TABLE one_time_tokens ADD COLUMN browser_hash bytea, ADD COLUMN ip inet;
CREATE INDEX one_time_tokens_browser_hash ON one_time_tokens (browser_hash) WHERE browser_hash IS NOT NULL;
