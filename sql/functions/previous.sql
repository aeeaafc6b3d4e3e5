-- Only nodes of 0.6.1 call these functions, which have its text. They go with the release after this one.
-- `python -m tests.support.previous_release` writes this file.

-- Equal refusals of one minute share a row, so that a flood cannot fill the disk.
CREATE OR REPLACE FUNCTION record_refusal(
  origin jsonb, subject uuid, refused_act text, error_code text, details jsonb
) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  same CONSTANT text := concat_ws('|', date_trunc('minute', now()), subject, refused_act, error_code,
                                  origin ->> 'network', origin ->> 'actor', origin ->> 'actor_id');
BEGIN
  INSERT INTO audit_log AS refusal (
    id, at, action, reason, user_id, actor, actor_id, ip, network, user_agent, request_id, details
  )
  VALUES (
    encode(substr(sha256(convert_to(same, 'UTF8')), 1, 16), 'hex')::uuid, now(), refused_act, error_code,
    subject, origin ->> 'actor', (origin ->> 'actor_id')::uuid, (origin ->> 'ip')::inet, origin ->> 'network',
    origin ->> 'user_agent', origin ->> 'request_id', record_refusal.details
  )
  ON CONFLICT (id) DO UPDATE
     SET count = refusal.count + 1, user_agent = excluded.user_agent, request_id = excluded.request_id,
         details = excluded.details;
END
$$;

REVOKE ALL ON FUNCTION record_refusal FROM PUBLIC;

-- The users that match the filters of the console; an absent filter matches all. Inlined, and planned with
-- the filters' values (see bound_search), so that the conditions of absent filters vanish.
CREATE OR REPLACE FUNCTION filtered_users(filters jsonb, among uuid[]) RETURNS SETOF users
  LANGUAGE sql STABLE
AS $$
  SELECT u.*
    FROM users AS u
   WHERE (among IS NULL OR u.id = ANY (among))
     AND (filters ->> 'words' IS NULL
          OR words_of(u) @@ query_of(filters ->> 'words') AND may_have(u, part_of(filters ->> 'words')))
     -- Like `words`, but not read from the index.
     AND (filters ->> 'common' IS NULL
          OR (words_of(u) @@ query_of(filters ->> 'common')) IS TRUE
             AND may_have(u, part_of(filters ->> 'common')))
     AND (filters ->> 'email' IS NULL
          OR u.email >= filters ->> 'email' AND u.email < (filters ->> 'email') || chr(1114111))
     AND (filters ->> 'domain' IS NULL
          OR split_part(u.email, '@', 2) COLLATE "C" >= filters ->> 'domain'
             AND split_part(u.email, '@', 2) COLLATE "C" < (filters ->> 'domain') || chr(1114111))
     AND (filters ->> 'phone' IS NULL
          OR u.phone >= filters ->> 'phone' AND u.phone < (filters ->> 'phone') || chr(1114111))
     AND (filters ->> 'id' IS NULL
          OR u.id BETWEEN rpad(filters ->> 'id', 32, '0')::uuid AND rpad(filters ->> 'id', 32, 'f')::uuid)
     AND CASE filters ->> 'status'
           WHEN 'banned' THEN is_banned(u)
           WHEN 'locked' THEN is_locked(u, filters -> 'locks')
           WHEN 'unconfirmed' THEN u.email_confirmed_at IS NULL AND u.phone_confirmed_at IS NULL
                                   AND coalesce(u.email, u.phone) IS NOT NULL
           WHEN 'anonymous' THEN is_anonymous(u)
           WHEN 'administrator' THEN u.role = 'admin'
           ELSE true
         END
     AND (filters ->> 'provider' IS NULL
          OR EXISTS (SELECT FROM identities WHERE user_id = u.id AND provider = filters ->> 'provider'))
     AND (filters ->> 'has_factor' IS NULL
          OR (SELECT count(*) > 0 FROM factors WHERE user_id = u.id AND verified_at IS NOT NULL)
             = (filters ->> 'has_factor')::boolean)
     AND (filters ->> 'within' IS NULL OR u.last_sign_in_at >= now() - (filters ->> 'within')::interval)
     AND (filters ->> 'not_within' IS NULL
          OR (u.last_sign_in_at >= now() - (filters ->> 'not_within')::interval) IS NOT TRUE)
$$;

