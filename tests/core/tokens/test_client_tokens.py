"""Tokens of OAuth clients, and the RSA keys of ID tokens."""

import dataclasses
import json
import time
import uuid

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jwt as joserfc
from joserfc.jwk import KeySet

from auth.core.keys import openid_keys
from auth.core.keys.openid_keys import OpenIdKeys
from auth.core.tokens.derived_keys import Sealer
from auth.core.tokens.jws import InvalidAccessToken
from tests.core.tokens.test_access_tokens import encode, hmac_signed, private_jwk
from tests.support.cases import cases
from tests.support.environment import BASE_URL, secret
from tests.support.server import at_once

CLIENT, USER = str(uuid.uuid4()), str(uuid.uuid4())
CLAIMS = {"sub": USER, "aud": CLIENT, "client_id": CLIENT, "scope": "openid email", "session_id": USER}


def issue(parts, **changes):
    """Return a client's access token with changes; None removes a claim."""
    claims = {name: value for name, value in (CLAIMS | changes).items() if value is not None}
    return parts.client_tokens.issue(claims, issued_at=int(time.time()), lifetime=60)


def id_token(parts, algorithm="RS256", **claims):
    all_claims = {"sub": USER, "aud": CLIENT, "auth_time": 1, **claims}
    return parts.client_tokens.id_token(all_claims, issued_at=int(time.time()), algorithm=algorithm)


def assert_refused(read, *tokens):
    for token in tokens:
        with pytest.raises(InvalidAccessToken):
            read(token)


def header_of(token):
    return jwt.get_unverified_header(token)


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
@pytest.mark.parametrize(
    ("settings", "algorithms"),
    [
        ({}, ("ES256", "RS256", "ES256")),
        ({"AUTH_JWT_SECRET": secret("jwt")}, ("RS256", "RS256", "RS256")),
        (
            {"AUTH_JWT_KEYS": json.dumps([private_jwk("EdDSA", kid="ed")])},
            ("EdDSA", "RS256", "RS256"),
        ),
        (
            {"AUTH_JWT_KEYS": json.dumps([private_jwk("RS256", kid="rsa")])},
            ("RS256", "RS256", "RS256"),
        ),
    ],
    ids=["ES256", "shared secret", "EdDSA", "RS256"],
)
def test_published_keys_verify_tokens_of_clients(make_app, settings, algorithms):
    """A shared secret, which services have, signs no token of a client."""
    app = make_app(**settings)
    parts = app.extensions["latchkey"]
    tokens = [issue(parts), id_token(parts), id_token(parts, "ES256")]
    assert tuple(header_of(token)["alg"] for token in tokens) == algorithms
    assert [header_of(token)["typ"] for token in tokens] == ["at+jwt", "JWT", "JWT"]
    keys = KeySet.import_key_set(app.test_client().get("/.well-known/jwks.json").json)
    for token in tokens:
        claims = joserfc.decode(token, keys, algorithms=[*algorithms]).claims
        assert (claims["iss"], claims["sub"], claims["aud"]) == (BASE_URL, USER, CLIENT)
    assert parts.client_tokens.verify(tokens[0]).scopes == ("openid", "email")
    assert [parts.client_tokens.read_hint(token)["sub"] for token in tokens[1:]] == [USER, USER]
    assert parts.client_tokens.id_token_algorithms() == sorted({"RS256", algorithms[2]}, reverse=True)


