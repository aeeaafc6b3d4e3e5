"""Which of our tokens an API or an application accepts that verifies them by PyJWT: exactly its own.

tests/system/interop/test_tokens_elsewhere.py has other libraries.
"""

from typing import Any

import jwt
import pytest

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


@pytest.fixture
def client(make_app):
    return make_app(**SETTINGS).test_client()


@pytest.fixture
def notes(database):
    return make_notes(database)


@pytest.fixture
def tokens(client, database, alice, notes) -> dict[str, str]:
    return token_of_each_kind(client, database, alice, notes)


def accepts(jwks: Any, token: str, audience: str, nonce: str | None = None) -> bool:
    try:
        key = jwt.PyJWKSet.from_dict(jwks)[jwt.get_unverified_header(token)["kid"]]
        algorithms = ["ES256", "RS256"]
        claims = jwt.decode(token, key, algorithms=algorithms, audience=audience, issuer=BASE_URL)
    # The key of the token is not public.
    except (jwt.PyJWTError, KeyError):
        return False
    return nonce is None or claims.get("nonce") == nonce


def test_each_audience_accepts_exactly_its_own_tokens(client, tokens, notes):
    jwks = client.get("/.well-known/jwks.json").json
    names_of_audience: dict[tuple[str, ...], set[str]] = {
        (RESOURCE,): {"client, with resource", "client_credentials, with resource"},
        (OTHER_RESOURCE,): {"another client, elsewhere"},
        (USERINFO,): FOR_USERINFO,
        (notes.id, NONCE): {"id token"},
        ("authenticated",): {"session", "API key"},
    }
    for audience, names in names_of_audience.items():
        assert {name for name, token in tokens.items() if accepts(jwks, token, *audience)} == names, audience
