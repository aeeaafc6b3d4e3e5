"""Access tokens: their claims, keys and verification."""

import base64
import hashlib
import hmac
import json

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc.jwk import import_key
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from auth.core.tokens.signing_keys import ALGORITHMS, new_jwk
from tests.support.answers import A_UUID, assert_error
from tests.support.cases import cases
from tests.support.environment import BASE_URL
from tests.support.users import Session

HS_SECRET = "a shared secret of at least 32 bytes"


def private_jwk(kind, **members):
    """Return a new private JWK."""
    makers = {
        "ES256": lambda: ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()), as_dict=True),
        "EdDSA": lambda: OKPAlgorithm.to_jwk(ed25519.Ed25519PrivateKey.generate(), as_dict=True),
        "RS256": lambda: RSAAlgorithm.to_jwk(rsa.generate_private_key(65537, 2048), as_dict=True),
    }
    return makers[kind]() | members


def encode(part):
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def hmac_signed(header, payload, key):
    """Return a token with a key that PyJWT may refuse to use."""
    signing_input = f"{encode(header)}.{payload}"
    return f"{signing_input}.{encode(hmac.digest(key, signing_input.encode(), hashlib.sha256))}"


def header_of(session):
    return jwt.get_unverified_header(session.access_token)


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
        header = {"typ": "JWT", "kid": signing_jwk["kid"]} | (headers or {})
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

    def test_lifetime_issuer_and_audience_follow_the_settings(self, make_app, alice):
        changes = {"AUTH_ACCESS_TOKEN_LIFETIME": "60", "AUTH_JWT_ISSUER": "https://issuer.example"}
        changes["AUTH_JWT_AUDIENCE"] = "my-app"
        session = alice.sign_in(client=make_app(**changes).test_client())
        assert session.claims["exp"] - session.claims["iat"] == 60
        assert (session.claims["iss"], session.claims["aud"]) == ("https://issuer.example", "my-app")
        assert session.get("/user").json["aud"] == "my-app"

    @pytest.mark.parametrize("letter", ["x", '"', "ü", "漢", "😀"])
    def test_token_with_8_kib_of_each_metadata_fits_through_the_server(self, server, alice, database, letter):
        fits = (8192 - len('{"x": ""}')) // len(json.dumps(letter, ensure_ascii=False).encode()[1:-1])
        big = json.dumps({"x": letter * fits}, ensure_ascii=False)
        database.run("UPDATE users SET user_metadata = %(big)s, app_metadata = %(big)s", big=big)
        session = alice.sign_in(client=server)
        assert session.get("/user").status_code == 200


