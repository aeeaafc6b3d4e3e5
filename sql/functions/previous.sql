-- Only nodes of 0.7.0 call these functions, which have its text. They go with the release after this one.
-- `python -m tests.support.previous_release` writes this file.

-- True if an administrative key acts, else null, so that a row tells nothing of other writers.
CREATE OR REPLACE FUNCTION is_of_key(origin jsonb) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN origin ->> 'actor' = 'service_role' AND origin ->> 'actor_id' IS NOT NULL THEN true END
$$;

-- `email_by_key` or `phone_by_key` of a user whose address becomes `address`. An operator vouches for it. A code that is
-- sent to it does not: its reader may be the key's holder.
CREATE OR REPLACE FUNCTION address_by_key(origin jsonb, address text, before text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN is_of_key(origin) THEN address
              WHEN origin ->> 'actor' NOT IN ('service_role', 'command') THEN before END
$$;

-- True if a key acts, or its holder may: a user whom a password or address of a key signs in.
CREATE OR REPLACE FUNCTION may_be_keys_holder(origin jsonb, u users) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN is_of_key(origin) OR origin ->> 'actor' NOT IN ('service_role', 'command')
                AND (u.password_by_key OR u.email = u.email_by_key OR u.phone = u.phone_by_key) THEN true END
$$;
