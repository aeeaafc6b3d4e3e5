-- In the test databases, beside the schema of the service.
CREATE SCHEMA latchkey_test;

-- Also while the service answers requests, so in the order of locks.
DO $$
BEGIN
  EXECUTE format(
    'CREATE FUNCTION latchkey_test.reset(kept_webhook uuid) RETURNS void LANGUAGE plpgsql AS %L',
    'BEGIN '
      || (SELECT string_agg(format('DELETE FROM %I;', tablename), ' '
                            ORDER BY tablename NOT LIKE '%\_counts', tablename <> 'users', tablename)
            FROM pg_tables
           WHERE schemaname = 'public'
             AND tablename NOT IN ('schema_version', 'openid_keys', 'key_fingerprints', 'webhooks'))
      || ' DELETE FROM webhooks WHERE id <> kept_webhook; END'
  );
END
$$;

CREATE FUNCTION latchkey_test.age(owner uuid, seconds double precision) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  moved record;
BEGIN
  FOR moved IN
    SELECT c.table_name, CASE c.table_name WHEN 'users' THEN 'id' ELSE 'user_id' END AS owner,
           string_agg(format('%1$I = %1$I - $2', c.column_name), ', ') AS changes
      FROM information_schema.columns AS c
     WHERE c.table_schema = 'public' AND c.data_type = 'timestamp with time zone'
       AND c.table_name <> 'user_objects'  -- a trigger writes it
       AND (c.table_name = 'users' OR EXISTS (SELECT
                                                FROM information_schema.columns AS o
                                               WHERE o.table_schema = 'public' AND o.column_name = 'user_id'
                                                 AND o.table_name = c.table_name))
     GROUP BY c.table_name
     ORDER BY c.table_name <> 'users', c.table_name
  LOOP
    EXECUTE format('UPDATE %I SET %s WHERE %I = $1', moved.table_name, moved.changes, moved.owner)
      USING owner, make_interval(secs => seconds);
  END LOOP;
END
$$;

CREATE FUNCTION latchkey_test.users(count integer, password_hash text) RETURNS TABLE (id uuid, email text)
  LANGUAGE sql
AS $$
  WITH made AS (
    INSERT INTO users (email, email_confirmed_at, email_proved, password_hash, made_by)
    SELECT format('%s@example.com', gen_random_uuid()), now(), true, password_hash, 'administrator'
      FROM generate_series(1, count)
    RETURNING id, email
  ), linked AS (
    INSERT INTO identities (user_id, provider, subject, identity_data)
    SELECT id, 'email', id, jsonb_build_object('sub', id, 'email', email) FROM made
  )
  SELECT id, email FROM made
$$;

CREATE FUNCTION latchkey_test.anonymous_user(user_metadata jsonb, app_metadata jsonb) RETURNS uuid
  LANGUAGE sql
AS $$
  INSERT INTO users (made_by, user_metadata, app_metadata)
  VALUES ('anonymous', user_metadata, app_metadata)
  RETURNING id
$$;

-- Lets the code of this time step be used once more.
CREATE FUNCTION latchkey_test.forget_totp_step(owner uuid) RETURNS void
  LANGUAGE sql
AS $$
  UPDATE factors SET last_step = NULL WHERE user_id = owner
$$;

-- Messages that strangers ask for wait a random time, and failed events for their next attempt.
CREATE FUNCTION latchkey_test.make_due() RETURNS void
  LANGUAGE sql
AS $$
  UPDATE outbox SET next_attempt_at = now() WHERE outcome IS NULL
$$;
