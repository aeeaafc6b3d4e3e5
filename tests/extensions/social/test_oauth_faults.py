"""Faulty OAuth providers: the browser is redirected with an error, and nothing else changes.

tests/support/fake_provider.py can have each fault; the tests choose one.
"""

import base64
import json
import math
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import OctKey

from auth.core.providers import ProviderUnavailable, client, id_tokens
from auth.core.providers.id_tokens import IdTokens
from tests.support.cases import cases
from tests.support.fake_provider import Answer, FakeProvider, PlainProvider, signing_key
from tests.support.oauth import FAILED, Service, assert_failed, assert_turned_back, fragment
from tests.support.server import at_once

pytest_plugins = ["tests.support.oauth_fixtures"]
ALICE = {"sub": "alice-at-google", "email": "alice@example.com", "email_verified": True, "name": "Alice"}
# Deeper than a parser recurses, and smaller than the limit of a response.
NESTED = b"[" * 200_000
# Seconds for which documents are cached, and failures to fetch them.
HOUR, FAILED_FOR = 3600, 5
# Makes a replacement of the provider's token from its claims.
Forge = Callable[[FakeProvider, Any], Any]


@pytest.fixture(autouse=True)
def _people(google: FakeProvider) -> None:
    google.person = ALICE


@pytest.fixture
def assert_nothing_happened(service, database, google) -> Iterator[Callable[[], None]]:
    """Return a check, which also removes the fault."""

    def check() -> None:
        rows = database.everything(
            "users", "identities", "sessions", "authorization_codes", "outbox", "oauth_flows"
        )
        assert rows == {table: [] for table in rows}
        google.reset()
        google.person = ALICE

    yield check
    # The next sign-in with this provider works.
    service.session(service.sign_in("google"))


@pytest.fixture
def empty_service(make_service) -> Service:
    """A service with an empty cache of providers, which stays empty while their documents are refused."""
    return make_service()


