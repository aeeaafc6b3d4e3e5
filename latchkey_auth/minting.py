"""Access tokens for tests without a service. Needs the package `cryptography`."""

import base64
import functools
import json
import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_KEY_ID = "test"


@functools.cache
def _private_key() -> "EllipticCurvePrivateKey":
    # The rest of the plugin works without this package.
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _es256(text: str) -> str:
    """Sign as JWS does: the two numbers of the signature without DER (RFC 7518, section 3.4)."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, utils

    signature = _private_key().sign(text.encode(), ec.ECDSA(hashes.SHA256()))
    return _encoded(b"".join(number.to_bytes(32, "big") for number in utils.decode_dss_signature(signature)))


def jwks() -> dict[str, Any]:
    """Return the JWK Set that verifies the tokens of `mint`. Each process has its own key."""
    public = _private_key().public_key().public_numbers()
    x, y = (_encoded(number.to_bytes(32, "big")) for number in (public.x, public.y))
    key = {"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": _KEY_ID, "alg": "ES256", "use": "sig"}
    return {"keys": [key]}


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
    header = {"alg": "ES256", "kid": _KEY_ID, "typ": "JWT"}
    payload = {name: value for name, value in (default | dict(claims or {})).items() if value is not None}
    signed = ".".join(_encoded(json.dumps(part).encode()) for part in (header, payload))
    return f"{signed}.{_es256(signed)}"
