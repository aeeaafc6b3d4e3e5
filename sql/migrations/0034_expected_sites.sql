ALTER TABLE browser_sessions ADD COLUMN site_expected_until timestamptz;
