"""The compact form of signed tokens of sessions and OAuth clients (RFC 7515)."""

import base64
import functools
import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jwt

from auth.core.tokens.signing_keys import Key

# RFC 7515, section 7.1. PyJWT also accepts "=", which would allow several spellings of a token.
FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
# Escaping would make metadata in most scripts two or three times as long.
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_JWS = jwt.PyJWS()
# RFC 7515, section 4.1.11, and RFC 7797: extensions, of which no token of ours has any.
_EXTENSIONS = {"crit", "b64"}
_HEADERS = 64  # parsed headers that a process caches; a key's tokens of one type have the same
_REQUIRED = ("exp", "iat", "iss", "aud", "sub")

END_OF_CALENDAR = 253_402_300_800  # the first second of the year 10000, which Python has no date for


class InvalidAccessToken(Exception):
    """This service did not issue the token."""


class Header(NamedTuple):
    """What a token says of itself, before its signature is verified."""

    type: object
    kid: str | None
    algorithm: object


def is_time(claim: object) -> bool:
    """Whether a claim is a time in Unix seconds, neither a string nor a float."""
    return type(claim) is int and 0 <= claim < END_OF_CALENDAR


def sign(claims: Mapping[str, object], key: Key, type: str) -> str:
    headers = {"typ": type} | ({"kid": key.kid} if key.kid else {})
    return _JWS.encode(_JSON.encode(claims).encode(), key.signing_key, key.algorithm, headers)


def verify(
    token: str, find: Callable[[object, str | None], tuple[Key, str | None]], issuer: str
) -> dict[str, Any]:
    """Return the claims of a token, even if it has expired. Raises `InvalidAccessToken`.

    `find` returns the key for the header's `typ` and `kid`, and its audience if it has only one. The
    statements that serve a token check its times with the database's clock.
    """
    header = header_of(token)
    key, audience = find(header.type, header.kid)
    claims = signed_claims(token, key)
    if any(claims.get(name) is None for name in _REQUIRED):
        raise InvalidAccessToken("a claim is missing")
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    if claims["iss"] != issuer or (audience is not None and audience not in audiences):
        raise InvalidAccessToken("of another issuer, or for another audience")
    if not all(isinstance(claims.get(name, ""), str) for name in ("sub", "jti")):
        raise InvalidAccessToken("a claim is malformed")
    try:
        if int(claims.get("nbf", 0)) > time.time():
            raise InvalidAccessToken("not yet valid")
    except (TypeError, ValueError, OverflowError):
        raise InvalidAccessToken("a claim is malformed") from None
    return claims


def header_of(token: str) -> Header:
    """Return the unverified header of a token. Raises `InvalidAccessToken`."""
    if not FORM.fullmatch(token):
        raise InvalidAccessToken("not a JWT")
    return _parse_header(token.partition(".")[0])


def signed_claims(token: str, key: Key) -> dict[str, Any]:
    """Return the claims, not yet checked, of a token that the key has signed. Raises `InvalidAccessToken`.

    `jwt.decode` would look at each character of the token in Python, which takes as long as the signature.
    """
    if header_of(token).algorithm != key.algorithm:
        raise InvalidAccessToken("of another algorithm")
    signing_input, _, signature = token.rpartition(".")
    algorithm = jwt.get_algorithm_by_name(key.algorithm)
    verifying_key = algorithm.prepare_key(key.verifying_key)
    try:
        if not algorithm.verify(signing_input.encode(), verifying_key, _decode(signature)):
            raise InvalidAccessToken("of another key")
        claims = json.loads(_decode(signing_input.partition(".")[2]))
    except (ValueError, RecursionError) as error:
        raise InvalidAccessToken("malformed") from error
    if not isinstance(claims, dict):
        raise InvalidAccessToken("malformed")
    return claims


# Exceptions are not cached.
@functools.lru_cache(maxsize=_HEADERS)
def _parse_header(segment: str) -> Header:
    try:
        header = jwt.get_unverified_header(f"{segment}..")
    # PyJWT does not catch the UnicodeError of a lone surrogate.
    except (jwt.InvalidTokenError, UnicodeError) as error:
        raise InvalidAccessToken(str(error)) from error
    if not _EXTENSIONS.isdisjoint(header):
        raise InvalidAccessToken("with an extension")
    return Header(header.get("typ"), header.get("kid"), header.get("alg"))


def _decode(segment: str) -> bytes:
    """Decode base64url. Raises `ValueError`, also for a segment whose unused bits are set (RFC 4648, 3.5)."""
    decoded = base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    if base64.urlsafe_b64encode(decoded).rstrip(b"=") != segment.encode():
        raise ValueError("not canonical")
    return decoded
