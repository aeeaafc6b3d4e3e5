-- name: bound_hook() -> row?
-- For the function of the operator that the transaction calls next: a second, and what it writes is not lost,
-- even in a refresh.
SELECT set_config('statement_timeout', '1s', true) AS timeout,
       set_config('synchronous_commit', 'on', true) AS commits;

-- name: reuse_session_id(session_id text) -> row?
-- A session that the transaction opens gets the id that a hook was told: the default of its column.
SELECT set_config('latchkey.session_id', :session_id, true) AS session_id;

-- name: count_refresh(session_id uuid, refresh_limit_seconds integer)
-- A refresh that a hook prevents counts too, or its client could call the hook without limit.
UPDATE sessions
   SET refreshes = CASE WHEN counted_until > now() THEN refreshes + 1 ELSE 1 END,
       counted_until = CASE WHEN counted_until > now() THEN counted_until
                            ELSE now() + make_interval(secs => :refresh_limit_seconds) END
 WHERE id = :session_id AND ended_at IS NULL;

-- name: select_function(schema text, name text) -> row (is_allowed?)
SELECT bool_or(has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE'))
         AS is_allowed
  FROM pg_proc AS p
  JOIN pg_namespace AS n ON n.oid = p.pronamespace
 WHERE n.nspname = :schema AND p.proname = :name
   AND p.proargtypes[0] IN ('jsonb'::regtype, 'json'::regtype) AND p.pronargs - p.pronargdefaults <= 1;
