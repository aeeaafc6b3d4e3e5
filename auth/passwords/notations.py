"""Translates hashes from the notations of other products into the form in which they are stored."""

import json
import re
from collections.abc import Mapping
from typing import Any

from auth.passwords.legacy import UnusableHash, decode, encode

_DJANGO_PBKDF2 = re.compile(r"pbkdf2_(sha1|sha256)\$([0-9]+)\$([^$]+)\$([^$]+)")
_DJANGO_SCRYPT = re.compile(r"scrypt\$([0-9]+)\$([^$]+)\$([0-9]+)\$([0-9]+)\$([^$]+)")
_PASSLIB_PBKDF2 = re.compile(r"\$pbkdf2(?:-(sha256|sha512))?\$([0-9]+)\$([^$]+)\$([^$]+)")
_KEYCLOAK_PBKDF2 = {"pbkdf2": "sha1", "pbkdf2-sha256": "sha256", "pbkdf2-sha512": "sha512"}


def stored_form(notation: str) -> str:
    """Return the stored form of a hash as Django, passlib, PHP and most libraries write it."""
    if match := _DJANGO_PBKDF2.fullmatch(notation):
        digest, iterations, salt, value = match.groups()
        return _pbkdf2(digest, iterations, encode(salt.encode()), value)
    if match := _DJANGO_SCRYPT.fullmatch(notation):
        n, salt, r, p, value = match.groups()
        log_n = int(n).bit_length() - 1
        if int(n) != 1 << log_n:
            raise UnusableHash("password_hash is malformed: N must be a power of 2")
        return f"$scrypt$ln={log_n},r={r},p={p}${encode(salt.encode())}${value}"
    if match := _PASSLIB_PBKDF2.fullmatch(notation):
        return _pbkdf2(match[1] or "sha1", *match.groups()[1:])
    if notation.startswith("argon2$argon2"):
        return notation.removeprefix("argon2")
    # Django's BCryptPasswordHasher, and the one with SHA-256.
    return notation.removeprefix("bcrypt$").replace("bcrypt_sha256$$2", "bcrypt_sha256$2", 1)


def from_keycloak(credential: Mapping[str, Any]) -> str:
    """Return the stored form of a Keycloak credential of type `password`. Raises `UnusableHash`."""
    secret, data = (_json(credential[name]) for name in ("secretData", "credentialData"))
    algorithm, iterations = data["algorithm"], data["hashIterations"]
    salt, value = secret["salt"], secret["value"]
    if algorithm in _KEYCLOAK_PBKDF2:
        return _pbkdf2(_KEYCLOAK_PBKDF2[algorithm], iterations, salt, value)
    if algorithm == "argon2":
        parameters = {name: values[0] for name, values in data["additionalParameters"].items()}
        kind, memory, lanes = parameters["type"], parameters["memory"], parameters["parallelism"]
        if parameters["version"] == "1.3":
            return f"$argon2{kind}$v=19$m={memory},t={iterations},p={lanes}${_plain(salt)}${_plain(value)}"
    raise UnusableHash(f"password_hash is of no supported scheme: {algorithm}")


def from_firebase(value: str, salt: str, hash_config: Mapping[str, str]) -> str:
    """Return the stored form of a Firebase hash. `hash_config` is as the Firebase console shows it."""
    separator, key = hash_config.get("base64_salt_separator"), hash_config["base64_signer_key"]
    parameters = f"v=1,n={hash_config['mem_cost']},r={hash_config['rounds']},p=1"
    separated = f",ss={separator}" if separator else ""
    return f"$fbscrypt${parameters}{separated},sk={key}${salt}${value}"


def _pbkdf2(digest: str, iterations: object, salt: str, value: str) -> str:
    return f"$pbkdf2-{digest}$i={iterations}${_plain(salt)}${_plain(value)}"


def _plain(text: str) -> str:
    return encode(decode(text))


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value
