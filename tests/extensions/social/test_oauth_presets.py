"""The presets: each links to its documentation, and reads the samples shown there."""

import copy
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from auth.core.settings.presets import GENERIC, PRESETS
from tests.support.cases import cases
from tests.support.fake_provider import Apple, FakeProvider, PlainProvider
from tests.support.oauth import FAILED, assert_failed, profile_metadata

pytest_plugins = ["tests.support.oauth_fixtures"]
ID, EMAIL, NAME, URL = "U123", "john@example.com", "John Doe", "https://pictures.example/x"
# The hosts of documentation that are not named after the provider.
HOSTS = {"azure": "microsoft.com", "bitbucket": "atlassian.com", "linkedin": "microsoft.com"}
HOSTS |= {"slack": "slack.dev", "twitch": "twitch.tv", "twitter": "x.com"}
HOSTS |= {"fly": "fly.io", "snapchat": "snap.com", "zoom": "zoom.us"}
OPENID = {name for name, preset in PRESETS.items() if preset.issuer}


_BY_OPENID = {"sub": ID, "name": NAME, "email": EMAIL, "email_verified": True, "picture": URL}
# Samples of the documentation, with one person and without members that nobody could mistake for others: the
# claims of an id_token, or the response of the userinfo endpoint.
SAMPLES: dict[str, Any] = {
    "azure": {"sub": ID, "oid": "0-6", "preferred_username": "a@b.example", "name": NAME, "email": EMAIL},
    "apple": {"sub": ID, "email": EMAIL, "email_verified": "true"},
    "bitbucket": {
        "type": "user",
        "uuid": ID,
        "display_name": NAME,
        "nickname": "joe",
        "links": {"avatar": {"href": URL}},
    },
    "discord": {
        "id": ID,
        "username": "j",
        "global_name": NAME,
        "avatar": "83",
        "verified": True,
        "email": EMAIL,
    },
    "facebook": {"id": ID, "name": NAME, "email": EMAIL},
    "figma": {"id": ID, "email": EMAIL, "handle": NAME, "img_url": URL},
    "fly": {"resource_owner_id": "lm9", "scope": ["read"], "user_id": ID, "user_name": NAME, "email": EMAIL},
    "github": {"login": "john", "id": ID, "avatar_url": URL, "name": NAME, "email": "public@x.example"},
    **dict.fromkeys(["gitlab", "google", "linkedin", "slack", "vercel"], _BY_OPENID),
    "kakao": {
        "id": ID,
        "kakao_account": {"email": EMAIL, "is_email_valid": True, "is_email_verified": True}
        | {"profile": {"nickname": NAME, "profile_image_url": URL}},
    },
    "notion": {
        "object": "user",
        "id": "16d84278",
        "bot": {"owner": {"user": {"id": ID, "name": NAME, "avatar_url": URL, "person": {"email": EMAIL}}}},
    },
    "snapchat": {"data": {"me": {"externalId": ID, "displayName": NAME, "bitmoji": {"avatar": URL}}}},
    "spotify": {"display_name": NAME, "email": EMAIL, "id": ID, "images": [{"height": 300, "url": URL}]},
    "twitch": {
        "data": [{"id": ID, "login": "t", "display_name": NAME, "profile_image_url": URL, "email": EMAIL}]
    },
    "twitter": {"data": {"id": ID, "name": NAME, "username": "XD", "profile_image_url": URL}},
    "workos": {"id": ID, "idp_id": "00u1a", "email": EMAIL, "first_name": NAME, "last_name": "Doe"},
    "zoom": {"id": ID, "email": EMAIL, "display_name": NAME, "verified": 1, "pic_url": URL, "type": 1},
}
NAMES = sorted(SAMPLES)
WITHOUT_EMAIL = {"snapchat", "twitter"}
HANDLES = {"azure": "a@b.example", "bitbucket": "joe", "discord": "j", "github": "john", "twitch": "t"}
HANDLES |= {"twitter": "XD"}
UNVERIFIED = {"azure", "facebook", "figma", "fly", "notion", "spotify", "workos"}
# The responses of the lists of addresses.
EMAILS: dict[str, Any] = {
    "bitbucket": {
        "values": [
            {"email": "old@example.com", "is_primary": False, "is_confirmed": True},
            {"email": EMAIL, "is_primary": True, "is_confirmed": True},
        ]
    },
    "github": [{"email": EMAIL, "verified": True, "primary": True, "visibility": "public"}],
}


