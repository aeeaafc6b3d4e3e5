-- The methods of a session, as in the claim `amr` of its access tokens.
CREATE OR REPLACE FUNCTION methods_of(s sessions) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT coalesce(s.amr, jsonb_build_array(jsonb_build_object(
           'method', CASE s.method WHEN 'sign_up' THEN 'password' ELSE s.method END,
           'timestamp', floor(extract(epoch FROM s.created_at))::bigint)))
$$;

CREATE OR REPLACE FUNCTION factor_object(f factors) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_build_object(
    'id', f.id,
    'friendly_name', f.friendly_name,
    'factor_type', f.factor_type,
    'status', CASE WHEN f.verified_at IS NULL THEN 'unverified' ELSE 'verified' END,
    'created_at', iso_8601(f.created_at),
    'updated_at', iso_8601(f.updated_at)
  )
$$;

-- Facts about the factors of a user, by one look-up: when the oldest was verified, whether one is a second
-- step, and the member `factors` of the user object as JSON text, with the comma that follows it.
CREATE OR REPLACE FUNCTION factors_of(owner uuid)
  RETURNS TABLE (oldest timestamptz, has_second_step boolean, member text)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT min(f.verified_at),
         coalesce(bool_or(f.factor_type <> 'passkey') FILTER (WHERE f.verified_at IS NOT NULL), false),
         coalesce('"factors": ' || (jsonb_agg(factor_object(f) ORDER BY f.created_at, f.id)
                                      FILTER (WHERE f.factor_type <> 'passkey'))::text || ', ', '')
    FROM factors AS f
   WHERE f.user_id = owner
$$;
