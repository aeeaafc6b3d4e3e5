"""Access tokens (RFC 9068, RFC 8725). The only module that imports PyJWT.

The statement that serves a request checks expiry and session (SQL function `caller_state`).
"""

import base64
import functools
import hashlib
import json
import re
import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, HMACAlgorithm, OKPAlgorithm, RSAAlgorithm

from auth.tokens.keys import in_use, parse_time

TYPE = "at+jwt"
# RFC 7515, section 7.1. PyJWT would accept "=" too, which gives a token several spellings.
_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
ALGORITHMS = ("ES256", "EdDSA", "RS256", "HS256")
_LEAST_SECRET = 32  # bytes
# Roles that no user can have.
SERVICE_ROLES = ("service_role", "supabase_admin")
_BARE: Any = {f"verify_{name}": False for name in ("aud", "iss", "iat", "sub", "jti", "exp", "nbf")}
REMEMBERED = 2048  # verified tokens that a worker caches, mostly 1 KiB each, at most 24 KiB
# Escaping would make metadata in most scripts two or three times as long.
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_JWS = jwt.PyJWS()
_TIMES = ("iat", "exp")
_END_OF_CALENDAR = 253_402_300_800  # the first second of the year 10000
# In the order of RFC 7638, section 3.2.
_THUMBPRINT_MEMBERS = {"EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x"), "RSA": ("e", "kty", "n")}


class InvalidAccessToken(Exception):
    """This service has not issued the token."""


@dataclass(frozen=True)
class Caller:
    """The user, session and level of a verified access token, or of a browser that is signed in on our pages.

    `expires_at` is in Unix seconds, and None for a browser.
    """

    user_id: str
    session_id: str
    expires_at: int | None
    aal: str


@dataclass(frozen=True)
class ServiceRole:
    """The role of a verified token, and the key that made it. The times are Unix seconds."""

    role: str
    kid: str | None
    not_before: int | None
    expires_at: int | None


@dataclass(frozen=True)
class Key:
    """A key and its only algorithm (RFC 8725, section 3.1). `signing_key` is None if it only verifies.

    `is_preferred` if its `key_ops` name `sign`. A shared secret has no `public_jwk`. From `active_from` on
    (Unix seconds) the key signs.
    """

    algorithm: str
    kid: str | None
    signing_key: Any
    verifying_key: Any
    public_jwk: Mapping[str, str] | None
    is_preferred: bool = False
    active_from: float = 0.0


