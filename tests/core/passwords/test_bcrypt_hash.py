"""bcrypt of libxcrypt and of the package: the same hashes, refusals and threads."""

import random
from concurrent.futures import ThreadPoolExecutor

import bcrypt
import pytest
from structlog.testing import capture_logs

from auth.core.passwords import bcrypt_hash
from auth.core.passwords.bcrypt_hash import choose, crypt_rn
from tests.support.cases import cases

SYSTEM_CRYPT = crypt_rn()
SALT = b"abcdefghijklmnopqrstuu"
SETTING = b"$2b$04$" + SALT
VERSIONS = (b"$2a$", b"$2b$", b"$2y$")
# Passwords that broken versions of bcrypt confused, from crypt_blowfish's own tests, and some neighbours of these.
CONFUSED = [
    *(b"\xa3", b"\xff\xff\xa3", b"\xff\xa3345", b"1\xa3345", b"\xff\xa334\xff\xff\xff\xa3345"),
    *(b"\xaa" * 72, b"\xaa\x55" * 36, b"\x55\xaa\xff" * 24, b"\x80" * 72, b"\x7f" * 72),
    *("Größe-42".encode(), "Пароль-42".encode(), "Aa1☃".encode() * 8),
]

needs_libxcrypt = pytest.mark.skipif(SYSTEM_CRYPT is None, reason="the system has no libxcrypt")


class RecordingCrypt:
    """A `crypt_rn` that keeps the memory it was given, and what that contained on return."""

    def __init__(self, crypt_rn):
        self.crypt_rn, self.memories, self.contents = crypt_rn, [], []

    def __call__(self, password, setting, data, size):
        result = self.crypt_rn(password, setting, data, size)
        self.memories.append(data)
        self.contents.append(bytes(data))
        return result


def random_passwords():
    """Return a password of each length that bcrypt reads, of all bytes but NUL."""
    generator = random.Random(72)
    return [bytes(generator.choices(range(1, 256), k=length)) for length in range(73)]


@pytest.fixture(
    params=[None, pytest.param(SYSTEM_CRYPT, marks=needs_libxcrypt)], ids=["package", "libxcrypt"]
)
def hashpw(request, monkeypatch):
    chosen = choose(request.param)
    monkeypatch.setattr(bcrypt_hash, "chosen", lambda: chosen)
    return bcrypt_hash.hashpw


@pytest.mark.parametrize("version", VERSIONS)
def test_hash_is_that_of_the_package_for_every_length_and_byte(hashpw, version):
    setting = version + SETTING[4:]
    for password in random_passwords() + CONFUSED:
        expected = bcrypt.hashpw(password, setting)
        assert hashpw(password, setting) == expected, password
        assert hashpw(password, expected) == expected  # a hash is a setting too


@cases(
    ("password", "setting"),
    [
        *((password, SETTING) for password in (b"\0", b"a\0b", b"ab\0", b"\0" + b"a" * 71, b"a" * 73)),
        *((b"a", version + SETTING[4:]) for version in (b"$2x$", b"$2$", b"$1$", b"$6$", b"", b"*0")),
        *((b"a", b"$2b$%b$%b" % (cost, SALT)) for cost in (b"03", b"32", b"99", b"-4")),
        # Stray bits in the salt; a salt that is too short, or of other characters.
        *((b"a", SETTING[:-1] + last) for last in (b"/", b"A", b"z", b"")),
        (b"a", b"$2b$04$" + b"!" * 22),
    ],
)
def test_what_bcrypt_cannot_hash_is_refused(hashpw, password, setting):
    with pytest.raises(ValueError, match=r"bcrypt takes at most 72 bytes|Invalid salt"):
        hashpw(password, setting)


# A library's wrong answers, from the right one.
WRONG = {
    "nothing": lambda password, expected: None,
    "the token of a failure": lambda password, expected: b"*0",
    "the other token of a failure": lambda password, expected: b"*1",
    "the setting alone": lambda password, expected: expected[:29],
    "a hash of nothing": lambda password, expected: bcrypt.hashpw(b"", SETTING),
    "another digest of bytes above 0x7f": lambda password, expected: (
        expected if password.isascii() else expected[:-2] + b"zz"
    ),
    "a digest of the first 71 bytes": lambda password, expected: bcrypt.hashpw(password[:71], SETTING),
}


@cases("answer", WRONG.values())
def test_library_that_differs_from_the_package_is_not_used(answer):
    def wrong_crypt(password, setting, data, size):
        calls.append(password)
        return answer(password, bcrypt.hashpw(password, setting))

    calls: list[bytes] = []
    with capture_logs() as logs:
        hashpw = choose(wrong_crypt)
    assert [(line["event"], line["log_level"]) for line in logs] == [("libxcrypt_not_used", "warning")]
    calls_before = len(calls)
    assert hashpw(b"\xff a password", SETTING) == bcrypt.hashpw(b"\xff a password", SETTING)
    assert len(calls) == calls_before


def test_threads_hash_at_once_without_mixing_passwords(hashpw):
    passwords = [b"password %d \xff" % number for number in range(8)]
    settings = [b"$2b$05$" + SALT[:-2] + b"%bu" % bytes([letter]) for letter in b"abcdefgh"]
    expected = [bcrypt.hashpw(*each) for each in zip(passwords, settings, strict=True)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(hashpw, passwords * 20, settings * 20)) == expected * 20


@needs_libxcrypt
def test_each_hash_has_memory_of_its_own_which_is_zero_afterwards():
    crypt = RecordingCrypt(SYSTEM_CRYPT)
    hashpw = choose(crypt)
    hashed = hashpw(b"a password", SETTING)
    with pytest.raises(ValueError, match="Invalid salt"):
        hashpw(b"a password", b"$2b$32$" + SALT)
    assert hashed in crypt.contents[-2]
    assert not any(any(bytes(memory)) for memory in crypt.memories)
    assert len({id(memory) for memory in crypt.memories}) == len(crypt.memories)
