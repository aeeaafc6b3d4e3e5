-- Until the first address is confirmed or identity linked, the user can only use existing sessions.
CREATE OR REPLACE FUNCTION is_anonymous(u users) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT u.made_by = 'anonymous' AND u.converted_at IS NULL
$$;

-- Two conditions, which the index users_banned needs.
CREATE OR REPLACE FUNCTION is_banned(u users) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT u.banned_until IS NOT NULL AND u.banned_until > now()
$$;

-- The user object; the function is inlined. `member` is the text of the first members: `memberships_of`,
-- `factors_of` or both. `right` skips the first brace; `substr` would count the characters of the rest, too.
CREATE OR REPLACE FUNCTION user_object_from(
  u users, identities jsonb, providers text[], member text, audience text
) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT '{' || member || right(jsonb_build_object(
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
  )::text, -1)
$$;

-- The user object for a response or the claims of a token. A table, so that a statement is planned together with
-- it: as a value it would be planned at each call.
CREATE OR REPLACE FUNCTION user_object_of(u users, audience text, with_organizations boolean)
  RETURNS TABLE (user_object text)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT user_object_from(u, linked.objects, linked.providers, held.member || own.member, audience)
    FROM linked_identities(u.id) AS linked
   CROSS JOIN factors_of(u.id) AS own
   CROSS JOIN memberships_of(u.id, with_organizations) AS held
$$;

CREATE OR REPLACE FUNCTION merge_metadata(metadata jsonb, change jsonb) RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT coalesce(jsonb_object_agg(member.key, member.value) FILTER (WHERE member.value <> 'null'), '{}')
    FROM jsonb_each(metadata || coalesce(change, '{}')) AS member
$$;

-- Whether a stranger may have created the user, who has not been used since. The addresses are free.
CREATE OR REPLACE FUNCTION gives_way(u users) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT u.made_by IN ('signup', 'message') AND u.last_sign_in_at IS NULL
     AND u.email_confirmed_at IS NULL AND u.phone_confirmed_at IS NULL
     AND NOT is_banned(u) AND u.password_vouched IS NOT TRUE
$$;

-- An invitation is open until its user accepts it, or gets a password.
CREATE OR REPLACE FUNCTION has_open_invitation(u users) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT u.invited_at IS NOT NULL AND u.password_hash IS NULL AND (u.email IS NULL OR u.email_confirmed_at IS NULL)
$$;

-- For how many seconds the last invitation of a user is valid.
CREATE OR REPLACE FUNCTION invitation_lasts(u users) RETURNS integer
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT extract(epoch FROM max(t.expires_at) - now())::integer
    FROM one_time_tokens AS t
   WHERE t.user_id = u.id AND t.purpose = 'invite' AND t.spent_at IS NULL AND t.expires_at > now()
$$;

-- The name of a user, from metadata that the user writes. auth/core/text/names.py has the same in Python, and
-- the index users_names a copy.
CREATE OR REPLACE FUNCTION name_of(metadata jsonb) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT coalesce(nullif(metadata ->> 'name', ''), nullif(metadata ->> 'full_name', ''),
                  nullif(btrim(coalesce(metadata ->> 'given_name', '') || ' ' ||
                               coalesce(metadata ->> 'family_name', '')), ''))
$$;

-- The words of a name, and of an email with its domain, which the parser would treat as one word. Inlined, so
-- that the index users_names is used.
CREATE OR REPLACE FUNCTION words_of(u users) RETURNS tsvector
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT to_tsvector('simple',
                     translate(coalesce(u.email, '') || ' ' || coalesce(name_of(u.user_metadata), ''),
                               '@._+-/’', '       '))
$$;

-- The words of a search, each with the character that ends it. Cuts long words, which tsquery refuses.
CREATE OR REPLACE FUNCTION words_in(search text) RETURNS SETOF text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT word[1] || word[2]
    FROM regexp_matches(search, '([^\s@._+/’''\\-]{1,100})([@._+/’''\\-]?)', 'g') AS word
$$;

-- All words of a search. The last one, or one before a space, may be incomplete.
CREATE OR REPLACE FUNCTION query_of(search text) RETURNS tsquery
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT to_tsquery('simple', coalesce(string_agg(quote_literal(word) || ending, ' & '), ''))
    FROM words_in(search) AS found
   CROSS JOIN LATERAL rtrim(found, '@._+/’''\-') AS word
   CROSS JOIN LATERAL (SELECT CASE word WHEN found THEN ':*' ELSE '' END AS ending) AS end_of_it
$$;

-- A part of a search, in ASCII, that is in the email or name of each match. Excludes i and k, because
-- collations map other letters, such as İ, to them.
CREATE OR REPLACE FUNCTION part_of(search text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT coalesce((SELECT part[1]
                     FROM unnest(tsvector_to_array(to_tsvector('simple', search))) AS word
                    CROSS JOIN regexp_matches(word, '[a-hjl-z0-9]{1,20}', 'g') AS part
                    ORDER BY length(part[1]) DESC
                    LIMIT 1), '')
$$;

-- Whether the email or name may have a part of a search. Takes a tenth of the time of words_of.
CREATE OR REPLACE FUNCTION may_have(u users, part text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT strpos(lower((coalesce(u.email, '') || ' ' || coalesce(name_of(u.user_metadata), '')) COLLATE "C"),
                part) > 0
$$;

-- In collation C a prefix is a range of an index, and a % in it has no special meaning.
CREATE OR REPLACE FUNCTION is_listed(u users, wanted_email text, wanted_role text, prefix text)
  RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT (wanted_email IS NULL OR u.email = wanted_email)
     AND (wanted_role IS NULL OR u.role = wanted_role)
     AND (prefix IS NULL
          OR u.phone >= prefix AND u.phone < prefix || chr(1114111)
          OR may_have(u, part_of(prefix)) AND words_of(u) @@ query_of(prefix))
$$;

-- Converts an anonymous user whose address the user, an administrator or AUTH_AUTOCONFIRM confirms. now() would
-- be before the row was locked: flows that the anonymous user began must be older.
CREATE OR REPLACE FUNCTION user_is_confirmed() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  NEW.converted_at := clock_timestamp();
  RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER users_converted
  BEFORE UPDATE OF email_confirmed_at, phone_confirmed_at ON users FOR EACH ROW
  WHEN (is_anonymous(NEW) AND coalesce(NEW.email_confirmed_at, NEW.phone_confirmed_at) IS NOT NULL)
  EXECUTE FUNCTION user_is_confirmed();

-- The only writer of user_objects. It finds the table with an empty search path, too, as pg_restore has.
CREATE OR REPLACE FUNCTION user_has_signed_in() RETURNS trigger
  LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
BEGIN
  INSERT INTO user_objects (user_id, last_sign_in_at)
  VALUES (NEW.id, coalesce(NEW.last_sign_in_at, '-infinity'))
  ON CONFLICT (user_id) DO UPDATE SET last_sign_in_at = excluded.last_sign_in_at;
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER users_signed_in
  AFTER INSERT OR UPDATE OF last_sign_in_at ON users FOR EACH ROW EXECUTE FUNCTION user_has_signed_in();
