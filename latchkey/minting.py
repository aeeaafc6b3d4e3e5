"""Access tokens for tests without a service. Needs the standard library only."""

import base64
import functools
import hashlib
import json
import secrets
import time
import uuid
from collections.abc import Mapping
from typing import Any

# ES256 on P-256 (FIPS 186-5), because the standard library has no signatures.
_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)


@functools.cache
def _private_key() -> int:
    return secrets.randbelow(_N - 1) + 1


def _add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    if a == b:
        slope = (3 * a[0] ** 2 - 3) * pow(2 * a[1], -1, _P)
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, _P)
    x = (slope**2 - a[0] - b[0]) % _P
    return x, (slope * (a[0] - x) - a[1]) % _P


def _times_generator(factor: int) -> tuple[int, int]:
    total = _G
    for bit in f"{factor:b}"[1:]:
        total = _add(total, total)
        if bit == "1":
            total = _add(total, _G)
    return total


def _encoded(value: bytes | Mapping[str, Any]) -> str:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


@functools.cache
def _jwk() -> dict[str, str]:
    x, y = (_encoded(number.to_bytes(32, "big")) for number in _times_generator(_private_key()))
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": "test", "alg": "ES256", "use": "sig"}


def jwks() -> dict[str, Any]:
    """Return the JWK Set that verifies the tokens of `mint`. Each process has its own key."""
    return {"keys": [_jwk()]}


def mint(claims: Mapping[str, Any] | None = None, *, issuer: str = "http://localhost:8000") -> str:
    """Return a signed access token without a service. `claims` replace those of a user."""
    now = int(time.time())
    default: dict[str, Any] = {
        "iss": issuer,
        "sub": str(uuid.uuid4()),
        "aud": "authenticated",
        "exp": now + 3600,
        "iat": now,
        "jti": str(uuid.uuid4()),
        "email": "user@example.com",
        "phone": "",
        "app_metadata": {"provider": "email", "providers": ["email"]},
        "user_metadata": {},
        "role": "authenticated",
        "is_anonymous": False,
        "session_id": str(uuid.uuid4()),
        "aal": "aal1",
        "amr": [{"method": "password", "timestamp": now}],
    }
    header = {"alg": "ES256", "kid": _jwk()["kid"], "typ": "JWT"}
    chosen = {name: value for name, value in (default | dict(claims or {})).items() if value is not None}
    signed = f"{_encoded(header)}.{_encoded(chosen)}"
    nonce, digest = (
        secrets.randbelow(_N - 1) + 1,
        int.from_bytes(hashlib.sha256(signed.encode()).digest(), "big"),
    )
    r = _times_generator(nonce)[0] % _N
    s = pow(nonce, -1, _N) * (digest + r * _private_key()) % _N
    return f"{signed}.{_encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"
