"""Encryption to the recipients of backups, in the format of age (https://c2sp.org/age).

pyrage calls Python to read and write, and replaces exceptions from there with its own errors, even the exit
that a signal requests. So it runs in a thread, at one end of a pipe.
"""

import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import BinaryIO

import pyrage
from pyrage import x25519

from auth.core.files import exposure
from auth.ops import UnusableFile

HEAD = b"age-encryption.org/v1\n"
_IDENTITY = "AGE-SECRET-KEY-1"
_PIECE = 64 * 1024
_NAME_IT = "Name the key file from latchkey backup-key."


class UnusableKey(Exception):
    """A line for the operator: there is no recipient or no identity."""


def new_identity() -> tuple[str, str]:
    """Return the recipient and the content of an identity file, as `age-keygen` writes it."""
    identity = x25519.Identity.generate()
    recipient = str(identity.to_public())
    return recipient, f"# public key: {recipient}\n{identity}\n"


def read_key(path: Path) -> str:
    """Return the content of an identity file. Raises `UnusableKey`."""
    try:
        if problem := exposure(path):
            raise UnusableKey(f"{path} is refused. Fix its mode: {problem}")
        return path.read_text(encoding="utf-8-sig").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UnusableKey(f"{path} cannot be read: {reason}. {_NAME_IT}") from None


@contextmanager
def encrypting(file: BufferedIOBase, recipients: Sequence[str]) -> Iterator[BinaryIO]:
    """Yield a file whose content is encrypted into another file, which is then read back and compared.

    Raises `OSError` and `UnusableKey`.
    """
    if not recipients:
        raise UnusableKey(
            "AUTH_BACKUP_RECIPIENTS is not set. Make its key, on another machine: latchkey backup-key"
        )
    output, keys = _Output(file), [x25519.Recipient.from_str(recipient) for recipient in recipients]
    reader, writer = os.pipe()

    def encrypt() -> None:
        with open(reader, "rb") as source:
            pyrage.encrypt_io(source, output, keys)

    with ThreadPoolExecutor(1) as pool:
        encrypted = pool.submit(encrypt)
        try:
            with open(writer, "wb") as sink:
                yield sink
        except Exception:
            # If the encryption has failed, the pipe breaks, whatever the caller raises.
            if not encrypted.exception():
                raise
    if error := encrypted.exception():
        raise OSError(errno.EIO, str(error).removeprefix("OSError: "))
    file.seek(0)
    if hashlib.file_digest(file, "sha256").digest() != output.digest.digest():
        raise OSError(errno.EIO, "The data read back differs from the data written")


def decrypt(file: BinaryIO, key: str) -> Iterator[bytes]:
    """Yield the plaintext. Each piece is intact, but only the end proves that none is missing.

    Nothing proves who wrote the file. `key` is the content of an identity file. Raises `UnusableFile` and
    `UnusableKey`.
    """
    try:
        yield from _decrypt(file, _identities(key))
    except pyrage.DecryptError as error:
        raise UnusableFile(f"it cannot be decrypted: {error}. Name its key file by --identity.") from None
    except OSError:
        raise UnusableFile("it is truncated or altered. Use another copy.") from None


class _Output:
    def __init__(self, file: BufferedIOBase) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def _decrypt(file: BinaryIO, identities: Sequence[x25519.Identity]) -> Iterator[bytes]:
    reader, writer = os.pipe()

    def decrypt() -> None:
        with open(writer, "wb") as sink:
            pyrage.decrypt_io(file, sink, identities)

    with ThreadPoolExecutor(1) as pool, open(reader, "rb") as source:
        decrypted = pool.submit(decrypt)
        while piece := source.read(_PIECE):
            yield piece
        decrypted.result()


def _identities(key: str) -> list[x25519.Identity]:
    lines = [line for line in key.split() if line.startswith(_IDENTITY)]
    try:
        if lines:
            return [x25519.Identity.from_str(line) for line in lines]
    except pyrage.IdentityError:
        pass
    raise UnusableKey(f"The file of --identity has no whole key {_IDENTITY}…. {_NAME_IT}")
