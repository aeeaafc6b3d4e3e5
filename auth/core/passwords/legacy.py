"""Password hashes of other services, except those based on bcrypt.

A hash is stored in a common text form, into which the notations of other products are translated:

- `$argon2id$v=19$m=19456,t=2,p=1$SALT$HASH`, also argon2i and argon2d
- `$scrypt$ln=14,r=8,p=1$SALT$HASH`
- `$fbscrypt$v=1,n=14,r=8,p=1,ss=SEPARATOR,sk=SIGNER_KEY$SALT$HASH` (Firebase)
- `$pbkdf2-sha256$i=27500$SALT$HASH`, also sha1 and sha512
- `$P$B…` and `$H$B…` (phpass)
"""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from argon2 import low_level as argon2
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

# The limits of imports count work in rounds of the bcrypt package, of which cost 10 has 1024. These take as
# long, measured on x86-64 with SHA extensions, which OpenSSL uses; another machine differed by half.
_PBKDF2_PER_ROUND = {"sha1": 160, "sha256": 160, "sha512": 75}
_ARGON2_PER_ROUND = 65  # KiB times passes, plus what lanes add (`_argon2`)
_SCRYPT_PER_ROUND = 200  # (N + 4) * r * p: hashing before and after takes as long as N = 4
_MD5_PER_ROUND = 32  # for the longest password; 140 for a usual one

_ARGON2 = {"d": argon2.Type.D, "i": argon2.Type.I, "id": argon2.Type.ID}
_ARGON2_MOST_LANES = (1 << 24) - 1
# Bytes. A digest of one byte would match one wrong password in 256.
_LEAST_DIGEST, _MOST_DIGEST = 16, 512

_BASE64 = r"([A-Za-z0-9+/_.-]+={0,2})"
_COUNT = "([0-9]{1,9})"
_SCRYPT = "([0-9]{1,2}),r=([0-9]{1,5}),p=([0-9]{1,5})"
_PHPASS_DIGITS = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class UnusableHash(ValueError):
    """A hash that is malformed, of an unknown scheme or too expensive. The message is for operators."""


class ForeignHash(NamedTuple):
    """`rounds` is the time of a check in rounds of bcrypt, `memory` its memory in bytes."""

    rounds: float
    memory: int
    matches: Callable[[bytes], bool]


def read(stored: str) -> ForeignHash:
    """Read a hash. Raises `UnusableHash`."""
    for form, reader in _READERS.items():
        if match := re.fullmatch(form, stored):
            try:
                return reader(match)
            except ValueError as error:
                raise UnusableHash(f"password_hash is malformed: {error}") from None
    raise UnusableHash("password_hash has no supported scheme")


def decode(text: str) -> bytes:
    """Decode base64 of any alphabet, padded or not; passlib writes `.` for `+`. Raises `ValueError`."""
    standard = text.rstrip("=").translate(str.maketrans("-_.", "+/+"))
    return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")


def _digest(text: str) -> bytes:
    digest = decode(text)
    if not _LEAST_DIGEST <= len(digest) <= _MOST_DIGEST:
        raise ValueError(f"the digest must have {_LEAST_DIGEST} to {_MOST_DIGEST} bytes")
    return digest


def _argon2(match: re.Match[str]) -> ForeignHash:
    kind = _ARGON2[match[1]]
    memory, passes, lanes = int(match[2]), int(match[3]), int(match[4])
    salt, digest = decode(match[5]), _digest(match[6])
    if passes < 1 or not 1 <= lanes <= _ARGON2_MOST_LANES or memory < 8 * lanes:
        raise ValueError("Argon2 has at least one pass, one lane, and 8 KiB of memory for each lane")
    if len(salt) < 8:
        raise ValueError("Argon2 has a salt of at least 8 bytes")

    def matches(password: bytes) -> bool:
        derived = _derive_argon2(kind, password, salt, memory, passes, lanes, len(digest))
        return hmac.compare_digest(derived, digest)

    # With few blocks, filling and addressing a lane takes longer than the blocks.
    work = memory * passes + 8 * lanes * (passes + 2)
    return ForeignHash(rounds=work / _ARGON2_PER_ROUND, memory=memory * 1024, matches=matches)


