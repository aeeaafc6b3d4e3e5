"""Faulty OAuth providers: the browser is redirected with an error, and nothing else changes.

tests/support/fake_provider.py can have each fault; the tests choose one.
"""

import base64
import json
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import OctKey

from auth.providers import ProviderUnavailable
from auth.providers.id_tokens import IdTokens
from tests.support.cases import cases
from tests.support.fake_provider import Answer, FakeProvider, PlainProvider, signing_key
from tests.support.oauth import APPLICATION, Service, assert_failed, assert_turned_back, fragment
from tests.support.processes import free_port
from tests.support.server import at_once

pytest_plugins = ["tests.support.oauth_fixtures"]
ALICE = {"sub": "alice-at-google", "email": "alice@example.com", "email_verified": True, "name": "Alice"}
FAILED = ("bad_oauth_callback", "server_error")
# Deeper than a parser recurses, and smaller than the limit of a response.
NESTED = b"[" * 200_000
HOUR = 3600


@pytest.fixture(autouse=True)
def _people(google: FakeProvider) -> None:
    google.person = ALICE


@pytest.fixture
def assert_nothing_happened(service, database, google) -> Iterator[Callable[[], None]]:
    """A check that also removes the fault."""

    def check() -> None:
        left = database.everything(
            "users", "identities", "sessions", "authorization_codes", "outbox", "oauth_flows"
        )
        assert left == {table: [] for table in left}
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
    return (
        base64.urlsafe_b64encode(value if isinstance(value, bytes) else json.dumps(value).encode())
        .rstrip(b"=")
        .decode()
    )


def of_parts(header: Any, claims: Any, signature: bytes = b"") -> str:
    return f"{encoded(header)}.{encoded(claims)}.{encoded(signature)}"


def with_secret(secret: bytes) -> Callable[[dict[str, Any]], str]:
    """Return a function that signs with HS256, with a secret as the key."""
    return lambda claims: jws.serialize_compact(
        {"alg": "HS256"}, json.dumps(claims), OctKey.import_key(secret), algorithms=["HS256"]
    )


NOW = int(time.time())
WRONG_CLAIMS = {
    "issuer": {"iss": "https://accounts.google.com"},
    "issuer with a slash": {"iss": "{url}/"},
    "issuer that begins alike": {"iss": "{url}.evil.example"},
    "no issuer": {"iss": None},
    "audience": {"aud": "another-client"},
    "no audience": {"aud": None},
    "audiences of others": {"aud": ["another-client", "and-another"]},
    "audience of ours among others without azp": {"aud": ["client-at-google", "another-client"]},
    "audience of ours among others and another azp": {
        "aud": ["client-at-google", "another-client"],
        "azp": "another-client",
    },
    "audience that begins alike": {"aud": "client-at-google-2"},
    "audience that is an object": {"aud": {"client-at-google": True}},
    "nonce": {"nonce": "x" * 43},
    "no nonce": {"nonce": None},
    "empty nonce": {"nonce": ""},
    "nonce that is no string": {"nonce": ["x"]},
    "expired": {"exp": NOW - HOUR},
    "no expiry": {"exp": None},
    "expiry that is a string": {"exp": str(NOW + HOUR)},
    "expiry beyond the calendar": {"exp": 10**20},
    "expiry that is true": {"exp": True},
    "of tomorrow": {"iat": NOW + 24 * HOUR},
    "no time of issue": {"iat": None},
    "no subject": {"sub": None},
    "empty subject": {"sub": ""},
    "subject that is a number": {"sub": 4711},
    "subject that is a list": {"sub": ["alice-at-google"]},
    # OpenID Connect Core, section 2: at most 255 characters of ASCII.
    "subject that is too long": {"sub": secrets.token_hex(3000)},
    "subject with NUL": {"sub": "alice\0at-google"},
    "subject with half a character": {"sub": "alice\ud800"},
}


