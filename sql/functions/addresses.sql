-- Addresses and passwords of users.

-- Whether the user has proved the address of a kind: confirmed is also what AUTH_AUTOCONFIRM or an
-- administrator vouched for.
CREATE OR REPLACE FUNCTION is_proved(u users, kind text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE kind WHEN 'email' THEN u.email_proved WHEN 'phone' THEN u.phone_proved END
$$;

CREATE OR REPLACE FUNCTION has_proved(u users, address text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT u.email = address AND is_proved(u, 'email') OR u.phone = address AND is_proved(u, 'phone')
$$;

-- The password of a user, or before the first proof, of the newest of several sign-ups.
CREATE OR REPLACE FUNCTION own_hash(u users) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT coalesce(u.password_hash, u.sign_up_hash)
$$;
