"""Which of our tokens an API or an application accepts that verifies them by PyJWT or Authlib: exactly its own."""

import time
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

from tests.conftest import BASE_URL
from tests.support.api_keys import make_key, token_of
from tests.support.factors import set_up
from tests.support.openid import (
    GRANT_TYPES,
    REDIRECT_URI,
    RESOURCE,
    USERINFO,
    claims_of,
    granted_code,
    make_client,
)

NONCE = "a nonce"
ALL = "openid profile email phone groups roles"
OTHER_RESOURCE = "https://other.example.com/"
# Others verify by public keys.
REFUSALS = (jwt.PyJWTError, AuthlibBaseError, JoseError, KeyError, ValueError)
ALGORITHMS = ["ES256", "RS256"]


@pytest.fixture
def client(make_app):
    return make_app(AUTH_API_KEYS="true").test_client()


@pytest.fixture
def notes(database):
    """The application whose ID token is `id token`."""
    return make_client(database, name="Notes", resources=[RESOURCE])


@pytest.fixture
def tokens(client, database, parts, alice, notes) -> dict[str, str]:
    """A token of each kind, by its name."""
    first = alice.open_session(client=client)
    _key_id, key = make_key(first)
    of_key = token_of(client, key)
    _app, session = set_up(first)
    other = make_client(
        database,
        name="Other",
        grant_types=[*GRANT_TYPES, "client_credentials"],
        scopes=["read"],
        resources=[RESOURCE],
    )

    def redeem(application: Any, **columns: Any) -> Any:
        code = granted_code(database, application, session, ALL, **columns)
        return application.redeem(client, code, redirect_uri=REDIRECT_URI).json

    given, named = redeem(notes, nonce=NONCE), redeem(notes, resource=RESOURCE)
    of_other, elsewhere = redeem(other, nonce=NONCE), redeem(other, resource=OTHER_RESOURCE)
    ask = {"grant_type": "client_credentials"}
    logout = {name: claims_of(given["id_token"])[name] for name in ("sub", "aud", "sid")}
    return {
        "session": session.access_token,
        "second step": alice.sign_in(client=client).access_token,
        "API key": of_key,
        "client": given["access_token"],
        "client, with resource": named["access_token"],
        "another client": of_other["access_token"],
        "another client, elsewhere": elsewhere["access_token"],
        "client_credentials": other.post(client, "/oauth/token", **ask).json["access_token"],
        "client_credentials, with resource": other.post(
            client, "/oauth/token", **ask, resource=RESOURCE
        ).json["access_token"],
        "id token": given["id_token"],
        "id token of another client": of_other["id_token"],
        "logout token": parts.client_tokens.logout_token(
            logout, issued_at=int(time.time()), algorithm="RS256"
        ),
    }


def pyjwt(jwks: Any, audience: str, nonce: str | None) -> Callable[[str], None]:
    def verify(token: str) -> None:
        key = jwt.PyJWKSet.from_dict(jwks)[jwt.get_unverified_header(token)["kid"]]
        claims = jwt.decode(token, key, algorithms=ALGORITHMS, audience=audience, issuer=BASE_URL)
        if nonce and claims.get("nonce") != nonce:
            raise jwt.InvalidTokenError("nonce")

    return verify


def authlib(jwks: Any, audience: str, nonce: str | None) -> Callable[[str], None]:
    """As an application reads ID tokens, or an API access tokens of applications (RFC 9068)."""

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
        "userinfo": {"audience": USERINFO, "own": {"client", "another client", "client_credentials"}},
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