class AccessTokens:
    """With a `secret`, HS256 signs, and the keys of the JWK Set only verify. `lifetime` is in seconds."""

    def __init__(
        self, *, jwk_set: str, secret: str | None, issuer: str, audience: str, lifetime: int
    ) -> None:
        self._issuer = issuer
        self._audience = audience
        self.lifetime = lifetime
        self._source: tuple[str, str | None] | None = None
        self.use(jwk_set, secret)

    def use(self, jwk_set: str, secret: str | None) -> None:
        """Replace the keys, if they are others, and sign with the one whose time has come.

        Raises `ValueError`.
        """
        if (jwk_set, secret) != self._source:
            self._all_keys = all_keys(jwk_set, secret)
            self._source = (jwk_set, secret)
            self._keys = {key.kid: key for key in self._all_keys}
            self.jwks = {"keys": [key.public_jwk for key in self._all_keys if key.public_jwk]}
            # Without this cache GET /user takes 50 % longer. Exceptions are not cached.
            self.verify = functools.lru_cache(maxsize=REMEMBERED)(self._verify)
        self._signing_key = signing_key(self._all_keys)

    def issue(
        self, user: Mapping[str, Any], session_id: str, issued_at: int, aal: str, amr: Sequence[Any]
    ) -> str:
        """Return a token. `user` is a user object; the times are Unix seconds by the database's clock.

        `amr` lists the session's methods with their times.
        """
        claims = {
            "iss": self._issuer,
            "sub": user["id"],
            "aud": self._audience,
            "exp": issued_at + self.lifetime,
            "iat": issued_at,
            "jti": str(uuid.uuid4()),
            "email": user["email"] or "",
            "phone": user["phone"] or "",
            "app_metadata": user["app_metadata"],
            "user_metadata": user["user_metadata"],
            "role": user["role"],
            "session_id": session_id,
            "aal": aal,
            "amr": amr,
            "is_anonymous": user["is_anonymous"],
        }
        key = self._signing_key
        headers = {"typ": TYPE} | ({"kid": key.kid} if key.kid else {})
        return _JWS.encode(_JSON.encode(claims).encode(), key.signing_key, key.algorithm, headers)

    def _verify(self, token: str) -> Caller:
        claims = self.claims(token)
        try:
            # PyJWT would convert strings and floats.
            if not all(type(claims[name]) is int and 0 <= claims[name] < _END_OF_CALENDAR for name in _TIMES):
                raise ValueError
            user_id, session_id = (str(uuid.UUID(claims[name])) for name in ("sub", "session_id"))
            return Caller(user_id, session_id, claims["exp"], claims["aal"])
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise InvalidAccessToken("a claim is missing or malformed") from error

    def claims(self, token: str) -> dict[str, Any]:
        """Return the claims of a token, even if it has expired. Raises `InvalidAccessToken`."""
        if not _FORM.fullmatch(token):
            raise InvalidAccessToken("not a JWT")
        try:
            header = jwt.get_unverified_header(token)
            key = self._keys.get(header.get("kid"))
            if key is None:
                raise InvalidAccessToken("unknown kid")
            if header.get("typ") != TYPE:
                raise InvalidAccessToken("not an access token")
            return jwt.decode(
                token,
                key.verifying_key,
                algorithms=[key.algorithm],
                audience=self._audience,
                issuer=self._issuer,
                options={
                    "require": ["exp", "iat", "iss", "aud", "sub"],
                    # `caller_state` checks exp by the database's clock.
                    "verify_exp": False,
                    "verify_iat": False,
                },
            )
        # PyJWT does not catch the UnicodeError of a lone surrogate.
        except (jwt.InvalidTokenError, UnicodeError) as error:
            raise InvalidAccessToken(str(error)) from error

    def service_role(self, token: str) -> ServiceRole:
        """Return the service role of a token, even if it has expired. Raises `InvalidAccessToken`."""
        if not _FORM.fullmatch(token):
            raise InvalidAccessToken("not a JWT")
        try:
            kid = jwt.get_unverified_header(token).get("kid")
            key = self._keys.get(kid)
            # Other services may hold a secret to verify tokens, but not to administrate here.
            if key is None or not key.signing_key:
                raise InvalidAccessToken("not of a key that signs here")
            claims = jwt.decode(token, key.verifying_key, algorithms=[key.algorithm], options=_BARE)
        except (jwt.InvalidTokenError, UnicodeError, OverflowError) as error:
            raise InvalidAccessToken(str(error)) from error
        times = [claims.get(name) for name in ("nbf", "exp")]
        if not all(time is None or (type(time) is int and 0 <= time < _END_OF_CALENDAR) for time in times):
            raise InvalidAccessToken("a time is not an integer")
        if claims.get("role") not in SERVICE_ROLES:
            raise InvalidAccessToken("not of a service role")
        return ServiceRole(claims["role"], kid, *times)


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


def parse_jwk_set(text: str) -> list[Key]:
    """Parse JSON or the file at a path. Raises `OSError`, and `ValueError` that does not quote keys."""
    if not text.lstrip().startswith(("{", "[")):
        text = Path(text).read_text()
    try:
        parsed = json.loads(text)
        jwks = parsed if isinstance(parsed, list) else parsed["keys"]
        keys = [_parse_jwk(jwk) for jwk in jwks]
    except (KeyError, TypeError, AttributeError, ValueError, jwt.PyJWTError) as error:
        # PyJWT's messages quote the key.
        message = error.args[0] if isinstance(error, _JwkError) else "it is not a JWK Set"
        raise ValueError(message) from None
    if not keys or len({key.kid for key in keys}) < len(keys):
        raise ValueError("it has no key, or one kid twice")
    return keys


def can_sign(jwk_set: str) -> bool:
    return any(key.signing_key for key in parse_jwk_set(jwk_set))


def all_keys(jwk_set: str, secret: str | None) -> list[Key]:
    """Return the keys of the settings. A `secret` signs with HS256, until a key's `active_from` comes."""
    keys = parse_jwk_set(jwk_set) if jwk_set else []
    return [Key("HS256", None, secret, secret, None, is_preferred=True), *keys] if secret else keys


def signing_key(keys: Sequence[Key]) -> Key:
    """Return the key whose `active_from` came last; else the one that is meant to sign, or the first."""
    usable = [key for key in keys if key.signing_key]
    times = [key.active_from for key in usable]
    newest = times[in_use(times)]
    return max((key for key in usable if key.active_from == newest), key=lambda key: key.is_preferred)


def fingerprints(jwk_set: str) -> list[str]:
    """Return a digest of each public key or secret with its `kid`, under which other nodes look it up."""
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