class TestForeignTokens:
    """All of them get 401 `bad_jwt` without further details (RFC 8725)."""

    def assert_bad(self, client, *tokens):
        msg = "invalid JWT: unable to parse or verify signature"
        for token in tokens:
            assert_error(get_user(client, token), 401, "bad_jwt", msg)

    def test_genuine_token_is_accepted(self, client, session, mint):
        assert get_user(client, session.access_token).status_code == 200
        assert get_user(client, mint()).status_code == 200

    @cases(
        ("name", "values"),
        [
            ("iss", ("https://evil.example", f"{BASE_URL}/", None)),
            ("aud", ("another-app", None, [])),
            ("exp", (None, "soon", "4102444800", 4102444800.5, True)),
            ("iat", (None, "1767225600", 1767225600.5, True, [1], -1)),
            ("sub", (None, "alice", "", 1)),
            ("session_id", (None, "1", 1, {})),
            *((name, ("a-client", "")) for name in ("client_id", "nonce")),
        ],
    )
    def test_token_with_changed_claims_is_refused(self, client, mint, name, values):
        self.assert_bad(client, *(mint(**{name: value}) for value in values))

    @cases(
        ("name", "values"),
        [
            ("typ", ("jwt", "at+jwt", "application/at+jwt", "logout+jwt", "at+JWT ", "", None)),
            ("kid", ("another", "", "../../etc/passwd", "' OR 1=1 --")),
        ],
    )
    def test_token_of_another_type_key_or_extension_is_refused(self, client, mint, name, values):
        self.assert_bad(client, *(mint(headers={name: value}) for value in values))
        self.assert_bad(client, mint(headers={"crit": ["b64"], "b64": False}))

    @cases("alg", ["none", "None", "NONE", "nOnE", ""])
    def test_unsigned_token_is_refused(self, client, session, signing_jwk, alg):
        header = encode({"alg": alg, "typ": "JWT", "kid": signing_jwk["kid"]})
        _, payload, signature = session.access_token.split(".")
        for end in ("", signature):
            assert get_user(client, f"{header}.{payload}.{end}").status_code == 401
        self.assert_bad(client, f"{header}.{payload}.AAAA")

    def test_hmac_token_keyed_with_public_data_is_refused(self, client, session, signing_jwk):
        public_key, info = jwt.PyJWK(signing_jwk, "ES256").key.public_key(), PublicFormat.SubjectPublicKeyInfo
        secrets = [
            *(b"", signing_jwk["kid"].encode()),
            *(public_key.public_bytes(encoding, info) for encoding in (Encoding.DER, Encoding.PEM)),
            public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint),
            json.dumps({name: signing_jwk[name] for name in ("crv", "kty", "x", "y")}).encode(),
        ]
        header, payload = header_of(session) | {"alg": "HS256"}, session.access_token.split(".")[1]
        self.assert_bad(client, *(hmac_signed(header, payload, secret) for secret in secrets))

    def test_token_of_another_key_which_it_may_bring_is_refused(self, client, mint):
        foreign_key = ec.generate_private_key(ec.SECP256R1())
        jwk = ECAlgorithm.to_jwk(foreign_key.public_key(), as_dict=True)
        self.assert_bad(client, mint(key=foreign_key), mint(key=foreign_key, headers={"jwk": jwk}))
        self.assert_bad(client, mint(key=foreign_key, headers={"jku": "https://evil.example/jwks.json"}))

    def test_tampered_token_is_refused(self, client, session):
        header, _payload, signature = session.access_token.split(".")
        self.assert_bad(
            client,
            f"{header}.{encode(session.claims | {'role': 'admin'})}.{signature}",
            *(session.access_token[:-10], session.access_token[:200]),
            *(f"{header}.{signature}", f"{header}..{signature}", f".{header}.{signature}"),
            *(f"{session.access_token}.x", f"{session.access_token}x"),
        )

    @cases(
        "header",
        [
            b"[" * 10_000 + b"]" * 10_000,
            b'{"alg":"ES256","kid":' + b"[" * 10_000,
            *(b"\xff\xfe", b"null", b"[]", b'"x"', b"", b'{"alg": 1}', b'{"alg":"ES256","kid":"\\ud800"}'),
        ],
    )
    def test_token_with_a_hostile_header_is_refused(self, client, session, header):
        _, payload, signature = session.access_token.split(".")
        assert get_user(client, f"{encode(header)}.{payload}.{signature}").status_code == 401


class TestExpiry:
    EXPIRED = "invalid JWT: unable to parse or verify signature: it has expired"

    def second(self, database):
        """Return the current second of the database, by which tokens expire."""
        return database.value("SELECT floor(extract(epoch FROM clock_timestamp()))::bigint")

    @pytest.fixture
    def now(self, database):
        return self.second(database)

    def test_expired_token_is_refused(self, client, mint, now):
        for exp in (now, now - 1, 0):
            assert_error(get_user(client, mint(exp=exp)), 401, "bad_jwt", self.EXPIRED)
        assert get_user(client, mint(exp=now + 60)).status_code == 200
        for outside_the_calendar in (-(2**70), 2**70, 2**62, -(2**40), 10**308):
            assert get_user(client, mint(exp=outside_the_calendar)).status_code == 401

    def test_cached_token_is_refused_when_it_expires(self, client, mint, database):
        # The cache holds the result of the signature check only. A machine that stops may take the first lifetime.
        for lifetime in (1, 4, 30):
            token = mint(exp=self.second(database) + 1 + lifetime)
            if (answer := get_user(client, token)).status_code == 200:
                break
        assert answer.status_code == 200
        while answer.status_code == 200:
            answer = get_user(client, token)
        assert_error(answer, 401, "bad_jwt", self.EXPIRED)


def test_token_of_another_users_or_an_ended_session_is_refused_even_if_cached(client, session, mint, bob):
    assert_error(get_user(client, mint(sub=bob.id)), 401, "session_not_found")
    assert session.get("/user").status_code == 200
    Session(client, session.access_token, "", {}).post("/logout?scope=local")
    assert_error(session.get("/user"), 401, "session_not_found")


@pytest.fixture
def use(make_app, alice):
    """Sign in with these keys; return the session and the kid and algorithm of its token."""

    def use(*keys, **others):
        own_keys = {"AUTH_JWT_KEYS": json.dumps({"keys": keys})} if keys else {}
        session = alice.sign_in(client=make_app(**own_keys, **others).test_client())
        assert session.get("/user").status_code == 200
        header = header_of(session)
        assert header.pop("typ") == "JWT"
        return session, (header.get("kid"), header["alg"])

    return use


OCT = {"kty": "oct", "k": encode(b"a shared secret of 32 bytes or so"), "kid": "shared"}
BOTH = ["sign", "verify"]
WITH_SECRET = {"AUTH_JWT_SECRET": HS_SECRET}


