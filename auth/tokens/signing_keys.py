"""The keys of access tokens, and their JWK Set (RFC 7517)."""

import base64
import functools
import hashlib
import json
import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, HMACAlgorithm, OKPAlgorithm, RSAAlgorithm

from auth.tokens.keys import in_use, key_id, parse_time

ALGORITHMS = ("ES256", "EdDSA", "RS256", "HS256")
_LEAST_SECRET = 32  # bytes
# In the order of RFC 7638, section 3.2.
_THUMBPRINT_MEMBERS = {"EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x"), "RSA": ("e", "kty", "n")}


@dataclass(frozen=True)
class Key:
    """A key and its only algorithm (RFC 8725, section 3.1). `signing_key` is None if it only verifies.

    `is_preferred` if its `key_ops` include `sign`. A shared secret has no `public_jwk`. From `active_from` on
    (Unix seconds) the key signs.
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


def new_jwk(algorithm: str) -> dict[str, Any]:
    if algorithm == "ES256":
        jwk = ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()), as_dict=True)
    elif algorithm == "EdDSA":
        jwk = OKPAlgorithm.to_jwk(ed25519.Ed25519PrivateKey.generate(), as_dict=True)
    elif algorithm == "RS256":
        jwk = RSAAlgorithm.to_jwk(rsa.generate_private_key(65_537, 2048), as_dict=True)
        jwk.pop("key_ops", None)
    else:
        jwk = HMACAlgorithm.to_jwk(secrets.token_bytes(_LEAST_SECRET), as_dict=True)
        return jwk | {"kid": str(uuid.uuid4()), "alg": "HS256", "use": "sig"}
    kid = thumbprint(jwk)
    # Commands would take it for an option.
    return new_jwk(algorithm) if kid.startswith("-") else jwk | {"kid": kid, "alg": algorithm, "use": "sig"}


def algorithm_in_use(jwk_set: str, secret: str | None) -> str:
    return signing_key(all_keys(jwk_set, secret)).algorithm


def read_jwks(text: str) -> list[dict[str, Any]]:
    """Return the JWKs of a set or an array, which is JSON or the file at a path; none for empty text."""
    if text and not text.lstrip().startswith(("{", "[")):
        text = Path(text).read_text()
    return _jwks_of(json.loads(text or "[]"))


def _jwks_of(parsed: Any) -> list[dict[str, Any]]:
    return parsed if isinstance(parsed, list) else parsed["keys"]


def parse_jwk_set(text: str) -> list[Key]:
    """Parse JSON or the file at a path. Raises `OSError`, and `ValueError` that does not quote keys."""
    if not text.lstrip().startswith(("{", "[")):
        text = Path(text).read_text()
    return list(_parse_jwk_set(text))


# OpenSSL checks an RSA key for 40 ms, and the key ring parses its file several times every two seconds.
@functools.lru_cache(maxsize=4)
def _parse_jwk_set(text: str) -> tuple[Key, ...]:
    try:
        keys = [_parse_jwk(jwk) for jwk in _jwks_of(json.loads(text))]
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError, jwt.PyJWTError) as error:
        # PyJWT's messages quote the key.
        message = error.args[0] if isinstance(error, _JwkError) else "it is not a JWK Set"
        raise ValueError(message) from None
    if not keys or len({key.kid for key in keys}) < len(keys):
        raise ValueError("it has no key, or one kid twice")
    return tuple(keys)


def can_sign(jwk_set: str) -> bool:
    return any(key.signing_key for key in parse_jwk_set(jwk_set))


def all_keys(jwk_set: str, secret: str | None) -> list[Key]:
    """Return the keys of the settings. A `secret` signs with HS256, until a key's `active_from` comes."""
    keys = parse_jwk_set(jwk_set) if jwk_set else []
    return [Key("HS256", None, secret, secret, None, is_preferred=True), *keys] if secret else keys


def signing_key(keys: Sequence[Key]) -> Key:
    """Return the key whose `active_from` came last, else the preferred one, else the first."""
    usable = [key for key in keys if key.signing_key]
    times = [key.active_from for key in usable]
    newest = times[in_use(times)]
    return max((key for key in usable if key.active_from == newest), key=lambda key: key.is_preferred)


def second_step_key(key: bytes) -> Key:
    """Return a derived key as one that is in no JWK Set. Its `kid` tells nothing about it."""
    return Key("HS256", f"second-step-{key_id(key).hex()}", key, key, None)


def fingerprints(jwk_set: str) -> list[str]:
    """Return a digest of each public key or secret with the `kid` by which other nodes look it up."""
    keys = parse_jwk_set(jwk_set) if jwk_set else []
    known: list[Mapping[str, Any]] = [
        key.public_jwk or {"kid": key.kid, "k": key.verifying_key.hex()} for key in keys
    ]
    return [hashlib.sha256(json.dumps(jwk, sort_keys=True).encode()).hexdigest() for jwk in known]


class _JwkError(ValueError):
    pass


def _parse_jwk(jwk: dict[str, Any]) -> Key:
    parsed = jwt.PyJWK.from_dict(jwk)
    algorithm, operations = parsed.algorithm_name, jwk.get("key_ops")
    if algorithm not in ALGORITHMS:
        raise _JwkError(f"a key's algorithm is not one of {', '.join(ALGORITHMS)}")
    if operations is not None and not {"sign", "verify"} & set(operations):
        raise _JwkError("the key_ops of a key name neither sign nor verify")
    signs, is_preferred = operations is None or "sign" in operations, "sign" in (operations or ())
    active_from = _active_from(jwk)
    if algorithm == "HS256":
        return replace(_shared_key(jwk, parsed.key, signs, is_preferred), active_from=active_from)
    if signs and "d" not in jwk:
        raise _JwkError("a key is not private, and its key_ops are not verify")
    if algorithm == "RS256" and parsed.key.key_size < 2048:
        raise _JwkError("an RSA key is shorter than 2048 bits")
    kid = jwk.get("kid") or thumbprint(jwk)
    public = {member: jwk[member] for member in _THUMBPRINT_MEMBERS[jwk["kty"]]}
    public |= {"kid": kid, "alg": algorithm, "use": "sig"}
    verifying_key = parsed.key.public_key() if "d" in jwk else parsed.key
    private_key = parsed.key if signs else None
    return Key(algorithm, kid, private_key, verifying_key, public, is_preferred, active_from)


def _active_from(jwk: Mapping[str, Any]) -> float:
    try:
        return parse_time(jwk["active_from"]) if "active_from" in jwk else 0.0
    except (TypeError, ValueError):
        raise _JwkError("an active_from is not a time such as 2026-11-22T00:00:00Z") from None


def _shared_key(jwk: Mapping[str, Any], secret: bytes, signs: bool, is_preferred: bool) -> Key:
    if len(secret) < _LEAST_SECRET:
        raise _JwkError(f"an oct key is shorter than {_LEAST_SECRET} bytes")
    # Its thumbprint would let holders of tokens try secrets (RFC 7638, section 7).
    if not jwk.get("kid"):
        raise _JwkError("an oct key has no kid")
    return Key("HS256", jwk["kid"], secret if signs else None, secret, None, is_preferred)


def thumbprint(jwk: Mapping[str, str]) -> str:
    members = {member: jwk[member] for member in _THUMBPRINT_MEMBERS[jwk["kty"]]}
    digest = hashlib.sha256(json.dumps(members, separators=(",", ":")).encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