def _derive_argon2(
    kind: argon2.Type, password: bytes, salt: bytes, memory: int, passes: int, lanes: int, length: int
) -> bytes:
    """Derive in the calling thread only, for any number of lanes.

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
    salt, digest = decode(match[4]), _digest(match[5])
    rounds, memory, derive = _scrypt_derivation(match, salt, len(digest))
    return ForeignHash(rounds, memory, lambda password: hmac.compare_digest(derive(password), digest))


def _firebase(match: re.Match[str]) -> ForeignHash:
    """Firebase's scrypt (github.com/firebase/scrypt): the derived key encrypts the project's signer key."""
    separator, signer_key, salt = (decode(text or "") for text in match.groups()[3:6])
    signature = _digest(match[7])
    rounds, memory, derive = _scrypt_derivation(match, salt + separator, 32)

    def matches(password: bytes) -> bool:
        encryptor = Cipher(algorithms.AES(derive(password)), modes.CTR(bytes(16))).encryptor()
        return hmac.compare_digest(encryptor.update(signer_key) + encryptor.finalize(), signature)

    return ForeignHash(rounds, memory, matches)


def _scrypt_derivation(
    match: re.Match[str], salt: bytes, length: int
) -> tuple[float, int, Callable[[bytes], bytes]]:
    """Return the rounds and the memory of `ForeignHash`, and the derivation."""
    log_n, r, p = int(match[1]), int(match[2]), int(match[3])
    if not 1 <= log_n <= 30 or r < 1 or p < 1:
        raise ValueError("N is at least 2 and at most 2^30, r and p are at least 1")
    memory = 128 * r * ((1 << log_n) + p)

    def derive(password: bytes) -> bytes:
        # OpenSSL counts a little more than the memory of N and p.
        most = memory + 1024 * 1024
        return hashlib.scrypt(password, salt=salt, n=1 << log_n, r=r, p=p, maxmem=most, dklen=length)

    return r * p * ((1 << log_n) + 4) / _SCRYPT_PER_ROUND, memory, derive


def _pbkdf2(match: re.Match[str]) -> ForeignHash:
    algorithm, iterations, salt, expected = match[1], int(match[2]), decode(match[3]), _digest(match[4])
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


_READERS: dict[str, Callable[[re.Match[str]], ForeignHash]] = {
    rf"\$argon2(id?|d)\$v=19\$m={_COUNT},t={_COUNT},p={_COUNT}\${_BASE64}\${_BASE64}": _argon2,
    rf"\$scrypt\$ln={_SCRYPT}\${_BASE64}\${_BASE64}": _scrypt,
    rf"\$fbscrypt\$v=1,n={_SCRYPT}(?:,ss={_BASE64})?,sk={_BASE64}\${_BASE64}\${_BASE64}": _firebase,
    rf"\$pbkdf2-(sha1|sha256|sha512)\$i={_COUNT}(?:,l=[0-9]+)?\${_BASE64}\${_BASE64}": _pbkdf2,
    r"\$[PH]\$([5-9A-Za-z])([./0-9A-Za-z]{8})([./0-9A-Za-z]{22})": _phpass,
}

# Notations of other products.
_DJANGO_PBKDF2 = re.compile(r"pbkdf2_(sha1|sha256)\$([0-9]+)\$([^$]+)\$([^$]+)")
_DJANGO_SCRYPT = re.compile(r"scrypt\$([0-9]+)\$([^$]+)\$([0-9]+)\$([0-9]+)\$([^$]+)")
_PASSLIB_PBKDF2 = re.compile(r"\$pbkdf2(?:-(sha256|sha512))?\$([0-9]+)\$([^$]+)\$([^$]+)")
_KEYCLOAK_PBKDF2 = {"pbkdf2": "sha1", "pbkdf2-sha256": "sha256", "pbkdf2-sha512": "sha512"}


def stored_form(notation: str) -> str:
    """Return the stored form of a hash as Django, passlib, PHP and most libraries write it.

    Raises `ValueError`.
    """
    if match := _DJANGO_PBKDF2.fullmatch(notation):
        digest, iterations, salt, value = match.groups()
        return _pbkdf2_form(digest, iterations, encode(salt.encode()), value)
    if match := _DJANGO_SCRYPT.fullmatch(notation):
        n, salt, r, p, value = match.groups()
        if int(n).bit_count() != 1:
            raise ValueError("N must be a power of 2")
        return f"$scrypt$ln={int(n).bit_length() - 1},r={r},p={p}${encode(salt.encode())}${value}"
    if match := _PASSLIB_PBKDF2.fullmatch(notation):
        return _pbkdf2_form(match[1] or "sha1", *match.groups()[1:])
    if notation.startswith("argon2$argon2"):
        return notation.removeprefix("argon2")
    # Django's BCryptPasswordHasher, and the one with SHA-256.
    return notation.removeprefix("bcrypt$").replace("bcrypt_sha256$$2", "bcrypt_sha256$2", 1)


def from_keycloak(credential: Mapping[str, Any]) -> str:
    """Return the stored form of a Keycloak credential of type `password`. Raises `UnusableHash`."""
    members = (credential[name] for name in ("secretData", "credentialData"))
    secret, data = (json.loads(each) if isinstance(each, str) else each for each in members)
    algorithm, iterations = data["algorithm"], data["hashIterations"]
    salt, value = secret["salt"], secret["value"]
    if algorithm in _KEYCLOAK_PBKDF2:
        return _pbkdf2_form(_KEYCLOAK_PBKDF2[algorithm], iterations, salt, value)
    if algorithm == "argon2":
        parameters = {name: values[0] for name, values in data["additionalParameters"].items()}
        kind, memory, lanes = parameters["type"], parameters["memory"], parameters["parallelism"]
        if parameters["version"] == "1.3":
            return f"$argon2{kind}$v=19$m={memory},t={iterations},p={lanes}${_plain(salt)}${_plain(value)}"
    raise UnusableHash(f"password_hash has no supported scheme: {algorithm}")


def from_firebase(value: str, salt: str, hash_config: Mapping[str, str]) -> str:
    """Return the stored form of a Firebase hash. `hash_config` is as the Firebase console shows it."""
    separator, key = hash_config.get("base64_salt_separator"), hash_config["base64_signer_key"]
    parameters = f"v=1,n={hash_config['mem_cost']},r={hash_config['rounds']},p=1"
    separated = f",ss={separator}" if separator else ""
    return f"$fbscrypt${parameters}{separated},sk={key}${salt}${value}"


def _pbkdf2_form(digest: str, iterations: object, salt: str, value: str) -> str:
    return f"$pbkdf2-{digest}$i={iterations}${_plain(salt)}${_plain(value)}"


def _plain(text: str) -> str:
    return encode(decode(text))
