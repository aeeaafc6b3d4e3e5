"""The presets: each links to its documentation, and reads the samples shown there."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any
from urllib.parse import urlsplit

import pytest

from auth.core.settings.presets import GENERIC, PRESETS, Preset
from tests.support.cases import cases
from tests.support.fake_provider import Apple, FakeProvider, PlainProvider
from tests.support.oauth import FAILED, SITE, assert_failed

pytest_plugins = ["tests.support.oauth_fixtures"]
URL = "https://pictures.example/x"
# The hosts of documentation that are not named after the provider.
HOSTS = {"azure": "microsoft.com", "bitbucket": "atlassian.com", "linkedin": "microsoft.com"}
HOSTS |= {"slack": "slack.dev", "twitch": "twitch.tv", "twitter": "x.com"}
HOSTS |= {"fly": "fly.io", "snapchat": "snap.com", "zoom": "zoom.us"}
# These have the scopes in their console, or none.
WITHOUT_SCOPES = {"notion", "workos"}
OPENID = {name for name, preset in PRESETS.items() if preset.issuer}


JOHN = {"nickname": "john", "given_name": "John", "email": "john@example.com", "email_verified": True}
JOHN |= {"sub": "U123", "https://slack.com/user_id": "U123", "name": "John Doe", "picture": URL}
# Samples of the documentation, without members that nobody could mistake for others: the claims of an
# id_token, or the response of the userinfo endpoint; and what is read from them: subject, email, whether it is
# verified, name and picture.
SAMPLES: dict[str, tuple[Any, tuple[str, str | None, bool, str | None, str | None]]] = {
    "azure": (
        {"sub": "AAkz", "oid": "0-66f3", "preferred_username": "a@b.example"}
        | {"name": "Abe Lincoln", "email": "AbeLi@microsoft.com"},
        ("AAkz", "abeli@microsoft.com", False, "Abe Lincoln", None),
    ),
    "apple": (
        {"sub": "001234.a1b2.1234", "email": "dpd@privaterelay.appleid.com", "email_verified": "true"},
        ("001234.a1b2.1234", "dpd@privaterelay.appleid.com", True, None, None),
    ),
    "bitbucket": (
        {"type": "user", "uuid": "{d301}", "display_name": "Emma", "nickname": "emma"}
        | {"links": {"self": {"href": "https://x.example"}, "avatar": {"href": URL}}},
        ("{d301}", "emma@example.com", True, "Emma", URL),
    ),
    "discord": (
        {"id": "80351110224678912", "username": "nelly", "global_name": "Nelly", "avatar": "8342729096ea"}
        | {"verified": True, "email": "nelly@discord.com"},
        ("80351110224678912", "nelly@discord.com", True, "Nelly", None),
    ),
    "facebook": (
        {"id": "10220339574361234", "name": "Jane Smith", "email": "jane@example.com"},
        ("10220339574361234", "jane@example.com", False, "Jane Smith", None),
    ),
    "figma": (
        {"id": "2", "email": "johndoe@example.com", "handle": "John Doe", "img_url": URL},
        ("2", "johndoe@example.com", False, "John Doe", URL),
    ),
    "fly": (
        {"resource_owner_id": "lm9", "scope": ["read"], "expires_in": 7200, "user_id": "lm9eng"}
        | {"user_name": "Jerome Gravel", "email": "jerome@fly.example"},
        ("lm9eng", "jerome@fly.example", False, "Jerome Gravel", None),
    ),
    "github": (
        {"login": "octocat", "id": 1, "avatar_url": URL, "name": "Mona", "email": "x@x.example"},
        ("1", "octocat@github.com", True, "Mona", URL),
    ),
    **dict.fromkeys(
        ["gitlab", "google", "linkedin", "slack"],
        (JOHN, ("U123", "john@example.com", True, "John Doe", URL)),
    ),
    "kakao": (
        {
            "id": 123456789,
            "kakao_account": {
                "profile": {"nickname": "Ryan", "profile_image_url": URL},
                "email": "sample@sample.com",
                "is_email_valid": True,
                "is_email_verified": True,
            },
        },
        ("123456789", "sample@sample.com", True, "Ryan", URL),
    ),
    "notion": (
        {
            "object": "user",
            "id": "16d84278-ab0e-484c-9bdd-b35da3bd8905",
            "name": "pied piper",
            "type": "bot",
            "bot": {
                "owner": {
                    "type": "user",
                    "user": {
                        "id": "5389a034-eb5c-47b5-8a9e-f79c99ef166c",
                        "name": "christine makenotion",
                        "avatar_url": URL,
                        "person": {"email": "christine@makenotion.com"},
                    },
                }
            },
        },
        (
            "5389a034-eb5c-47b5-8a9e-f79c99ef166c",
            "christine@makenotion.com",
            False,
            "christine makenotion",
            URL,
        ),
    ),
    "snapchat": (
        {"data": {"me": {"externalId": "CAESIPiR", "displayName": "Bob", "bitmoji": {"avatar": URL}}}},
        ("CAESIPiR", None, False, "Bob", URL),
    ),
    "spotify": (
        {"display_name": "JM Wizzler", "email": "email@example.com", "id": "wizzler"}
        | {"images": [{"height": 300, "url": URL, "width": 300}]},
        ("wizzler", "email@example.com", False, "JM Wizzler", URL),
    ),
    "twitch": (
        {
            "data": [
                {"id": "14", "login": "t", "display_name": "T", "profile_image_url": URL, "email": "t@e.com"}
            ]
        },
        ("14", "t@e.com", True, "T", URL),
    ),
    "twitter": (
        {"data": {"id": "2244994945", "name": "X Dev", "username": "XD", "profile_image_url": URL}},
        ("2244994945", None, False, "X Dev", URL),
    ),
    "vercel": (
        {"sub": "345e869043f1e55f8bdc837c", "email": "user@example.com", "email_verified": True}
        | {"name": "John Doe", "preferred_username": "john-doe", "picture": URL},
        ("345e869043f1e55f8bdc837c", "user@example.com", True, "John Doe", URL),
    ),
    "workos": (
        {"object": "profile", "id": "prof_01DMC", "connection_id": "conn_01E4Z", "idp_id": "00u1a"}
        | {"email": "todd@example.com", "first_name": "Todd", "last_name": "Rundgren"},
        ("prof_01DMC", "todd@example.com", False, "Todd", None),
    ),
    "zoom": (
        {"id": "zJKyaiAyTNC", "email": "jchill@example.com", "display_name": "Jill Chill", "verified": 1}
        | {"pic_url": URL, "type": 1},
        ("zJKyaiAyTNC", "jchill@example.com", True, "Jill Chill", URL),
    ),
}
NAMES = sorted(SAMPLES)
# The responses of the lists of addresses.
EMAILS: dict[str, Any] = {
    "bitbucket": {
        "values": [
            {"email": "old@example.com", "is_primary": False, "is_confirmed": True},
            {"email": "Emma@example.com", "is_primary": True, "is_confirmed": True},
        ]
    },
    "github": [{"email": "octocat@github.com", "verified": True, "primary": True, "visibility": "public"}],
}


class TestData:
    def test_preset_has_a_sample_and_names_the_documentation_of_its_provider(self):
        assert sorted(PRESETS) == NAMES
        for name, preset in PRESETS.items():
            url = urlsplit(preset.documentation)
            assert (url.scheme, len(url.path) > 1) == ("https", True)
            assert f".{url.hostname}".endswith(f".{HOSTS.get(name, f'{name}.com')}")
        assert GENERIC.documentation == "https://openid.net/specs/openid-connect-core-1_0.html"

    @pytest.mark.parametrize("preset", PRESETS.values(), ids=list(PRESETS))
    def test_preset_uses_discovery_or_has_all_endpoints_as_plain_https_urls(self, preset: Preset):
        assert bool(preset.issuer) != bool(preset.authorize_url and preset.token_url and preset.userinfo_url)
        assert (preset.scopes == "") == (preset in [PRESETS[name] for name in WITHOUT_SCOPES])
        assert preset.subject
        assert bool(preset.issuer) <= ("openid" in preset.scopes.split())
        assert not preset.issuer.endswith("/")
        names = [field.name for field in fields(preset) if field.name.endswith("_url")]
        for value in filter(None, (getattr(preset, name) for name in ["issuer", *names])):
            url = urlsplit(value)
            assert (url.scheme, bool(url.hostname), url.username, url.fragment) == ("https", True, None, "")
        if not preset.email:
            assert (preset.email_verified, preset.gives_verified_only, preset.emails_url) == ("", False, "")
        assert bool(preset.link_by_email) <= bool(preset.email and preset.email_verified)

    def test_three_presets_are_trusted_to_link_and_one_uses_form_post(self):
        assert [name for name in NAMES if PRESETS[name].link_by_email] == ["apple", "github", "google"]
        assert not GENERIC.link_by_email
        assert [name for name in NAMES if PRESETS[name].form_post] == ["apple"]


@pytest.fixture
def provider(name: str) -> Iterator[FakeProvider]:
    """A provider on loopback that returns the sample."""
    with (Apple if name == "apple" else FakeProvider if name in OPENID else PlainProvider)(name) as provider:
        provider.person = SAMPLES[name][0]
        if isinstance(provider, PlainProvider):
            provider.documents = {"/user": SAMPLES[name][0], "/user/emails": EMAILS.get(name)}
        yield provider


@pytest.fixture
def sampled(make_service, provider):
    """The service with this provider."""
    emails = {"emails_url": f"{provider.url}/user/emails"} if provider.name in EMAILS else {}
    return make_service(**provider.settings(**emails))


@pytest.mark.parametrize("name", NAMES)
class TestSample:
    """A sign-in with each provider, with the sample of its documentation."""

    def test_sample_is_read_and_the_secret_sent_in_the_documented_way(self, sampled, provider, name):
        subject, email, verified, person, picture = SAMPLES[name][1]
        user = sampled.user(name)
        expected = {"sub": subject, "email": email, "email_verified": verified, "name": person}
        data = user["identities"][0]["identity_data"]
        assert {key: data.get(key) for key in expected} == expected
        assert data.get("avatar_url") == picture
        assert user["email"] == (email if verified else None)
        assert user["app_metadata"]["provider"] == name
        if isinstance(provider, PlainProvider):
            (exchange,) = [asked for asked in provider.asked if asked.path == "/token"]
            by_basic = exchange.headers.get("authorization", "").startswith("Basic ")
            assert by_basic == (PRESETS[name].auth_method == "client_secret_basic")
            assert ("client_secret" in exchange.parameters) != by_basic

    def test_sample_with_only_the_subject_is_read(self, sampled, provider, name):
        subject = SAMPLES[name][1][0]
        nested: dict[str, Any] = {"twitter": {"data": {"id": subject}}, "twitch": {"data": [{"id": subject}]}}
        nested |= {"notion": {"bot": {"owner": {"user": {"id": subject}}}}}
        nested |= {"snapchat": {"data": {"me": {"externalId": subject}}}}
        provider.person = nested.get(name, {PRESETS[name].subject: subject})
        if isinstance(provider, PlainProvider):
            empty: Any = {"values": []} if name == "bitbucket" else []
            provider.documents = {"/user": provider.person, "/user/emails": empty}
        user = sampled.user(name)
        assert (user["email"], user["user_metadata"]) == (None, {})
        assert user["identities"][0]["identity_data"]["sub"] == subject


@pytest.mark.parametrize("name", sorted(set(NAMES) - OPENID))
def test_browser_is_sent_to_the_real_provider_by_default(make_service, name):
    values = dict.fromkeys(["AUTHORIZE_URL", "TOKEN_URL", "USERINFO_URL", "EMAILS_URL"])
    values |= {"CLIENT_ID": "x", "CLIENT_SECRET": "y"}
    service = make_service(**{f"AUTH_PROVIDER_{name.upper()}_{key}": values[key] for key in values})
    browser = service.browser()
    sent = service.leave(browser, name)
    assert browser.page.url.startswith(PRESETS[name].authorize_url)
    assert (sent["response_type"], sent["client_id"]) == ("code", "x")
    assert (sent["redirect_uri"], sent.get("scope", "")) == (f"{SITE}/callback", PRESETS[name].scopes)


@pytest.mark.parametrize("name", ["linkedin"])
def test_linkedin_does_not_get_pkce(sampled, name):
    # LinkedIn refuses the secret of a client that sends a code_verifier: 401 invalid_client
    # (UsefulSoftwareCo/executor#2087, tried on it in September 2026). Its PKCE is for native clients, at
    # another address.
    sent = sampled.leave(sampled.browser(), name)
    assert not {"code_challenge", "code_challenge_method"} & set(sent)


@pytest.mark.parametrize("name", ["twitch"])
def test_twitch_is_sent_the_client_id_with_the_token_and_may_list_scopes(sampled, provider, name):
    provider.token_response = {"scope": ["user:read:email"], "refresh_token": "x"}
    sampled.signed_in(name)
    (asked,) = [asked for asked in provider.asked if asked.path == "/user"]
    assert asked.headers["client-id"] == provider.client_id
    assert asked.headers["authorization"].startswith("Bearer ")


@pytest.mark.parametrize("name", ["notion"])
def test_notion_is_told_the_version_of_its_api(sampled, provider, name):
    sampled.signed_in(name)
    (asked,) = [asked for asked in provider.asked if asked.path == "/user"]
    assert asked.headers["notion-version"] == "2022-06-28"


@pytest.mark.parametrize("name", ["zoom"])
@cases("verified", [0, None, "1", 2, False])
def test_zoom_verifies_an_email_with_the_number_1_alone(sampled, provider, name, verified):
    provider.documents = {"/user": SAMPLES[name][0] | {"verified": verified}}
    assert sampled.user(name)["email"] is None


@pytest.mark.parametrize("name", ["kakao"])
def test_kakaos_email_that_another_account_has_now_is_not_verified(sampled, provider, name):
    account = SAMPLES[name][0]["kakao_account"] | {"is_email_valid": False}
    provider.documents = {"/user": SAMPLES[name][0] | {"kakao_account": account}}
    assert sampled.user(name)["email"] is None


def test_apples_secret_is_signed_for_each_exchange_and_the_name_sent_once_stays(service, fakes):
    apple = fakes.apple
    apple.person = {"sub": "001.alice"}
    name = '{"name": {"firstName": "Alice", "middleName": "P.", "lastName": "Liddell"}, "email": "x@example.com"}'
    for sent in (name, None):
        apple.user = sent
        assert service.user("apple")["user_metadata"] == {"name": "Alice Liddell"}
    assert len(apple.secrets) == 2
    for claims in apple.secrets:
        assert (claims["iss"], claims["sub"], claims["aud"]) == (apple.TEAM_ID, apple.client_id, apple.url)
        # Apple allows six months; a short-lived secret is worth less when stolen.
        assert 0 < claims["exp"] - claims["iat"] <= 3600
    assert "PRIVATE KEY" not in str(apple.asked)


class TestAzure:
    @cases(
        "claims",
        [
            {"iss": "{url}/11111111-2222-4333-8444-555555555555/v2.0"},
            {"iss": "{url}/{{tenantid}}/v2.0", "tid": "{{tenantid}}"},
            {"iss": "{url}/common/v2.0", "tid": "common"},
            {"iss": "{url}//v2.0", "tid": ""},
            {"iss": "{url}/None/v2.0", "tid": None},
            {"tid": "22222222-2222-4333-8444-555555555555"},
            {"iss": "https://sts.windows.net/9188040d-6c67-4c5b-b112-36a304b66dad/"},
        ],
    )
    def test_token_with_a_tenant_of_another_issuer_is_refused(self, service, fakes, database, claims):
        fakes.azure.reset()
        fakes.azure.person = {"sub": "x"}
        fakes.azure.claims |= {
            name: value.format(url=fakes.azure.url) if value else value for name, value in claims.items()
        }
        assert_failed(service.sign_in("azure"), *FAILED)
        assert database.count("users") == 0

    def test_one_tenant_can_be_required(self, make_service, fakes, database, monkeypatch):
        azure = fakes.azure
        issuer, other = f"{azure.url}/{azure.TENANT}/v2.0", "11111111-2222-4333-8444-555555555555"
        path = f"/{azure.TENANT}/v2.0/.well-known/openid-configuration"
        monkeypatch.setattr(azure, "DISCOVERY", path)
        azure.metadata, azure.person = {"issuer": issuer}, {"sub": "x"}
        service = make_service(AUTH_PROVIDER_AZURE_ISSUER=issuer)
        service.signed_in("azure")
        azure.claims = {"iss": f"{azure.url}/{other}/v2.0", "tid": other}
        assert_failed(service.sign_in("azure"), *FAILED)
        assert database.count("users") == 1
