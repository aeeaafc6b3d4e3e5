"""The compact form of signed tokens of sessions and OAuth clients (RFC 7515)."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import jwt

from auth.core.tokens.signing_keys import Key

# RFC 7515, section 7.1. PyJWT also accepts "=", which would allow several spellings of a token.
FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
# Escaping would make metadata in most scripts two or three times as long.
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_JWS = jwt.PyJWS()
# The statements that serve a token check its times with the database's clock.
_OPTIONS: Any = {"require": ["exp", "iat", "iss", "aud", "sub"], "verify_exp": False, "verify_iat": False}


END_OF_CALENDAR = 253_402_300_800  # the first second of the year 10000, which Python has no date for


class InvalidAccessToken(Exception):
    """This service did not issue the token."""


def is_time(claim: object) -> bool:
    """Whether a claim is a time in Unix seconds. PyJWT would convert strings and floats."""
    return type(claim) is int and 0 <= claim < END_OF_CALENDAR


def sign(claims: Mapping[str, object], key: Key, type: str) -> str:
    headers = {"typ": type} | ({"kid": key.kid} if key.kid else {})
    return _JWS.encode(_JSON.encode(claims).encode(), key.signing_key, key.algorithm, headers)


def verify(
    token: str, find: Callable[[object, str | None], tuple[Key, str | None]], issuer: str
) -> dict[str, Any]:
    """Return the claims of a token, even if it has expired. Raises `InvalidAccessToken`.

    `find` returns the key for the header's `typ` and `kid`, and its audience if it has only one.
    """
    if not FORM.fullmatch(token):
        raise InvalidAccessToken("not a JWT")
    try:
        header = jwt.get_unverified_header(token)
        key, audience = find(header.get("typ"), header.get("kid"))
        options = _OPTIONS | {"verify_aud": audience is not None}
        expected: dict[str, Any] = {"algorithms": [key.algorithm], "audience": audience, "issuer": issuer}
        return jwt.decode(token, key.verifying_key, **expected, options=options)
    # PyJWT does not catch the UnicodeError of a lone surrogate.
    except (jwt.InvalidTokenError, UnicodeError) as error:
        raise InvalidAccessToken(str(error)) from error


def key_id(token: str) -> str | None:
    """Return the unverified `kid` of a well-formed token."""
    kid: str | None = jwt.get_unverified_header(token).get("kid")
    return kid