class TestOtherTokens:
    def test_each_kind_is_refused_where_another_is_expected(self, parts, alice):
        session_token, client_token, hint = alice.open_session().access_token, issue(parts), id_token(parts)
        assert_refused(parts.client_tokens.verify, session_token, hint)
        assert_refused(
            parts.client_tokens.read_hint, session_token, client_token, id_token(parts, session_id=USER)
        )
        assert_refused(parts.access_tokens.verify, client_token, hint)

    def test_forged_and_altered_tokens_are_refused(self, parts):
        parts.openid_keys.make_first()
        keys = [*parts.access_tokens.keys, *parts.openid_keys.all()]
        for token, read in (
            (issue(parts), parts.client_tokens.verify),
            (id_token(parts), parts.client_tokens.read_hint),
        ):
            assert read(token)
            header, (_, payload, signature) = header_of(token), token.split(".")
            unsigned = [encode(header | {"alg": alg}) for alg in ("none", "None", "")]
            forged = [f"{none}.{payload}.{end}" for none in unsigned for end in ("", signature)]
            for key in keys:
                pem = key.verifying_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
                key_header = header | {"kid": key.kid, "alg": key.algorithm}
                forged += [
                    hmac_signed(key_header | {"alg": "HS256"}, payload, material) for material in (pem, b"")
                ]
                other = jwt.PyJWK(private_jwk(key.algorithm), key.algorithm).key
                claims = jwt.decode(token, options={"verify_signature": False})
                forged.append(jwt.encode(claims, other, key.algorithm, key_header))
                if key.kid != header["kid"]:
                    forged.append(f"{encode(key_header)}.{payload}.{signature}")
            forged += [f"{encode(header | {'kid': kid})}.{payload}.{signature}" for kid in ("", "x", None, 1)]
            forged += [f"{encode(header)}.{encode(claims | {'sub': CLIENT})}.{signature}"]
            forged += ["", "..", "x.y.z", token + "=", f" {token}", token + ".x"]
            assert_refused(read, *forged)

    @cases(
        ("changes", "typ"),
        [
            *(({}, typ) for typ in ("JWT", "application/at+jwt", "AT+JWT", "", None, 1)),
            *(({name: None}, "at+jwt") for name in ("client_id", "scope")),
            *(({name: "x"}, "at+jwt") for name in ("iss", "client_id", "sub", "session_id")),
            *(({"exp": time}, "at+jwt") for time in (253_402_300_800, 10**18, -1, 4e9)),
        ],
    )
    def test_token_of_another_type_or_with_other_claims_is_refused(self, parts, changes, typ):
        key = parts.access_tokens.keys[0]
        claims = jwt.decode(issue(parts), options={"verify_signature": False}) | changes
        payload = {name: value for name, value in claims.items() if value is not None}
        token = jwt.encode(payload, key.signing_key, key.algorithm, {"typ": typ, "kid": key.kid})
        assert_refused(parts.client_tokens.verify, token)


@pytest.mark.usefixtures("no_openid_keys")
class TestKeys:
    @pytest.fixture
    def worker(self, parts):
        """Make the keys of another process."""
        return lambda: OpenIdKeys(parts.db, parts.sealer)

    def test_simultaneous_workers_make_one_key(self, worker, database, monkeypatch):
        """No worker generates a key in vain, which takes a tenth of a second."""
        new_row, rows = openid_keys.new_row, []

        def generate(sealer):
            rows.append(new_row(sealer))
            return rows[-1]

        monkeypatch.setattr(openid_keys, "new_row", generate)
        workers = [worker() for _ in range(8)]
        kids = at_once(8, lambda number: workers[number].make_first()[0].kid)
        assert len(set(kids)) == database.count("openid_keys") == len(rows) == 1

    @pytest.mark.parametrize("settings", [{}, {"AUTH_JWT_SECRET": secret("jwt")}], ids=["session", "openid"])
    def test_token_is_refused_once_its_key_is_removed_even_if_cached(self, make_app, settings, database):
        parts = make_app(fresh=True, **settings).extensions["latchkey"]
        token = issue(parts)
        assert parts.client_tokens.verify(token) == parts.client_tokens.verify(token)
        if settings:
            database.run("DELETE FROM openid_keys")
            parts.openid_keys._read_at = None
        else:
            jwks = json.dumps([private_jwk("ES256", kid=header_of(token)["kid"])])
            parts.access_tokens.use(dataclasses.replace(parts.settings, jwt_keys=jwks))
        assert_refused(parts.client_tokens.verify, token)

    def test_key_that_cannot_be_opened_is_left_out_and_replaced(self, parts, worker, database, capfd):
        (lost,) = OpenIdKeys(parts.db, Sealer(["a lost secret key"])).make_first()
        keys = worker()
        assert keys.published() == []
        (key,) = keys.make_first()
        assert (key.kid != lost.kid, database.count("openid_keys")) == (True, 2)
        assert [key.kid for key in keys.published()] == [key.kid]
        assert "openid_key_not_opened" in capfd.readouterr().err

    def test_sealed_key_in_another_row_is_not_used(self, parts, worker, database):
        worker().make_first()
        database.run("UPDATE openid_keys SET id = 'another'")
        assert worker().all() == []

    def test_keys_are_sealed(self, worker, database):
        (key,) = worker().make_first()
        sealed = bytes(database.value("SELECT sealed FROM openid_keys"))
        assert key.kid.encode() not in sealed
        assert b'"d"' not in sealed
