"""Access tokens verify with the issuer and the audience as the only claims to configure.

tests/system/interop has go-oidc and golang-jwt, tests/system/examples PyJWT, jose and Spring Security.
"""

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from tests.support.cases import cases
from tests.support.environment import BASE_URL


def by_joserfc(token, keys, expected):
    verified = jwt.decode(token, KeySet.import_key_set(keys), algorithms=["ES256"])
    jwt.JWTClaimsRegistry(**expected).validate(verified.claims)
    return verified.claims


def by_authlib(token, keys, expected):
    # Deprecated for joserfc, so the import warns.
    from authlib.jose import JsonWebKey, JsonWebToken

    claims = JsonWebToken(["ES256"]).decode(token, JsonWebKey.import_key_set(keys), claims_options=expected)
    claims.validate()
    return claims


@pytest.mark.filterwarnings("ignore:authlib.jose module is deprecated")
@cases("verify", [by_joserfc, by_authlib])
def test_library_verifies_a_token_by_issuer_and_audience(client, alice, verify):
    session = alice.open_session()
    keys = client.get("/.well-known/jwks.json").json
    expected = {
        "iss": {"essential": True, "value": BASE_URL},
        "aud": {"essential": True, "value": "authenticated"},
    }
    assert verify(session.access_token, keys, expected) == session.claims
    for claim in expected:
        other = expected | {claim: {"essential": True, "value": "another"}}
        with pytest.raises(Exception, match=claim):
            verify(session.access_token, keys, other)
