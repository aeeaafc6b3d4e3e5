"""Creates backups of the database and its secrets, and opens the connections of backups and restores."""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg2.errors
from psycopg2.extensions import ISOLATION_LEVEL_REPEATABLE_READ
from psycopg2.extras import NamedTupleCursor

import auth
import sql
from auth.operations import age, backup_files, postgres_programs
from auth.operations.backup_files import BackupError, Manifest, Progress
from auth.settings import Settings, fingerprints, names
from auth.settings.providers import PROVIDER_PREFIX
from sql import Database
from sql.pool import connect_patiently

_STATEMENTS = sql.load_statements()
_PIECE = 64 * 1024
# Restored as files of the state directory, or specific to one machine.
_NOT_KEPT = {"AUTH_SECRET_KEY", "AUTH_SERVICE_ROLE_KEY", "AUTH_JWT_KEYS", "AUTH_STATE_DIR", "AUTH_BIND"}


def write(
    settings: Settings,
    url: str,
    path: Path,
    passphrase: str,
    keep: int,
    progress_of: Callable[[int], AbstractContextManager[Progress]],
) -> Manifest:
    """Back up the database and the secrets to a file, which appears once it is complete.

    `progress_of` is called with the number of rows.
    Raises `BackupError`, `NoProgramError`, `OtherKeys`, `OSError` and `psycopg2.Error`.
    """
    backup_files.check_new(passphrase)
    _check_keys(settings, url)
    with (
        _snapshot(settings, url) as (manifest, snapshot),
        backup_files.replacing(path, keep) as draft,
        progress_of(sum(manifest.tables.values())) as progress,
    ):
        dump = _dump(url, snapshot, manifest.postgres)
        draft.writelines(age.encrypt(backup_files.plaintext(manifest, dump, progress), passphrase))
    return manifest


def statement(name: str) -> str:
    return _STATEMENTS[name].direct


def count_rows(cursor: Any) -> dict[str, int]:
    cursor.execute(statement("compose_count_of_rows"), {})
    cursor.execute(cursor.fetchone().statement)
    return {row.name: row.rows for row in cursor.fetchall()}


def connect(url: str) -> Any:
    """Open a connection without timeouts, overriding those of the role."""
    connection = connect_patiently(url)
    connection.cursor_factory = NamedTupleCursor
    with connection, connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0")
        cursor.execute("SET lock_timeout = 0; SET timezone = 'UTC'")
    return connection


def _check_keys(settings: Settings, url: str) -> None:
    """Check that the secrets of these settings are those of the database."""
    with (
        closing(Database(url, size=1, prepare=False)) as db,
        suppress(psycopg2.errors.UndefinedTable),  # the database has not been upgraded
    ):
        fingerprints.check(db, settings)


@contextmanager
def _snapshot(settings: Settings, url: str) -> Iterator[tuple[Manifest, str]]:
    """Describe one moment of the database, which pg_dump can see until the context ends."""
    with closing(connect(url)) as connection:
        connection.set_session(isolation_level=ISOLATION_LEVEL_REPEATABLE_READ, readonly=True)
        with connection.cursor() as cursor:
            cursor.execute(statement("export_snapshot"), {})
            row = cursor.fetchone()
            manifest = Manifest(
                latchkey_backup=backup_files.FORMAT,
                release=auth.__version__,
                created_at=row.created_at,
                postgres=row.postgres,
                schema_version=row.schema_version,
                tables=count_rows(cursor),
                secret_key=list(settings.secret_key),
                service_role_key=list(settings.service_role_key),
                jwt_keys=read_jwks(settings.jwt_keys),
                environment=_environment(),
            )
            yield manifest, row.snapshot


def read_jwks(text: str) -> list[dict[str, Any]]:
    """Return the keys of a JWK Set or an array, or of the file at a path."""
    if not text:
        return []
    parsed = json.loads(text if text.lstrip().startswith(("{", "[")) else Path(text).read_text())
    return parsed if isinstance(parsed, list) else parsed["keys"]


def _environment() -> dict[str, str]:
    known = set(names()) - _NOT_KEPT
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if (name.startswith("AUTH_") and name in known) or name.startswith(PROVIDER_PREFIX)
    }


def _dump(url: str, snapshot: str, postgres: int) -> Iterator[bytes]:
    conninfo, environment = postgres_programs.connection(url)
    command = [postgres_programs.find("pg_dump", postgres), "--no-owner", "--no-privileges", "--no-password"]
    command += ["--no-unlogged-table-data", f"--snapshot={snapshot}", f"--dbname={conninfo}"]
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors) as process,  # noqa: S603
    ):
        assert process.stdout is not None  # noqa: S101
        try:
            while piece := process.stdout.read(_PIECE):
                yield piece
        except BaseException:
            process.kill()
            raise
        if process.wait() != 0:
            errors.seek(0)
            raise BackupError(f"pg_dump failed: {' '.join(errors.read().decode(errors='replace').split())}")