class TestIdTokens:
    """Tokens signed by the provider, or by an attacker in its place."""

    @cases("claims", WRONG_CLAIMS.values())
    def test_wrong_claims_are_refused(self, service, google, claims, assert_nothing_happened):
        google.claims = {
            name: value.format(url=google.url) if isinstance(value, str) else value
            for name, value in claims.items()
        }
        assert_failed(service.sign_in("google"), *FAILED)
        assert_nothing_happened()

    @cases("header", [{"alg": "none"}, {"alg": "None"}, {"alg": "nOnE", "kid": "google-1"}, {"alg": ""}, {}])
    @cases("signature", [b"", b"x" * 256])
    def test_token_without_an_algorithm_is_refused(
        self, service, google, header, signature, assert_nothing_happened
    ):
        google.sign = lambda claims: of_parts(header, claims, signature)
        assert_failed(service.sign_in("google"), *FAILED)
        assert_nothing_happened()

    @pytest.mark.parametrize("key", ["the public key", "the modulus", "the client secret"])
    def test_hs256_is_refused_with_any_secret(self, service, google, key, assert_nothing_happened):
        public = google.signing_key.as_dict(private=False)
        keys = {
            "the public key": google.signing_key.as_pem(private=False),
            "the modulus": public["n"].encode(),
            "the client secret": google.client_secret.encode(),
        }
        google.sign = with_secret(keys[key])
        assert_failed(service.sign_in("google"), *FAILED)
        assert_nothing_happened()

    def test_key_not_published_by_the_issuer_is_refused(self, service, google, assert_nothing_happened):
        google.signing_key = signing_key("google-9", 1)
        assert_failed(service.sign_in("google"), *FAILED)
        assert_nothing_happened()

    def test_other_key_with_a_known_kid_is_refused(self, service, google, assert_nothing_happened):
        google.signing_key = signing_key("google-1", 1)
        assert_failed(service.sign_in("google"), *FAILED)
        assert_nothing_happened()

    def test_key_embedded_in_the_token_is_refused(self, service, google, assert_nothing_happened):
        own = signing_key("google-9", 1)
        for header in (
            {"jwk": own.as_dict(private=False)},
            {"jku": "https://evil.example/jwks"},
            {"x5u": "https://evil.example/x5u"},
        ):
            google.signing_key = own
            google.sign = lambda claims, header=header: google.signed(claims, kid=None, **header)
            assert_failed(service.sign_in("google"), *FAILED)
        assert_nothing_happened()

    def test_unknown_critical_header_is_refused(self, service, google, assert_nothing_happened):
        def sign(claims: dict[str, Any]) -> str:
            header = encoded(
                {"alg": "RS256", "kid": google.signing_key.kid, "crit": ["exotic"], "exotic": True}
            )
            content = f"{header}.{encoded(claims)}"
            return f"{content}.{encoded(jws.JWSRegistry.algorithms['RS256'].sign(content.encode(), google.signing_key))}"

        google.sign = sign
        assert_failed(service.sign_in("google"), *FAILED)
        assert_nothing_happened()

    @pytest.mark.parametrize("change", ["claims", "header"])
    def test_token_changed_after_signing_is_refused(self, service, google, change, assert_nothing_happened):
        def sign(claims: dict[str, Any]) -> str:
            header, body, signature = google.signed(claims).split(".")
            if change == "claims":
                return f"{header}.{encoded(claims | {'sub': 'somebody-else'})}.{signature}"
            return f"{encoded({'alg': 'RS256', 'kid': google.signing_key.kid, 'x': 1})}.{body}.{signature}"

        google.sign = sign
        assert_failed(service.sign_in("google"), *FAILED)
        assert_nothing_happened()

    @cases(
        "token",
        [
            "",
            "x",
            "a.b.c",
            "..",
            "e30.e30.",
            "null",
            "x" * 70_000,
            "ä.ö.ü",
            'e30"e30',
            of_parts([], []),
            of_parts({"alg": "RS256"}, NESTED),
        ],
    )
    def test_malformed_token_is_refused(self, service, google, token, assert_nothing_happened):
        google.sign = lambda _: token
        assert_failed(service.sign_in("google"), *FAILED)
        assert_nothing_happened()

    @cases("value", [None, 7, ["x"], {"x": 1}, True])
    def test_token_that_is_not_a_string_is_refused(self, service, google, value, assert_nothing_happened):
        google.sign = lambda _: value
        assert_failed(service.sign_in("google"), *FAILED)
        assert_nothing_happened()

    @cases("claims", [[], "x", 1, None, b"\xff\xfe", NESTED])
    def test_claims_that_are_not_an_object_are_refused(
        self, service, google, claims, assert_nothing_happened
    ):
        payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
        header = {"alg": "RS256", "kid": google.signing_key.kid}
        google.sign = lambda _: jws.serialize_compact(header, payload, google.signing_key)
        assert_failed(service.sign_in("google"), *FAILED)
        assert_nothing_happened()

    @pytest.mark.parametrize(
        ("claims", "kept"),
        [
            ({"name": "\0"}, {}),
            ({"name": "A\ud800"}, {}),
            ({"name": ["Alice"]}, {}),
            ({"name": "", "picture": 7}, {"name": ""}),
            ({"picture": "x" * 3000}, {}),
        ],
        ids=["NUL", "half a character", "a list", "empty and a number", "long"],
    )
    def test_malformed_name_or_picture_does_not_prevent_sign_in(self, service, google, claims, kept):
        google.claims = {"name": None} | claims
        data = service.signed_in("google").get("/user").json["identities"][0]["identity_data"]
        assert {name: value[:1] for name, value in data.items() if name in ("name", "avatar_url")} == kept

    def test_token_with_many_claims_is_accepted(self, service, google):
        # Azure and Keycloak issue such tokens to members of many groups.
        google.claims = {"groups": [f"{number:08}-0000-4000-8000-000000000000" for number in range(200)]}
        service.signed_in("google")


