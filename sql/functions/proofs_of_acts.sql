-- How long an addition is recent, so that a thief may have made it: RECENT_AGE of auth/rules/policy.py.
CREATE OR REPLACE FUNCTION recent_age() RETURNS interval
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT interval '7 days' $$;
