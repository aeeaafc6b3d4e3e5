"""The encryption of backups."""

import io
import os

import pyrage
import pytest

from auth.ops import UnusableFile
from auth.ops.backups import age
from tests.support.cases import cases

RECIPIENT, IDENTITY = age.new_identity()
OTHER_RECIPIENT, OTHER_IDENTITY = age.new_identity()
CHUNK = 64 * 1024


def encrypt(plaintext, path, *others, piece=50_000):
    with path.open("w+b") as file, age.encrypting(file, [RECIPIENT, *others]) as sink:
        sink.writelines(plaintext[at : at + piece] for at in range(0, len(plaintext), piece))
    return path.read_bytes()


def decrypt(encrypted, key=IDENTITY):
    return b"".join(age.decrypt(io.BytesIO(encrypted), key))


@pytest.fixture
def encrypted(tmp_path):
    return encrypt(b"s" * (2 * CHUNK), tmp_path / "file")


@pytest.mark.parametrize("size", [0, 1, CHUNK, 3 * CHUNK + 1])
def test_each_recipient_decrypts_a_file_even_with_other_programs(size, tmp_path):
    plaintext = os.urandom(size)
    encrypted = encrypt(plaintext, tmp_path / "file", OTHER_RECIPIENT)
    identity = pyrage.x25519.Identity.from_str(IDENTITY.splitlines()[-1])
    assert pyrage.decrypt(encrypted, [identity]) == decrypt(encrypted) == plaintext
    assert decrypt(encrypted, OTHER_IDENTITY) == plaintext


def test_identity_file_that_was_saved_on_windows_decrypts(encrypted, tmp_path):
    path = tmp_path / "latchkey.key"
    path.write_bytes(b"\xef\xbb\xbf" + IDENTITY.replace("\n", "\r\n").encode())
    path.chmod(0o600)
    assert decrypt(encrypted, age.read_key(path)) == b"s" * (2 * CHUNK)


@cases("at", [*range(0, 300, 37), CHUNK, -CHUNK - 16, -1])
def test_truncated_or_changed_file_is_refused(encrypted, at):
    changed = bytearray(encrypted)
    changed[at] ^= 1
    for content in (encrypted[:at], changed):
        with pytest.raises(UnusableFile):
            decrypt(content)


@cases(
    ("key", "error", "reason"),
    [
        (OTHER_IDENTITY, UnusableFile, "No matching keys"),
        ("a passphrase", age.UnusableKey, "no whole key AGE-SECRET-KEY-1"),
        (IDENTITY.strip()[:-1], age.UnusableKey, "no whole key AGE-SECRET-KEY-1"),
    ],
)
def test_file_is_not_decrypted_with_another_key(encrypted, key, error, reason):
    with pytest.raises(error, match=reason):
        decrypt(encrypted, key)


class Faulty(io.BytesIO):
    """A disk that is full, or that loses what was written."""

    def __init__(self, fault):
        super().__init__()
        self.fault = fault

    def write(self, data):
        if self.fault == "full":
            raise OSError(28, "No space left on device")
        return super().write(data)

    def seek(self, *arguments):
        if self.fault == "lost":
            self.truncate(self.tell() - 1)
        return super().seek(*arguments)


@cases(("fault", "reason"), [("full", "No space left on device"), ("lost", "differs from the data written")])
def test_file_that_cannot_be_written_is_an_error_whatever_the_writer_raises(fault, reason):
    def write(sink, error):
        try:
            sink.write(b"s" * 10 * CHUNK)
        except BrokenPipeError:
            raise error("another") from None

    for error in (BrokenPipeError, ValueError):
        with pytest.raises(OSError, match=reason), age.encrypting(Faulty(fault), [RECIPIENT]) as sink:
            write(sink, error)