@pytest.mark.parametrize("length", [300, 2048, 20_000])
def test_long_name_and_picture_do_not_prevent_sign_in(service, github, length):
    github.be(1001, "alice@example.com", name="😀" * length, avatar_url="😀" * length)
    user = service.signed_in("github").get("/user").json
    assert user["email"] == "alice@example.com"
    assert set(user["user_metadata"]) <= {"name", "avatar_url"}


RIGHT_KEYS = {
    "with unreadable keys": [
        {"kty": "XXX", "kid": "a"},
        {"kty": "EC", "crv": "P-9", "kid": "b"},
        {"kid": "c"},
        "x",
        None,
        7,
    ],
    "with keys for encryption": [signing_key("enc", 1).as_dict(private=False) | {"use": "enc"}],
}


class TestKeys:
    @pytest.mark.parametrize("others", RIGHT_KEYS.values(), ids=list(RIGHT_KEYS))
    def test_key_is_found_by_its_kid(self, make_service, google, others):
        known = google.signing_key.as_dict(private=False)
        google.instead["/jwks"] = Answer(body=json.dumps({"keys": [*others, known]}).encode())
        make_service().signed_in("google")

    def test_token_without_kid_is_accepted_when_the_issuer_has_one_key(self, make_service, google):
        google.sign = lambda claims: google.signed(claims, kid=None)
        make_service().signed_in("google")

    def test_encryption_key_does_not_verify_signatures(self, make_service, google):
        known = google.signing_key.as_dict(private=False) | {"use": "enc"}
        google.instead["/jwks"] = Answer(body=json.dumps({"keys": [known]}).encode())
        assert_failed(make_service().sign_in("google"), *FAILED)

    def test_symmetric_key_in_the_set_does_not_allow_hs256(self, make_service, google):
        secret = b"s" * 32
        google.instead["/jwks"] = Answer(
            body=json.dumps({"keys": [{"kty": "oct", "kid": "o", "k": encoded(secret)}]}).encode()
        )
        google.sign = with_secret(secret)
        assert_failed(make_service().sign_in("google"), *FAILED)

    def test_new_keys_are_fetched_after_a_rotation(self, make_service, google):
        service = make_service()
        service.signed_in("google")
        google.rotate()
        service.age("google", 60)
        service.signed_in("google")
        google.asked.clear()
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
        google.asked.clear()
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
        service.age("google", HOUR)
        service.signed_in("google")
        assert (google.paths().count(google.DISCOVERY), google.paths().count("/jwks")) == (2, 2)

    def test_moved_endpoint_is_found_within_an_hour(self, make_service, google):
        service = make_service()
        service.signed_in("google")
        google.metadata = {"token_endpoint": f"{google.url}/moved"}
        service.signed_in("google")
        service.age("google", HOUR)
        assert_failed(service.sign_in("google"), *FAILED)
        assert "/moved" in google.paths()

    @cases("issuer", ["https://evil.example", "{url}.evil.example", "{url}/x", "", None, 7, ["{url}"]])
    def test_discovery_document_of_another_issuer_is_refused(self, empty_service, google, issuer):
        google.metadata = {"issuer": issuer.format(url=google.url) if isinstance(issuer, str) else issuer}
        assert_turned_back(empty_service.sign_in("google"))

    @pytest.mark.parametrize(
        "url", [None, "", 7, "javascript:alert(1)", "/authorize", "file:///etc/passwd", "ftp://x/"]
    )
    def test_endpoint_that_is_not_a_url_is_refused(self, make_service, google, url):
        google.metadata = {"authorization_endpoint": url}
        assert_turned_back(make_service().sign_in("google"))
        google.metadata = {"token_endpoint": url}
        assert_failed(make_service().sign_in("google"), *FAILED)