class TestData:
    def test_preset_has_a_sample_and_names_the_documentation_of_its_provider(self):
        assert sorted(PRESETS) == NAMES
        for name, preset in PRESETS.items():
            url = urlsplit(preset.documentation)
            assert (url.scheme, len(url.path) > 1) == ("https", True)
            assert f".{url.hostname}".endswith(f".{HOSTS.get(name, f'{name}.com')}")
        assert GENERIC.documentation == "https://openid.net/specs/openid-connect-core-1_0.html"

    def test_three_presets_are_trusted_to_link_and_one_uses_form_post(self):
        assert [name for name in NAMES if PRESETS[name].link_by_email] == ["apple", "github", "google"]
        assert not GENERIC.link_by_email
        assert [name for name in NAMES if PRESETS[name].form_post] == ["apple"]


@pytest.fixture
def provider(name: str) -> Iterator[FakeProvider]:
    """A provider on loopback that returns the sample."""
    with (Apple if name == "apple" else FakeProvider if name in OPENID else PlainProvider)(name) as provider:
        provider.person = SAMPLES[name]
        if isinstance(provider, PlainProvider):
            provider.documents = {"/user": SAMPLES[name], "/user/emails": EMAILS.get(name)}
        yield provider


@pytest.fixture
def sample_service(make_service, provider):
    """The service with this provider."""
    emails = {"emails_url": f"{provider.url}/user/emails"} if provider.name in EMAILS else {}
    return make_service(**provider.settings(**emails))


def nested(path: str) -> Any:
    """Return JSON that has nothing but the subject, at a path such as `data.0.id`."""
    first, _, rest = path.partition(".")
    inner = nested(rest) if rest else ID
    return [inner] if first == "0" else {first: inner}


@pytest.mark.parametrize("name", NAMES)
class TestSample:
    """A sign-in with each provider, with the sample of its documentation."""

    def test_sample_is_read_and_the_secret_sent_in_the_documented_way(self, sample_service, provider, name):
        user = sample_service.user(name)
        email = None if name in WITHOUT_EMAIL else EMAIL
        verified = name not in WITHOUT_EMAIL | UNVERIFIED
        expected: dict[str, Any] = {"sub": ID, "email": email, "email_verified": verified}
        metadata = profile_metadata(
            name="" if name == "apple" else NAME,
            picture=URL if URL in str(SAMPLES[name]) else "",
            handle=HANDLES.get(name, ""),
        )
        assert user["identities"][0]["identity_data"] == expected | metadata
        assert user["user_metadata"] == metadata
        assert user["email"] == (EMAIL if verified else None)
        assert user["app_metadata"]["provider"] == name
        if isinstance(provider, PlainProvider):
            (exchange,) = [request for request in provider.requests if request.path == "/token"]
            by_basic = exchange.headers.get("authorization", "").startswith("Basic ")
            assert by_basic == (PRESETS[name].auth_method == "client_secret_basic")
            assert ("client_secret" in exchange.parameters) != by_basic

    def test_sample_with_only_the_subject_is_read(self, sample_service, provider, name):
        provider.person = nested(PRESETS[name].subject)
        if isinstance(provider, PlainProvider):
            empty: Any = {"values": []} if name == "bitbucket" else []
            provider.documents = {"/user": provider.person, "/user/emails": empty}
        user = sample_service.user(name)
        assert (user["email"], user["user_metadata"]) == (None, {})
        assert user["identities"][0]["identity_data"]["sub"] == ID


@pytest.mark.parametrize("name", ["discord", "github"])
def test_handle_is_no_name(sample_service, provider, name):
    nameless = {"global_name": None} if name == "discord" else {"name": None}
    provider.documents |= {"/user": SAMPLES[name] | nameless}
    picture = URL if name == "github" else ""
    assert sample_service.user(name)["user_metadata"] == profile_metadata(
        picture=picture, handle=HANDLES[name]
    )


@pytest.mark.parametrize("name", ["linkedin"])
def test_linkedin_does_not_get_pkce(sample_service, name):
    # LinkedIn refuses the secret of a client that sends a code_verifier: 401 invalid_client
    # (UsefulSoftwareCo/executor#2087, tried on it in September 2026). Its PKCE is for native clients, at
    # another address.
    parameters = sample_service.leave(sample_service.browser(), name)
    assert not {"code_challenge", "code_challenge_method"} & set(parameters)


