-- A user's codes are one set, and have one name.
ALTER TABLE recovery_codes ADD COLUMN friendly_name text NOT NULL DEFAULT '';