class TestKeys:
    """The first key of AUTH_JWT_KEYS that may sign signs; AUTH_JWT_SECRET comes before it; all verify."""

    @pytest.mark.parametrize(
        ("keys", "others", "kid_and_algorithm", "public"),
        [
            ([{"alg": "ES256"}, {"alg": "EdDSA"}], {}, ("0", "ES256"), ["0", "1"]),
            ([{"alg": "ES256"}, {"alg": "EdDSA", "key_ops": BOTH}], {}, ("1", "EdDSA"), ["0", "1"]),
            ([{"alg": "ES256", "key_ops": ["verify"]}, {"alg": "RS256"}], {}, ("1", "RS256"), ["0", "1"]),
            ([OCT, {"alg": "ES256"}], {}, ("shared", "HS256"), ["1"]),
            ([], WITH_SECRET, (None, "HS256"), []),
            ([{"alg": "ES256"}], WITH_SECRET, (None, "HS256"), ["0"]),
            ([{"alg": "ES256", "key_ops": ["verify"]}], WITH_SECRET, (None, "HS256"), ["0"]),
        ],
        ids=["first", "chosen", "first that can", "shared", "secret", "secret first", "secret beside public"],
    )
    def test_one_key_signs_and_no_secret_is_published(self, use, keys, others, kid_and_algorithm, public):
        jwks = [
            key if key is OCT else private_jwk(key["alg"], kid=str(place), **key)
            for place, key in enumerate(keys)
        ]
        session, (kid, algorithm) = use(*jwks, **others)
        assert (kid, algorithm) == kid_and_algorithm
        response = session.client.get("/.well-known/jwks.json")
        published_keys = {key["kid"]: key for key in response.json["keys"]}
        openid_kids = {key.kid for key in session.client.application.extensions["latchkey"].openid_keys.all()}
        assert [kid for kid in published_keys if kid not in openid_kids] == public
        assert OCT["k"] not in response.text
        if kid in published_keys:
            key = jwt.PyJWK(published_keys[kid]).key
            claims = jwt.decode(session.access_token, key, [algorithm], audience="authenticated")
            assert claims == session.claims

    def test_new_key_in_first_place_signs_while_the_old_one_verifies(self, use):
        old, new = private_jwk("ES256", kid="old"), private_jwk("ES256", kid="new")
        public = {name: old[name] for name in ("kty", "crv", "x", "y", "kid")} | {"key_ops": ["verify"]}
        before = use(old)[0]
        after = use(new)[0].client
        for keys, kid in (([new, old], "new"), ([public, new], "new"), ([old], None)):
            others = {} if kid else WITH_SECRET
            during = use(*keys, **others)[0].client
            assert before.on(during).get("/user").status_code == 200
            renewed = before.on(during).refreshed()
            assert header_of(renewed).get("kid") == kid
            if kid:
                assert renewed.on(after).get("/user").status_code == 200
        assert_error(before.on(after).get("/user"), 401, "bad_jwt")
        assert before.on(after).refresh().status_code == 200

    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    def test_new_key_has_its_thumbprint_as_kid_unless_it_is_a_secret(self, use, algorithm):
        jwk = new_jwk(algorithm)
        assert (jwk["kid"] == import_key(jwk).thumbprint()) is (algorithm != "HS256")
        assert use(jwk)[1] == (jwk["kid"], algorithm)

    def test_key_signs_only_with_its_own_algorithm(self, use):
        first, second = private_jwk("ES256", kid="first"), private_jwk("EdDSA", kid="second")
        session, _ = use(first, second, OCT)
        header = {"typ": "JWT", "kid": "first"}
        crossed = jwt.encode(session.claims, jwt.PyJWK(second, "EdDSA").key, "EdDSA", header)
        public = json.dumps({name: first[name] for name in ("kty", "crv", "x", "y")}).encode()
        confused = hmac_signed(header | {"alg": "HS256"}, encode(session.claims), public)
        for token in (crossed, confused):
            assert_error(get_user(session.client, token), 401, "bad_jwt")

    def test_shared_secret_verifies_tokens_of_its_algorithm_only(self, use):
        session, _ = use(**WITH_SECRET)
        claims, header = session.claims, {"typ": "JWT"}
        assert jwt.decode(session.access_token, HS_SECRET, ["HS256"], audience="authenticated") == claims
        for token in (
            f"{encode({'alg': 'none'} | header)}.{session.access_token.split('.')[1]}.",
            jwt.encode(claims, "another secret of at least 32 bytes", "HS256", header),
            jwt.encode(claims, HS_SECRET * 2, "HS512", header),
        ):
            assert_error(get_user(session.client, token), 401, "bad_jwt")


def test_new_rsa_key_has_3072_bits():
    """NIST SP 800-57 requires this after 2030."""
    assert len(new_jwk("RS256")["n"]) == 3072 // 6
