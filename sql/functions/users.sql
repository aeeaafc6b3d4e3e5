-- The user object of the API, the only place that knows its fields. The identities are handed in, from identities_of or
-- as just written: the planner does not inline a function with a sub-select, which takes 30 µs longer.
CREATE OR REPLACE FUNCTION user_object(account users, identities json, providers text[], audience text) RETURNS json
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT json_build_object(
    'aud', audience,
    'id', account.id,
    'role', account.role,
    'email', account.email,
    'email_confirmed_at', iso_8601(account.email_confirmed_at),
    'phone', account.phone,
    'phone_confirmed_at', iso_8601(account.phone_confirmed_at),
    'confirmed_at', iso_8601(least(account.email_confirmed_at, account.phone_confirmed_at)),
    'confirmation_sent_at', iso_8601(account.confirmation_sent_at),
    'invited_at', iso_8601(account.invited_at),
    'last_sign_in_at', iso_8601(account.last_sign_in_at),
    'app_metadata', account.app_metadata || jsonb_build_object('provider', providers[1], 'providers', providers),
    'user_metadata', account.user_metadata,
    'identities', identities,
    'new_email', account.new_email,
    'email_change_sent_at', iso_8601(account.email_change_sent_at),
    'new_phone', account.new_phone,
    'phone_change_sent_at', iso_8601(account.phone_change_sent_at),
    'banned_until', iso_8601(account.banned_until),
    'is_anonymous', false,
    'created_at', iso_8601(account.created_at),
    'updated_at', iso_8601(account.updated_at)
  )
$$;

-- Metadata after a change: merged by key; null removes one.
CREATE OR REPLACE FUNCTION merge_metadata(metadata jsonb, change jsonb) RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT coalesce(jsonb_object_agg(member.key, member.value) FILTER (WHERE member.value <> 'null'), '{}')
    FROM jsonb_each(metadata || coalesce(change, '{}')) AS member
$$;

-- Whether this is a sign-up that nobody has confirmed or used: it may be replaced by another one of the same address.
CREATE OR REPLACE FUNCTION is_unused_sign_up(account users) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT account.made_by = 'signup' AND account.email_confirmed_at IS NULL AND account.phone_confirmed_at IS NULL
     AND account.last_sign_in_at IS NULL AND (account.banned_until > now()) IS NOT TRUE
$$;

-- Whether a user has come by signing up with a phone; one that was added later, or by an administrator, is another thing.
CREATE OR REPLACE FUNCTION signed_up_by_phone(account users) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT account.made_by = 'signup'
     AND EXISTS (SELECT FROM identities WHERE user_id = account.id AND provider = 'phone' AND created_at = account.created_at)
$$;

-- Whether a listing for administrators has a user: of this email and this role, and with an email, phone or email's domain that
-- begins so (each null: no matter). In collation C a prefix is a range, which an index finds; a % in it is a letter.
CREATE OR REPLACE FUNCTION is_listed(account users, wanted_email text, wanted_role text, prefix text) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT (wanted_email IS NULL OR account.email = wanted_email)
     AND (wanted_role IS NULL OR account.role = wanted_role)
     AND (prefix IS NULL
          OR account.email >= prefix AND account.email < prefix || chr(1114111)
          OR account.phone >= prefix AND account.phone < prefix || chr(1114111)
          OR split_part(account.email, '@', 2) COLLATE "C" >= prefix
             AND split_part(account.email, '@', 2) COLLATE "C" < prefix || chr(1114111))
$$;

-- Who is on a page of such a listing, in its order. With its parameters' values at hand the planner folds each CASE to a column or to
-- nothing, so that an index gives the order. Apart from the statement that shows these users, which need not be planned anew each time.
CREATE OR REPLACE FUNCTION page_of_users(
  wanted_email text, wanted_role text, prefix text, sort text, descending boolean, page_size integer, page_offset bigint
)
  RETURNS SETOF uuid
  LANGUAGE plpgsql STABLE ROWS 20
AS $$
BEGIN
  RETURN QUERY
    SELECT id
      FROM users
     WHERE is_listed(users, wanted_email, wanted_role, prefix)
     ORDER BY CASE WHEN sort = 'created_at' AND NOT descending THEN created_at
                   WHEN sort = 'updated_at' AND NOT descending THEN updated_at END,
              CASE WHEN sort = 'created_at' AND descending THEN created_at
                   WHEN sort = 'updated_at' AND descending THEN updated_at END DESC,
              CASE WHEN sort = 'last_sign_in_at' AND NOT descending THEN last_sign_in_at END,
              CASE WHEN sort = 'last_sign_in_at' AND descending THEN last_sign_in_at END DESC NULLS LAST,
              CASE WHEN sort = 'email' AND NOT descending THEN email END,
              CASE WHEN sort = 'email' AND descending THEN email END DESC NULLS LAST,
              CASE WHEN NOT descending THEN id END,
              CASE WHEN descending THEN id END DESC
     LIMIT page_size OFFSET page_offset;
END
$$;
