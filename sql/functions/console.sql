-- Whether wrong passwords or codes lock a user, on some network or on all. `locks` has the amount of each
-- kind of count, for one network and for all others.
CREATE OR REPLACE FUNCTION is_locked(u users, locks jsonb) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT EXISTS (SELECT
                   FROM failure_counts AS f
                  WHERE f.subject IN (u.email, u.phone, u.id::text) AND f.expires_at > now()
                    AND f.count >= (locks #>> ARRAY[
                          CASE WHEN f.network IS NULL THEN 'elsewhere' ELSE 'network' END, f.kind])::bigint)
$$;

-- The users that match the filters of the console; an absent filter matches all. Inlined, and planned with
-- the filters' values (see bound_search), so that the conditions of absent filters vanish.
CREATE OR REPLACE FUNCTION matching_users(filters jsonb, among uuid[]) RETURNS SETOF users
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
                                   AND coalesce(u.email, u.phone) IS NOT NULL AND NOT has_open_invitation(u)
           -- Users without an address that is confirmed have an index.
           WHEN 'invited' THEN has_open_invitation(u) AND u.email_confirmed_at IS NULL
                               AND u.phone_confirmed_at IS NULL AND coalesce(u.email, u.phone) IS NOT NULL
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

-- The grants of a client, counted up to `most`, and when one of the newest `searched` was last used.
CREATE OR REPLACE FUNCTION use_of_client(client uuid, most integer, searched integer)
  RETURNS TABLE (grants bigint, last_used_at timestamptz)
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT (SELECT count(*)
            FROM (SELECT FROM oauth_grants AS g WHERE g.client_id = client LIMIT most) AS found),
         (SELECT max((SELECT max(s.refreshed_at) FROM sessions AS s WHERE s.grant_id = newest.id))
            FROM (SELECT g.id
                    FROM oauth_grants AS g
                   WHERE g.client_id = client
                   ORDER BY g.granted_at DESC, g.id DESC
                   LIMIT searched) AS newest)
$$;
