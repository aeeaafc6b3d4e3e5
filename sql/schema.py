"""The database's schema: created from schema.sql, or brought up to date by sql/migrations.

Functions hold no data and are not migrated: when the text of sql/functions changes, all of them are replaced,
and the role of requests gets its rights to them and the tables anew.
"""

import hashlib
import random
import re
import time
from collections.abc import Callable
from contextlib import closing

import psycopg2
from psycopg2.errors import DeadlockDetected, InsufficientPrivilege, InvalidSchemaName, LockNotAvailable
from psycopg2.extensions import connection as Connection
from psycopg2.extensions import cursor as Cursor

from sql import DIRECTORY, roles
from sql.pool import NO_TIMEOUTS_OF_TRANSACTION, connect_patiently, reason

SCHEMA = DIRECTORY.parent / "schema.sql"
FUNCTIONS = DIRECTORY / "functions"
MIGRATIONS = {int(path.name[:4]): path for path in sorted((DIRECTORY / "migrations").glob("*.sql"))}
OLDEST, NEWEST = min(MIGRATIONS) - 1, max(MIGRATIONS)
# The steps that each release may take.
UNVERSIONED = (SCHEMA.name, FUNCTIONS.name, roles.GRANTS.name)
# The oldest release whose database this one upgrades, with the schema OLDEST, and the last one that upgrades
# databases of the minor version before, with their commits.
OLDEST_RELEASE, OLDEST_COMMIT = "0.7.0", "b984b3f0"
BRIDGE_RELEASE, BRIDGE_COMMIT = "0.7.1", "f9521b44"
# Backups name the oldest version whose releases can use their schema: those of OLDEST_RELEASE 55 to 60.
OLDEST_IN_BACKUPS = 55
# The first line of a migration that earlier releases can work with: docs/releasing.md.
_USABLE_FROM = re.compile(r"-- Usable from (\d{4})$", re.MULTILINE)
# Advisory lock. Nodes of earlier releases take it too, so the number stays, as those in the statements do.
SCHEMA_LOCK = 7239004116
# A step that waits for a lock gives up and tries again. After a second, Postgres would look for deadlocks,
# and perhaps end a request of a running node.
_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '500ms';"
_LOCKED = (LockNotAvailable, DeadlockDetected)
_TRIES_PER_NOTICE = 5
# Temporary tables last: by default they come first, and any role may create some with the names of ours.
_SEARCH_PATH = "SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);"
_OWNER = (
    "If another role owns the tables, run latchkey migrate with its URL in AUTH_DATABASE_OWNER_URL. Else "
)


def apply(
    url: str,
    progress: Callable[[int], object] = lambda _: None,
    notice: Callable[[str], object] = lambda _: None,
    *,
    requests_url: str | None = None,
) -> list[str]:
    """Create or upgrade the schema, and return the names of the steps. Calls `progress(1)` after each, and
    `notice` with the reason for a long wait.

    Each step is a transaction. `url` is for the owner of the tables; the role of `requests_url`, if it is
    another, is made if it is missing. Raises `psycopg2.Error`, also if the database is not UTF8, or is of
    another application, of a newer release, or of one before `OLDEST_RELEASE`.
    """
    steps: list[str] = []
    with closing(connect_patiently(url)) as connection:
        while True:
            step = _take_step_beside_nodes(connection, requests_url, notice)
            if step is None:
                return steps
            steps.append(step)
            progress(1)


def _right_to_create(cursor: Cursor) -> str:
    """Return the statement that lets this role create tables in the first schema of its search_path."""
    cursor.execute("""
        SELECT CASE WHEN oid IS NULL THEN format('CREATE SCHEMA %I; ', name) ELSE '' END
               || format('GRANT USAGE, CREATE ON SCHEMA %I TO %I', name, current_user)
          FROM (SELECT replace(trim(entry, ' "'), '$user', current_user) AS name, number
                  FROM string_to_table(current_setting('search_path'), ',')
                       WITH ORDINALITY AS entries (entry, number)) AS places
          LEFT JOIN pg_namespace ON nspname = name
         ORDER BY oid IS NULL, number
         LIMIT 1
    """)
    (statement,) = cursor.fetchone() or ("",)
    return statement


