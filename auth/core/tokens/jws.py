"""The compact form of signed tokens of sessions and OAuth clients (RFC 7515)."""

import base64
import json
import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import jwt

from auth.core.tokens.signing_keys import Key

# RFC 7515, section 7.1. PyJWT also accepts "=", which would allow several spellings of a token.
FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
# Escaping would make metadata in most scripts two or three times as long.
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_JWS = jwt.PyJWS()
_REQUIRED = ("exp", "iat", "iss", "aud", "sub")

END_OF_CALENDAR = 253_402_300_800  # the first second of the year 10000, which Python has no date for


class InvalidAccessToken(Exception):
    """This service did not issue the token."""


class Header(NamedTuple):
    """The header of a token whose signature is not verified yet."""

    type: object
    kid: str | None
    algorithm: object


def is_time(claim: object) -> bool:
    """Whether a claim is a time in Unix seconds, neither a string nor a float."""
    return type(claim) is int and 0 <= claim < END_OF_CALENDAR


def sign(claims: Mapping[str, object], key: Key, type: str) -> str:
    headers = {"typ": type} | ({"kid": key.kid} if key.kid else {})
    return _JWS.encode(_JSON.encode(claims).encode(), key.signing_key, key.algorithm, headers)


def header_of(token: str) -> Header:
    """Return the unverified header of a token. Raises `InvalidAccessToken`."""
    if not FORM.fullmatch(token):
        raise InvalidAccessToken("not a JWT")
    header = object_in(token.partition(".")[0])
    # No token of ours has an extension (RFC 7515, section 4.1.11, and RFC 7797).
    if "crit" in header or header.get("b64", True) is False:
        raise InvalidAccessToken("with an extension")
    if not isinstance(header.get("kid", ""), str):
        raise InvalidAccessToken("the kid is malformed")
    return Header(header.get("typ"), header.get("kid"), header.get("alg"))


def verify(token: str, header: Header, key: Key, issuer: str, audience: str | None = None) -> dict[str, Any]:
    """Return the claims of a token, even if it has expired. Raises `InvalidAccessToken`.

    Without an `audience`, any will do. The statements that serve a token check `exp` and `iat` with the
    database's clock.
    """
    claims = signed_claims(token, header, key)
    if any(claims.get(name) is None for name in _REQUIRED):
        raise InvalidAccessToken("a claim is missing")
    if claims["iss"] != issuer or not (audience is None or _is_for(claims["aud"], audience)):
        raise InvalidAccessToken("of another issuer, or for another audience")
    if not all(isinstance(claims.get(name, ""), str) for name in ("sub", "jti")):
        raise InvalidAccessToken("a claim is malformed")
    try:
        is_early = int(claims.get("nbf", 0)) > time.time()
    except (TypeError, ValueError, OverflowError):
        raise InvalidAccessToken("a claim is malformed") from None
    if is_early:
        raise InvalidAccessToken("not yet valid")
    return claims


def signed_claims(token: str, header: Header, key: Key) -> dict[str, Any]:
    """Return the claims, not yet checked, of a token that the key has signed. Raises `InvalidAccessToken`.

    `jwt.decode` would look at each character of the token in Python, which takes as long as the signature.
    """
    if header.algorithm != key.algorithm:
        raise InvalidAccessToken("of another algorithm")
    signing_input, _, signature = token.rpartition(".")
    algorithm = jwt.get_algorithm_by_name(key.algorithm)
    verifying_key = algorithm.prepare_key(key.verifying_key)
    if not algorithm.verify(signing_input.encode(), verifying_key, _decode(signature)):
        raise InvalidAccessToken("of another key")
    return object_in(signing_input.partition(".")[2])


def _is_for(audiences: object, audience: str) -> bool:
    listed = audiences if isinstance(audiences, list) else [audiences]
    return audience in listed and all(isinstance(each, str) for each in listed)


def object_in(segment: str) -> dict[str, Any]:
    """Return the JSON object in a part of a token. Raises `InvalidAccessToken`."""
    try:
        parsed = json.loads(_decode(segment))
    except (ValueError, RecursionError) as error:
        raise InvalidAccessToken("not JSON") from error
    if not isinstance(parsed, dict):
        raise InvalidAccessToken("not a JSON object")
    return parsed


def _decode(segment: str) -> bytes:
    """Decode base64url, unless unused bits are set (RFC 4648, section 3.5). Raises `InvalidAccessToken`."""
    try:
        decoded = base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    except ValueError as error:
        raise InvalidAccessToken("not base64url") from error
    if base64.urlsafe_b64encode(decoded).rstrip(b"=") != segment.encode():
        raise InvalidAccessToken("not canonical base64url")
    return decoded
