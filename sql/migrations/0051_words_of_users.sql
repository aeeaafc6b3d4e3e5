-- users_names has its place.
DROP INDEX IF EXISTS users_words;
