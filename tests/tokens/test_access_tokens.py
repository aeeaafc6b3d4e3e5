"""Access tokens: their claims, keys and verification."""

import base64
import hashlib
import hmac
import json

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from tests.conftest import BASE_URL
from tests.support.answers import A_UUID, ANYTHING, assert_error
from tests.support.cases import cases
from tests.support.cast import Session

HS_SECRET = "a shared secret of at least 32 bytes"


def private_jwk(kind, **members):
    """Return a new private JWK."""
    if kind == "ES256":
        return ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()), as_dict=True) | members
    if kind == "EdDSA":
        return OKPAlgorithm.to_jwk(ed25519.Ed25519PrivateKey.generate(), as_dict=True) | members
    return RSAAlgorithm.to_jwk(rsa.generate_private_key(65537, 2048), as_dict=True) | members


def encode(part):
    return (
        base64.urlsafe_b64encode(part if isinstance(part, bytes) else json.dumps(part).encode())
        .rstrip(b"=")
        .decode()
    )


def get_user(client, token):
    return client.get("/user", headers={"Authorization": f"Bearer {token}"})


@pytest.fixture
def signing_jwk(state_dir, app):
    """The private key that the application has generated."""
    return json.loads((state_dir / "jwt_keys.json").read_text())["keys"][0]


@pytest.fixture
def session(alice):
    return alice.open_session()


@pytest.fixture
def mint(session, signing_jwk):
    """Sign the claims of a genuine token with changes; None removes a claim or header."""

    def mint(headers=None, key=None, algorithm="ES256", **changes):
        claims = {name: value for name, value in (session.claims | changes).items() if value is not None}
        header = {"typ": "at+jwt", "kid": signing_jwk["kid"]} | (headers or {})
        return jwt.encode(claims, key or jwt.PyJWK(signing_jwk, "ES256").key, algorithm, header)

    return mint