-- Whether a user has anything from before a moment that an end of everything would end. A repeated end must not
-- affect anything younger than its act.
CREATE OR REPLACE FUNCTION has_access(owner uuid, moment timestamptz) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT EXISTS (SELECT FROM sessions WHERE user_id = owner AND ended_at IS NULL AND created_at < moment)
      OR EXISTS (SELECT FROM api_keys WHERE user_id = owner AND created_at < moment)
      OR EXISTS (SELECT FROM oauth_grants WHERE user_id = owner AND granted_at < moment)
      OR EXISTS (SELECT FROM identity_provider_adoptions WHERE user_id = owner AND adopted_at < moment)
      OR EXISTS (SELECT FROM authorization_codes
                  WHERE user_id = owner AND session_id IS NULL AND created_at < moment)
      OR EXISTS (SELECT FROM oauth_requests
                  WHERE user_id = owner AND session_id IS NOT NULL AND opened_session_id IS NULL
                    AND created_at < moment)
$$;

CREATE OR REPLACE FUNCTION has_access(owner uuid) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT has_access(owner, 'infinity')
$$;

-- Ends what auth/rules/ends.py says, and returns whether a session has ended. Of sessions, `reach` is `alone`,
-- `this` with those that it opened for applications, or that these opened in turn, `others` except those, or
-- `all` except the session itself. A code, or an approved authorization request, is a session that has not
-- begun. Call it with the user's row locked.
CREATE OR REPLACE FUNCTION end_holdings(
  owner uuid, session uuid, reason text, reach text, keys_up_to text, with_grants boolean, moment timestamptz
) RETURNS boolean
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  is_own CONSTANT boolean := reach IN ('alone', 'this');
  own uuid[] := CASE WHEN reach IN ('alone', 'all') THEN array_remove(ARRAY[session], NULL) ELSE ARRAY(
    WITH RECURSIVE opened (id) AS (
      SELECT session UNION
      SELECT s.id FROM sessions AS s JOIN opened ON s.opened_by = opened.id WHERE s.user_id = owner)
    SELECT id FROM opened) END;
BEGIN
  DELETE FROM authorization_codes WHERE user_id = owner AND session_id IS NULL
     AND (reach = 'all' OR coalesce(opened_by = ANY (own), false) = is_own);
  DELETE FROM oauth_requests WHERE user_id = owner AND session_id IS NOT NULL AND opened_session_id IS NULL
     AND (reach = 'all' OR (session_id = ANY (own)) = is_own);
  DELETE FROM api_keys WHERE user_id = owner AND aal <= keys_up_to;
  DELETE FROM oauth_grants WHERE user_id = owner AND with_grants;
  DELETE FROM identity_provider_adoptions WHERE user_id = owner AND with_grants;
  UPDATE sessions SET ended_at = moment, end_reason = end_holdings.reason
   WHERE user_id = owner AND ended_at IS NULL AND (id = ANY (own)) = is_own;
  RETURN FOUND;
END
$$;

-- Ends the sessions of clients that refuse the user, so that they stay ended when a role comes back. Call it
-- with the user's row locked, also before a role changes: sessions that a change of the client must still end
-- must not come back with the new role.
CREATE OR REPLACE FUNCTION end_refused_sessions(
  u users, reason text, reach text, keys_up_to text, with_grants boolean, moment timestamptz
) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  SELECT end_holdings(u.id, s.id, reason, reach, keys_up_to, with_grants, moment)
    FROM oauth_grants AS g
    JOIN oauth_clients AS c ON c.id = g.client_id
    JOIN sessions AS s ON s.grant_id = g.id
   WHERE g.user_id = u.id AND s.ended_at IS NULL AND NOT may_use(u, c, s.resource);
  DELETE FROM oauth_requests AS r
   USING oauth_clients AS c
   WHERE r.user_id = u.id AND r.session_id IS NOT NULL AND r.opened_session_id IS NULL
     AND c.id = r.client_id AND NOT may_use(u, c, r.resource)
$$;

CREATE OR REPLACE FUNCTION identity_object(i identities) RETURNS json
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_build_object(
    'id', i.id,
    'identity_id', i.id,
    'user_id', i.user_id,
    'identity_data', i.identity_data,
    'provider', i.provider,
    'last_sign_in_at', iso_8601(i.last_sign_in_at),
    'created_at', iso_8601(i.created_at),
    'updated_at', iso_8601(i.updated_at)
  )::json
