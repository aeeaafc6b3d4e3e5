"""Restores a backup: into a new database that then takes the name of the old one, or into an empty one.

Until the last step the old database serves with its old secrets, so an interrupted restore changes nothing.
"""

import dataclasses
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg2
from psycopg2 import sql as composed
from psycopg2.extensions import make_dsn, parse_dsn

from auth.operations import backup_files, backups, postgres_programs
from auth.operations.backup_files import BackupError, Manifest, Progress
from auth.operations.backups import connect, statement
from auth.tokens import keys
from sql import schema

# Older versions of Postgres refuse the setting, which a newer pg_dump writes.
_KNOWS_TRANSACTION_TIMEOUT = 17
_TRANSACTION_TIMEOUT = b"SET transaction_timeout = 0;\n"
_LONGEST_PREAMBLE = 16 * 1024
_LONGEST_NAME = 63
# While the table has another name, the service refuses the database, and links in the backup do not work.
_LOCK_SCHEMA = b"\nRESET search_path; ALTER TABLE schema_version RENAME TO schema_version_of_restore;\n"
_UNLOCK_SCHEMA = "ALTER TABLE schema_version_of_restore RENAME TO schema_version"


class Secrets(Protocol):
    """See `RestoredSecrets`."""

    def admit(self) -> None: ...

    def withdraw(self) -> None: ...

    def settle(self) -> None: ...


@dataclasses.dataclass(frozen=True)
class Options:
    keep_sessions: bool = False
    resend: bool = False


def restore(
    url: str, path: Path, passphrase: str, secrets: Secrets, options: Options, progress: Progress
) -> str | None:
    """Restore a verified file. Return the name under which the old database remains, if it had tables.

    Raises `BackupError`, `NoProgramError`, `OSError` and `psycopg2.Error`.
    """
    with _locked_target(url) as (target, cursor):
        if not target.is_replaceable:
            secrets.admit()
            try:
                _fill(url, path, passphrase, target.postgres, options, progress)
            except BaseException:
                secrets.withdraw()
                raise
            secrets.settle()
            return None
        draft = f"{target.name[: _LONGEST_NAME - 10]}_restoring"
        _run(cursor, "DROP DATABASE IF EXISTS {} WITH (FORCE)", draft)
        _run(cursor, "CREATE DATABASE {} TEMPLATE template0", draft)
        try:
            _fill(_of(url, draft), path, passphrase, target.postgres, options, progress)
        except BaseException:
            _run(cursor, "DROP DATABASE IF EXISTS {} WITH (FORCE)", draft)
            raise
    return _replace(url, target, draft, secrets)


