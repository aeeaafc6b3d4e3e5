"""The compact form of tokens, against PyJWT, which reads whole tokens more slowly."""

import base64
import json
import math
import random
import time
from typing import Any

import jwt
import pytest

from auth.core.tokens import jws
from auth.core.tokens.jws import InvalidAccessToken
from auth.core.tokens.signing_keys import ALGORITHMS, Key, new_jwk, parse_jwk_set
from tests.support.cases import cases

ISSUER, AUDIENCE = "https://auth.example.com", "authenticated"
REQUIRED = ["exp", "iat", "iss", "aud", "sub"]
CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": 4_102_444_800, "iat": 1, "jti": "x"}
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@pytest.fixture(scope="module")
def keys() -> dict[str, Key]:
    """A key of each algorithm."""
    jwks = [new_jwk(algorithm) for algorithm in ALGORITHMS]
    return {key.algorithm: key for key in parse_jwk_set(json.dumps({"keys": jwks}))}


def encode(part: object) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def signed(key: Key, header: object, payload: object) -> str:
    """Return a token whose signature is right, whatever its parts are."""
    signing_input = f"{encode(header)}.{encode(payload)}"
    algorithm = jwt.get_algorithm_by_name(key.algorithm)
    signature = algorithm.sign(signing_input.encode(), algorithm.prepare_key(key.signing_key))
    return f"{signing_input}.{encode(signature)}"


def header_for(key: Key, **changes: object) -> dict[str, object]:
    return {"alg": key.algorithm, "kid": key.kid, "typ": "JWT"} | changes


def read(token: str, key: Key, audience: str | None = AUDIENCE) -> dict | None:
    """Return the claims, or None if the token is refused."""
    try:
        return jws.verify(token, jws.header_of(token), key, ISSUER, audience)
    except InvalidAccessToken:
        return None


def read_by_pyjwt(token: str, key: Key, audience: str | None = AUDIENCE) -> dict | None:
    unchecked: Any = {"verify_exp": False, "verify_iat": False, "verify_aud": audience is not None}
    try:
        return jwt.decode(
            token,
            key.verifying_key,
            algorithms=[key.algorithm],
            audience=audience,
            issuer=ISSUER,
            options={"require": REQUIRED, **unchecked},
        )
    except (jwt.InvalidTokenError, UnicodeError):
        return None


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_token_is_read_as_pyjwt_reads_it_however_one_character_changes(keys, algorithm):
    key = keys[algorithm]
    token = jws.sign(CLAIMS, key, "JWT")
    assert read(token, key) == read_by_pyjwt(token, key) == CLAIMS
    chance = random.Random(algorithm)
    places = [*chance.sample(range(len(token)), 40), *range(len(token) - 3, len(token))]
    for place in places:
        for letter in chance.sample(f"{_ALPHABET}.=+/ \n", 12):
            changed = token[:place] + letter + token[place + 1 :]
            # PyJWT also accepts "=" at the end.
            expected = None if "=" in changed else read_by_pyjwt(changed, key)
            assert read(changed, key) == expected, changed


@pytest.mark.parametrize("algorithm", ["ES256", "HS256"])
def test_signature_of_another_key_or_algorithm_is_refused(keys, algorithm):
    key, other = keys[algorithm], parse_jwk_set(json.dumps({"keys": [new_jwk(algorithm)]}))[0]
    assert read(jws.sign(CLAIMS, other, "JWT"), key) is None
    for another in keys.values():
        if another is not key:
            header = header_for(another, kid=key.kid)
            assert read(signed(another, header, CLAIMS), key) is None
            # The header names the key's algorithm; the signature is another's.
            assert read(signed(another, header_for(key), CLAIMS), key) is None


@cases(
    "header",
    [
        *({"alg": alg} for alg in ("none", "NONE", "", None, 1, ["ES256"], "HS256", "es256")),
        *({"crit": crit} for crit in (["b64"], ["exp"], [], "exp", None)),
        {"b64": False},
        {"b64": False, "crit": ["b64"]},
        *({"kid": kid} for kid in (1, None, ["x"], {"x": 1})),
    ],
)
def test_token_with_such_a_header_is_refused_although_its_signature_is_right(keys, header):
    key = keys["ES256"]
    token = signed(key, header_for(key, **header), CLAIMS)
    assert read(token, key) is None
    assert read_by_pyjwt(token, key) is None


def test_header_that_says_that_the_payload_is_encoded_is_read(keys):
    token = signed(keys["ES256"], header_for(keys["ES256"], b64=True), CLAIMS)
    assert read(token, keys["ES256"]) == read_by_pyjwt(token, keys["ES256"]) == CLAIMS


@cases("part", [b"null", b"[]", b'"x"', b"", b"{", b"\xff", b"[" * 20_000, b'{"a":' * 20_000, b'{"a": 1}x'])
def test_token_whose_header_or_payload_is_no_object_is_refused(keys, part):
    key = keys["ES256"]
    for token in (signed(key, part, CLAIMS), signed(key, header_for(key), part)):
        assert read(token, key) is None
        assert read_by_pyjwt(token, key) is None


@cases(
    ("name", "values"),
    [
        ("iss", (None, "", ISSUER + "/", 1, [ISSUER], {"x": 1})),
        (
            "aud",
            (None, "", [], {}, 1, "other", ["other"], [AUDIENCE, "other"], [AUDIENCE, 1], [None, AUDIENCE]),
        ),
        ("sub", (None, "", 1, [], "bob")),
        ("jti", (None, "", 1, [], "y")),
        ("exp", (None, 0, "soon", 1.5)),
        ("iat", (None, 0, "soon", 1e300)),
        ("nbf", (None, 0, 1.5, "1", "soon", [], 10**400, math.inf, math.nan, -1, 4_102_444_800, True)),
    ],
)
def test_claim_is_accepted_or_refused_as_by_pyjwt(keys, name, values):
    """The views check the times that PyJWT was told to leave alone."""
    key = keys["ES256"]
    for value in values:
        token = signed(key, header_for(key), CLAIMS | {name: value})
        for audience in (AUDIENCE, None):
            assert read(token, key, audience) == read_by_pyjwt(token, key, audience), (value, audience)
    without = {each: value for each, value in CLAIMS.items() if each != name}
    token = signed(key, header_for(key), without)
    assert read(token, key) == read_by_pyjwt(token, key)


def test_token_is_refused_before_its_nbf_and_accepted_from_then_on(keys):
    key, now = keys["ES256"], int(time.time())
    assert read(jws.sign(CLAIMS | {"nbf": now + 60}, key, "JWT"), key) is None
    assert read(jws.sign(CLAIMS | {"nbf": now}, key, "JWT"), key) is not None


def test_token_has_one_spelling(keys):
    """The last character of a signature of 64 bytes has four bits that decode to nothing."""
    key = keys["ES256"]
    token = jws.sign(CLAIMS, key, "JWT")
    spellings = [token[:-1] + letter for letter in _ALPHABET]
    assert [each for each in spellings if read(each, key)] == [token]
    for other in (
        f"{token}=",
        f"{token}==",
        f" {token}",
        f"{token} ",
        f"{token}\n",
        token.replace(".", "..", 1),
    ):
        assert read(other, key) is None
