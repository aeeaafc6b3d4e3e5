"""The encryption of backups: readable by other implementations of age, and refused if anything was changed."""

import base64
import io

import pyrage
import pytest

from auth.operations import age

PASSPHRASE = "a passphrase of these tests"
CHUNK = 64 * 1024
HEAD_LINES = 4
# Made once: pyrage chooses a work factor that takes a second.
BY_PYRAGE = (
    "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNjcnlwdCBZR0hZZ3VRQllBWkRvLzhCTkNFKzVnIDE2CmRuTGl1Z2o4NW"
    "M2MlBuaFdaU3pBNWp2S3FiVkZMV3IwdzVKemxDeTZGMmMKLS0tIGlkOE83SlRqeUtYcVFTY0h4QzE4NkVjdDdXS0RL"
    "WTFZb3VNY0RQK2ozbFEKbU/uPR+YpIbNJPMim4Z60/DkZug9O2VFE8W9hZ9LJFBYVLYMJwJsGmqVjnKhag=="
)


@pytest.fixture(autouse=True)
def _cheap(monkeypatch):
    monkeypatch.setattr(age, "_WORK_FACTOR", 10)


def encrypt(plaintext, piece=50_000):
    pieces = (plaintext[at : at + piece] for at in range(0, len(plaintext), piece))
    return b"".join(age.encrypt(pieces, PASSPHRASE))


def decrypt(encrypted, passphrase=PASSPHRASE):
    return b"".join(age.decrypt(io.BytesIO(encrypted), passphrase))


def split(encrypted):
    """Return the head, the nonce of the payload, and its chunks."""
    end = 0
    for _ in range(HEAD_LINES):
        end = encrypted.index(b"\n", end) + 1
    payload = encrypted[end + 16 :]
    size = CHUNK + 16
    return (
        encrypted[:end],
        encrypted[end : end + 16],
        [payload[at : at + size] for at in range(0, len(payload), size)],
    )


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_other_implementation_decrypts_what_we_encrypt(size):
    plaintext = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    encrypted = encrypt(plaintext)
    assert pyrage.passphrase.decrypt(encrypted, PASSPHRASE) == plaintext
    assert decrypt(encrypted) == plaintext


def test_we_decrypt_what_another_implementation_encrypts():
    assert decrypt(base64.b64decode(BY_PYRAGE)) == b"made by pyrage"


def test_same_plaintext_is_encrypted_differently_each_time():
    assert encrypt(b"secret") != encrypt(b"secret")


def test_wrong_passphrase_is_refused():
    with pytest.raises(age.CannotDecrypt, match="passphrase is wrong"):
        decrypt(encrypt(b"secret"), "another passphrase")


def test_any_changed_byte_is_noticed():
    encrypted = encrypt(b"s" * 100)
    for at in range(len(encrypted)):
        changed = bytearray(encrypted)
        changed[at] ^= 1
        with pytest.raises(age.CannotDecrypt):
            decrypt(changed)


def test_truncation_is_noticed_anywhere():
    encrypted = encrypt(b"s" * (2 * CHUNK))
    for length in [*range(0, 300, 7), CHUNK, 2 * CHUNK, len(encrypted) - CHUNK - 16, len(encrypted) - 1]:
        with pytest.raises(age.CannotDecrypt):
            decrypt(encrypted[:length])


def test_missing_swapped_and_added_chunks_are_noticed():
    head, nonce, chunks = split(encrypt(b"a" * CHUNK + b"b" * CHUNK + b"c" * 10))
    first, second, last = chunks
    for wrong in (
        [first, second],
        [first, last],
        [second, first, last],
        [first, second, last, last],
        [first, first, second, last],
        [last],
    ):
        with pytest.raises(age.CannotDecrypt):
            decrypt(head + nonce + b"".join(wrong))


def test_file_encrypted_for_a_key_is_refused():
    recipient = pyrage.x25519.Identity.generate().to_public()
    with pytest.raises(age.CannotDecrypt, match="not a file that was encrypted under a passphrase"):
        decrypt(pyrage.encrypt(b"secret", [recipient]))


def test_work_factor_that_would_exhaust_the_memory_is_refused():
    with pytest.raises(age.CannotDecrypt, match="work factor 30"):
        decrypt(encrypt(b"secret").replace(b" 10\n", b" 30\n", 1))
