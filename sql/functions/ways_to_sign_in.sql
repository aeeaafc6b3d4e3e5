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
