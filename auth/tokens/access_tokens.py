"""Access tokens: JWTs after RFC 9068, signed and verified with the best practice of RFC 8725.

The only module that sees PyJWT. Whether a token's session is alive, and whether its `exp` has passed on the
database's clock, is asked by the statement that does the request's work (SQL function `caller_state`), not
here.
"""

import base64
import functools
import hashlib
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

TYPE = "at+jwt"
# RFC 7515, section 7.1: three parts in base64url. PyJWT would let "=" pass, and give one token several
# spellings.
_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
ALGORITHMS = ("ES256", "EdDSA", "RS256")
# How many verified tokens a worker remembers: each takes its length, mostly 1 KiB and 24 KiB at most.
REMEMBERED = 2048
# In UTF-8 as it is: escaped, metadata in most of the world's scripts would make a token twice or thrice as
# long.
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_JWS = jwt.PyJWS()
# The first second that a Postgres timestamp of four digits for the year does not reach.
_END_OF_CALENDAR = 253_402_300_800
# RFC 7638, section 3.2: the members that make a key's thumbprint, in this order.
_THUMBPRINT_MEMBERS = {"EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x"), "RSA": ("e", "kty", "n")}


class InvalidAccessToken(Exception):
    """Not an access token that this service has issued."""


@dataclass(frozen=True)
class Caller:
    """Whom a verified access token speaks for; `expires_at` is in Unix seconds."""

    user_id: str
    session_id: str
    expires_at: int


@dataclass(frozen=True)
class Key:
    """A key with the one algorithm that it serves: a token can't choose another (RFC 8725, section 3.1)."""

    algorithm: str
    kid: str | None
    signing_key: Any
    verifying_key: Any
    public_jwk: Mapping[str, str] | None


class AccessTokens:
    """Issues and verifies the access tokens of one deployment.

    A secret signs with HS256 and goes before the keys of the JWK Set, which then only verify. `lifetime` is
    in seconds.
    """

    def __init__(
        self, *, jwk_set: str, secret: str | None, issuer: str, audience: str, lifetime: int
    ) -> None:
        self._issuer = issuer
        self._audience = audience
        self.lifetime = lifetime
        keys = parse_jwk_set(jwk_set) if jwk_set else []
        if secret:
            keys.insert(0, Key("HS256", None, secret, secret, None))
        self._signing_key = keys[0]
        self._keys = {key.kid: key for key in keys}
        self.jwks = {"keys": [key.public_jwk for key in keys if key.public_jwk]}
        # An elliptic signature costs more than the query behind it. Only success is remembered: a cache keeps
        # no exceptions.
        self.verify = functools.lru_cache(maxsize=REMEMBERED)(self._verify)

    def issue(
        self, user: Mapping[str, Any], session_id: str, method: str, issued_at: int, signed_in_at: int
    ) -> str:
        """Return a token for a session of `user` (a user object); the times are Unix seconds by the
        database's clock.
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
            "aal": "aal1",
            "amr": [{"method": method, "timestamp": signed_in_at}],
            "is_anonymous": False,
        }
        key = self._signing_key
        headers = {"typ": TYPE} | ({"kid": key.kid} if key.kid else {})
        return _JWS.encode(_JSON.encode(claims).encode(), key.signing_key, key.algorithm, headers)

    def _verify(self, token: str) -> Caller:
        """Return whom the token speaks for.

        Raises `InvalidAccessToken` when it is not ours: signature, algorithm, type, issuer, audience or form.
        """
        claims = self.claims(token)
        try:
            caller = Caller(
                str(uuid.UUID(claims["sub"])), str(uuid.UUID(claims["session_id"])), int(claims["exp"])
            )
            if not 0 <= caller.expires_at < _END_OF_CALENDAR:
                raise ValueError
            return caller
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
            raise InvalidAccessToken("a claim is missing or malformed") from error

    def claims(self, token: str) -> dict[str, Any]:
        """Return the claims of a token of ours, expired ones too. Raises `InvalidAccessToken`."""
        if not _FORM.fullmatch(token):
            raise InvalidAccessToken("not a JWT")
        try:
            header = jwt.get_unverified_header(token)
            key = self._keys.get(header.get("kid"))
            if key is None:
                raise InvalidAccessToken("unknown kid")
            # Anything else that this key may have signed is no access token.
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
                    # Both are times of the database's clock, which ours may differ from: `caller_state` looks
                    # at exp.
                    "verify_exp": False,
                    "verify_iat": False,
                },
            )
        # A lone surrogate in a token is a UnicodeError of its own, beside what PyJWT raises.
        except (jwt.InvalidTokenError, UnicodeError) as error:
            raise InvalidAccessToken(str(error)) from error


def new_jwk_set() -> str:
    """Return a JWK Set as JSON, with one new private ES256 key."""
    jwk = ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()), as_dict=True)
    return json.dumps({"keys": [jwk | {"kid": _thumbprint(jwk), "alg": "ES256", "use": "sig"}]})


def parse_jwk_set(text: str) -> list[Key]:
    """Read a JWK Set of private keys, given as JSON or as the path of a file.

    Raises `ValueError`, whose message never quotes a key, and `OSError`.
    """
    if not text.lstrip().startswith("{"):
        text = Path(text).read_text()
    try:
        jwks = json.loads(text)["keys"]
        keys = [_parse_jwk(jwk) for jwk in jwks]
    except (KeyError, TypeError, AttributeError, ValueError, jwt.PyJWTError) as error:
        # PyJWT's messages quote the key; the cause, which would print them, is left out too.
        message = error.args[0] if isinstance(error, _JwkError) else "it is not a JWK Set"
        raise ValueError(message) from None
    if not keys or len({key.kid for key in keys}) < len(keys):
        raise ValueError("it has no key, or one kid twice")
    return keys


class _JwkError(ValueError):
    pass


def _parse_jwk(jwk: dict[str, str]) -> Key:
    parsed = jwt.PyJWK.from_dict(jwk)
    if parsed.algorithm_name not in ALGORITHMS:
        raise _JwkError(f"a key's algorithm is not one of {', '.join(ALGORITHMS)}")
    if "d" not in jwk:
        raise _JwkError("a key is not private")
    if parsed.algorithm_name == "RS256" and parsed.key.key_size < 2048:
        raise _JwkError("an RSA key is shorter than 2048 bits")
    public_key = parsed.key.public_key()
    kid = jwk.get("kid") or _thumbprint(jwk)
    public = {member: jwk[member] for member in _THUMBPRINT_MEMBERS[jwk["kty"]]}
    public |= {"kid": kid, "alg": parsed.algorithm_name, "use": "sig"}
    return Key(parsed.algorithm_name, kid, parsed.key, public_key, public)


def _thumbprint(jwk: Mapping[str, str]) -> str:
    """RFC 7638: the hash of the key's public members alone."""
    members = {member: jwk[member] for member in _THUMBPRINT_MEMBERS[jwk["kty"]]}
    digest = hashlib.sha256(json.dumps(members, separators=(",", ":")).encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