class TestClaims:
    def test_claims_are_those_of_the_specification_and_rfc_9068(self, session, alice):
        issued_at = session.claims["iat"]
        assert session.claims == {
            "iss": BASE_URL,
            "sub": alice.id,
            "aud": "authenticated",
            "exp": issued_at + 3600,
            "iat": issued_at,
            "jti": A_UUID,
            "email": alice.email,
            "phone": "",
            "app_metadata": {"provider": "email", "providers": ["email"]},
            "user_metadata": {},
            "role": "authenticated",
            "session_id": A_UUID,
            "aal": "aal1",
            "amr": [{"method": "password", "timestamp": issued_at}],
            "is_anonymous": False,
        }

    def test_header_names_type_key_and_algorithm(self, session, signing_jwk):
        assert jwt.get_unverified_header(session.access_token) == {
            "typ": "at+jwt",
            "alg": "ES256",
            "kid": signing_jwk["kid"],
        }

    def test_times_are_whole_seconds_of_the_database_and_never_in_the_future(self, alice, database):
        for _ in range(10):
            issued_at = alice.sign_in().claims["iat"]
            assert isinstance(issued_at, int)
            assert 0 <= database.value("SELECT extract(epoch FROM now())::float8") - issued_at < 30

    def test_token_verifies_with_the_published_keys(self, client, session):
        keys = jwt.PyJWKSet.from_dict(client.get("/.well-known/jwks.json").json)
        header = jwt.get_unverified_header(session.access_token)
        claims = jwt.decode(
            session.access_token,
            keys[header["kid"]].key,
            ["ES256"],
            audience="authenticated",
            issuer=BASE_URL,
        )
        assert claims == session.claims

    def test_lifetime_issuer_and_audience_follow_the_settings(self, make_app, alice):
        changes = {
            "AUTH_ACCESS_TOKEN_LIFETIME": "60",
            "AUTH_JWT_ISSUER": "https://issuer.example",
            "AUTH_JWT_AUDIENCE": "my-app",
        }
        session = alice.sign_in(client=make_app(**changes).test_client())
        assert session.claims["exp"] - session.claims["iat"] == 60
        assert (session.claims["iss"], session.claims["aud"]) == ("https://issuer.example", "my-app")
        assert session.get("/user").json["aud"] == "my-app"

    @pytest.mark.parametrize("letter", ["x", '"', "ü", "漢", "😀"])
    def test_token_with_8_kib_of_each_metadata_fits_through_the_server(self, server, alice, database, letter):
        room = 8192 - len('{"x": ""}')
        big = json.dumps(
            {"x": letter * (room // len(json.dumps(letter, ensure_ascii=False).encode()[1:-1]))},
            ensure_ascii=False,
        )
        database.run("UPDATE users SET user_metadata = %(big)s, app_metadata = %(big)s", big=big)
        session = alice.sign_in(client=server)
        assert session.get("/user").status_code == 200


class TestForeignTokens:
    """All of them get 401 `bad_jwt` without further details (RFC 8725)."""

    def assert_bad(self, client, token):
        assert_error(
            get_user(client, token), 401, "bad_jwt", "invalid JWT: unable to parse or verify signature"
        )

    def test_genuine_token_is_accepted(self, client, session, mint):
        assert get_user(client, session.access_token).status_code == 200
        assert get_user(client, mint()).status_code == 200

    @cases(
        "changes",
        [
            {"iss": "https://evil.example"},
            {"iss": BASE_URL + "/"},
            {"iss": None},
            {"aud": "another-app"},
            {"aud": None},
            {"aud": []},
            {"exp": None},
            {"exp": "soon"},
            {"exp": "4102444800"},
            {"exp": 4102444800.5},
            {"exp": True},
            {"iat": None},
            {"iat": "1767225600"},
            {"iat": 1767225600.5},
            {"iat": True},
            {"iat": [1]},
            {"iat": -1},
            {"sub": None},
            {"sub": "alice"},
            {"sub": ""},
            {"sub": 1},
            {"session_id": None},
            {"session_id": "1"},
            {"session_id": 1},
            {"session_id": {}},
        ],
    )
    def test_token_with_changed_claims_is_refused(self, client, mint, changes):
        self.assert_bad(client, mint(**changes))

    @cases("typ", ["JWT", "jwt", "application/at+jwt", "logout+jwt", "at+JWT ", ""])
    def test_token_of_another_type_is_refused(self, client, mint, typ):
        self.assert_bad(client, mint(headers={"typ": typ}))

    def test_token_without_a_type_is_refused(self, client, session, signing_jwk):
        token = jwt.encode(
            session.claims,
            jwt.PyJWK(signing_jwk, "ES256").key,
            "ES256",
            {"kid": signing_jwk["kid"], "typ": None},
        )
        self.assert_bad(client, token)

    @cases("kid", ["another", "", "../../etc/passwd", "' OR 1=1 --"])
    def test_token_with_an_unknown_kid_is_refused(self, client, mint, kid):
        self.assert_bad(client, mint(headers={"kid": kid}))

    def test_token_without_a_kid_is_refused(self, client, session, signing_jwk):
        token = jwt.encode(session.claims, jwt.PyJWK(signing_jwk, "ES256").key, "ES256", {"typ": "at+jwt"})
        self.assert_bad(client, token)

    @cases("kid", [1, None, ["x"], {"x": "y"}, True])
    def test_token_whose_kid_is_not_a_string_is_refused(self, client, session, kid):
        signature = session.access_token.split(".")[2]
        self.assert_bad(
            client,
            ".".join(
                [
                    encode({"alg": "ES256", "typ": "at+jwt", "kid": kid}),
                    session.access_token.split(".")[1],
                    signature,
                ]
            ),
        )

    def test_token_signed_with_another_key_is_refused(self, client, mint):
        self.assert_bad(client, mint(key=ec.generate_private_key(ec.SECP256R1())))

    @cases("alg", ["none", "None", "NONE", "nOnE", ""])
    def test_unsigned_token_is_refused(self, client, session, signing_jwk, alg):
        header = encode({"alg": alg, "typ": "at+jwt", "kid": signing_jwk["kid"]})
        payload = session.access_token.split(".")[1]
        for token in (f"{header}.{payload}.", f"{header}.{payload}.{session.access_token.split('.')[2]}"):
            assert get_user(client, token).status_code == 401
        self.assert_bad(client, f"{header}.{payload}.AAAA")

    def test_hmac_token_keyed_with_public_data_is_refused(self, client, session, signing_jwk):
        public_key = jwt.PyJWK(signing_jwk, "ES256").key.public_key()
        secrets = [
            b"",
            signing_jwk["kid"].encode(),
            public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
            public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
            public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint),
            json.dumps({name: signing_jwk[name] for name in ("crv", "kty", "x", "y")}).encode(),
        ]
        for secret in secrets:
            head = (
                encode({"alg": "HS256", "typ": "at+jwt", "kid": signing_jwk["kid"]})
                + "."
                + session.access_token.split(".")[1]
            )
            self.assert_bad(client, f"{head}.{encode(hmac.digest(secret, head.encode(), hashlib.sha256))}")

    def test_token_that_brings_its_own_key_is_refused(self, client, mint):
        mine = ec.generate_private_key(ec.SECP256R1())
        jwk = ECAlgorithm.to_jwk(mine.public_key(), as_dict=True)
        self.assert_bad(client, mint(key=mine, headers={"jwk": jwk}))
        self.assert_bad(client, mint(key=mine, headers={"jku": "https://evil.example/jwks.json"}))

    def test_token_with_an_unknown_critical_extension_is_refused(self, client, mint):
        self.assert_bad(client, mint(headers={"crit": ["b64"], "b64": False}))

    def test_tampered_token_is_refused(self, client, session):
        header, _payload, signature = session.access_token.split(".")
        self.assert_bad(client, f"{header}.{encode(session.claims | {'role': 'admin'})}.{signature}")
        self.assert_bad(client, session.access_token[:-10])
        self.assert_bad(client, session.access_token[:200])
        self.assert_bad(client, f"{header}.{signature}")
        self.assert_bad(client, f"{header}..{signature}")
        self.assert_bad(client, f".{header}.{signature}")
        self.assert_bad(client, session.access_token + ".x")
        self.assert_bad(client, session.access_token + "x")

    @cases("padding", ["=", "==", "%3D", " x", ","])
    def test_other_spelling_of_a_token_is_refused(self, client, session, padding):
        response = get_user(client, session.access_token + padding)
        assert response.status_code in (400, 401)
        assert response.json["error_code"] in ("bad_jwt", "validation_failed")

    def test_padded_token_is_refused(self, client, session):
        response = get_user(client, session.access_token + "==")
        assert_error(
            response,
            401,
            "bad_jwt",
            "invalid JWT: unable to parse or verify signature: it is malformed",
            "Authorization: must be Bearer <token>",
        )

    @cases(
        "header",
        [
            b"[" * 10_000 + b"]" * 10_000,
            b'{"alg":"ES256","kid":' + b"[" * 10_000,
            b"\xff\xfe",
            b"null",
            b"[]",
            b'"x"',
            b"",
            b'{"alg": 1}',
            b'{"alg":"ES256","kid":"\\ud800"}',
        ],
    )
    def test_token_with_a_hostile_header_is_refused(self, client, session, header):
        _, payload, signature = session.access_token.split(".")
        assert get_user(client, f"{encode(header)}.{payload}.{signature}").status_code == 401

    def test_token_of_another_deployment_is_refused(self, client, make_app, alice):
        other = make_app(
            AUTH_JWT_KEYS=json.dumps({"keys": [private_jwk("ES256", kid="theirs")]})
        ).test_client()
        self.assert_bad(client, alice.sign_in(client=other).access_token)

    def test_service_role_key_is_refused_as_an_access_token(self, client, service_role):
        assert_error(
            client.get("/user", headers=service_role),
            401,
            "bad_jwt",
            "invalid JWT: unable to parse or verify signature",
        )


class TestExpiry:
    EXPIRED = "invalid JWT: unable to parse or verify signature: it has expired"

    @pytest.fixture
    def now(self, database):
        """The current second of the database, by which tokens expire."""
        return database.value("SELECT floor(extract(epoch FROM clock_timestamp()))::bigint")

    def test_expired_token_is_refused(self, client, mint, now):
        for exp in (now, now - 1, 0):
            assert_error(get_user(client, mint(exp=exp)), 401, "bad_jwt", self.EXPIRED)
        assert get_user(client, mint(exp=now + 60)).status_code == 200

    @cases(
        "exp",
        [-(2**70), 2**70, 2**62, -(2**40), 10**308],
    )
    def test_token_that_expires_outside_the_calendar_is_refused(self, client, mint, exp):
        assert get_user(client, mint(exp=exp)).status_code == 401

    def test_cached_token_is_refused_when_it_expires(self, client, mint, now):
        # The cache holds the result of the signature check only.
        token = mint(exp=now + 2)
        answers = [get_user(client, token)]
        while answers[-1].status_code == 200:
            answers.append(get_user(client, token))
        assert len(answers) > 1
        assert_error(answers[-1], 401, "bad_jwt", self.EXPIRED)


ENDPOINTS = [
    ("GET", "/user", None),
    ("PUT", "/user", {"data": {"x": 1}}),
    ("PUT", "/user", {"password": "Another-Horse-1"}),
    ("PUT", "/user", {"email": "new@example.com"}),
    ("DELETE", "/user", {}),
    ("DELETE", "/user", {"current_password": "Correct-Horse-1"}),
    ("POST", "/logout", None),
    ("POST", "/logout?scope=others", None),
    ("GET", "/sessions", None),
    ("DELETE", "/sessions/00000000-0000-0000-0000-000000000000", None),
    ("DELETE", "/sessions/nonsense", None),
    ("POST", "/admin/users", {"email": "new@example.com"}),
    ("GET", "/admin/users/00000000-0000-0000-0000-000000000000", None),
]


each_endpoint = cases(("method", "path", "body"), ENDPOINTS)


class TestEveryEndpoint:
    """Each endpoint refuses a token when its session or user has ended."""

    @pytest.fixture
    def ask(self, client, carol, database):
        """Return a function that makes a request as Carol, an administrator, after running a statement."""
        session = carol.open_session()

        def ask(method, path, body, happening=None, headers=None):
            if happening:
                database.run(happening)
            before = database.everything()
            response = client.open(
                path, method=method, json=body, headers=session.authorization if headers is None else headers
            )
            assert database.everything() == before
            return response

        return ask

    @each_endpoint
    def test_endpoint_requires_a_token(self, ask, method, path, body):
        assert_error(
            ask(method, path, body, headers={}),
            401,
            "no_authorization",
            details="Authorization: must be Bearer <token>",
        )

    @each_endpoint
    def test_endpoint_refuses_a_forged_token(self, ask, method, path, body):
        assert_error(ask(method, path, body, headers={"Authorization": "Bearer x.y.z"}), 401, "bad_jwt")

    @each_endpoint
    def test_endpoint_refuses_an_ended_session(self, ask, method, path, body):
        assert_error(
            ask(method, path, body, "UPDATE sessions SET ended_at = now(), end_reason = 'logout'"),
            401,
            "session_not_found",
        )

    @each_endpoint
    def test_endpoint_refuses_a_deleted_session(self, ask, method, path, body):
        assert_error(ask(method, path, body, "DELETE FROM sessions"), 401, "session_not_found")

    @each_endpoint
    def test_endpoint_refuses_an_expired_session(self, ask, method, path, body):
        assert_error(
            ask(method, path, body, "UPDATE sessions SET refreshed_at = now() - interval '30 days'"),
            401,
            "session_expired",
        )

    @each_endpoint
    def test_endpoint_refuses_a_deleted_user(self, ask, method, path, body):
        assert_error(ask(method, path, body, "DELETE FROM users"), 401, "user_not_found")

    @each_endpoint
    def test_endpoint_refuses_a_banned_user(self, ask, method, path, body):
        assert_error(
            ask(method, path, body, "UPDATE users SET banned_until = now() + interval '1 hour'"),
            403,
            "user_banned",
        )

    @each_endpoint
    def test_endpoint_refuses_a_banned_user_whose_sessions_have_ended(self, ask, method, path, body):
        ended = "UPDATE sessions SET ended_at = now(), end_reason = 'logout'; UPDATE users SET banned_until = 'infinity'"
        assert_error(ask(method, path, body, ended), 403, "user_banned")


def test_token_with_the_session_of_another_user_is_refused(client, mint, bob):
    response = get_user(client, mint(sub=bob.id))
    assert_error(response, 401, "session_not_found")


class TestKeys:
    """The first key of AUTH_JWT_KEYS signs and all verify; AUTH_JWT_SECRET comes before them."""

    @pytest.mark.parametrize("kind", ["ES256", "EdDSA", "RS256"])
    def test_each_algorithm_signs_and_verifies(self, make_app, alice, kind):
        client = make_app(AUTH_JWT_KEYS=json.dumps({"keys": [private_jwk(kind, kid="first")]})).test_client()
        session = alice.sign_in(client=client)
        assert jwt.get_unverified_header(session.access_token) == {
            "typ": "at+jwt",
            "alg": kind,
            "kid": "first",
        }
        assert session.get("/user").status_code == 200
        keys = jwt.PyJWKSet.from_dict(client.get("/.well-known/jwks.json").json)
        assert (
            jwt.decode(session.access_token, keys["first"].key, [kind], audience="authenticated")["sub"]
            == alice.id
        )

    def test_new_key_in_first_place_signs_while_the_old_one_verifies(self, make_app, alice):
        old, new = private_jwk("ES256", kid="old"), private_jwk("ES256", kid="new")
        before = alice.sign_in(client=make_app(AUTH_JWT_KEYS=json.dumps({"keys": [old]})).test_client())
        during = make_app(AUTH_JWT_KEYS=json.dumps({"keys": [new, old]})).test_client()
        after = make_app(AUTH_JWT_KEYS=json.dumps({"keys": [new]})).test_client()
        assert before.on(during).get("/user").status_code == 200
        renewed = before.on(during).refreshed()
        assert jwt.get_unverified_header(renewed.access_token)["kid"] == "new"
        assert renewed.on(after).get("/user").status_code == 200
        assert_error(before.on(after).get("/user"), 401, "bad_jwt")
        assert before.on(after).refresh().status_code == 200

    def test_keys_are_read_from_a_file(self, make_app, alice, tmp_path):
        (tmp_path / "keys.json").write_text(json.dumps({"keys": [private_jwk("EdDSA", kid="from the file")]}))
        session = alice.sign_in(client=make_app(AUTH_JWT_KEYS=str(tmp_path / "keys.json")).test_client())
        assert jwt.get_unverified_header(session.access_token)["kid"] == "from the file"

    def test_key_without_kid_gets_its_thumbprint(self, make_app, alice):
        jwk = private_jwk("ES256")
        session = alice.sign_in(client=make_app(AUTH_JWT_KEYS=json.dumps({"keys": [jwk]})).test_client())
        members = json.dumps({name: jwk[name] for name in ("crv", "kty", "x", "y")}, separators=(",", ":"))
        assert jwt.get_unverified_header(session.access_token)["kid"] == encode(
            hashlib.sha256(members.encode()).digest()
        )
        assert session.get("/user").status_code == 200

    def test_key_signs_only_with_its_own_algorithm(self, make_app, alice):
        first, second = private_jwk("ES256", kid="first"), private_jwk("EdDSA", kid="second")
        client = make_app(AUTH_JWT_KEYS=json.dumps({"keys": [first, second]})).test_client()
        session = alice.sign_in(client=client)
        crossed = jwt.encode(
            session.claims, jwt.PyJWK(second, "EdDSA").key, "EdDSA", {"typ": "at+jwt", "kid": "first"}
        )
        assert_error(get_user(client, crossed), 401, "bad_jwt")

    def test_shared_secret_signs_with_hs256(self, make_app, alice):
        client = make_app(AUTH_JWT_SECRET=HS_SECRET).test_client()
        session = alice.sign_in(client=client)
        assert jwt.get_unverified_header(session.access_token)["alg"] == "HS256"
        assert (
            jwt.decode(session.access_token, HS_SECRET, ["HS256"], audience="authenticated")["sub"]
            == alice.id
        )
        assert session.get("/user").status_code == 200
        assert client.get("/.well-known/jwks.json").json == {"keys": []}

    def test_tokens_of_the_jwk_set_verify_alongside_a_shared_secret(self, make_app, alice):
        keys = json.dumps({"keys": [private_jwk("ES256", kid="old")]})
        before = alice.sign_in(client=make_app(AUTH_JWT_KEYS=keys).test_client())
        both = make_app(AUTH_JWT_KEYS=keys, AUTH_JWT_SECRET=HS_SECRET).test_client()
        assert before.on(both).get("/user").status_code == 200
        assert jwt.get_unverified_header(before.on(both).refreshed().access_token)["alg"] == "HS256"
        assert [key["kid"] for key in both.get("/.well-known/jwks.json").json["keys"]] == ["old"]

    def test_shared_secret_does_not_verify_unsigned_tokens(self, make_app, alice):
        client = make_app(AUTH_JWT_SECRET=HS_SECRET).test_client()
        session = alice.sign_in(client=client)
        payload = session.access_token.split(".")[1]
        assert get_user(client, f"{encode({'alg': 'none', 'typ': 'at+jwt'})}.{payload}.").status_code == 401
        foreign = jwt.encode(
            session.claims, "another secret of at least 32 bytes", "HS256", {"typ": "at+jwt"}
        )
        assert_error(get_user(client, foreign), 401, "bad_jwt")
        other_size = jwt.encode(session.claims, HS_SECRET * 2, "HS512", {"typ": "at+jwt"})
        assert_error(get_user(client, other_size), 401, "bad_jwt")


def test_cache_keeps_only_verified_tokens(client, session):
    for _ in range(3):
        assert get_user(client, session.access_token).status_code == 200
        assert get_user(client, session.access_token[:-5] + "AAAAA").status_code == 401


def test_cached_token_is_refused_when_its_session_ends(client, session, alice):
    assert session.get("/user").status_code == 200
    Session(client, session.access_token, "", {}).post("/logout?scope=local")
    assert_error(session.get("/user"), 401, "session_not_found")
    assert alice.sign_in().get("/user").json["email"] == ANYTHING


OCT = {"kty": "oct", "k": encode(b"a shared secret of 32 bytes or so"), "kid": "shared"}


class TestFormsOfKeys:
    """AUTH_JWT_KEYS with shared secrets, keys that only verify, and a chosen key that signs."""

    @pytest.fixture
    def use(self, make_app, alice):
        """Sign in with these keys; return the session and the kid and algorithm of its token."""

        def use(keys, **others):
            client = make_app(AUTH_JWT_KEYS=json.dumps(keys), **others).test_client()
            session = alice.sign_in(client=client)
            assert session.get("/user").status_code == 200
            header = jwt.get_unverified_header(session.access_token)
            return session, (header.get("kid"), header["alg"])

        return use

    def test_bare_array_is_a_set(self, use):
        assert use([private_jwk("ES256", kid="a")])[1] == ("a", "ES256")

    def test_key_that_signs_is_chosen(self, use):
        keys = [private_jwk("ES256", kid="a"), private_jwk("EdDSA", kid="b", key_ops=["sign", "verify"])]
        assert use(keys)[1] == ("b", "EdDSA")

    def test_first_key_that_can_sign_is_chosen(self, use):
        keys = [private_jwk("ES256", kid="a", key_ops=["verify"]), private_jwk("RS256", kid="b")]
        assert use(keys)[1] == ("b", "RS256")

    def test_shared_secret_signs_and_is_not_published(self, use):
        session, used = use([OCT, private_jwk("ES256", kid="a")])
        assert used == ("shared", "HS256")
        published = session.client.get("/.well-known/jwks.json")
        assert [key["kid"] for key in published.json["keys"]] == ["a"]
        assert OCT["k"] not in published.text

    def test_public_key_verifies(self, use):
        old = private_jwk("ES256", kid="old")
        session, _ = use([old])
        public = {name: old[name] for name in ("kty", "crv", "x", "y", "kid")} | {"key_ops": ["verify"]}
        renewed, used = use([public, private_jwk("ES256", kid="new")])
        assert used == ("new", "ES256")
        assert session.on(renewed.client).get("/user").status_code == 200

    def test_secret_signs_alongside_keys_that_only_verify(self, use):
        keys = [private_jwk("ES256", kid="a", key_ops=["verify"])]
        assert use(keys, AUTH_JWT_SECRET=HS_SECRET)[1] == (None, "HS256")

    def test_token_of_a_secret_is_refused_under_the_kid_of_a_public_key(self, use):
        """Algorithm confusion: each key has one algorithm."""
        key = private_jwk("ES256", kid="a")
        session, _ = use([key, OCT])
        secret = json.dumps({name: key[name] for name in ("kty", "crv", "x", "y")}).encode()
        signed = f"{encode({'typ': 'at+jwt', 'kid': 'a', 'alg': 'HS256'})}.{encode(session.claims)}"
        forged = f"{signed}.{encode(hmac.digest(secret, signed.encode(), hashlib.sha256))}"
        assert_error(get_user(session.client, forged), 401, "bad_jwt")
