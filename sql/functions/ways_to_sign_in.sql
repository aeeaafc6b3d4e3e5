-- A user's ways to sign in. An address changes in `set_address`, when the new one is proved or an
-- administrator vouches for it. A user always keeps a way to sign in, and the service an administrator who
-- can sign in, unless the service role key removes them: `can_sign_in` checks this after a removal,
-- `is_last_administrator` before.

-- The ways to sign in that were added to a user since a moment, with the user's grants to applications and
-- API keys, which work without a session of the user. Everything that a thief may add belongs in this list.
-- The identity of an address is as old as the address. Data from the creation of the user does not count; an
-- OAuth sign-up writes the email a microsecond later.
CREATE OR REPLACE FUNCTION additions_to(owner uuid, since timestamptz)
  RETURNS TABLE (id uuid, type text, added_at timestamptz, label text)
  LANGUAGE sql STABLE ROWS 1
AS $$
  SELECT i.id, CASE WHEN is_address THEN i.provider ELSE 'identity' END, moment,
         CASE WHEN is_address THEN i.identity_data ->> i.provider
              ELSE concat_ws(' ', i.provider, i.identity_data ->> 'email') END
    FROM identities AS i
    JOIN users AS u ON u.id = i.user_id
   CROSS JOIN LATERAL (SELECT i.provider IN ('email', 'phone')) AS kind (is_address)
   CROSS JOIN LATERAL (SELECT CASE WHEN is_address THEN i.updated_at ELSE i.created_at END) AS added (moment)
   WHERE i.user_id = owner AND moment >= since AND moment > u.created_at + interval '1 microsecond'
   UNION ALL
  SELECT f.id, f.factor_type, f.verified_at, f.friendly_name
    FROM factors AS f
   WHERE f.user_id = owner AND f.verified_at >= since
   UNION ALL
  SELECT o.id, 'grant', o.granted_at, c.name
    FROM oauth_grants AS o
    JOIN oauth_clients AS c ON c.id = o.client_id
   WHERE o.user_id = owner AND o.granted_at >= since
   UNION ALL
  SELECT k.id, 'api_key', k.created_at, k.name
    FROM api_keys AS k
   WHERE k.user_id = owner AND k.created_at >= since
$$;

-- `usable`: the configured providers, and email, phone and passkey if they are enabled. A second factor is
-- not a way to sign in. If `usable` contains `password`, a password with a confirmed but unproved address is
-- one.
CREATE OR REPLACE FUNCTION can_sign_in(owner uuid, usable text[]) RETURNS boolean
  LANGUAGE sql STABLE
AS $$
  SELECT EXISTS (
    SELECT
      FROM identities AS i
      JOIN users AS u ON u.id = i.user_id
     CROSS JOIN LATERAL (SELECT 'password' = ANY (usable) AND u.password_hash IS NOT NULL)
             AS own (has_password)
     WHERE i.user_id = owner AND i.provider = ANY (usable)
       AND CASE i.provider
             WHEN 'email' THEN is_proved(u, 'email') OR u.email_confirmed_at IS NOT NULL AND has_password
             WHEN 'phone' THEN is_proved(u, 'phone') OR u.phone_confirmed_at IS NOT NULL AND has_password
             ELSE true
           END
  ) OR 'passkey' = ANY (usable)
       AND EXISTS (SELECT FROM factors WHERE user_id = owner AND factor_type = 'passkey')
$$;

-- Two administrators who leave concurrently must not count each other. Call it with the user's row locked. It
-- is VOLATILE to see the commits of its lock's previous holder.
CREATE OR REPLACE FUNCTION lock_administrators() RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  SELECT pg_advisory_xact_lock(7239004121)
$$;

CREATE OR REPLACE FUNCTION is_last_administrator(u users) RETURNS boolean
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  IF u.role <> 'admin' THEN
    RETURN false;
  END IF;
  PERFORM lock_administrators();
  RETURN NOT EXISTS (SELECT
                       FROM users AS other
                      WHERE other.role = 'admin' AND other.id <> u.id
                        AND NOT is_banned(other));
END
$$;
