-- For `pg_dump --data-only` of a whole database into one that has the schema: COPY brings rows that are there already.
-- They stay, and the copies of them are left out. `latchkey restore` needs none of this.

-- A trigger of `users` has just written the row.
CREATE OR REPLACE FUNCTION keep_user_object() RETURNS trigger
  LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN CASE WHEN EXISTS (SELECT FROM user_objects AS o WHERE o.user_id = NEW.user_id) THEN NULL ELSE NEW END;
END
$$;
-- Not for that trigger itself: this costs a sign-up no query.
CREATE OR REPLACE TRIGGER user_object_comes BEFORE INSERT ON user_objects
  FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION keep_user_object();

-- The schema that is there names its version.
CREATE OR REPLACE FUNCTION keep_schema_version() RETURNS trigger
  LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN CASE WHEN EXISTS (SELECT FROM schema_version AS v WHERE v.version = NEW.version) THEN NULL ELSE NEW END;
END
$$;
CREATE OR REPLACE TRIGGER schema_version_comes BEFORE INSERT ON schema_version
  FOR EACH ROW EXECUTE FUNCTION keep_schema_version();
