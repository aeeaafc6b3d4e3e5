"""The file of leaked passwords: the first eight bytes of the SHA-1 of each, sorted.

A header of 48 bytes: `latchkey`, the number of hashes, and the SHA-256 of the rest, which is the hashes. All
numbers are unsigned, 64 bits, little-endian. A hash is stored as the number of its first 16 hexadecimal
digits, which keeps the order. A file of a billion hashes contains one of 18 billion other passwords by
chance.
"""

import hashlib
import mmap
import os
import struct
import tempfile
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import groupby
from operator import lt
from pathlib import Path

from auth.core import files
from auth.core.settings import SettingsError

_HEADER = struct.Struct("<8sQ32s")
_MAGIC = b"latchkey"
_SIZE = 8
_CHUNK = 1 << 20  # hashes
_PENDING = 1 << 13  # hashes of each part that wait to be written
_PARTS = 256
_READABLE = 0o644  # the file has no secrets, and root may have made it


class NoHashes(Exception):
    """There is nothing to write. The file is unchanged."""


def number_of(sha1: str) -> int:
    """Return the number of a SHA-1 in hexadecimal."""
    return int(sha1[: 2 * _SIZE], 16)


class LeakedFile:
    """A file that processes map into memory, sharing its pages, and search by bisection."""

    def __init__(self, path: Path) -> None:
        """Open a file. Raises `SettingsError`."""
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                head = file.read(_HEADER.size)
                if len(head) < _HEADER.size:
                    raise _problem(path, "is cut off")
                magic, count, self._digest = _HEADER.unpack(head)
                if magic != _MAGIC:
                    raise _problem(path, "is no file of leaked passwords")
                if not count or size != _HEADER.size + count * _SIZE:
                    raise _problem(path, f"has {size} bytes, not those of {count} hashes")
                # The mapping lives as long as the object. Replacing the file does not change its pages.
                mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise _problem(path, f"cannot be read ({error.strerror})") from None
        self._path, self._hashes = path, memoryview(mapping)[_HEADER.size :].cast("Q")

    def contains(self, password: str) -> bool:
        number = number_of(hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest())
        index = bisect_left(self._hashes, number)
        return index < len(self._hashes) and self._hashes[index] == number

    def check(self) -> None:
        """Read the whole file. Raises `SettingsError` if it is damaged or unsorted."""
        digest = hashlib.sha256()
        for start in range(0, len(self._hashes), _CHUNK):
            chunk = self._hashes[start : start + _CHUNK]
            digest.update(chunk)
            if not all(map(lt, chunk, self._hashes[start + 1 : start + 1 + _CHUNK])):
                raise _problem(self._path, "is not sorted")
        if digest.digest() != self._digest:
            raise _problem(self._path, "is damaged: its checksum is another one")


def _problem(path: Path, problem: str) -> SettingsError:
    remedy = "Make it again with latchkey passwords build or fetch, or set AUTH_PASSWORD_LEAKED=off."
    return SettingsError(f"AUTH_PASSWORD_LEAKED_FILE: {path} {problem}. {remedy}")


def write(path: Path, numbers: Iterable[int]) -> int:
    """Replace a file with these numbers, given in any order, and return their count.

    Sorts in parts, in temporary files next to it. Raises `NoHashes` and `OSError`.
    """
    with ExitStack() as stack:
        parts = [stack.enter_context(tempfile.TemporaryFile(dir=path.parent)) for _ in range(_PARTS)]
        pending = [array("Q") for _ in parts]
        for number in numbers:
            index = number >> 56
            pending[index].append(number)
            if len(pending[index]) >= _PENDING:
                pending[index].tofile(parts[index])
                pending[index] = array("Q")
        draft = stack.enter_context(files.replacing(path))
        os.fchmod(draft.fileno(), _READABLE)
        draft.write(bytes(_HEADER.size))
        count, digest = 0, hashlib.sha256()
        for part, rest in zip(parts, pending, strict=True):
            part.seek(0)
            part_numbers = array("Q", part.read()) + rest
            body = array("Q", (number for number, _ in groupby(sorted(part_numbers)))).tobytes()
            count += len(body) // _SIZE
            digest.update(body)
            draft.write(body)
        if not count:
            raise NoHashes
        draft.seek(0)
        draft.write(_HEADER.pack(_MAGIC, count, digest.digest()))
    return count
