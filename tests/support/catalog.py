"""The catalogue of a database as lines of text: two schemas are equal if their lines are."""

import psycopg2

# Without the order of columns: a column added by a migration comes last.
_LINES = """
WITH ours AS (
  SELECT oid, relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace
)
SELECT format('table %s %s %s', relname, relpersistence, reloptions)
  FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
UNION ALL
SELECT format('column %s.%s %s collate %s not null %s default %s', ours.relname, attname, format_type(atttypid, atttypmod),
              attcollation::regcollation, attnotnull, pg_get_expr(adbin, adrelid))
  FROM pg_attribute JOIN ours ON ours.oid = attrelid LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
 WHERE ours.relkind = 'r' AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT format('constraint %s %s%s %s', conname, nullif(conrelid, 0)::regclass, nullif(contypid, 0)::regtype, pg_get_constraintdef(oid))
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL
SELECT pg_get_indexdef(oid) FROM ours WHERE relkind = 'i'
UNION ALL
SELECT pg_get_triggerdef(pg_trigger.oid) FROM pg_trigger JOIN ours ON ours.oid = tgrelid WHERE NOT tgisinternal
UNION ALL
SELECT format('domain %s %s', typname, format_type(typbasetype, typtypmod))
  FROM pg_type WHERE typnamespace = 'public'::regnamespace AND typtype = 'd'
UNION ALL
SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL
SELECT format('other %s %s', relkind, relname) FROM ours WHERE relkind NOT IN ('r', 'i')
"""


def lines(url: str) -> list[str]:
    """Return all tables, columns, constraints, indexes, triggers, domains and functions."""
    connection = psycopg2.connect(url)
    try:
        with connection.cursor() as cursor:
            cursor.execute(_LINES)
            return sorted(line for (line,) in cursor.fetchall())
    finally:
        connection.close()
