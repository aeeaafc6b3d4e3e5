ALTER TABLE identities
  DROP CONSTRAINT identities_provider_subject_key,
  ADD CONSTRAINT identities_provider_subject_key UNIQUE (provider, subject) INCLUDE (user_id);