GARBAGE = {
    "500": Answer(500, b"<h1>Internal Server Error</h1>"),
    "503 in JSON": Answer(
        503,
        b'{"error": "temporarily_unavailable"}',
        {"Content-Type": "application/json", "Retry-After": "86400"},
    ),
    "404": Answer(404),
    "nothing": Answer(200),
    "HTML": Answer(
        200, b"<html><body>Welcome to this hotel's network</body></html>", {"Content-Type": "text/html"}
    ),
    "bytes": Answer(200, bytes(range(256)) * 40, {"Content-Type": "application/json"}),
    "a list": Answer(200, b'["x"]'),
    "null": Answer(200, b"null"),
    "a number": Answer(200, b"1e999"),
    "an empty object": Answer(200, b"{}"),
    "nested": Answer(200, NESTED),
    "2 MiB": Answer(200, b'{"a": "' + b"x" * 2 * 1024 * 1024 + b'"}'),
    "gzip that is none": Answer(200, b"{}", {"Content-Encoding": "gzip"}),
    "a charset that is none": Answer(200, b"<html>", {"Content-Type": "text/html; charset=none-such"}),
    "a shorter body than it says": Answer(200, b"{}", {"Content-Length": "5", "Connection": "close"}),
    "a redirect": Answer(302, headers={"Location": "{thief}/"}),
    "a redirect that keeps the body": Answer(307, headers={"Location": "{thief}/"}),
    "a redirect to nowhere": Answer(302, headers={"Location": "http://[::1"}),
    "an endless body": Answer(behaviour="endless"),
    "a hang-up": Answer(behaviour="close"),
}
each_fault = cases("fault", GARBAGE.values())


@pytest.fixture
def thief() -> Iterator[PlainProvider]:
    """A server that must not receive any request."""
    with PlainProvider("thief") as server:
        yield server


def located(fault: Answer, thief: PlainProvider) -> Answer:
    return Answer(
        fault.status,
        fault.body,
        {name: value.format(thief=thief.url) for name, value in fault.headers.items()},
        fault.behaviour,
    )


