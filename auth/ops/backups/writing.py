"""Creates backups of the database and its secrets, and opens the connections of backups and restores."""

import os
import subprocess
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import psycopg2.errors
from psycopg2.extensions import ISOLATION_LEVEL_REPEATABLE_READ
from psycopg2.extras import NamedTupleCursor

import auth
import sql
from auth.core import files
from auth.core.keys import fingerprints
from auth.core.settings import Settings, names
from auth.core.settings.providers import PROVIDER_PREFIX
from auth.core.tokens import signing_keys
from auth.ops.backups import age, archive
from auth.ops.backups.archive import Manifest, Progress
from auth.ops.processes import postgres_programs
from sql import Call, Database, Runner, queries
from sql.pool import connect_patiently

Reader = Callable[[Iterator[bytes]], object]
_STATEMENTS = sql.shipped()
_PIECE = 64 * 1024
# Settings that are restored as files of the state directory, or specific to one machine.
_NOT_KEPT = {
    "AUTH_SECRET_KEY",
    "AUTH_SERVICE_ROLE_KEY",
    "AUTH_JWT_KEYS",
    "AUTH_DATABASE_OWNER_URL",
    "AUTH_STATE_DIR",
    "AUTH_BIND",
}


def write(
    settings: Settings,
    url: str,
    path: Path,
    rehearse: Reader | None,
    progress_of: Callable[[int], AbstractContextManager[Progress]],
) -> tuple[Path, Manifest]:
    """Back up the database and the secrets to a file with the date in its name, and return its path.

    `rehearse` reads the plaintext during the encryption; if it raises, no file is created. `progress_of` gets
    the number of rows. Raises `NoProgramError`, `OtherKeys`, `OSError`, `UnusableKey` and `psycopg2.Error`.
    """
    _check_keys(settings, url)
    with _snapshot(settings, url) as (manifest, snapshot):
        target = archive.dated(path, manifest)
        with (
            files.replacing(target) as draft,
            age.encrypting(draft, settings.backup_recipients) as sink,
            progress_of(sum(manifest.tables.values())) as progress,
        ):
            dump = _dump(url, snapshot, manifest.postgres)
            copied = _copied(archive.plaintext(manifest, dump, progress), sink)
            if rehearse:
                rehearse(copied)
            deque(copied, maxlen=0)  # read the rest
    return target, manifest


def _copied(pieces: Iterator[bytes], sink: BinaryIO) -> Iterator[bytes]:
    for piece in pieces:
        sink.write(piece)
        yield piece


@dataclass(frozen=True)
class Unprepared(Runner):
    """Runs named statements on a connection of `connect`."""

    connection: Any

    def _lend(self) -> AbstractContextManager[Any]:
        return nullcontext(self.connection)

    def _execute(self, connection: Any, *calls: Call) -> NamedTupleCursor:
        cursor = connection.cursor(cursor_factory=NamedTupleCursor)
        for name, parameters in calls:
            cursor.execute(_STATEMENTS[name].direct, parameters)
        return cursor


def count_rows(connection: Any) -> dict[str, int]:
    composed = queries.compose_count_of_rows(Unprepared(connection)).statement
    with connection.cursor() as cursor:
        cursor.execute(composed)
        return dict(cursor.fetchall())


def connect(url: str) -> Any:
    """Open a connection without timeouts, overriding those of the role."""
    connection = connect_patiently(url)
    with connection, connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0")
        cursor.execute("SET lock_timeout = 0; SET timezone = 'UTC'")
    return connection


def _check_keys(settings: Settings, url: str) -> None:
    with (
        closing(Database(url, size=1, prepare=False)) as db,
        suppress(psycopg2.errors.UndefinedTable),  # the database is not upgraded yet
    ):
        fingerprints.check(db, settings)


@contextmanager
def _snapshot(settings: Settings, url: str) -> Iterator[tuple[Manifest, str]]:
    """Describe one moment of the database, which pg_dump can see until the context ends."""
    with closing(connect(url)) as connection:
        connection.set_session(isolation_level=ISOLATION_LEVEL_REPEATABLE_READ, readonly=True)
        row = queries.export_snapshot(Unprepared(connection))
        manifest = Manifest(
            latchkey_backup=archive.FORMAT,
            release=auth.__version__,
            created_at=row.created_at,
            postgres=row.postgres,
            schema_version=row.schema_version,
            tables=count_rows(connection),
            secret_key=list(settings.secret_key),
            service_role_key=list(settings.service_role_key),
            jwt_keys=signing_keys.read_jwks(settings.jwt_keys),
            environment=_environment(),
        )
        yield manifest, row.snapshot


def _environment() -> dict[str, str]:
    known = set(names()) - _NOT_KEPT
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if (name.startswith("AUTH_") and name in known) or name.startswith(PROVIDER_PREFIX)
    }


def _dump(url: str, snapshot: str, postgres: int) -> Iterator[bytes]:
    command = ["pg_dump", "--no-owner", "--no-privileges", "--no-unlogged-table-data"]
    command.append(f"--snapshot={snapshot}")
    with postgres_programs.running(command, url, postgres, stdout=subprocess.PIPE) as output:
        while piece := output.read(_PIECE):
            yield piece
