"""Restores a backup: into a new database that then takes the name of the old one, or into an empty one.

Until the last step the old database serves with its old secrets, so an interrupted restore changes nothing.
"""

import dataclasses
import re
import secrets
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial

import psycopg2
from psycopg2.extensions import make_dsn

from auth.core.keys import resealing
from auth.core.settings import Settings
from auth.flows import ends
from auth.ops.backups import archive, comparisons, postgres_programs, restored_secrets, writing
from auth.ops.backups.archive import BackupError, Manifest
from auth.ops.backups.comparisons import Comparison, Returned
from auth.ops.backups.restored_secrets import RestoredSecrets
from auth.ops.connections import Unprepared, autocommitting, connect, execute
from sql import queries, schema
from sql.pool import Connection

# Older versions of Postgres refuse the setting, which a newer pg_dump writes.
_TRANSACTION_TIMEOUT = b"SET transaction_timeout = 0;\n"
_UNLIMITED = b"SELECT set_config(name, '0', true) FROM pg_settings WHERE name = 'transaction_timeout';\n"
# We restrict psql with our own key, and remove the key of pg_dump, which the author of a forged file knows.
_RESTRICT = re.compile(rb"^\\restrict \w+\n", re.MULTILINE)
_UNRESTRICT = re.compile(rb"^\\unrestrict \w+\s*\Z", re.MULTILINE)
_LONGEST_PREAMBLE = 16 * 1024
_LONGEST_END = 1024
_LONGEST_NAME = 63
# Seconds. Postgres lists a connection for a moment after its client has closed it.
_CLOSING = 2
_DROP = "DROP DATABASE IF EXISTS {} WITH (FORCE)"
# While the table has another name, the service refuses the database, and links of the backup do not work.
_LOCK_SCHEMA = b"""
ALTER TABLE :"schema".schema_version RENAME TO schema_version_of_restore;
"""
_UNLOCK_SCHEMA = "ALTER TABLE schema_version_of_restore RENAME TO schema_version"


@dataclasses.dataclass(frozen=True)
class Options:
    keep_sessions: bool = False
    resend: bool = False
    # The URL of the role of requests, which is not part of a backup.
    requests_url: str | None = None


@dataclasses.dataclass(frozen=True)
class Restored:
    """`former` is the name under which the old database remains, if it had tables. `returned` is what the
    backup brings back. `is_compared` if the old database showed what had ended since.
    """

    former: str | None
    returned: Sequence[Returned]
    is_compared: bool


def restore(url: str, plaintext: Iterable[bytes], restored: RestoredSecrets, options: Options) -> Restored:
    """Restore a verified backup. Raises `BackupError`, `UnusableFile`, `OSError` and `psycopg2.Error`."""
    manifest, pieces = archive.parse(plaintext)
    with _locked_target(url) as (target, connection):
        if not target.is_replaceable:
            with restored.replacing(connection):
                fill(url, manifest, pieces, options)
            return Restored(None, *_compared(url, None, options))
        draft = _draft(target.name)
        execute(connection, _DROP, draft)
        execute(connection, "CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'", draft)
        try:
            draft_url = make_dsn(url, dbname=draft)
            fill(draft_url, manifest, pieces, options)
            returned, is_compared = _compared(draft_url, Unprepared(connection), options)
        except BaseException:
            execute(connection, _DROP, draft)
            raise
    if target.has_tables:
        returned += restored.returned()
    return Restored(_replace(url, target, draft, restored), returned, is_compared)


def _compared(url: str, replaced: Unprepared | None, options: Options) -> tuple[list[Returned], bool]:
    """Return what is back, and whether the replaced database was compared: a damaged one is replaced, too."""
    with closing(connect(url)) as connection:
        compare = partial(Comparison, Unprepared(connection), with_sessions=options.keep_sessions)
        if replaced and comparisons.is_comparable(replaced):
            with suppress(psycopg2.Error):
                return [*compare(replaced).returned()], True
        return [*compare(None).returned()], False


def fill(url: str, manifest: Manifest, pieces: Iterator[bytes], options: Options) -> None:
    """Load a backup into an empty database in two transactions: the first loads, the second ends access."""
    _load(url, manifest.schema, pieces)
    with closing(connect(url)) as connection, connection, connection.cursor() as cursor:
        on = Unprepared(connection)
        place = queries.select_place(on, expected=manifest.schema)
        if place.schema != manifest.schema:
            raise BackupError(
                f"The tables of the backup are in the schema {manifest.schema}, where this role does not"
                f" look. Run: ALTER ROLE {place.role} SET search_path = {place.expected}"
            )
        cursor.execute(_UNLOCK_SCHEMA)
        counts, expected = writing.count_rows(connection), manifest.tables
        differing = sorted(name for name in {*counts, *expected} if counts.get(name) != expected.get(name))
        if differing:
            raise BackupError(
                f"Row counts differ from the backup: {', '.join(differing)}. Restore another backup."
            )
        schema.apply_in_transaction(connection, options.requests_url)
        # The secrets of the backup must open its rows.
        if problem := resealing.unopened(queries.list_sealed_secrets(on), manifest.secret_key):
            raise BackupError(". ".join(problem))
        if not options.keep_sessions:
            queries.end_all_access(on, **ends.of("restored"))
        queries.void_restored(on, resend=options.resend)
        # Dumps have no statistics, and autovacuum takes up to a minute to run.
        cursor.execute("ANALYZE")


