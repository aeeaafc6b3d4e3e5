"""Password hashes of other services, except those based on bcrypt.

A hash is stored in a common text form whose beginning names its scheme:

- `$argon2id$v=19$m=19456,t=2,p=1$SALT$HASH`, also argon2i and argon2d
- `$scrypt$ln=14,r=8,p=1$SALT$HASH`
- `$fbscrypt$v=1,n=14,r=8,p=1,ss=SEPARATOR,sk=SIGNER_KEY$SALT$HASH` (Firebase)
- `$pbkdf2-sha256$i=27500$SALT$HASH`, also sha1 and sha512
- `$P$B…` and `$H$B…` (phpass)
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass

from argon2 import low_level as argon2
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

# Work that takes as long as a round of bcrypt, of which a hash of cost 10 has 1024. Measured on x86-64 with
# SHA extensions, which OpenSSL uses.
_PBKDF2_PER_ROUND = {"sha1": 160, "sha256": 160, "sha512": 75}
_ARGON2_PER_ROUND = 65  # KiB times passes, plus what lanes add (`_argon2`)
_SCRYPT_PER_ROUND = 200  # (N + 4) * r * p: hashing before and after takes as long as N = 4
_MD5_PER_ROUND = 160

_ARGON2 = {"d": argon2.Type.D, "i": argon2.Type.I, "id": argon2.Type.ID}
_ARGON2_MOST_LANES = (1 << 24) - 1

_BASE64 = r"([A-Za-z0-9+/_.-]+={0,2})"
_PHPASS_DIGITS = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class UnusableHash(ValueError):
    """A hash that is malformed, of an unknown scheme or too expensive. The message is for operators."""


@dataclass(frozen=True)
class ForeignHash:
    """`rounds` is the time of a check in rounds of bcrypt, `memory` its memory in bytes."""

    rounds: float
    memory: int
    matches: Callable[[bytes], bool]


def read(stored: str) -> ForeignHash:
    """Read a hash. Raises `UnusableHash`."""
    for form, reader in _READERS:
        if match := form.fullmatch(stored):
            try:
                return reader(match)
            except ValueError as error:
                raise UnusableHash(f"password_hash is malformed: {error}") from None
    raise UnusableHash("password_hash is of no supported scheme")


def decode(text: str) -> bytes:
    """Decode base64 of any alphabet, padded or not; passlib writes `.` for `+`. Raises `ValueError`."""
    standard = text.rstrip("=").translate(str.maketrans("-_.", "+/+"))
    return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")


def _argon2(match: re.Match[str]) -> ForeignHash:
    kind = _ARGON2[match[1]]
    memory, passes, lanes = int(match[2]), int(match[3]), int(match[4])
    salt, digest = decode(match[5]), decode(match[6])
    if passes < 1 or not 1 <= lanes <= _ARGON2_MOST_LANES or memory < 8 * lanes:
        raise ValueError("Argon2 has at least one pass, one lane, and 8 KiB of memory for each lane")
    if len(salt) < 8 or len(digest) < 4:
        raise ValueError("Argon2 has a salt of at least 8 bytes, and a digest of at least 4")

    def matches(password: bytes) -> bool:
        derived = _derive_argon2(kind, password, salt, memory, passes, lanes, len(digest))
        return hmac.compare_digest(derived, digest)

    # Filling a lane, and addressing it in each pass, takes longer than its blocks if these are few.
    work = memory * passes + 8 * lanes * (passes + 2)
    return ForeignHash(rounds=work / _ARGON2_PER_ROUND, memory=memory * 1024, matches=matches)


def _derive_argon2(
    kind: argon2.Type, password: bytes, salt: bytes, memory: int, passes: int, lanes: int, length: int
) -> bytes:
    """Derive in the calling thread alone, whatever the number of lanes.

    cryptography computes lanes in OpenSSL's thread pool, where two derivations at once deadlock (50.0.2).
    `hash_secret_raw` starts a thread for each lane in each quarter of a pass: thousands of threads, and up to
    50 times the time if lanes are short. Only `core` takes a number of threads that differs from the lanes.
    """
    out = argon2.ffi.new("uint8_t[]", length)
    context = argon2.ffi.new(
        "argon2_context *",
        {
            "version": argon2.ARGON2_VERSION,
            "out": out,
            "outlen": length,
            "pwd": argon2.ffi.from_buffer("uint8_t[]", password),
            "pwdlen": len(password),
            "salt": argon2.ffi.from_buffer("uint8_t[]", salt),
            "saltlen": len(salt),
            "t_cost": passes,
            "m_cost": memory,
            "lanes": lanes,
            "threads": 1,
        },
    )
    if error := argon2.core(context, kind.value):
        raise MemoryError(argon2.error_to_str(error))
    return bytes(argon2.ffi.buffer(out))


def _scrypt(match: re.Match[str]) -> ForeignHash:
    log_n, r, p, salt, expected = match.groups()
    digest = decode(expected)
    derive = _scrypt_derivation(int(log_n), int(r), int(p), decode(salt), len(digest))
    return ForeignHash(
        *_scrypt_cost(int(log_n), int(r), int(p)),
        matches=lambda password: hmac.compare_digest(derive(password), digest),
    )


def _firebase(match: re.Match[str]) -> ForeignHash:
    """Firebase's scrypt (github.com/firebase/scrypt): the derived key encrypts the project's signer key."""
    log_n, r, p, separator, signer_key, salt, expected = match.groups()
    signature, plain = decode(expected), decode(signer_key)
    derive = _scrypt_derivation(int(log_n), int(r), int(p), decode(salt) + decode(separator or ""), 32)

    def matches(password: bytes) -> bool:
        encryptor = Cipher(algorithms.AES(derive(password)), modes.CTR(bytes(16))).encryptor()
        return hmac.compare_digest(encryptor.update(plain) + encryptor.finalize(), signature)

    return ForeignHash(*_scrypt_cost(int(log_n), int(r), int(p)), matches=matches)


def _scrypt_cost(log_n: int, r: int, p: int) -> tuple[float, int]:
    if not 1 <= log_n <= 30 or r < 1 or p < 1:
        raise ValueError("N is at least 2 and at most 2^30, r and p are at least 1")
    return r * p * ((1 << log_n) + 4) / _SCRYPT_PER_ROUND, 128 * r * ((1 << log_n) + p)


def _scrypt_derivation(log_n: int, r: int, p: int, salt: bytes, length: int) -> Callable[[bytes], bytes]:
    def derive(password: bytes) -> bytes:
        # OpenSSL counts a little more than the memory of N and p.
        most = _scrypt_cost(log_n, r, p)[1] + 1024 * 1024
        return hashlib.scrypt(password, salt=salt, n=1 << log_n, r=r, p=p, maxmem=most, dklen=length)

    return derive


def _pbkdf2(match: re.Match[str]) -> ForeignHash:
    algorithm, iterations, salt, expected = match[1], int(match[2]), decode(match[3]), decode(match[4])
    if iterations < 1:
        raise ValueError("there is at least one iteration")
    blocks = -(-len(expected) // hashlib.new(algorithm).digest_size)

    def matches(password: bytes) -> bool:
        digest = hashlib.pbkdf2_hmac(algorithm, password, salt, iterations, len(expected))
        return hmac.compare_digest(digest, expected)

    return ForeignHash(iterations * blocks / _PBKDF2_PER_ROUND[algorithm], 0, matches)


def _phpass(match: re.Match[str]) -> ForeignHash:
    """The portable hash of phpass, of WordPress before 6.8, phpBB 3 and Drupal 6."""
    count, salt, expected = 1 << _PHPASS_DIGITS.index(match[1]), match[2].encode(), match[3]

    def matches(password: bytes) -> bool:
        digest = hashlib.md5(salt + password, usedforsecurity=False).digest()
        for _ in range(count):
            digest = hashlib.md5(digest + password, usedforsecurity=False).digest()
        return hmac.compare_digest(_phpass_text(digest), expected)

    return ForeignHash(count / _MD5_PER_ROUND, 0, matches)


def _phpass_text(digest: bytes) -> str:
    groups = [int.from_bytes(digest[start : start + 3], "little") for start in range(0, 16, 3)]
    return "".join(_PHPASS_DIGITS[group >> shift & 63] for group in groups for shift in (0, 6, 12, 18))[:22]


_READERS: list[tuple[re.Pattern[str], Callable[[re.Match[str]], ForeignHash]]] = [
    (
        re.compile(
            rf"\$argon2(id?|d)\$v=19\$m=([0-9]{{1,9}}),t=([0-9]{{1,9}}),p=([0-9]{{1,9}})"
            rf"\${_BASE64}\${_BASE64}"
        ),
        _argon2,
    ),
    (
        re.compile(rf"\$scrypt\$ln=([0-9]{{1,2}}),r=([0-9]{{1,5}}),p=([0-9]{{1,5}})\${_BASE64}\${_BASE64}"),
        _scrypt,
    ),
    (
        re.compile(
            r"\$fbscrypt\$v=1,n=([0-9]{1,2}),r=([0-9]{1,5}),p=([0-9]{1,5})"
            rf"(?:,ss={_BASE64})?,sk={_BASE64}\${_BASE64}\${_BASE64}"
        ),
        _firebase,
    ),
    (
        re.compile(rf"\$pbkdf2-(sha1|sha256|sha512)\$i=([0-9]{{1,9}})(?:,l=[0-9]+)?\${_BASE64}\${_BASE64}"),
        _pbkdf2,
    ),
    (re.compile(r"\$[PH]\$([5-9A-Za-z])([./0-9A-Za-z]{8})([./0-9A-Za-z]{22})"), _phpass),
]