@contextmanager
def _locked_target(url: str) -> Iterator[tuple[Any, Any]]:
    """Yield the row of the database, locked against other restores, and a cursor. Raises `BackupError`."""
    with closing(connect(url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement("take_restore_lock"), {})
            if not cursor.fetchone().is_ours:
                raise BackupError("Another restore into this database is running.")
            cursor.execute(statement("select_restore_target"), {})
            target = cursor.fetchone()
            _check_target(target)
            yield target, cursor


def _check_target(target: Any) -> None:
    if target.clients:
        raise BackupError(
            f"The database {target.name} has other connections ({target.clients}): stop the service on all"
            " nodes, and connect to Postgres directly, not through a pooler."
        )
    if target.has_tables and not target.is_replaceable:
        raise BackupError(
            f"The database {target.name} is not empty, and this role cannot replace it:"
            " let the role own it and create databases, or name an empty database in DATABASE_URL."
        )


def _fill(url: str, path: Path, passphrase: str, postgres: int, options: Options, progress: Progress) -> None:
    """Load the file into an empty database, in two transactions: the data, then what has become invalid."""
    with backup_files.reading(path, passphrase, progress) as (manifest, pieces):
        _load(url, pieces, postgres)
    with closing(connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(_UNLOCK_SCHEMA)
        _check_rows(backups.count_rows(cursor), manifest.tables)
        schema.apply_in_transaction(connection)
        _check_sealed(cursor, manifest)
        _void(cursor, options)
        # Dumps have no statistics, and autovacuum takes up to a minute to run.
        cursor.execute("ANALYZE")


def _check_rows(found: dict[str, int], expected: dict[str, int]) -> None:
    differing = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
    if differing:
        raise BackupError(f"Restored with another number of rows than were backed up: {', '.join(differing)}")


_VOIDED = (
    "void_restored_links",
    "void_restored_authorization_codes",
    "void_restored_oauth_flows",
    "void_restored_factor_challenges",
)


def _void(cursor: Any, options: Options) -> None:
    for name in _VOIDED:
        cursor.execute(statement(name), {})
    if not options.keep_sessions:
        cursor.execute(statement("end_restored_sessions"), {})
    if not options.resend:
        cursor.execute(statement("void_restored_messages"), {})


def _check_sealed(cursor: Any, manifest: Manifest) -> None:
    """Check that the secrets of the backup open its rows."""
    sealer = keys.Sealer(keys.derive(manifest.secret_key, "outbox"))
    cursor.execute(statement("list_webhook_secrets"), {})
    try:
        for webhook in cursor.fetchall():
            sealer.open(bytes(webhook.secret), webhook.id)
    except keys.CannotOpen as error:
        raise BackupError(f"The secret of webhook {webhook.id} cannot be opened: {error}") from None


def _load(url: str, pieces: Iterator[bytes], postgres: int) -> None:
    conninfo, environment = postgres_programs.connection(url)
    command = [postgres_programs.find("psql", 1), "--no-psqlrc", "--quiet", "--no-password"]
    command += ["--set=ON_ERROR_STOP=1", f"--dbname={conninfo}", "--output=/dev/null"]
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(  # noqa: S603
            command, env=environment, stdin=subprocess.PIPE, stdout=errors, stderr=errors
        ) as process,
    ):
        assert process.stdin is not None  # noqa: S101
        try:
            # If this process dies, psql sees the end of its input without a COMMIT.
            process.stdin.write(b"BEGIN;\n")
            for piece in _fitted(pieces, postgres):
                process.stdin.write(piece)
            process.stdin.write(_LOCK_SCHEMA + b"COMMIT;\n")
            process.stdin.close()
        except BrokenPipeError:
            pass  # it has failed; its output has the reason
        except BaseException:
            process.kill()
            raise
        if process.wait() != 0:
            errors.seek(0)
            message = errors.read(2000).decode(errors="replace")
            raise BackupError(f"psql failed: {' '.join(message.split())}")


def _fitted(pieces: Iterator[bytes], postgres: int) -> Iterator[bytes]:
    """Remove the settings from the preamble that this version of Postgres does not support."""
    preamble = b""
    for piece in pieces:
        preamble += piece
        if len(preamble) > _LONGEST_PREAMBLE:
            break
    if postgres < _KNOWS_TRANSACTION_TIMEOUT:
        preamble = preamble.replace(_TRANSACTION_TIMEOUT, b"", 1)
    yield preamble
    yield from pieces


def _replace(url: str, target: Any, draft: str, secrets: Secrets) -> str | None:
    """Give the target's name to the draft, atomically. Return the new name of a target with tables."""
    former = f"{target.name[: _LONGEST_NAME - 15]}_before_restore"
    # Postgres does not rename a database with connections.
    other = "template1" if target.name == "postgres" else "postgres"
    with closing(connect(_of(url, other))) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            _run(cursor, "DROP DATABASE IF EXISTS {}", former)
            secrets.admit()
            try:
                cursor.execute("BEGIN")
                _run(cursor, "ALTER DATABASE {} RENAME TO {}", target.name, former)
                _run(cursor, "ALTER DATABASE {} RENAME TO {}", draft, target.name)
                cursor.execute("COMMIT")
            except psycopg2.Error:
                # If the outcome is unknown, this fails, and both databases need their secrets.
                cursor.execute("ROLLBACK")
                secrets.withdraw()
                _run(cursor, "DROP DATABASE IF EXISTS {} WITH (FORCE)", draft)
                raise
            secrets.settle()
            if target.has_tables:
                return former
            _run(cursor, "DROP DATABASE {}", former)
            return None


def _run(cursor: Any, text: str, *databases: str) -> None:
    cursor.execute(composed.SQL(text).format(*map(composed.Identifier, databases)))


def _of(url: str, database: str) -> str:
    return make_dsn(**{**parse_dsn(url), "dbname": database})
