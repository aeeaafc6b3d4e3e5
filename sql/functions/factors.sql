-- Whether a user needs `aal2` for sensitive operations.
CREATE OR REPLACE FUNCTION has_verified_factor(owner uuid) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT EXISTS (SELECT FROM factors WHERE user_id = owner AND verified_at IS NOT NULL)
$$;

-- The second steps of a user. A passkey is another way to sign in.
CREATE OR REPLACE FUNCTION second_steps(owner uuid) RETURNS SETOF factors
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT * FROM factors WHERE user_id = owner AND verified_at IS NOT NULL AND factor_type <> 'passkey'
$$;

CREATE OR REPLACE FUNCTION has_second_step(owner uuid) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT EXISTS (SELECT FROM second_steps(owner))
$$;

-- An anonymous user cannot enrol a factor, because it cannot give the proof.
CREATE OR REPLACE FUNCTION must_have_step(u users, required text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT required = 'all' AND NOT is_anonymous(u) OR required = 'admins' AND u.role = 'admin'
$$;

-- Whether a session at `aal` lacks a step that its user has or needs. A refresh and a sign-in look up
-- `has_step` in different ways.
CREATE OR REPLACE FUNCTION lacks_step(u users, aal text, required text, has_step boolean) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT aal < 'aal2' AND (must_have_step(u, required) OR has_step)
$$;

-- The methods of a session, as in the claim `amr` of its access tokens.
CREATE OR REPLACE FUNCTION methods_of(s sessions) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT coalesce(s.amr, jsonb_build_array(jsonb_build_object(
           'method', CASE s.method WHEN 'sign_up' THEN 'password' ELSE s.method END,
           'timestamp', floor(extract(epoch FROM s.created_at))::bigint)))
$$;

CREATE OR REPLACE FUNCTION with_second_step(amr jsonb, method text) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_path_query_array(amr, '$[*] ? (@.method <> $method)', jsonb_build_object('method', method))
         || jsonb_build_object('method', method, 'timestamp', floor(extract(epoch FROM now()))::bigint)
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

-- `{}` for a user without factors. Not part of user_object, which the planner could then not inline.
CREATE OR REPLACE FUNCTION factors_member(owner uuid) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN count(*) = 0 THEN '{}'
              ELSE jsonb_build_object('factors', jsonb_agg(factor_object(f) ORDER BY f.created_at, f.id)) END
    FROM factors AS f
   WHERE f.user_id = owner AND f.factor_type <> 'passkey'
$$;

-- Facts about the factors of a user, by one look-up: when the oldest was verified, whether one is a second step, and
-- the first member of the user object, as text: without factors there is none.
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

-- Sessions whose level came from a removed factor fall to `aal1`. Recovery codes are deleted with the last
-- factor. A thief may have passed the second step with a removed factor, so no network keeps its own tries.
-- The links of notices ask for old factors for seven days. Call it with the user's row locked.
CREATE OR REPLACE FUNCTION remove_factors(owner uuid, ids uuid[]) RETURNS SETOF factors
  LANGUAGE sql VOLATILE
AS $$
  UPDATE sessions SET aal = 'aal1', factor_id = NULL, first_passkey_at = NULL
   WHERE user_id = owner AND factor_id = ANY (ids);
  UPDATE known_networks
     SET passed_at = NULL
   WHERE user_id = owner AND passed_at IS NOT NULL
     AND EXISTS (SELECT FROM factors
                  WHERE user_id = owner AND verified_at IS NOT NULL AND id = ANY (ids));
  DELETE FROM recovery_codes
   WHERE user_id = owner
     AND NOT EXISTS (SELECT FROM factors
                      WHERE user_id = owner AND verified_at IS NOT NULL AND id <> ALL (ids));
  INSERT INTO one_time_tokens (id, user_id, purpose, target, restores, expires_at)
  SELECT gen_random_uuid(), owner, 'undo', '', to_jsonb(f) || '{"provider": "factor"}',
         now() + recent_age()
    FROM factors AS f
   WHERE f.user_id = owner AND f.id = ANY (ids) AND f.verified_at <= now() - recent_age();
  DELETE FROM factors WHERE user_id = owner AND id = ANY (ids) RETURNING *
$$;

CREATE OR REPLACE FUNCTION factor_has_changed() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM FROM users WHERE id = coalesce(NEW.user_id, OLD.user_id) FOR NO KEY UPDATE;
  UPDATE users SET first_factor_at = NEW.verified_at
   WHERE id = NEW.user_id AND NEW.verified_at < coalesce(first_factor_at, 'infinity');
  PERFORM write_user_object(id) FROM users WHERE id = coalesce(NEW.user_id, OLD.user_id);
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER factors_object
  AFTER INSERT OR DELETE OR UPDATE OF friendly_name, verified_at, updated_at ON factors
  FOR EACH ROW EXECUTE FUNCTION factor_has_changed();
