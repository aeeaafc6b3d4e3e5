-- Of every member that has a name. Takes about 30 seconds for a million users, in which none can be written.
-- The old index goes by a migration of its own: in this one, nobody could read users either.
CREATE INDEX users_names ON users USING gin (
  to_tsvector('simple', translate(
    coalesce(email, '') || ' ' ||
    coalesce(coalesce(nullif(user_metadata ->> 'name', ''), nullif(user_metadata ->> 'full_name', ''),
                      nullif(btrim(coalesce(user_metadata ->> 'given_name', '') || ' ' ||
                                   coalesce(user_metadata ->> 'family_name', '')), '')), ''),
    '@._+-/’', '       '))
) WITH (fastupdate = off);
ANALYZE users;
