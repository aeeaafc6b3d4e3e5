"""A backup: one file, encrypted in the format of age, that holds the database and its secrets.

The plaintext is a line of JSON, the `Manifest`, followed by the gzipped SQL of pg_dump.
"""

import dataclasses
import json
import os
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

import psycopg2.errors
from psycopg2.extensions import ISOLATION_LEVEL_REPEATABLE_READ
from psycopg2.extras import NamedTupleCursor

import auth
import sql
from auth.operations import age, fingerprints, postgres_programs
from auth.settings import Settings, names
from auth.settings.providers import PROVIDER_PREFIX
from sql import Database, schema
from sql.pool import connect_patiently

Progress = Callable[[int], object]
"""Called with the number of bytes that were read, or rows that were written, since the last call."""

SHORTEST_PASSPHRASE = 12
_STATEMENTS = sql.load_statements()
_FORMAT = 1
_PIECE = 64 * 1024
_LONGEST_MANIFEST = 16 * 1024 * 1024
_GZIP = 31  # window bits, for zlib
# Restored as files of the state directory, or part of one machine.
_NOT_KEPT = {"AUTH_SECRET_KEY", "AUTH_SERVICE_ROLE_KEY", "AUTH_JWT_KEYS", "AUTH_STATE_DIR", "AUTH_BIND"}


class BackupError(Exception):
    """A line for the operator."""


class UnusableFileError(BackupError):
    """The file is damaged, encrypted otherwise, or of a newer release."""


@dataclasses.dataclass(frozen=True)
class Manifest:
    """`tables` are the numbers of rows; `environment`, the settings of the process that made the backup."""

    latchkey_backup: int
    release: str
    created_at: str
    postgres: int
    schema_version: int
    tables: dict[str, int]
    secret_key: list[str]
    service_role_key: list[str]
    jwt_keys: list[dict[str, Any]]
    environment: dict[str, str]

    @classmethod
    def parse(cls, line: bytes) -> Self:
        """Raises `UnusableFileError`."""
        try:
            members = json.loads(line)
            if members["latchkey_backup"] != _FORMAT:
                raise UnusableFileError("it was made by another release, in a format unknown here")
            return cls(**members)
        except (ValueError, TypeError, KeyError):
            raise UnusableFileError("it is not a backup of Latchkey") from None

    def summary(self) -> dict[str, Any]:
        """Return what may be shown: no secrets."""
        return {
            "release": self.release,
            "created_at": self.created_at,
            "postgres": self.postgres,
            "schema_version": self.schema_version,
            "tables": self.tables,
        }


def read_passphrase(path: Path | None, instead: str = "") -> str:
    """Return the content of a file, or of `AUTH_BACKUP_PASSPHRASE`. Raises `BackupError`.

    `instead` ends the message with what else can be given.
    """
    try:
        text = path.read_text() if path else os.environ.get("AUTH_BACKUP_PASSPHRASE", "")
    except (OSError, UnicodeDecodeError) as error:
        raise BackupError(f"{path}: cannot be read: {error}") from None
    if not (passphrase := text.rstrip("\r\n")):
        raise BackupError(
            f"There is no passphrase: set AUTH_BACKUP_PASSPHRASE, or give --passphrase-file{instead}."
        )
    return passphrase


def write(
    settings: Settings,
    url: str,
    path: Path,
    passphrase: str,
    keep: int,
    progress_of: Callable[[int], AbstractContextManager[Progress]],
) -> Manifest:
    """Back up the database and the secrets to a file, which appears when it is complete.

    `progress_of` is called with the number of rows.
    Raises `BackupError`, `NoProgramError`, `OtherKeys`, `OSError` and `psycopg2.Error`.
    """
    if len(passphrase) < SHORTEST_PASSPHRASE:
        raise BackupError(f"The passphrase must have at least {SHORTEST_PASSPHRASE} characters.")
    _check_keys(settings, url)
    with _snapshot(settings, url) as (manifest, snapshot), _draft_of(path) as (draft, name):
        with progress_of(sum(manifest.tables.values())) as progress:
            for piece in age.encrypt(_plaintext(manifest, url, snapshot, progress), passphrase):
                draft.write(piece)
        draft.flush()
        os.fsync(draft.fileno())
        _rotate(path, keep)
        os.replace(name, path)
    return manifest


@contextmanager
def reading(path: Path, passphrase: str, progress: Progress) -> Iterator[tuple[Manifest, Iterator[bytes]]]:
    """Yield the manifest and the pieces of the SQL. Only the last piece shows that none is missing.

    Raises `UnusableFileError`, also from the iterator, and `OSError`.
    """
    with path.open("rb") as file:
        pieces = age.decrypt(file, passphrase)
        try:
            head, pieces = _split_line(pieces)
            yield Manifest.parse(head), _decompressed(_counted(pieces, file, progress))
        except age.CannotDecrypt as error:
            raise UnusableFileError(str(error)) from None


def verify(path: Path, passphrase: str, progress: Progress) -> Manifest:
    """Read the whole file. Raises `UnusableFileError` and `OSError`."""
    with reading(path, passphrase, progress) as (manifest, pieces):
        if manifest.schema_version > schema.NEWEST:
            raise UnusableFileError(
                f"its schema has version {manifest.schema_version}, but this release knows {schema.NEWEST}:"
                f" install Latchkey {manifest.release} or newer"
            )
        for _ in pieces:
            pass
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
        suppress(psycopg2.errors.UndefinedTable),  # not upgraded yet
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
                latchkey_backup=_FORMAT,
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


def _plaintext(manifest: Manifest, url: str, snapshot: str, progress: Progress) -> Iterator[bytes]:
    yield json.dumps(dataclasses.asdict(manifest)).encode() + b"\n"
    compressor = zlib.compressobj(level=1, wbits=_GZIP)
    for piece in _dump(url, snapshot, manifest.postgres):
        yield compressor.compress(piece)
        progress(piece.count(b"\n"))  # COPY writes a line for each row
    yield compressor.flush()


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


@contextmanager
def _draft_of(path: Path) -> Iterator[tuple[BinaryIO, str]]:
    """A file beside `path`, which is deleted unless it was renamed."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as draft:
            yield draft, name
    finally:
        Path(name).unlink(missing_ok=True)


def _rotate(path: Path, keep: int) -> None:
    """Make room: FILE becomes FILE.1, which becomes FILE.2; `keep` files remain with the new one."""
    kept = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, keep))]
    for older, newer in zip(reversed(kept[1:]), reversed(kept[:-1]), strict=True):
        if newer.exists():
            os.replace(newer, older)
    number = keep
    while (excess := path.with_name(f"{path.name}.{number}")).exists():
        excess.unlink()
        number += 1


def _split_line(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    head = b""
    for piece in pieces:
        head += piece
        line, newline, rest = head.partition(b"\n")
        if newline:
            return line, _chained(rest, pieces)
        if len(head) > _LONGEST_MANIFEST:
            break
    raise UnusableFileError("it is not a backup of Latchkey")


def _chained(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from others


def _counted(pieces: Iterator[bytes], file: BinaryIO, progress: Progress) -> Iterator[bytes]:
    before = 0
    for piece in pieces:
        yield piece
        progress(file.tell() - before)
        before = file.tell()


def _decompressed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    decompressor = zlib.decompressobj(wbits=_GZIP)
    try:
        for piece in pieces:
            yield decompressor.decompress(piece)
        yield decompressor.flush()
    except zlib.error as error:
        raise UnusableFileError(f"it cannot be decompressed: {error}") from None
    if not decompressor.eof or decompressor.unused_data:
        raise UnusableFileError("its compressed part is incomplete")
