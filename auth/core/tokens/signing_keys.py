"""The keys of access tokens, and their JWK Set (RFC 7517)."""

import functools
import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from joserfc.jwk import generate_key, thumbprint

from auth.core.tokens.derived_keys import index_in_use, key_id, parse_time

Jwk = dict[str, Any]
# The type of each algorithm's key, and its curve or length in bits.
_KINDS: dict[str, tuple[Any, Any]] = {
    "ES256": ("EC", "P-256"),
    "EdDSA": ("OKP", "Ed25519"),
    "RS256": ("RSA", 3072),
    "HS256": ("oct", 256),
}
ALGORITHMS = tuple(_KINDS)
SECOND_STEP = "second_step"  # the audience of tokens whose session lacks a step
_LEAST_SECRET = 32  # bytes
_PUBLIC_MEMBERS = {"EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x"), "RSA": ("e", "kty", "n")}


@dataclass(frozen=True)
class Key:
    """A key and its only algorithm (RFC 8725, section 3.1). `signing_key` is None if it only verifies.

    `is_preferred` if its `key_ops` include `sign`. A shared secret has no `public_jwk`. The key signs from
    `active_from` on (Unix seconds).
    """

    algorithm: str
    kid: str | None
    signing_key: Any
    verifying_key: Any
    public_jwk: Mapping[str, str] | None
    is_preferred: bool = False
    active_from: float = 0.0


def new_jwk_set() -> str:
    return json.dumps({"keys": [new_jwk("ES256")]})


def new_jwk(algorithm: str) -> Jwk:
    key = generate_key(*_KINDS[algorithm])
    # With the thumbprint of a secret, holders of tokens could guess secrets (RFC 7638, section 7).
    kid = str(uuid.uuid4()) if algorithm == "HS256" else key.thumbprint()
    # Commands would parse such a key id as an option.
    if kid.startswith("-"):
        return new_jwk(algorithm)
    return key.as_dict(private=True) | {"kid": kid, "alg": algorithm, "use": "sig"}


def read_jwks(text: str) -> list[Jwk]:
    """Return the JWKs of a set or an array, given as JSON or as the path of a file; none for empty text."""
    return _jwks_of(_json_of(text)) if text else []


def is_jwk_set(text: str) -> bool:
    """Whether a value of AUTH_JWT_KEYS is not a path."""
    return text.lstrip().startswith(("{", "["))


def _json_of(text: str) -> str:
    return text if is_jwk_set(text) else Path(text).read_text(encoding="utf-8-sig")


def _jwks_of(text: str) -> list[Jwk]:
    parsed = json.loads(text)
    return parsed if isinstance(parsed, list) else parsed["keys"]


def parse_jwk_set(text: str) -> list[Key]:
    """Parse JSON or the file at a path. Raises `OSError`, and `ValueError` that does not quote keys."""
    return list(_parse_jwk_set(_json_of(text)))


# OpenSSL takes 40 ms to check an RSA key, and the key ring parses its file several times every two seconds.
@functools.lru_cache(maxsize=4)
def _parse_jwk_set(text: str) -> tuple[Key, ...]:
    try:
        keys = [_parse_jwk(jwk) for jwk in _jwks_of(text)]
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError, jwt.PyJWTError) as error:
        # PyJWT's messages quote the key.
        message = error.args[0] if isinstance(error, _JwkError) else "is not a valid JWK Set"
        raise ValueError(message) from None
    if not keys or len({key.kid for key in keys}) < len(keys):
        raise ValueError("has no key, or one kid twice")
    return tuple(keys)


def can_sign(jwk_set: str) -> bool:
    return any(key.signing_key for key in parse_jwk_set(jwk_set))


def has_secrets(jwk_set: str) -> bool:
    return any({"d", "k"} & jwk.keys() for jwk in read_jwks(jwk_set))


def all_keys(jwk_set: str, secret: str | None) -> list[Key]:
    """Return the keys of the settings. A `secret` signs with HS256 until the `active_from` of a key."""
    keys = parse_jwk_set(jwk_set) if jwk_set else []
    return [Key("HS256", None, secret, secret, None, is_preferred=True), *keys] if secret else keys


def signing_key(keys: Sequence[Key]) -> Key:
    """Return the key with the latest past `active_from`, else the preferred one, else the first."""
    usable = [key for key in keys if key.signing_key]
    times = [key.active_from for key in usable]
    newest = times[index_in_use(times)]
    return max((key for key in usable if key.active_from == newest), key=lambda key: key.is_preferred)


def second_step_key(key: bytes) -> Key:
    """Return a derived key as a signing key outside the JWK Set. Its `kid` reveals nothing about it."""
    return Key("HS256", f"second-step-{key_id(key).hex()}", key, key, None)


def fingerprints(jwk_set: str) -> list[str]:
    """Return a digest of each public key or secret, by the `kid` that other nodes look it up with."""
    jwks: list[Mapping[str, Any]] = [
        key.public_jwk or {"kid": key.kid, "k": key.verifying_key.hex()} for key in all_keys(jwk_set, None)
    ]
    return [hashlib.sha256(json.dumps(jwk, sort_keys=True).encode()).hexdigest() for jwk in jwks]


class _JwkError(ValueError):
    pass


def _parse_jwk(jwk: Jwk) -> Key:
    parsed = jwt.PyJWK.from_dict(jwk)
    algorithm, operations = parsed.algorithm_name, jwk.get("key_ops")
    if algorithm not in ALGORITHMS:
        raise _JwkError(f"a key's algorithm is not one of {', '.join(ALGORITHMS)}")
    if operations is not None and not {"sign", "verify"} & set(operations):
        raise _JwkError("the key_ops of a key name neither sign nor verify")
    is_preferred = operations is not None and "sign" in operations
    signs = operations is None or is_preferred
    try:
        active_from = parse_time(jwk["active_from"]) if "active_from" in jwk else 0.0
    except (TypeError, ValueError):
        raise _JwkError("an active_from is not a time such as 2026-11-22T00:00:00Z") from None
    if algorithm == "HS256":
        secret = parsed.key
        if len(secret) < _LEAST_SECRET:
            raise _JwkError(f"an oct key is shorter than {_LEAST_SECRET} bytes")
        if not jwk.get("kid"):
            raise _JwkError("an oct key has no kid")
        return Key("HS256", jwk["kid"], secret if signs else None, secret, None, is_preferred, active_from)
    if signs and "d" not in jwk:
        raise _JwkError("a key is not private, and its key_ops are not verify")
    if algorithm == "RS256" and parsed.key.key_size < 2048:
        raise _JwkError("an RSA key is shorter than 2048 bits")
    public = {member: jwk[member] for member in _PUBLIC_MEMBERS[jwk["kty"]]}
    kid = jwk.get("kid") or thumbprint(public)
    public |= {"kid": kid, "alg": algorithm, "use": "sig"}
    verifying_key = parsed.key.public_key() if "d" in jwk else parsed.key
    private_key = parsed.key if signs else None
    return Key(algorithm, kid, private_key, verifying_key, public, is_preferred, active_from)
