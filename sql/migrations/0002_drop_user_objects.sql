-- The user object is built when it is read, no longer kept by triggers, which went with their functions in 0001.
DROP TABLE user_objects;