@pytest.mark.parametrize(
    ("name", "header"),
    [("twitch", ("client-id", "client-at-twitch")), ("notion", ("notion-version", "2022-06-28"))],
)
def test_provider_is_sent_the_header_that_it_asks_for(sample_service, provider, name, header):
    sample_service.signed_in(name)
    (call,) = [call for call in provider.requests if call.path == "/user"]
    assert header in call.headers.items()


@pytest.mark.parametrize("name", ["zoom"])
@cases("verified", [0, None, "1", 2, False])
def test_zoom_verifies_an_email_with_the_number_1_alone(sample_service, provider, name, verified):
    provider.documents = {"/user": SAMPLES[name] | {"verified": verified}}
    assert sample_service.user(name)["email"] is None


@pytest.mark.parametrize("name", ["kakao"])
def test_kakaos_email_that_another_account_has_now_is_not_verified(sample_service, provider, name):
    account = SAMPLES[name]["kakao_account"] | {"is_email_valid": False}
    provider.documents = {"/user": SAMPLES[name] | {"kakao_account": account}}
    assert sample_service.user(name)["email"] is None


def test_apples_secret_is_signed_for_each_exchange_and_the_name_sent_once_stays(service, fakes):
    apple = fakes.apple
    apple.person = {"sub": "001.alice"}
    name = '{"name": {"firstName": "Alice", "middleName": "P.", "lastName": "Liddell"}, "email": "x@example.com"}'
    for user_parameter in (name, None):
        apple.user = user_parameter
        assert service.user("apple")["user_metadata"] == profile_metadata(name="Alice Liddell")
    assert len(apple.secrets) == 2
    for claims in apple.secrets:
        assert (claims["iss"], claims["sub"], claims["aud"]) == (apple.TEAM_ID, apple.client_id, apple.url)
        # Apple allows six months; a short-lived secret is worth less when stolen.
        assert 0 < claims["exp"] - claims["iat"] <= 3600
    assert "PRIVATE KEY" not in str(apple.requests)


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


# Values that providers may send about an address, and which of them mean yes.
WORDS: list[Any] = [
    *(True, "true", 1, "1"),
    *(
        False,
        "false",
        0,
        "0",
        None,
        "True",
        "TRUE",
        "yes",
        "verified",
        2,
        1.0,
        "",
        [],
        {},
        [True],
        {"yes": True},
    ),
]
YES: dict[str, list[Any]] = {
    "apple": [True, "true"],
    "azure": [True, "true", "1"],
    "linkedin": [True, "true"],
    "zoom": [1],
}


# Providers whose sample itself, not a list of addresses, says whether the address is verified.
SAYING = [
    name
    for name in NAMES
    if PRESETS[name].email_verified and not PRESETS[name].gives_verified_only and name not in EMAILS
]


@pytest.mark.parametrize("name", sorted({*SAYING} - WITHOUT_EMAIL))
def test_address_is_verified_by_the_own_words_of_the_provider_alone(sample_service, provider, name):
    yes = [repr(word) for word in YES.get(name, [True])]
    read = sample_service.parts.providers[name]._identity
    sample, path = SAMPLES[name], PRESETS[name].email_verified.split(".")
    for word in WORDS:
        profile = copy.deepcopy(sample)
        inner = profile
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = word
        assert (read(profile).email is not None) == (repr(word) in yes), word


CANCELLED = {
    "apple": ["user_cancelled_authorize"],
    "linkedin": ["user_cancelled_login", "user_cancelled_authorize"],
    "workos": ["signin_consent_denied"],
}


@pytest.mark.parametrize("name", NAMES)
def test_user_who_cancels_is_told_so_and_nothing_is_logged(sample_service, provider, name, capfd):
    for word in (*CANCELLED.get(name, []), "access_denied"):
        provider.response = {"error": word, "code": None}
        browser = sample_service.browser()
        page = sample_service.sign_in(name, browser)
        page = browser.submit() if name == "apple" else page
        assert_failed(page, "bad_oauth_callback", "access_denied")
    assert "provider_failed" not in capfd.readouterr().err
