"""The file of a backup: encrypted in the format of age, it holds a database and its secrets.

The plaintext is a line of JSON, the `Manifest`, followed by the gzipped SQL of pg_dump.
"""

import dataclasses
import glob
import json
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

from auth.operations import age
from sql import schema

Progress = Callable[[int], object]
"""Called with the number of bytes read, or rows written, since the last call."""

_SHORTEST_PASSPHRASE = 12
# In seconds. A draft that has not been written to for as long was left by a process that was killed.
_ABANDONED_AFTER = 3600
_DRAFT = ".part"
FORMAT = 1
_LONGEST_MANIFEST = 16 * 1024 * 1024
_GZIP = 31  # window bits, for zlib


class BackupError(Exception):
    """A line for the operator."""


class PassphraseError(BackupError):
    """The passphrase is missing, too short, or cannot be read."""


class UnusableFileError(BackupError):
    """The file is damaged, encrypted in another way, or from a newer release."""


@dataclasses.dataclass(frozen=True)
class Manifest:
    """`tables` has the numbers of rows, `environment` the settings of the process that made the backup."""

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
            if members["latchkey_backup"] != FORMAT:
                raise UnusableFileError("it was made by another release, in a format unknown here")
            return cls(**members)
        except (ValueError, TypeError, KeyError):
            raise UnusableFileError("it is not a backup of Latchkey") from None

    def summary(self) -> dict[str, Any]:
        """Return what may be shown, without secrets."""
        return {
            "release": self.release,
            "created_at": self.created_at,
            "postgres": self.postgres,
            "schema_version": self.schema_version,
            "tables": self.tables,
        }


def read_passphrase(path: Path | None, instead: str = "") -> str:
    """Return the content of a file, or of `AUTH_BACKUP_PASSPHRASE`. Raises `PassphraseError`.

    `instead` ends the message with an alternative.
    """
    try:
        text = path.read_text() if path else os.environ.get("AUTH_BACKUP_PASSPHRASE", "")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise PassphraseError(f"{path} cannot be read: {reason}.") from None
    if not (passphrase := text.rstrip("\r\n")):
        raise PassphraseError(
            f"There is no passphrase: set AUTH_BACKUP_PASSPHRASE, or give --passphrase-file{instead}."
        )
    return passphrase


def check_new(passphrase: str) -> None:
    """Raises `PassphraseError` for a passphrase that is too short to encrypt with."""
    if len(passphrase) < _SHORTEST_PASSPHRASE:
        raise PassphraseError(f"The passphrase must have at least {_SHORTEST_PASSPHRASE} characters.")


@contextmanager
def replacing(path: Path, keep: int | None = None) -> Iterator[BinaryIO]:
    """Yield a file, readable by its owner alone, that replaces `path` once it is complete.

    With `keep`, former files are numbered, and this many remain, including the new one.
    """
    prefix = f".{path.name}."
    _remove_abandoned(path.parent, prefix)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=_DRAFT)
    try:
        with os.fdopen(descriptor, "wb") as draft:
            yield draft
            draft.flush()
            os.fsync(draft.fileno())
        if keep:
            _rotate(path, keep)
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


def plaintext(manifest: Manifest, pieces: Iterator[bytes], progress: Progress) -> Iterator[bytes]:
    """Yield the plaintext of a backup, from the pieces of the SQL."""
    yield json.dumps(dataclasses.asdict(manifest)).encode() + b"\n"
    compressor = zlib.compressobj(level=1, wbits=_GZIP)
    for piece in pieces:
        yield compressor.compress(piece)
        progress(piece.count(b"\n"))  # COPY writes a line for each row
    yield compressor.flush()


@contextmanager
def reading(path: Path, passphrase: str, progress: Progress) -> Iterator[tuple[Manifest, Iterator[bytes]]]:
    """Yield the manifest and the pieces of the SQL. Only the last piece proves that none is missing.

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
                f"its schema has version {manifest.schema_version}, but this release supports"
                f" {schema.NEWEST}: install Latchkey {manifest.release} or newer"
            )
        for _ in pieces:
            pass
    return manifest


def _remove_abandoned(directory: Path, prefix: str) -> None:
    oldest = time.time() - _ABANDONED_AFTER
    for draft in directory.glob(f"{glob.escape(prefix)}*{_DRAFT}"):
        with suppress(FileNotFoundError):  # another process has removed it
            if draft.stat().st_mtime < oldest:
                draft.unlink()


def _rotate(path: Path, keep: int) -> None:
    """Make room: FILE becomes FILE.1, which becomes FILE.2."""
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