def pending(url: str, requests_url: str | None = None) -> list[str]:
    """Return the names of the steps that `apply` would take. Raises `psycopg2.Error`, as it does."""
    with closing(connect_patiently(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(NO_TIMEOUTS_OF_TRANSACTION)
        return _pending(cursor, requests_url)


def usable_from(version: int | None = None) -> int:
    """Return the oldest version whose releases can use the schema of this version, by default the newest."""
    last = version or NEWEST
    lines = {
        number: _USABLE_FROM.match(MIGRATIONS[number].read_text(encoding="utf-8"))
        for number in range(OLDEST + 1, last + 1)
    }
    return max(int(line[1]) if line else number for number, line in lines.items())


def apply_in_transaction(connection: Connection, requests_url: str | None) -> None:
    """Like `apply`, in the caller's transaction, for the data of a dump, which has no rights.

    A function of a newer release stays open to all roles until that release's functions change.
    """
    with connection.cursor(cursor_factory=Cursor) as cursor:
        while _take_step(cursor, requests_url):
            pass
        roles.revoke_from_all_roles(cursor, _definitions())


def _take_step_beside_nodes(
    connection: Connection, requests_url: str | None, notice: Callable[[str], object]
) -> str | None:
    tries = 0
    while True:
        tries += 1
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(NO_TIMEOUTS_OF_TRANSACTION)
                return _take_step(cursor, requests_url, _LOCK_TIMEOUT)
        except _LOCKED as error:
            if tries % _TRIES_PER_NOTICE == 0:
                notice(f"Trying again: {reason(error)} {_oldest_transaction(connection)}")
        time.sleep(random.uniform(0.2, 1))  # noqa: S311


def _oldest_transaction(connection: Connection) -> str:
    with connection, connection.cursor() as cursor:
        cursor.execute("""
            SELECT format('The oldest transaction: process %s of Postgres (%s), for %s s.', pid,
                          application_name, extract(epoch FROM now() - xact_start)::integer)
              FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
             ORDER BY xact_start
             LIMIT 1
        """)
        (text,) = cursor.fetchone() or ("",)
        return text


def _take_step(cursor: Cursor, requests_url: str | None, begin: str = "") -> str | None:
    cursor.execute(begin + "SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK,))
    steps = _pending(cursor, requests_url)
    if not steps:
        return None
    try:
        _run(cursor, steps[0], requests_url)
    except (InsufficientPrivilege, InvalidSchemaName) as error:
        cursor.connection.rollback()
        owner = "" if steps[0] == SCHEMA.name else _OWNER
        advice = f"{'let' if owner else 'Let'} the owner of the database run: {_right_to_create(cursor)}"
        problem = f"{error.diag.message_primary}. {owner}{advice}"
        raise psycopg2.ProgrammingError(f"{steps[0]}: {problem}") from error
    except psycopg2.Error as error:
        kind = type(error) if isinstance(error, _LOCKED) else psycopg2.ProgrammingError
        remedy = "\nMend that, and start again." if error.pgcode else ""
        raise kind(f"{steps[0]}: {error}{remedy}") from error
    return steps[0]


def _run(cursor: Cursor, step: str, requests_url: str | None) -> None:
    if step == SCHEMA.name:
        cursor.execute(SCHEMA.read_text(encoding="utf-8"))
        _record_version(cursor, NEWEST)
    elif step == FUNCTIONS.name:
        # Postgres does not check the bodies, because functions call each other in any order. A test does.
        cursor.execute("SET LOCAL check_function_bodies = off;" + _functions())
        roles.grant(cursor, requests_url, _definitions())
        cursor.execute(
            "UPDATE schema_version SET functions_digest = %s WHERE version = %s", (_digest(), NEWEST)
        )
    elif step == roles.GRANTS.name:
        roles.grant(cursor, requests_url, _definitions())
    else:
        version = int(step[:4])
        cursor.execute(MIGRATIONS[version].read_text(encoding="utf-8"))
        _record_version(cursor, version)


def _record_version(cursor: Cursor, version: int) -> None:
    # One row for each version, because a backup by 0.7.0 names the greatest `usable_from` of all rows.
    cursor.execute(
        "INSERT INTO schema_version (version, usable_from) VALUES (%s, %s)", (version, usable_from(version))
    )


def _pending(cursor: Cursor, requests_url: str | None) -> list[str]:
    encoding = cursor.connection.get_parameter_status("server_encoding")
    if encoding not in ("UTF8", None):  # some poolers do not report it
        raise psycopg2.ProgrammingError(
            f"the database is encoded in {encoding}, and must be in UTF8. Make another by:"
            " CREATE DATABASE latchkey ENCODING 'UTF8' TEMPLATE template0"
        )
    version = _installed_version(cursor)
    if version is None:
        return [SCHEMA.name, FUNCTIONS.name]
    if version < OLDEST:
        raise psycopg2.ProgrammingError(
            f"the schema has version {version}, from before {OLDEST_RELEASE}. Upgrade it to"
            f" {BRIDGE_RELEASE} (commit {BRIDGE_COMMIT}) first: docs/deployment.md says how."
        )
    cursor.execute(
        "SELECT functions_digest, coalesce(usable_from, version) FROM schema_version WHERE version = %s",
        (version,),
    )
    digest, from_version = cursor.fetchone() or ()
    if from_version > NEWEST:
        raise psycopg2.ProgrammingError(
            f"the schema has version {version}, but this release knows {NEWEST} at most. Install the newer"
            " release again, or restore a backup."
        )
    steps = [path.stem for number, path in MIGRATIONS.items() if number > version]
    # The functions of a newer release stay. A backup of it that was restored has no grants either.
    if version <= NEWEST and (steps or digest != _digest()):
        return [*steps, FUNCTIONS.name]
    has_grants = roles.has_grants(cursor, requests_url, SCHEMA.read_text(encoding="utf-8"))
    return [] if has_grants else [roles.GRANTS.name]


def _definitions() -> str:
    return SCHEMA.read_text(encoding="utf-8") + _functions()


def _functions() -> str:
    """Return the statements that replace the functions. Those that run as the owner keep the search path."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(FUNCTIONS.glob("*.sql"))]
    return "\n".join([_SEARCH_PATH, *texts])


def _digest() -> str:
    return hashlib.sha256((_functions() + roles.GRANTS.read_text(encoding="utf-8")).encode()).hexdigest()


def _installed_version(cursor: Cursor) -> int | None:
    """Return the version, or None for an empty database."""
    cursor.execute("SELECT to_regclass('schema_version'), to_regclass('users')")
    versions, users = cursor.fetchone() or ()
    if versions:
        cursor.execute("SELECT max(version) FROM schema_version")
        (version,) = cursor.fetchone() or ()
        return version
    if users:
        raise psycopg2.ProgrammingError(
            "the database has another application's table users. Give the service a database of its own."
        )
    return None
