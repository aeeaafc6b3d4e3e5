"""Which of our tokens an API or an application accepts that verifies them by PyJWT or Authlib: exactly its own."""

from collections.abc import Callable
from typing import Any

import jwt
import pytest
from authlib.common.errors import AuthlibBaseError
from authlib.oauth2.rfc9068 import JWTBearerTokenValidator
from authlib.oidc.core import CodeIDToken
from joserfc import jwt as authlib_jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from tests.support.environment import BASE_URL
from tests.support.kinds_of_token import (
    FOR_USERINFO,
    NONCE,
    OTHER_RESOURCE,
    SETTINGS,
    make_notes,
    token_of_each_kind,
)
from tests.support.openid import RESOURCE, USERINFO

# Others verify by public keys.
REFUSALS = (jwt.PyJWTError, AuthlibBaseError, JoseError, KeyError, ValueError)
ALGORITHMS = ["ES256", "RS256"]


@pytest.fixture
def client(make_app):
    return make_app(**SETTINGS).test_client()


@pytest.fixture
def notes(database):
    return make_notes(database)


@pytest.fixture
def tokens(client, database, alice, notes) -> dict[str, str]:
    return token_of_each_kind(client, database, alice, notes)


def pyjwt(jwks: Any, audience: str, nonce: str | None) -> Callable[[str], None]:
    def verify(token: str) -> None:
        key = jwt.PyJWKSet.from_dict(jwks)[jwt.get_unverified_header(token)["kid"]]
        claims = jwt.decode(token, key, algorithms=ALGORITHMS, audience=audience, issuer=BASE_URL)
        if nonce and claims.get("nonce") != nonce:
            raise jwt.InvalidTokenError("nonce")

    return verify


def authlib(jwks: Any, audience: str, nonce: str | None) -> Callable[[str], None]:
    """Reads ID tokens like an application, or access tokens of applications like an API (RFC 9068)."""

    keys = KeySet.import_key_set(jwks)

    class Validator(JWTBearerTokenValidator):
        def get_jwks(self) -> Any:
            return keys

    def verify(token: str) -> None:
        if nonce:
            decoded = authlib_jwt.decode(token, keys, algorithms=ALGORITHMS)
            options = {"iss": {"values": [BASE_URL]}, "aud": {"value": audience}}
            CodeIDToken(decoded.claims, decoded.header, options, {"nonce": nonce}).validate()
        else:
            validator = Validator(issuer=BASE_URL, resource_server=audience)
            validator.validate_token(validator.authenticate_token(token), [], None)

    return verify


@pytest.mark.parametrize("library", [pyjwt, authlib])
def test_each_accepts_exactly_its_own(client, tokens, notes, library):
    jwks = client.get("/.well-known/jwks.json").json
    accepted: dict[str, dict[str, Any]] = {
        "an API of an application": {
            "audience": RESOURCE,
            "own": {"client, with resource", "client_credentials, with resource"},
        },
        "another API": {"audience": OTHER_RESOURCE, "own": {"another client, elsewhere"}},
        "userinfo": {"audience": USERINFO, "own": FOR_USERINFO},
        "the application": {"audience": notes.id, "nonce": NONCE, "own": {"id token"}},
    }
    if library is pyjwt:  # the tokens of sessions have no type of RFC 9068
        accepted["an API of users"] = {"audience": "authenticated", "own": {"session", "API key"}}
    for who, settings in accepted.items():
        verify, found = library(jwks, settings["audience"], settings.get("nonce")), set()
        for name, token in tokens.items():
            try:
                verify(token)
            except REFUSALS:
                continue
            found.add(name)
        assert found == settings["own"], who
