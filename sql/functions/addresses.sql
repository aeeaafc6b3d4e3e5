-- Addresses and passwords of users. Call those that write with the user's row locked.

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

-- Whether the user has a password after the code of a sign-up: its own, or one that an operator vouches for.
CREATE OR REPLACE FUNCTION keeps_password(u users) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT u.password_hash IS NOT NULL AND (u.made_by IN ('signup', 'link') OR u.password_vouched IS TRUE)
$$;

-- The only writer of `users.password_hash`. `sign_in` stores another hash of the same password.
CREATE OR REPLACE FUNCTION set_password(owner uuid, hash text) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  UPDATE users SET password_hash = hash, sign_up_hash = NULL, password_leaked_at = NULL,
                   password_vouched = NULL, updated_at = now()
   WHERE id = owner
$$;

-- Gives the user an address. An address is as old as the last change of its identity.
CREATE OR REPLACE FUNCTION set_address(
  owner uuid, kind text, address text, is_confirmed boolean, is_proved boolean
) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  -- An operator vouches for a password at the addresses that the user has then.
  UPDATE users SET password_vouched = NULL
   WHERE id = owner AND address <> CASE kind WHEN 'email' THEN email ELSE phone END;
  UPDATE users SET email = address, new_email = NULL, email_change_sent_at = NULL, email_proved = is_proved,
                   updated_at = now(), email_confirmed_at = CASE WHEN is_confirmed THEN coalesce(
                     CASE WHEN email = address THEN email_confirmed_at END, now()) END
   WHERE id = owner AND kind = 'email';
  UPDATE users SET phone = address, new_phone = NULL, phone_change_sent_at = NULL, phone_proved = is_proved,
                   updated_at = now(), phone_confirmed_at = CASE WHEN is_confirmed THEN coalesce(
                     CASE WHEN phone = address THEN phone_confirmed_at END, now()) END
   WHERE id = owner AND kind = 'phone';
  INSERT INTO identities AS i (user_id, provider, subject, identity_data)
  VALUES (owner, kind, owner, jsonb_build_object('sub', owner, kind, address))
  ON CONFLICT (user_id, provider) DO UPDATE SET identity_data = excluded.identity_data, updated_at = now()
   WHERE i.identity_data ->> kind IS DISTINCT FROM address
$$;

-- The first proof of an address keeps the proved data and removes everything else of the user, which a
-- stranger may have set. It is not a first proof if the address is new to the user, or was added when the
-- other one was proved. `proof` is the purpose of a link or code, `provider`, or `administrator`, who vouches
-- for everything that no sign-up has set. Returns whether everything else was removed.
CREATE OR REPLACE FUNCTION prove_address(owner uuid, kind text, address text, proof text) RETURNS boolean
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  u users := (SELECT users FROM users WHERE users.id = owner);
  added_at timestamptz := coalesce((SELECT i.updated_at FROM identities AS i
                                     WHERE i.user_id = owner AND i.provider = kind), u.created_at);
  is_first boolean := NOT (proof = 'administrator' AND u.made_by <> 'signup') AND CASE
    WHEN address = u.email
    THEN NOT (is_proved(u, 'email') OR is_proved(u, 'phone') AND u.phone_confirmed_at <= added_at)
    WHEN address = u.phone
    THEN NOT (is_proved(u, 'phone') OR is_proved(u, 'email') AND u.email_confirmed_at <= added_at)
    ELSE proof = 'administrator' AND NOT (is_proved(u, 'email') OR is_proved(u, 'phone')) END;
BEGIN
  IF is_first THEN
    DELETE FROM identities WHERE user_id = owner AND provider <> kind;
    DELETE FROM factors WHERE user_id = owner;
    DELETE FROM recovery_codes WHERE user_id = owner;
    UPDATE known_networks SET passed_at = NULL, mail_proved_at = NULL WHERE user_id = owner;
    UPDATE users SET email = NULL, email_confirmed_at = NULL, email_proved = false, first_factor_at = NULL
     WHERE id = owner AND kind <> 'email';
    UPDATE users SET phone = NULL, phone_confirmed_at = NULL, phone_proved = false, first_factor_at = NULL
     WHERE id = owner AND kind <> 'phone';
    PERFORM end_access(owner, NULL, 'address_proved');
    PERFORM void_tokens(owner);
    DELETE FROM one_time_tokens WHERE user_id = owner AND purpose = 'undo';
    PERFORM set_password(owner, CASE WHEN proof IN ('signup', 'sms_signup') AND keeps_password(u)
                                     THEN u.password_hash END);
  END IF;
  PERFORM set_address(owner, kind, address, true, true);
  RETURN is_first;
END
$$;