def encoded(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token_of(header: Any, claims: Any, signature: bytes = b"") -> str:
    return f"{encoded(header)}.{encoded(claims)}.{encoded(signature)}"


def with_secret(secret: bytes) -> Callable[[dict[str, Any]], str]:
    """Return a function that signs with HS256, with a secret as the key."""
    return lambda claims: jws.serialize_compact(
        {"alg": "HS256"}, json.dumps(claims), OctKey.import_key(secret), algorithms=["HS256"]
    )


NOW = int(time.time())
WRONG_CLAIMS: list[dict[str, Any]] = [
    *({"iss": issuer} for issuer in ("https://accounts.google.com", "{url}/", "{url}.evil.example", None)),
    *({"aud": audience} for audience in ("another-client", "client-at-google-2", None)),
    {"aud": ["another-client", "and-another"]},
    {"aud": {"client-at-google": True}},
    # Our client among others: without azp, and with another.
    {"aud": ["client-at-google", "another-client"]},
    {"aud": ["client-at-google", "another-client"], "azp": "another-client"},
    *({"nonce": nonce} for nonce in ("x" * 43, None, "", ["x"])),
    *({"exp": expiry} for expiry in (NOW - HOUR, None, str(NOW + HOUR), 10**20, True)),
    *({"iat": issued} for issued in (NOW + 24 * HOUR, None)),
    *(
        {"sub": subject}
        for subject in (None, "", 4711, ["alice-at-google"], "alice\0at-google", "alice\ud800")
    ),
    # OpenID Connect Core, section 2: at most 255 characters of ASCII.
    {"sub": secrets.token_hex(3000)},
    *({"nbf": value} for value in (4102444800, "soon", True)),
]


def unsigned(header: Any, signature: bytes = b"x" * 256) -> Forge:
    return lambda google, claims: token_of(header, claims, signature)


def of_type(typ: Any) -> Forge:
    return lambda google, claims: google.signed(claims, typ=typ)


def instead(value: Any) -> Forge:
    return lambda google, claims: value


def of_another_key(kid: str | None, **header: Any) -> Forge:
    """Sign with a key that is not published."""

    def sign(google: FakeProvider, claims: Any) -> str:
        google.signing_key = signing_key(kid or "google-9", 1)
        return google.signed(claims, kid=kid, **header)

    return sign


def with_its_key(google: FakeProvider, claims: Any) -> str:
    """Sign with a key that the header contains."""
    google.signing_key = signing_key("google-9", 1)
    return google.signed(claims, kid=None, jwk=google.signing_key.as_dict(private=False))


def with_critical_header(google: FakeProvider, claims: Any) -> str:
    header = {"alg": "RS256", "kid": google.signing_key.kid, "crit": ["exotic"], "exotic": True}
    content = f"{encoded(header)}.{encoded(claims)}"
    signature = jws.JWSRegistry.algorithms["RS256"].sign(content.encode(), google.signing_key)
    return f"{content}.{encoded(signature)}"


def changed_after_signing(google: FakeProvider, claims: Any) -> str:
    head, _, signature = google.signed(claims).split(".")
    return f"{head}.{encoded(claims | {'sub': 'somebody-else'})}.{signature}"


def with_payload(payload: bytes) -> Forge:
    def sign(google: FakeProvider, claims: Any) -> str:
        header = {"alg": "RS256", "kid": google.signing_key.kid}
        return jws.serialize_compact(header, payload, google.signing_key)

    return sign


UNSIGNED: list[Any] = [{}, {"alg": ""}, {"alg": "none"}, {"alg": "nOnE", "kid": "google-1"}, []]
FORGED: dict[str, Forge] = {
    **{f"header {header}": unsigned(header) for header in UNSIGNED},
    "alg none without a signature": unsigned({"alg": "none"}, b""),
    "HS256 with the public key": lambda google, claims: with_secret(google.signing_key.as_pem(private=False))(
        claims
    ),
    "HS256 with the client secret": lambda google, claims: with_secret(google.client_secret.encode())(claims),
    "key that is not published": of_another_key("google-9"),
    "other key with a known kid": of_another_key("google-1"),
    "key in the header": with_its_key,
    "URL of a key in the header": of_another_key(None, jku="https://evil.example/jwks"),
    "URL of a certificate in the header": of_another_key(None, x5u="https://evil.example/x5u"),
    "unknown critical header": with_critical_header,
    **{f"another type: {typ}": of_type(typ) for typ in ("at+jwt", "logout+jwt", "", 7)},
    "claims changed after signing": changed_after_signing,
    "nested claims without a signature": lambda google, claims: token_of({"alg": "RS256"}, NESTED),
    **{
        f"malformed: {str(token)[:9]!r}": instead(token)
        for token in ("", "a.b.c", "e30.e30.", "x" * 70_000, "ä.ö.ü", 'e30"e30', None, 7, ["x"], {"x": 1})
    },
    **{
        f"claims that are not an object: {payload[:9]!r}": with_payload(payload)
        for payload in (b"[]", b'"x"', b"null", b"\xff\xfe", NESTED)
    },
}


class TestIdTokens:
    """Tokens signed by the provider, or by an attacker instead."""

    @cases("claims", WRONG_CLAIMS)
    def test_wrong_claims_are_refused(self, service, google, claims, assert_nothing_happened):
        google.claims = {
            name: value.format(url=google.url) if isinstance(value, str) else value
            for name, value in claims.items()
        }
        assert_failed(service.sign_in("google"), *FAILED)
        assert_nothing_happened()

    @cases("name", list(FORGED))
    def test_forged_or_malformed_token_is_refused(self, service, google, name, assert_nothing_happened):
        google.sign = lambda claims: FORGED[name](google, claims)
        assert_failed(service.sign_in("google"), *FAILED)
        assert_nothing_happened()

    @cases(
        ("claims", "stored"),
        [
            *(({"name": name}, {}) for name in ("\0", "A\ud800", ["Alice"], "x" * 2048, "", " \xa0")),
            *(({"name": name}, {}) for name in ("A\u202eb", "A\u2066b", "A\nb", "\u200d", "\u3164")),
            *(({"name": name}, {"name": name[:1]}) for name in ("می\u200cشود", "👩\u200d💻", "A\xa0B")),
            ({"name": " Alice", "picture": 7}, {"name": "A"}),
            ({"picture": "😀" * 1001}, {}),
            ({"name": "😀" * 200}, {"name": "😀"}),
            ({"name": "😀" * 201}, {}),
        ],
    )
    def test_malformed_or_long_name_or_picture_does_not_prevent_sign_in(
        self, service, google, claims, stored
    ):
        google.claims = {"name": None} | claims
        data = service.signed_in("google").get("/user").json["identities"][0]["identity_data"]
        assert {name: value[:1] for name, value in data.items() if name in ("name", "avatar_url")} == stored


UNREADABLE = [{"kty": "XXX", "kid": "a"}, {"kty": "EC", "crv": "P-9", "kid": "b"}, {"kid": "c"}, "x", None, 7]
FOR_ENCRYPTION = signing_key("enc", 1).as_dict(private=False) | {"use": "enc"}


def publish(google: FakeProvider, *keys: Any) -> None:
    google.instead["/jwks"] = Answer(body=json.dumps({"keys": keys}).encode())


class TestKeys:
    def test_key_is_found_by_its_kid_among_unusable_ones_or_alone_without_one(self, make_service, google):
        publish(google, *UNREADABLE, FOR_ENCRYPTION, google.signing_key.as_dict(private=False))
        make_service().signed_in("google")
        google.instead.clear()
        google.sign = lambda claims: google.signed(claims, kid=None)
        make_service().signed_in("google")

    def test_encryption_or_symmetric_key_in_the_set_verifies_nothing(self, make_service, google):
        publish(google, google.signing_key.as_dict(private=False) | {"use": "enc"})
        assert_failed(make_service().sign_in("google"), *FAILED)
        secret = b"s" * 32
        publish(google, {"kty": "oct", "kid": "o", "k": encoded(secret)})
        google.sign = with_secret(secret)
        assert_failed(make_service().sign_in("google"), *FAILED)

    def test_only_public_members_of_thirty_keys_of_ordinary_length_are_read(self, make_service, google):
        signing = google.signing_key.as_dict(private=True)
        others = [signing_key(f"other-{number}", 1).as_dict(private=False) for number in range(30)]
        # Its malformed private members and certificates are not read.
        publish(google, *others[:29], signing | {"d": "AQAB", "p": [[]], "x5c": "\0" * 9000})
        make_service().signed_in("google")
        for key_set in ([*others, signing], [signing | {"kid": "k" * 1401}], [signing | {"e": "AQAB" * 351}]):
            publish(google, *key_set)
            assert_failed(make_service().sign_in("google"), *FAILED)

    def test_new_keys_are_fetched_after_a_rotation(self, make_service, google):
        service = make_service()
        service.signed_in("google")
        google.rotate()
        service.age("google", 60)
        service.signed_in("google")
        google.requests.clear()
        service.signed_in("google")
        assert "/jwks" not in google.paths()

    def test_withdrawn_key_is_accepted_for_at_most_an_hour(self, make_service, google):
        service = make_service()
        service.signed_in("google")
        google.published = [signing_key("google-2", 1)]
        service.signed_in("google")
        service.age("google", HOUR)
        assert_failed(service.sign_in("google"), *FAILED)

    def test_forged_tokens_do_not_cause_repeated_requests_for_keys(self, make_service, google):
        service = make_service()
        service.signed_in("google")
        service.age("google", 60)
        google.requests.clear()
        google.signing_key = signing_key("forged", 1)
        pages = at_once(6, lambda _: service.sign_in("google"))
        assert [fragment(page)["error_code"] for page in pages] == ["bad_oauth_callback"] * 6
        assert google.paths().count("/jwks") == 1

    def test_known_keys_work_while_the_issuer_is_down(self, make_service, google):
        service = make_service()
        service.signed_in("google")
        service.age("google", HOUR)
        google.instead = {"/jwks": Answer(500), google.DISCOVERY: Answer(500)}
        service.signed_in("google")


class TestDiscovery:
    def test_discovery_document_is_fetched_once_an_hour(self, make_service, google):
        service = make_service()
        assert google.paths() == []
        for _ in range(3):
            service.signed_in("google")
        assert (google.paths().count(google.DISCOVERY), google.paths().count("/jwks")) == (1, 1)
        google.metadata = {"token_endpoint": f"{google.url}/moved"}
        service.signed_in("google")
        service.age("google", HOUR)
        assert_failed(service.sign_in("google"), *FAILED)
        assert (google.paths().count(google.DISCOVERY), "/moved" in google.paths()) == (2, True)

    @cases("issuer", ["https://evil.example", "{url}.evil.example", "{url}/x", "", None, 7, ["{url}"]])
    def test_discovery_document_of_another_issuer_is_refused(self, empty_service, google, issuer):
        google.metadata = {"issuer": issuer.format(url=google.url) if isinstance(issuer, str) else issuer}
        empty_service.age("google", FAILED_FOR)
        google.requests.clear()
        assert_turned_back(empty_service.sign_in("google"))
        assert google.paths() == [google.DISCOVERY]

    @cases(
        "url",
        [
            *(None, "", 7, "javascript:alert(1)", "/authorize", "file:///etc/passwd", "ftp://x/"),
            *(
                "http://[::1",
                "http://x:99999/",
                "http://\ud800.example/",
                "http://x/ y",
                f"http://x/{'y' * 2048}",
            ),
        ],
    )
    def test_endpoint_that_is_not_a_url_is_refused(self, make_service, google, url):
        google.metadata = {"authorization_endpoint": url}
        assert_turned_back(make_service().sign_in("google"))
        google.metadata = {"token_endpoint": url}
        assert_failed(make_service().sign_in("google"), *FAILED)


JSON, HTML = {"Content-Type": "application/json"}, {"Content-Type": "text/html"}
GARBAGE = [
    Answer(503, b'{"error": "temporarily_unavailable"}', JSON | {"Retry-After": "86400"}),
    Answer(404),
    *(Answer(200, body) for body in (b"", b'["x"]', b"1e999", b"{}", NESTED, bytes(range(256)))),
    Answer(200, b'{"a": "' + b"x" * 2 * 1024 * 1024 + b'"}'),
    Answer(200, b"<html><body>Welcome to this hotel's network</body></html>", HTML),
    # Gzip that is none, and a body that is shorter than it says.
    Answer(200, b"{}", {"Content-Encoding": "gzip"}),
    Answer(200, b"{}", {"Content-Length": "5", "Connection": "close"}),
    # Redirects, one of which keeps the body.
    *(Answer(status, headers={"Location": "{thief}/"}) for status in (302, 307)),
    Answer(behaviour="endless"),
    Answer(behaviour="close"),
]
each_fault = cases("fault", GARBAGE)


@pytest.fixture
def thief() -> Iterator[PlainProvider]:
    """A server that must not receive any request."""
    with PlainProvider("thief") as server:
        yield server


def with_thief(fault: Answer, thief: PlainProvider) -> Answer:
    headers = {name: value.format(thief=thief.url) for name, value in fault.headers.items()}
    return Answer(fault.status, fault.body, headers, fault.behaviour)


class TestGarbage:
    """Failures and wrong, huge or misleading responses of each endpoint of a provider."""

    @pytest.mark.parametrize("endpoint", ["/token", "/jwks", FakeProvider.DISCOVERY])
    @each_fault
    def test_faulty_openid_endpoint_ends_the_sign_in(
        self, service, empty_service, google, thief, fault, assert_nothing_happened, endpoint
    ):
        google.instead[endpoint] = with_thief(fault, thief)
        empty_service.age("google", FAILED_FOR)
        page = (service if endpoint == "/token" else empty_service).sign_in("google")
        assert endpoint in google.paths()
        if endpoint == google.DISCOVERY:
            assert_turned_back(page)
        else:
            assert_failed(page, *FAILED)
        assert thief.requests == []
        assert_nothing_happened()

    @pytest.mark.parametrize("endpoint", ["/user", "/user/emails"])
    @each_fault
    def test_faulty_userinfo_or_list_of_addresses_does_not_prove_an_address(
        self, service, github, thief, fault, database, endpoint
    ):
        database.empty()
        github.reset()
        github.instead[endpoint] = with_thief(fault, thief)
        page = service.sign_in("github")
        # Without a list of addresses, the user may be signed in without an address.
        if endpoint == "/user" or "access_token" not in page.url:
            assert_failed(page, *FAILED)
            assert (database.count("users"), database.count("oauth_flows")) == (0, 0)
        assert (thief.requests, database.count("users", "email IS NOT NULL")) == ([], 0)

    def test_https_issuer_must_not_redirect_to_http(self):
        issuer = "https://id.example.com"
        id_tokens = IdTokens(issuer, ["x"])
        metadata = {"token_endpoint": "http://127.0.0.1:9/token", "jwks_uri": f"{issuer}/keys"}
        id_tokens._cache[f"{issuer}/.well-known/openid-configuration"] = (metadata, float("inf"))
        assert id_tokens.endpoint("jwks_uri") == f"{issuer}/keys"
        with pytest.raises(ProviderUnavailable):
            id_tokens.endpoint("token_endpoint")

    @pytest.mark.parametrize("place", ["/jwks", FakeProvider.DISCOVERY])
    def test_failed_fetch_is_repeated_after_a_while_and_not_for_each_sign_in(
        self, make_service, google, monkeypatch, place
    ):
        # Long enough for a busy machine to do all of this before the failure is forgotten.
        monkeypatch.setattr(id_tokens, "_FAILED_FOR", HOUR)
        service = make_service()
        google.instead[place] = Answer(500)
        pages = [service.sign_in("google"), *at_once(3, lambda _: service.sign_in("google"))]
        del google.instead[place]
        service.signed_in("github")
        error = "temporarily_unavailable" if place == google.DISCOVERY else "server_error"
        for page in [*pages, service.sign_in("google")]:
            assert_failed(page, "bad_oauth_callback", error)
        assert google.paths().count(place) == 1
        service.age("google", HOUR)
        service.signed_in("google")
        assert google.paths().count(place) == 2

    @cases("behaviour", ["hang", "drip"])
    def test_slow_issuer_ends_the_sign_in_in_time(self, make_service, google, monkeypatch, behaviour):
        monkeypatch.setattr(client, "_DEADLINE", 0.5)
        google.instead[google.DISCOVERY] = Answer(behaviour=behaviour)
        assert_turned_back(make_service().sign_in("google"))


class TestTokenResponses:
    @cases(
        "members",
        [
            {"error": "invalid_grant"},
            {"error": "invalid_grant", "access_token": "x", "id_token": "{id_token}"},
            {"access_token": None},
            {"access_token": 7, "id_token": None},
            {"id_token": None},
            {"expires_in": "soon", "id_token": None},
            *({name: math.inf} for name in ("expires_in", "expires_at")),
        ],
    )
    def test_unsuccessful_token_response_is_refused(self, service, google, members, assert_nothing_happened):
        google.token_response = members
        assert_failed(service.sign_in("google"), *FAILED)
        assert_nothing_happened()

    @cases("members", [{"expires_in": "3600"}, {"expires_in": None}, {"scope": ["a"]}, {"x": {"y": []}}])
    def test_unusual_token_response_is_accepted(self, service, google, members):
        google.token_response = members
        service.signed_in("google")