@contextmanager
def _locked_target(url: str) -> Iterator[tuple["queries.SelectRestoreTarget", Connection]]:
    """Yield a database to replace, locked against other restores, and a connection. Raises `BackupError`."""
    with autocommitting(url) as connection:
        if not queries.try_lock_restore(Unprepared(connection)).is_ours:
            raise BackupError("Another restore into this database is running. Wait until it has ended.")
        target = _target_of_restore(connection)
        _check_target(target)
        yield target, connection


def _target_of_restore(connection: Connection) -> "queries.SelectRestoreTarget":
    """Return the target. Waits up to `_CLOSING` for connections of a service that has just stopped to end."""
    until = time.monotonic() + _CLOSING
    target = queries.select_restore_target(Unprepared(connection))
    while target.clients and time.monotonic() < until:
        time.sleep(0.1)
        target = queries.select_restore_target(Unprepared(connection))
    return target


def _check_target(target: "queries.SelectRestoreTarget") -> None:
    if target.clients:
        raise BackupError(
            f"The database {target.name} has other connections ({target.clients}). Stop the service on"
            " all nodes, and connect to Postgres directly, not through a pooler."
        )
    if target.has_tables and not target.is_replaceable:
        raise BackupError(
            f"The database {target.name} is not empty, and this role cannot replace it."
            " Let the role own it and create databases, or name an empty database in DATABASE_URL."
        )


def _load(url: str, schema_name: str, pieces: Iterator[bytes]) -> None:
    command = ["psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null"]
    command.append(f"--set=schema={schema_name}")
    psql = postgres_programs.running(command, url, 1, subprocess.DEVNULL, stdin=subprocess.PIPE)
    # If psql fails, the pipe breaks, and its output has the reason.
    with psql as pipe, suppress(BrokenPipeError), pipe:
        # A stranger may have written the file: psql must refuse meta-commands, such as `\! sh`.
        pipe.write(f"\\restrict {secrets.token_hex(16)}\n".encode())
        # If this process dies, psql sees the end of its input without a COMMIT.
        pipe.write(b"BEGIN;\n" + _UNLIMITED)
        pipe.writelines(_fitted(pieces))
        pipe.write(_LOCK_SCHEMA + b"COMMIT;\n")


def _fitted(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Remove the setting that an older Postgres refuses, and the commands that a restricted psql refuses."""
    text = b""
    for piece in pieces:
        text += piece
        if len(text) > _LONGEST_PREAMBLE:
            break
    text = _RESTRICT.sub(b"", text.replace(_TRANSACTION_TIMEOUT, b"", 1), 1)
    for piece in pieces:
        text += piece
        yield text[:-_LONGEST_END]
        text = text[-_LONGEST_END:]
    yield _UNRESTRICT.sub(b"", text)


def _replace(
    url: str, target: "queries.SelectRestoreTarget", draft: str, restored: RestoredSecrets
) -> str | None:
    """Give the target's name to the draft, atomically. Return the new name of a target with tables."""
    former = _former(target.name)
    with _beside(url, target.name) as connection:
        try:
            _swap(connection, target.name, former, draft, restored.replacing(connection))
        except psycopg2.Error:
            execute(connection, _DROP, draft)
            raise
        if target.has_tables:
            return former
        execute(connection, "DROP DATABASE {}", former)
        return None


def undo(url: str, settings: Settings) -> None:
    """Put the database from before the last restore in place of the restored one, which is deleted."""
    secrets_of_before = RestoredSecrets.of_before(settings)
    with _locked_target(url) as (target, connection):
        former, undone = _former(target.name), _draft(target.name)
        if not queries.select_database(Unprepared(connection), name=former).exists:
            raise BackupError(restored_secrets.NOTHING_TO_UNDO)
    with _beside(url, target.name) as connection:
        _swap(connection, target.name, undone, former, secrets_of_before.admitted(connection))
        # Up to here, a failed undo can be repeated.
        restored_secrets.former_secrets(settings).unlink()
        restored_secrets.environment_file(settings).unlink(missing_ok=True)
        execute(connection, _DROP, undone)


def forget_former(url: str, settings: Settings) -> None:
    """Delete the database and secrets from before the last restore, if there was one here.

    If Postgres does not drop the database, both stay until the next backup.
    """
    if not restored_secrets.former_secrets(settings).exists():
        return
    with closing(connect(url)) as connection:
        name = connection.info.dbname
    with suppress(psycopg2.Error), _beside(url, name) as connection:
        execute(connection, "DROP DATABASE IF EXISTS {}", _former(name))
        restored_secrets.former_secrets(settings).unlink()


def _swap(
    connection: Connection, name: str, away: str, draft: str, secrets_change: AbstractContextManager[None]
) -> None:
    """Give the draft the name of a database, which gets the name `away`."""
    execute(connection, "DROP DATABASE IF EXISTS {}", away)
    with secrets_change:
        # Statements in one string are one transaction.
        rename = "ALTER DATABASE {} RENAME TO {}"
        execute(connection, f"{rename}; {rename}", name, away, draft, name)


def _beside(url: str, name: str) -> AbstractContextManager[Connection]:
    """Connect to another database: Postgres does not rename one with connections."""
    return autocommitting(make_dsn(url, dbname="template1" if name == "postgres" else "postgres"))


def _former(name: str) -> str:
    return f"{name[: _LONGEST_NAME - 15]}_before_restore"


def _draft(name: str) -> str:
    return f"{name[: _LONGEST_NAME - 10]}_restoring"
