"""The plaintext of a backup: a line of JSON, the `Manifest`, and the gzipped SQL of pg_dump."""

import dataclasses
import glob
import json
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Self

from auth.ops import UnusableFile
from auth.ops.backups import age
from sql import schema

Progress = Callable[[int], object]
"""Called with the number of bytes read, or rows written, since the last call."""

FORMAT = 1
_LONGEST_MANIFEST = 16 * 1024 * 1024
_GZIP = 31  # window bits, for zlib
_SLICE = 1024
_DEFAULT_SCHEMA = "public"


class BackupError(Exception):
    """A line for the operator."""


@dataclasses.dataclass(frozen=True)
class Manifest:
    """`tables` has the numbers of rows, `environment` the settings of the process that created the backup.
    `schema` is where the tables are."""

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
    schema: str = _DEFAULT_SCHEMA

    @classmethod
    def parse(cls, line: bytes) -> Self:
        """Raises `UnusableFile`."""
        try:
            members = json.loads(line)
            if members["latchkey_backup"] != FORMAT:
                raise UnusableFile(
                    "it has a format that this release does not know. Use the release that made it."
                )
            manifest = cls(**members)
        except (ValueError, TypeError, KeyError):
            raise UnusableFile(
                "it is not a backup of Latchkey. Name a file that latchkey backup made."
            ) from None
        if manifest.schema_version > schema.NEWEST:
            raise UnusableFile(
                f"its schema has version {manifest.schema_version}, but this release supports"
                f" {schema.NEWEST}. Install Latchkey {manifest.release} or newer."
            )
        if manifest.schema_version < schema.OLDEST_IN_BACKUPS:
            raise UnusableFile(
                f"its schema has version {manifest.schema_version}, from before {schema.OLDEST_RELEASE}."
                f" Restore it with Latchkey {schema.BRIDGE_RELEASE}, then upgrade."
            )
        return manifest

    @property
    def size(self) -> str:
        return f"users: {self.tables['users']:,}, rows: {sum(self.tables.values()):,}"

    def summary(self) -> dict[str, Any]:
        """Return the parts without secrets."""
        names = ("release", "created_at", "postgres", "schema_version", "tables")
        return {name: getattr(self, name) for name in names}


def dated(path: Path, manifest: Manifest) -> Path:
    """Return `latchkey-20261122T031700Z.age` for `latchkey.age`."""
    moment = datetime.fromisoformat(manifest.created_at)
    return path.with_name(f"{path.stem}-{moment:%Y%m%dT%H%M%SZ}{path.suffix}")


def remove_older(path: Path, written: Path, keep: int) -> None:
    """Keep `written` and the newest other dated files, `keep` in total. Remove the rest."""
    date = f"{'[0-9]' * 8}T{'[0-9]' * 6}Z"
    dated_files = path.parent.glob(f"{glob.escape(path.stem)}-{date}{glob.escape(path.suffix)}")
    others = sorted((other for other in dated_files if other != written), reverse=True)
    for other in others[keep - 1 :]:
        other.unlink()


def plaintext(manifest: Manifest, pieces: Iterable[bytes], progress: Progress) -> Iterator[bytes]:
    """Yield the plaintext of a backup from the pieces of its SQL."""
    described = dataclasses.asdict(manifest)
    if manifest.schema == _DEFAULT_SCHEMA:
        del described["schema"]  # releases before 0.7.0 refuse it
    yield json.dumps(described).encode() + b"\n"
    compressor = zlib.compressobj(level=1, wbits=_GZIP)
    for piece in pieces:
        yield compressor.compress(piece)
        progress(piece.count(b"\n"))  # COPY writes a line for each row
    yield compressor.flush()


def parse(pieces: Iterable[bytes]) -> tuple[Manifest, Iterator[bytes]]:
    """Return the manifest and the pieces of the SQL. Only the last piece proves that none is missing.

    Raises `UnusableFile`, also from the iterator.
    """
    rest, head = filter(None, pieces), b""
    while b"\n" not in head and len(head) < _LONGEST_MANIFEST and (piece := next(rest, b"")):
        head += piece
    line, _, begun = head.partition(b"\n")
    return Manifest.parse(line), decompressed(chain([begun], rest))


def verify(path: Path, key: str, progress: Progress) -> Manifest:
    """Read the whole file. Raises the errors of `read`."""
    manifest, pieces = parse(read(path, key, progress))
    deque(pieces, maxlen=0)
    return manifest


def read(path: Path, key: str, progress: Progress) -> Iterator[bytes]:
    """Yield the plaintext of a file. Raises `UnusableFile`, `UnusableKey` and `OSError`."""
    with path.open("rb") as file:
        for piece in age.decrypt(file, key):
            progress(len(piece))
            yield piece


def decompressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the content of a gzip file. Raises `UnusableFile`."""
    decompressor = zlib.decompressobj(wbits=_GZIP)
    try:
        for piece in pieces:
            # Deflate expands up to 1032 times.
            for start in range(0, len(piece), _SLICE):
                yield decompressor.decompress(piece[start : start + _SLICE])
                if decompressor.unused_data:
                    raise zlib.error("it has data after its end")
    except zlib.error as error:
        raise UnusableFile(f"it cannot be decompressed: {error}. Use another copy.") from None
    if not decompressor.eof or decompressor.unused_data:
        raise UnusableFile("it cannot be decompressed: its end is missing or wrong. Use another copy.")
