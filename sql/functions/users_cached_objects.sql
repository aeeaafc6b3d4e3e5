-- What user_objects should hold at this moment.
CREATE OR REPLACE FUNCTION made_user_objects() RETURNS TABLE (user_id uuid, object text)
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT account.id, user_object(account, linked.objects, linked.providers)::text
    FROM users AS account
   CROSS JOIN identities_of(account.id) AS linked
$$;

-- To make the object is half of the work of the statements that are run most, and they only read it: so it is made when it changes.
-- VOLATILE, and called with the user's row locked: it sees what all others have done who have had that lock.
CREATE OR REPLACE FUNCTION write_user_object(owner uuid) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  INSERT INTO user_objects (user_id, object)
  SELECT made.user_id, made.object FROM made_user_objects() AS made WHERE made.user_id = owner
  ON CONFLICT (user_id) DO UPDATE SET object = excluded.object
$$;

CREATE OR REPLACE FUNCTION user_has_changed() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM write_user_object(NEW.id);
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER users_object AFTER INSERT OR UPDATE ON users FOR EACH ROW EXECUTE FUNCTION user_has_changed();

CREATE OR REPLACE FUNCTION identity_has_changed() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM FROM users WHERE id IN (OLD.user_id, NEW.user_id) ORDER BY id FOR NO KEY UPDATE;
  PERFORM write_user_object(id) FROM users WHERE id IN (OLD.user_id, NEW.user_id);
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER identities_object AFTER INSERT OR UPDATE OR DELETE ON identities FOR EACH ROW EXECUTE FUNCTION identity_has_changed();

-- In databases that were made before, or when this file has come to make something else of a user. It may take a minute, so it comes
-- before anything else is locked: refreshes go on.
INSERT INTO user_objects (user_id, object)
SELECT made.user_id, made.object
  FROM made_user_objects() AS made
  LEFT JOIN user_objects AS kept ON kept.user_id = made.user_id
 WHERE kept.object IS DISTINCT FROM made.object
ON CONFLICT (user_id) DO UPDATE SET object = excluded.object;
