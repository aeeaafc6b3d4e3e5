-- Usable from 0040
-- users_names has its place.
DROP INDEX users_words;
