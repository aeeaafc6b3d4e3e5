-- Usable from 0047
-- users_names has its place.
DROP INDEX users_words;