$$;

-- The identities of a user, as the user object has them, and their providers in the same order.
CREATE OR REPLACE FUNCTION linked_to(owner uuid) RETURNS TABLE (objects jsonb, providers text[])
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT coalesce(jsonb_agg(identity_object(i)::jsonb ORDER BY i.created_at, i.provider), '[]'),
         coalesce(array_agg(i.provider ORDER BY i.created_at, i.provider), '{}')
    FROM identities AS i
   WHERE i.user_id = owner
$$;

-- In the format of the dialect. Nonce and PKCE are always used, and an email is always required.
CREATE OR REPLACE FUNCTION identity_provider_object(p identity_providers) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'id', p.id,
    'provider_type', 'oidc',
    'identifier', p.identifier,
    'name', p.name,
    'issuer', p.issuer,
    'discovery_url', nullif(p.discovery_url, ''),
    'client_id', p.client_id,
    'acceptable_client_ids', p.acceptable_client_ids,
    'scopes', p.scopes,
    'authorization_params', p.authorization_params,
    'attribute_mapping', p.attribute_mapping,
    'custom_claims_allowlist', p.custom_claims_allowlist,
    'pkce_enabled', true,
    'skip_nonce_check', false,
    'email_optional', false,
    'domains', domains_of(p),
    'enabled', p.enabled,
    'created_at', iso_8601(p.created_at),
    'updated_at', iso_8601(p.updated_at)
  ))
$$;

-- Whether a user may use a client: by the user's role, or by one of the list `roles` in `app_metadata`.
-- Refuses anonymous users, whom an application could not identify. A blocked client refuses every user.
CREATE OR REPLACE FUNCTION may_use(u users, c oauth_clients) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT NOT is_anonymous(u) AND NOT c.is_blocked
     AND (cardinality(c.allowed_roles) = 0 OR u.role = ANY (c.allowed_roles)
          OR CASE WHEN jsonb_typeof(u.app_metadata -> 'roles') = 'array'
                  THEN u.app_metadata -> 'roles' ?| c.allowed_roles ELSE false END)
$$;

-- Also checks a resource, which an administrator may remove from a client that an administrator created.
CREATE OR REPLACE FUNCTION may_use(u users, c oauth_clients, resource text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT may_use(u, c) AND (resource IS NULL OR c.is_dynamic OR resource = ANY (c.resources))
$$;

-- The user object from what belongs to the user; it is inlined. `member` is that of `factors_of`. `user_object`, which
-- the triggers call, builds the same.
CREATE OR REPLACE FUNCTION user_object_with(
  u users, identities jsonb, providers text[], member text, audience text
) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT '{' || member || substr(jsonb_build_object(
    'aud', audience,
    'id', u.id,
    'role', u.role,
    'email', u.email,
    'email_confirmed_at', iso_8601(u.email_confirmed_at),
    'phone', u.phone,
    'phone_confirmed_at', iso_8601(u.phone_confirmed_at),
    'confirmed_at', iso_8601(least(u.email_confirmed_at, u.phone_confirmed_at)),
    'confirmation_sent_at', iso_8601(u.confirmation_sent_at),
    'invited_at', iso_8601(u.invited_at),
    'last_sign_in_at', iso_8601(u.last_sign_in_at),
    'app_metadata', u.app_metadata || jsonb_build_object('provider', providers[1], 'providers', providers),
    'user_metadata', u.user_metadata,
    'identities', identities,
    'new_email', u.new_email,
    'email_change_sent_at', iso_8601(u.email_change_sent_at),
    'new_phone', u.new_phone,
    'phone_change_sent_at', iso_8601(u.phone_change_sent_at),
    'banned_until', CASE WHEN is_banned(u) THEN iso_8601(u.banned_until) END,
    'is_anonymous', is_anonymous(u),
    'created_at', iso_8601(u.created_at),
    'updated_at', iso_8601(u.updated_at)
  )::text, 2)
$$;

-- The user object for a response or the claims of a token. A table, so that a statement is planned together with
-- it: as a value it would be planned at each call.
CREATE OR REPLACE FUNCTION user_object_for(u users, audience text) RETURNS TABLE (user_object text)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT user_object_with(u, linked.objects, linked.providers, own.member, audience)
    FROM linked_to(u.id) AS linked
   CROSS JOIN factors_of(u.id) AS own
$$;
