-- Usable from 0061
-- What customers' providers opened before 0064. What one opened before it was turned off, and whose end has not come yet,
-- gets the id of the provider, which is no term; so does what a deleted one opened.
CREATE FUNCTION is_of_present_term(p identity_providers, moment timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT p.enabled OR p.is_on OR moment >= coalesce(p.disabled_at, p.updated_at)
$$;
UPDATE sessions AS s SET provider_term = coalesce(p.term, opened.provider_id)
  FROM (SELECT id, created_at, provider_in(amr) AS provider_id
          FROM sessions
         WHERE ended_at IS NULL AND amr IS NOT NULL AND provider_term IS NULL) AS opened
  LEFT JOIN identity_providers AS p ON p.id = opened.provider_id AND is_of_present_term(p, opened.created_at)
 WHERE s.id = opened.id AND opened.provider_id IS NOT NULL;
-- Such a session may have opened others since.
WITH RECURSIVE over (user_id, id, term) AS (
  SELECT s.user_id, s.id, s.provider_term FROM sessions AS s JOIN identity_providers AS p ON s.provider_term = p.id
   WHERE s.ended_at IS NULL UNION
  SELECT s.user_id, s.id, over.term FROM sessions AS s JOIN over ON s.user_id = over.user_id AND s.opened_by = over.id
   WHERE s.ended_at IS NULL
)
UPDATE sessions AS s SET provider_term = over.term FROM over WHERE s.id = over.id AND s.provider_term <> over.term;
UPDATE authorization_codes AS c SET provider_term = coalesce(p.term, opened.provider_id)
  FROM (SELECT id, created_at, substr(provider, 5)::uuid AS provider_id
          FROM authorization_codes
         WHERE starts_with(provider, 'sso:') AND provider_term IS NULL) AS opened
  LEFT JOIN identity_providers AS p ON p.id = opened.provider_id AND is_of_present_term(p, opened.created_at)
 WHERE c.id = opened.id;
-- An API key from before says no session: it ends with the identity.
UPDATE api_keys AS k SET provider_term = CASE WHEN is_of_present_term(p, k.created_at) THEN p.term ELSE p.id END
  FROM (SELECT DISTINCT ON (i.user_id) i.user_id, p.id
          FROM identities AS i
          JOIN identity_providers AS p ON i.provider = 'sso:' || p.id
         ORDER BY i.user_id, i.created_at DESC) AS newest
  JOIN identity_providers AS p ON p.id = newest.id
 WHERE k.user_id = newest.user_id AND k.provider_term IS NULL;
DROP FUNCTION is_of_present_term;
UPDATE identity_providers SET disabled_at = to_timestamp(0);
