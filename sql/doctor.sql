-- name: select_server() -> row (address?)
-- The connections of this node count as free.
SELECT current_setting('server_encoding') AS encoding,
       pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS is_read_only,
       quote_ident(current_user) AS role,
       least(current_setting('max_connections')::integer
               - current_setting('superuser_reserved_connections')::integer
               - coalesce(current_setting('reserved_connections', true)::integer, 0) - taken.of_all,
             nullif(r.rolconnlimit, -1) - taken.of_role,
             nullif(d.datconnlimit, -1) - taken.of_database)::integer AS free_connections,
       extract(epoch FROM clock_timestamp())::double precision AS clock,
       host(inet_server_addr()) AS address
  FROM pg_roles AS r, pg_database AS d, (
         SELECT count(*) AS of_all, count(*) FILTER (WHERE usename = current_user) AS of_role,
                count(*) FILTER (WHERE datname = current_database()) AS of_database
           FROM pg_stat_activity
          WHERE usesysid IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend'
            AND NOT (application_name = 'latchkey' AND client_addr IS NOT DISTINCT FROM inet_client_addr())
       ) AS taken
 WHERE r.rolname = current_user AND d.datname = current_database();

-- name: select_collation() -> row (recorded?, actual?)
-- The version of the default collation by which the indexes were built, that of the system, and what rebuilds
-- them. Postgres 14 records none.
SELECT to_jsonb(d) ->> 'datcollversion' AS recorded,
       pg_collation_actual_version('"default"'::regcollation) AS actual,
       format('REINDEX DATABASE %1$I; ALTER DATABASE %1$I REFRESH COLLATION VERSION', datname) AS remedy
  FROM pg_database AS d
 WHERE d.datname = current_database();

-- name: touch_users_and_sessions()
-- Takes the locks that changes take, and changes nothing.
WITH touched AS (
  UPDATE users SET id = id WHERE false
)
UPDATE sessions SET id = id WHERE false;

-- name: list_blockers() -> rows (application?, seconds?, query?, waiting_query?)
-- The session at the head of each queue for a lock, and the statement that has waited for it longest, without
-- possible secrets. Postgres shows neither times nor statements of other roles.
WITH RECURSIVE queue AS (
  SELECT w.pid, w.waitstart, b.pid AS blocker
    FROM pg_locks AS w
   CROSS JOIN unnest(pg_blocking_pids(w.pid)) AS b (pid)
   WHERE NOT w.granted AND w.waitstart < now() - interval '0.5 seconds'
), chain AS (
  SELECT pid, waitstart, blocker FROM queue
   UNION
  SELECT chain.pid, chain.waitstart, queue.blocker FROM chain JOIN queue ON queue.pid = chain.blocker
), process AS (
  -- The beginning of each statement, without the isolation level that precedes unprepared ones, and without
  -- quoted values, which may be tokens and addresses.
  SELECT a.pid, a.datname, a.application_name, a.usename, a.xact_start,
         left(regexp_replace(regexp_replace(regexp_replace(
                nullif(a.query, '<insufficient privilege>'), '^SET TRANSACTION [A-Z ]+; ?', ''),
                '''[^'']*(''|$)', '''…''', 'g'), '\s+', ' ', 'g'), 80) AS query
    FROM pg_stat_activity AS a
)
SELECT s.pid,
       format('SELECT pg_terminate_backend(%s)', s.pid) AS remedy,
       nullif(s.application_name, '') AS application,
       s.usename::text AS role,
       extract(epoch FROM now() - s.xact_start)::integer AS seconds,
       s.query,
       count(*) AS waiting,
       max(extract(epoch FROM now() - chain.waitstart))::integer AS longest,
       (array_agg(w.query ORDER BY chain.waitstart))[1] AS waiting_query
  FROM chain
  JOIN process AS w ON w.pid = chain.pid AND w.datname = current_database()
  JOIN process AS s ON s.pid = chain.blocker
 WHERE chain.blocker NOT IN (SELECT pid FROM queue)
 GROUP BY s.pid, s.application_name, s.usename, s.xact_start, s.query
 ORDER BY count(*) DESC, s.pid;

-- name: select_role() -> row
SELECT current_user::text AS name,
       pg_has_role(c.relowner, 'MEMBER') AS owns_tables,
       has_schema_privilege(n.nspname, 'CREATE') AS may_create,
       format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC, %I', n.nspname, current_user) AS remedy
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.oid = 'audit_log'::regclass;

-- name: select_schema_version() -> row?
SELECT version, coalesce(usable_from, version) AS usable_from
  FROM schema_version
 ORDER BY version DESC
 LIMIT 1;

-- name: list_key_ages() -> rows
SELECT setting, floor(extract(epoch FROM now() - min(seen_at)) / 86400)::integer AS days
  FROM key_fingerprints
 GROUP BY setting
 UNION ALL
SELECT 'the OpenID provider', floor(extract(epoch FROM now() - min(created_at)) / 86400)::integer
  FROM openid_keys
HAVING count(*) > 0
 ORDER BY setting;

-- name: record_done(task text)
INSERT INTO last_done (task) VALUES (:task) ON CONFLICT (task) DO UPDATE SET at = now();

-- name: select_last_done(task text) -> row?
SELECT floor(extract(epoch FROM now() - at))::bigint AS seconds_ago FROM last_done WHERE task = :task;

-- name: select_late_messages(late integer) -> row (oldest?, reason?)
SELECT count(*) AS total,
       floor(extract(epoch FROM now() - min(m.created_at)))::bigint AS oldest,
       (array_agg(m.last_error ORDER BY m.created_at) FILTER (WHERE m.last_error IS NOT NULL))[1] AS reason
  FROM outbox AS m
 WHERE m.outcome IS NULL AND m.channel <> 'webhook' AND NOT waits_for_others(m)
   AND m.created_at <= now() - make_interval(secs => :late);

-- name: count_outcomes_of_a_day() -> row (reason?)
SELECT count(*) FILTER (WHERE m.outcome IN ('failed', 'expired')) AS failed,
       count(*) AS total,
       mode() WITHIN GROUP (ORDER BY m.last_error) FILTER (WHERE m.outcome IN ('failed', 'expired')) AS reason
  FROM outbox AS m
 WHERE m.channel <> 'webhook' AND m.outcome IN ('sent', 'failed', 'expired')
   AND m.finished_at > now() - interval '1 day';

-- name: list_failing_webhooks(failing integer) -> rows (disabled_reason?)
SELECT w.id::text, origin_of(w.url) AS origin, w.disabled_reason,
       floor(extract(epoch FROM now() - w.failing_since) / 86400)::integer AS days
  FROM webhooks AS w
 WHERE w.disabled_reason IN ('gone', 'failing')
    OR w.disabled_at IS NULL AND w.failing_since <= now() - make_interval(secs => :failing)
 ORDER BY w.created_at, w.id;

-- name: create_probe(token_hash bytea, lifetime integer)
WITH expired AS (
  DELETE FROM probes WHERE expires_at <= now()
)
INSERT INTO probes (token_hash, expires_at) VALUES (:token_hash, now() + make_interval(secs => :lifetime));

-- name: answer_probe(token_hash bytea, request jsonb)
UPDATE probes SET seen = :request WHERE token_hash = :token_hash AND seen IS NULL AND expires_at > now();

-- name: take_probe(token_hash bytea) -> row (request?)
DELETE FROM probes WHERE token_hash = :token_hash RETURNING seen AS request;
