"""Creates backups of the database and its secrets."""

import os
import subprocess
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import psycopg2.errors
from psycopg2.extensions import ISOLATION_LEVEL_REPEATABLE_READ

import auth
from auth.core import files
from auth.core.keys import fingerprints
from auth.core.settings import Settings, kept_secrets, name_of, names
from auth.core.settings.providers import PROVIDER_PREFIX
from auth.core.tokens import signing_keys
from auth.ops.backups import age, archive, postgres_programs
from auth.ops.backups.archive import Manifest, Progress
from auth.ops.connections import Unprepared, connect, single
from sql import queries
from sql.pool import Connection

Reader = Callable[[Iterator[bytes]], object]
_PIECE = 64 * 1024
# Settings that are restored as files of the state directory, or specific to one machine.
_NOT_KEPT = {"DATABASE_URL", "AUTH_DATABASE_OWNER_URL", "AUTH_STATE_DIR", "AUTH_BIND", "PORT"}
_NOT_KEPT |= {*map(name_of, kept_secrets.FILES)}
_OF_UNITS = {"LATCHKEY_OPERATOR"}  # read by deploy/latchkey-failed@.service


def write(
    settings: Settings,
    url: str,
    path: Path,
    rehearse: Reader | None,
    progress_of: Callable[[int], AbstractContextManager[Progress]],
) -> tuple[Path, Manifest]:
    """Back up the database and the secrets to a file with the date in its name, and return its path.

    `rehearse` reads the plaintext during the encryption; if it raises, no file is created. `progress_of` gets
    the number of rows. Raises `BackupError`, `OtherKeys`, `OSError`, `UnusableKey` and `psycopg2.Error`.
    """
    with single(url) as db, suppress(psycopg2.errors.UndefinedTable):  # the database is not upgraded yet
        fingerprints.check(db, settings)
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


def count_rows(connection: Connection) -> dict[str, int]:
    composed = queries.compose_count_of_rows(Unprepared(connection)).statement
    with connection.cursor() as cursor:
        cursor.execute(composed)
        return dict(cursor.fetchall())


@contextmanager
def _snapshot(settings: Settings, url: str) -> Iterator[tuple[Manifest, str]]:
    """Describe one moment of the database, which pg_dump can see until the context ends."""
    with closing(connect(url)) as connection:
        connection.set_session(isolation_level=ISOLATION_LEVEL_REPEATABLE_READ, readonly=True)
        row = queries.export_snapshot(Unprepared(connection))
        variables = set(names()) - _NOT_KEPT | _OF_UNITS
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
            environment={
                name: value
                for name, value in sorted(os.environ.items())
                if name in variables or name.startswith(PROVIDER_PREFIX)
            },
            schema=row.schema,
        )
        yield manifest, row.snapshot


def _dump(url: str, snapshot: str, postgres: int) -> Iterator[bytes]:
    command = ["pg_dump", "--no-owner", "--no-privileges", "--no-unlogged-table-data"]
    command.append(f"--snapshot={snapshot}")
    with postgres_programs.running(command, url, postgres, stdout=subprocess.PIPE) as output:
        while piece := output.read(_PIECE):
            yield piece
