-- Whether a user has anything from before a moment that an end of everything would end. A repeated end must not
-- affect anything younger than its act.
CREATE OR REPLACE FUNCTION holds_anything(owner uuid, moment timestamptz) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT EXISTS (SELECT FROM sessions WHERE user_id = owner AND ended_at IS NULL AND created_at < moment)
      OR EXISTS (SELECT FROM api_keys WHERE user_id = owner AND created_at < moment)
      OR EXISTS (SELECT FROM oauth_grants WHERE user_id = owner AND granted_at < moment)
      OR EXISTS (SELECT FROM identity_provider_adoptions WHERE user_id = owner AND adopted_at < moment)
      OR EXISTS (SELECT FROM organization_invitations WHERE invited_by = owner AND created_at < moment)
      OR EXISTS (SELECT FROM authorization_codes
                  WHERE user_id = owner AND session_id IS NULL AND created_at < moment)
      OR EXISTS (SELECT FROM oauth_requests
                  WHERE user_id = owner AND session_id IS NOT NULL AND opened_session_id IS NULL
                    AND created_at < moment)
$$;

-- Ends what auth/rules/ends.py says, and returns whether a session has ended. `reach` is which sessions end:
-- this one `alone`, `this` with those that it opened for applications, or that these opened in turn, `others`
-- except those, or `all` except this one. A code, or an approved authorization request, is a session that has
-- not begun. Call it with the user's row locked.
CREATE OR REPLACE FUNCTION end_held(
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
  DELETE FROM organization_invitations WHERE invited_by = owner AND with_grants;
  UPDATE sessions SET ended_at = moment, end_reason = end_held.reason
   WHERE user_id = owner AND ended_at IS NULL AND (id = ANY (own)) = is_own;
  RETURN FOUND;
END
$$;

-- Ends what providers opened in these terms: sessions with their codes, approved requests and pending changes of the
-- address, and API keys. A session that one of these has opened has the same term. Call it with the user's row locked.
CREATE OR REPLACE FUNCTION end_opened_in(owner uuid, terms uuid[], reason text, moment timestamptz) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  DELETE FROM authorization_codes AS c
   WHERE c.user_id = owner AND c.session_id IS NULL
     AND (c.provider_term = ANY (terms)
          OR EXISTS (SELECT FROM sessions AS s WHERE s.id = c.opened_by AND s.provider_term = ANY (terms)));
  DELETE FROM oauth_requests AS r
   USING sessions AS s
   WHERE r.user_id = owner AND r.opened_session_id IS NULL
     AND s.id = r.session_id AND s.provider_term = ANY (terms);
  DELETE FROM api_keys WHERE user_id = owner AND provider_term = ANY (terms);
  WITH withdrawn AS (
    DELETE FROM one_time_tokens AS t
     USING sessions AS s
     WHERE t.user_id = owner AND t.spent_at IS NULL AND t.purpose IN ('email_change', 'phone_change')
       AND s.id = t.session_id AND s.provider_term = ANY (terms)
    RETURNING t.target
  )
  UPDATE users AS u
     SET new_email = CASE WHEN u.new_email = ANY (gone.addresses) THEN NULL ELSE u.new_email END,
         email_change_sent_at = CASE WHEN u.new_email = ANY (gone.addresses) THEN NULL ELSE u.email_change_sent_at END,
         new_phone = CASE WHEN u.new_phone = ANY (gone.addresses) THEN NULL ELSE u.new_phone END,
         phone_change_sent_at = CASE WHEN u.new_phone = ANY (gone.addresses) THEN NULL ELSE u.phone_change_sent_at END
    FROM (SELECT array_agg(target) AS addresses FROM withdrawn) AS gone
   WHERE u.id = owner AND (u.new_email = ANY (gone.addresses) OR u.new_phone = ANY (gone.addresses));
  UPDATE sessions SET ended_at = moment, end_reason = end_opened_in.reason
   WHERE user_id = owner AND ended_at IS NULL AND provider_term = ANY (terms)
$$;

-- Ends the sessions of clients that refuse the user, so that they stay ended when a role or a membership
-- comes back. Call it with the user's row locked, also before a role changes: sessions that a change of the
-- client must still end must not come back with the new role.
CREATE OR REPLACE FUNCTION end_lost_sessions(
  u users, reason text, reach text, keys_up_to text, with_grants boolean, moment timestamptz
) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  SELECT end_held(u.id, s.id, reason, reach, keys_up_to, with_grants, moment)
    FROM oauth_grants AS g
    JOIN oauth_clients AS c ON c.id = g.client_id
    JOIN sessions AS s ON s.grant_id = g.id
   WHERE g.user_id = u.id AND s.ended_at IS NULL AND NOT admits(c, u, s.resource, s.organization_id);
  DELETE FROM oauth_requests AS r
   USING oauth_clients AS c
   WHERE r.user_id = u.id AND r.session_id IS NOT NULL AND r.opened_session_id IS NULL
     AND c.id = r.client_id AND NOT admits(c, u, r.resource, r.organization_id)
$$;