class TestGarbage:
    """Failures and wrong, huge or misleading responses of each endpoint of a provider."""

    @each_fault
    def test_faulty_token_endpoint_ends_the_sign_in(
        self, service, google, thief, fault, assert_nothing_happened
    ):
        google.instead["/token"] = located(fault, thief)
        assert_failed(service.sign_in("google"), *FAILED)
        assert thief.asked == []
        assert_nothing_happened()

    def test_faulty_provider_does_not_affect_others(self, service, google):
        google.instead = {path: Answer(500) for path in ("/token", "/jwks", google.DISCOVERY)}
        assert_failed(service.sign_in("google"), *FAILED)
        for provider in ("github", "twitter"):
            service.signed_in(provider)

    @each_fault
    def test_faulty_userinfo_endpoint_ends_the_sign_in(self, service, github, thief, fault, database):
        github.reset()
        github.instead["/user"] = located(fault, thief)
        assert_failed(service.sign_in("github"), *FAILED)
        assert (thief.asked, database.count("users"), database.count("oauth_flows")) == ([], 0, 0)

    @each_fault
    def test_faulty_list_of_addresses_does_not_prove_an_address(
        self, service, github, thief, fault, database
    ):
        database.empty()
        github.reset()
        github.instead["/user/emails"] = located(fault, thief)
        page = service.sign_in("github")
        # With or without a sign-in, no address is trusted and the thief receives nothing.
        if "access_token" not in page.url:
            assert_failed(page, *FAILED)
        assert (thief.asked, database.count("users", "email IS NOT NULL")) == ([], 0)

    @each_fault
    def test_faulty_key_endpoint_ends_the_sign_in(
        self, empty_service, google, thief, fault, assert_nothing_happened
    ):
        google.instead["/jwks"] = located(fault, thief)
        assert_failed(empty_service.sign_in("google"), *FAILED)
        assert thief.asked == []
        assert_nothing_happened()

    @each_fault
    def test_faulty_discovery_document_ends_the_sign_in(
        self, empty_service, google, thief, fault, assert_nothing_happened
    ):
        google.instead[google.DISCOVERY] = located(fault, thief)
        assert_turned_back(empty_service.sign_in("google"))
        assert thief.asked == []
        assert_nothing_happened()

    def test_failed_sign_in_redirects_to_the_requested_target(self, make_service, google):
        google.instead[google.DISCOVERY] = Answer(500)
        page = make_service().sign_in("google", redirect_to=APPLICATION)
        assert_failed(page, "bad_oauth_callback", "temporarily_unavailable", APPLICATION)

    def test_closed_port_ends_the_sign_in(self, make_service, database):
        url = f"http://127.0.0.1:{free_port()}"
        service = make_service(AUTH_PROVIDER_GONE_ISSUER=url, AUTH_PROVIDER_GONE_CLIENT_ID="x")
        assert_turned_back(service.sign_in("gone"))
        assert database.count("oauth_flows") == 0

    def test_unknown_host_ends_the_sign_in(self, make_service):
        service = make_service(
            AUTH_PROVIDER_GONE_ISSUER="https://no-such-host.invalid", AUTH_PROVIDER_GONE_CLIENT_ID="x"
        )
        assert_turned_back(service.sign_in("gone"))

    def test_https_issuer_must_not_redirect_to_http(self):
        known = IdTokens("https://id.example.com", ["x"])
        metadata = {
            "issuer": "https://id.example.com",
            "token_endpoint": "http://127.0.0.1:9/token",
            "jwks_uri": "https://id.example.com/keys",
        }
        url = "https://id.example.com/.well-known/openid-configuration"
        known._cache[url] = (metadata, float("inf"))
        assert known.endpoint("jwks_uri") == "https://id.example.com/keys"
        with pytest.raises(ProviderUnavailable):
            known.endpoint("token_endpoint")

    def test_sign_in_works_again_when_the_provider_recovers(self, make_service, google):
        service = make_service()
        google.instead[google.DISCOVERY] = Answer(500)
        assert_turned_back(service.sign_in("google"))
        del google.instead[google.DISCOVERY]
        google.instead["/jwks"] = Answer(500)
        assert_failed(service.sign_in("google"), *FAILED)
        del google.instead["/jwks"]
        service.signed_in("google")


TOKENS = {
    "an error": {"error": "invalid_grant"},
    "an error with a token": {"error": "invalid_grant", "access_token": "x", "id_token": "{id_token}"},
    "no access token": {"access_token": None},
    "an access token that is a number": {"access_token": 7, "id_token": None},
    "no id_token": {"id_token": None},
    "strange lifetimes": {"expires_in": "soon", "id_token": None},
}


class TestTokenResponses:
    @cases("members", TOKENS.values())
    def test_unsuccessful_token_response_is_refused(self, service, google, members, assert_nothing_happened):
        google.token_response = members
        assert_failed(service.sign_in("google"), *FAILED)
        assert_nothing_happened()

    @cases(
        "members",
        [
            {"expires_in": "3600"},
            {"expires_in": None},
            {"scope": ["a", "b"]},
            {"token_type": "bearer"},
            {"x": {"y": []}},
        ],
    )
    def test_unusual_token_response_is_accepted(self, service, google, members):
        google.token_response = members
        service.signed_in("google")
