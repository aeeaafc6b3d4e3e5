"""The presets: each links to its documentation, and reads the samples shown there."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any
from urllib.parse import urlsplit

import pytest

from auth.settings.presets import GENERIC, PRESETS, Preset
from tests.support.fake_provider import Apple, FakeProvider, PlainProvider
from tests.support.oauth import fragment, single

pytest_plugins = ["tests.support.oauth_fixtures"]
NAMES = [
    "apple",
    "azure",
    "bitbucket",
    "discord",
    "facebook",
    "github",
    "gitlab",
    "google",
    "linkedin",
    "slack",
    "spotify",
    "twitch",
    "twitter",
]
OPENID = {name for name, preset in PRESETS.items() if preset.issuer}
each_preset = pytest.mark.parametrize("preset", PRESETS.values(), ids=list(PRESETS))
# Hosts of each provider's own documentation.
HOSTS = {
    "apple": "apple.com",
    "azure": "microsoft.com",
    "bitbucket": "atlassian.com",
    "discord": "discord.com",
    "facebook": "facebook.com",
    "github": "github.com",
    "gitlab": "gitlab.com",
    "google": "google.com",
    "linkedin": "microsoft.com",
    "slack": "slack.dev",
    "spotify": "spotify.com",
    "twitch": "twitch.tv",
    "twitter": "x.com",
}

# Samples of the documentation: the claims of an id_token, or the responses of the userinfo endpoint and of
# the list of addresses; and what is read from them: subject, email, verified, name, picture.
SAMPLES: dict[str, tuple[Any, Any, tuple[str, str | None, bool, str | None, str | None]]] = {
    "azure": (
        {
            "sub": "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ",
            "name": "Abe Lincoln",
            "preferred_username": "AbeLi@microsoft.com",
            "email": "AbeLi@microsoft.com",
            "oid": "00000000-0000-0000-66f3-3332eca7ea81",
            "ver": "2.0",
        },
        None,
        ("AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ", "abeli@microsoft.com", False, "Abe Lincoln", None),
    ),
    "apple": (
        {
            "sub": "001234.a1b2c3d4e5f60718293a4b5c6d7e8f90.1234",
            "email": "dpdcnf87nu@privaterelay.appleid.com",
            "email_verified": "true",
            "is_private_email": "true",
            "auth_time": 1632122123,
            "nonce_supported": True,
        },
        None,
        (
            "001234.a1b2c3d4e5f60718293a4b5c6d7e8f90.1234",
            "dpdcnf87nu@privaterelay.appleid.com",
            True,
            None,
            None,
        ),
    ),
    "bitbucket": (
        {
            "type": "user",
            "uuid": "{d301aafa-d676-4ee0-88be-962be7417567}",
            "display_name": "Emma",
            "nickname": "emma",
            "links": {
                "self": {"href": "https://api.bitbucket.org/2.0/users/x"},
                "avatar": {"href": "https://secure.gravatar.com/avatar/x"},
            },
        },
        {
            "values": [
                {"type": "email", "email": "old@example.com", "is_primary": False, "is_confirmed": True},
                {"type": "email", "email": "Emma@example.com", "is_primary": True, "is_confirmed": True},
            ],
            "page": 1,
            "size": 2,
        },
        (
            "{d301aafa-d676-4ee0-88be-962be7417567}",
            "emma@example.com",
            True,
            "Emma",
            "https://secure.gravatar.com/avatar/x",
        ),
    ),
    "discord": (
        {
            "id": "80351110224678912",
            "username": "nelly",
            "discriminator": "0",
            "global_name": "Nelly",
            "avatar": "8342729096ea3675442027381ff50dfe",
            "verified": True,
            "email": "nelly@discord.com",
            "flags": 64,
        },
        None,
        ("80351110224678912", "nelly@discord.com", True, "Nelly", None),
    ),
    "facebook": (
        {"id": "10220339574361234", "name": "Jane Smith", "email": "jane@example.com"},
        None,
        ("10220339574361234", "jane@example.com", False, "Jane Smith", None),
    ),
    "github": (
        {
            "login": "octocat",
            "id": 1,
            "avatar_url": "https://github.com/images/error/octocat_happy.gif",
            "name": "monalisa octocat",
            "email": "octocat@github.com",
        },
        [{"email": "octocat@github.com", "verified": True, "primary": True, "visibility": "public"}],
        (
            "1",
            "octocat@github.com",
            True,
            "monalisa octocat",
            "https://github.com/images/error/octocat_happy.gif",
        ),
    ),
    "gitlab": (
        {
            "sub": "574",
            "auth_time": 1700000000,
            "name": "John Doe",
            "nickname": "john",
            "preferred_username": "john",
            "email": "john@example.com",
            "email_verified": True,
            "picture": "https://gitlab.com/uploads/-/system/user/avatar/574/avatar.png",
            "groups_direct": ["group"],
        },
        None,
        (
            "574",
            "john@example.com",
            True,
            "John Doe",
            "https://gitlab.com/uploads/-/system/user/avatar/574/avatar.png",
        ),
    ),
    "google": (
        {
            "azp": "1234987819200.apps.googleusercontent.com",
            "sub": "10769150350006150715113082367",
            "at_hash": "HK6E_P6Dh8Y93mRNtsDB1Q",
            "hd": "example.com",
            "email": "jsmith@example.com",
            "email_verified": True,
            "name": "John Smith",
            "picture": "https://lh3.googleusercontent.com/a/x",
        },
        None,
        (
            "10769150350006150715113082367",
            "jsmith@example.com",
            True,
            "John Smith",
            "https://lh3.googleusercontent.com/a/x",
        ),
    ),
    "linkedin": (
        {
            "sub": "782bbtaQ",
            "name": "John Doe",
            "given_name": "John",
            "family_name": "Doe",
            "picture": "https://media.licdn-ei.com/dms/image/x",
            "locale": "en-US",
            "email": "doe@email.com",
            "email_verified": True,
        },
        None,
        ("782bbtaQ", "doe@email.com", True, "John Doe", "https://media.licdn-ei.com/dms/image/x"),
    ),
    "slack": (
        {
            "sub": "U123ABC456",
            "auth_time": 1622128723,
            "https://slack.com/team_id": "T123ABC456",
            "https://slack.com/user_id": "U123ABC456",
            "email": "alice@example.com",
            "email_verified": True,
            "date_email_verified": 1622128723,
            "name": "Alice",
            "picture": "https://secure.gravatar.com/alice",
        },
        None,
        ("U123ABC456", "alice@example.com", True, "Alice", "https://secure.gravatar.com/alice"),
    ),
    "spotify": (
        {
            "country": "SE",
            "display_name": "JM Wizzler",
            "email": "email@example.com",
            "external_urls": {"spotify": "https://open.spotify.com/user/wizzler"},
            "id": "wizzler",
            "images": [{"height": 300, "url": "https://i.scdn.co/image/x", "width": 300}],
            "product": "premium",
            "type": "user",
        },
        None,
        ("wizzler", "email@example.com", False, "JM Wizzler", "https://i.scdn.co/image/x"),
    ),
    "twitch": (
        {
            "data": [
                {
                    "id": "141981764",
                    "login": "twitchdev",
                    "display_name": "TwitchDev",
                    "profile_image_url": "https://static-cdn.jtvnw.net/x.png",
                    "email": "not-real@email.com",
                    "created_at": "2016-12-14T20:32:28Z",
                }
            ]
        },
        None,
        ("141981764", "not-real@email.com", True, "TwitchDev", "https://static-cdn.jtvnw.net/x.png"),
    ),
    "twitter": (
        {
            "data": {
                "id": "2244994945",
                "name": "X Dev",
                "username": "XDevelopers",
                "profile_image_url": "https://pbs.twimg.com/x.jpg",
            }
        },
        None,
        ("2244994945", None, False, "X Dev", "https://pbs.twimg.com/x.jpg"),
    ),
}


class TestData:
    def test_presets_are_the_documented_ones(self):
        assert sorted(PRESETS) == NAMES
        assert sorted(SAMPLES) == NAMES

    @pytest.mark.parametrize("name", NAMES)
    def test_preset_names_the_documentation_of_its_provider(self, name):
        url = urlsplit(PRESETS[name].documentation)
        assert url.scheme == "https"
        assert f".{url.hostname}".endswith(f".{HOSTS[name]}")
        assert len(url.path) > 1

    def test_generic_preset_names_the_specification(self):
        assert GENERIC.documentation == "https://openid.net/specs/openid-connect-core-1_0.html"

    @each_preset
    def test_preset_uses_discovery_or_has_all_endpoints(self, preset: Preset):
        assert bool(preset.issuer) != bool(preset.authorize_url and preset.token_url and preset.userinfo_url)
        assert preset.scopes
        assert bool(preset.issuer) <= ("openid" in preset.scopes.split())

    @each_preset
    def test_each_endpoint_is_a_plain_https_url(self, preset: Preset):
        for field in fields(preset):
            if field.name == "issuer" or field.name.endswith("_url"):
                url = urlsplit(getattr(preset, field.name))
                assert not getattr(preset, field.name) or (
                    url.scheme == "https" and url.hostname and not url.username and not url.fragment
                )
        assert not preset.issuer.endswith("/")

    @each_preset
    def test_preset_names_the_members_of_address_and_verification(self, preset: Preset):
        assert preset.subject
        # A list of addresses verifies each entry; without addresses there is nothing to verify.
        if not preset.email:
            assert (
                preset.email_verified,
                preset.gives_verified_only,
                preset.emails_url,
                preset.link_by_email,
            ) == ("", False, "", False)
        if preset.gives_verified_only:
            assert preset.email
        if preset.link_by_email:
            assert preset.email_verified

    def test_three_presets_are_trusted_to_link(self):
        assert [name for name in NAMES if PRESETS[name].link_by_email] == ["apple", "github", "google"]
        assert not GENERIC.link_by_email

    def test_apple_uses_form_post(self):
        assert [name for name in NAMES if PRESETS[name].form_post] == ["apple"]


# Settings that the fixtures make for GitHub and Twitter, and that must not be set here.
UNSET = dict.fromkeys(["AUTHORIZE_URL", "TOKEN_URL", "USERINFO_URL", "EMAILS_URL"])


@pytest.fixture
def provider(name: str) -> Iterator[FakeProvider]:
    """A provider on loopback that returns the sample."""
    with (Apple if name == "apple" else FakeProvider if name in OPENID else PlainProvider)(name) as provider:
        told, emails, _ = SAMPLES[name]
        provider.person = told
        if isinstance(provider, PlainProvider):
            provider.documents = {"/user": told, "/user/emails": emails}
        yield provider


def settings_of(provider: FakeProvider) -> dict[str, str]:
    emails = {"emails_url": f"{provider.url}/user/emails"} if SAMPLES[provider.name][1] else {}
    return provider.settings(**emails)


@pytest.mark.parametrize("name", NAMES)
class TestSample:
    """A sign-in with each provider, with the sample of its documentation."""

    @pytest.fixture
    def service(self, make_service, provider):
        return make_service(**settings_of(provider))

    def sign_in(self, service, name) -> Any:
        browser = service.browser()
        page = service.sign_in(name, browser)
        return service.session(browser.submit() if name == "apple" else page)

    def test_sample_is_read(self, service, name):
        subject, email, verified, person, picture = SAMPLES[name][2]
        user = self.sign_in(service, name).get("/user").json
        expected = {
            "sub": subject,
            "email": email,
            "email_verified": verified,
            "name": person,
            "avatar_url": picture,
        }
        data = user["identities"][0]["identity_data"]
        assert {key: data.get(key) for key in expected} == expected
        assert user["email"] == (email if verified else None)
        assert user["app_metadata"]["provider"] == name

    def test_sample_with_only_the_subject_is_read(self, service, provider, name):
        subject = SAMPLES[name][2][0]
        bare = (
            {"data": {"id": subject}}
            if name == "twitter"
            else {"data": [{"id": subject}]}
            if name == "twitch"
            else {PRESETS[name].subject: subject}
        )
        provider.person = bare
        if isinstance(provider, PlainProvider):
            provider.documents = {
                "/user": bare,
                "/user/emails": {"values": []} if name == "bitbucket" else [],
            }
        user = self.sign_in(service, name).get("/user").json
        assert (user["email"], user["identities"][0]["identity_data"]["sub"], user["user_metadata"]) == (
            None,
            subject,
            {},
        )


@pytest.mark.parametrize("name", sorted(set(NAMES) - OPENID))
class TestPlainOauthPresets:
    def test_browser_is_sent_to_the_real_provider_by_default(self, make_service, name):
        values = UNSET | {"CLIENT_ID": "x", "CLIENT_SECRET": "y"}
        service = make_service(
            **{f"AUTH_PROVIDER_{name.upper()}_{key}": value for key, value in values.items()}
        )
        page = service.browser().visit(
            service.authorize(name), stop=lambda url: not url.startswith(service.origin)
        )
        address, _, sent = page.url.partition("?")
        told = single(sent)
        assert address == PRESETS[name].authorize_url
        assert {key: told[key] for key in ("response_type", "client_id", "redirect_uri", "scope")} == {
            "response_type": "code",
            "client_id": "x",
            "redirect_uri": f"{service.origin}/callback",
            "scope": PRESETS[name].scopes,
        }

    def test_secret_is_sent_in_the_documented_way(self, make_service, provider, name):
        service = make_service(**settings_of(provider))
        service.session(service.sign_in(name))
        (exchange,) = [asked for asked in provider.asked if asked.path == "/token"]
        by_basic = exchange.headers.get("authorization", "").startswith("Basic ")
        assert by_basic == (PRESETS[name].auth_method == "client_secret_basic")
        assert ("client_secret" in exchange.parameters) != by_basic


@pytest.mark.parametrize("name", ["linkedin"])
def test_linkedin_does_not_get_pkce(make_service, provider, name):
    # LinkedIn refuses the secret of a client that sends a code_verifier: 401 invalid_client
    # (UsefulSoftwareCo/executor#2087, tried on it in September 2026). Its PKCE is for native clients, at
    # another address.
    service = make_service(**settings_of(provider))
    sent = service.leave(service.browser(), name)
    assert not {"code_challenge", "code_challenge_method"} & set(sent)


@pytest.mark.parametrize("name", ["twitch"])
def test_twitch_is_sent_the_client_id_with_the_token(make_service, provider, name):
    service = make_service(**settings_of(provider))
    service.session(service.sign_in(name))
    (asked,) = [asked for asked in provider.asked if asked.path == "/user"]
    assert asked.headers["client-id"] == provider.client_id
    assert asked.headers["authorization"].startswith("Bearer ")


@pytest.mark.parametrize("name", ["twitch"])
def test_scopes_as_a_list_do_not_prevent_sign_in(make_service, provider, name):
    provider.token_response = {"scope": ["user:read:email"], "refresh_token": "x"}
    service = make_service(**settings_of(provider))
    service.session(service.sign_in(name))


class TestApple:
    """Apple's client secret is a token that the service signs."""

    def test_secret_is_signed_for_each_exchange(self, service, fakes):
        fakes.apple.person = {"sub": "001.alice"}
        for _ in range(2):
            browser = service.browser()
            service.sign_in("apple", browser)
            service.session(browser.submit())
        for claims in fakes.apple.secrets:
            assert {name: claims[name] for name in ("iss", "sub", "aud")} == {
                "iss": fakes.apple.TEAM_ID,
                "sub": fakes.apple.client_id,
                "aud": fakes.apple.url,
            }
            # Apple allows six months; a short-lived secret is worth less when stolen.
            assert 0 < claims["exp"] - claims["iat"] <= 3600
        assert len(fakes.apple.secrets) == 2

    def test_private_key_is_never_sent(self, service, fakes):
        fakes.apple.person = {"sub": "001.alice"}
        browser = service.browser()
        service.sign_in("apple", browser)
        browser.submit()
        assert "PRIVATE KEY" not in str(fakes.apple.asked)

    def test_name_sent_once_stays(self, service, fakes):
        fakes.apple.person = {"sub": "001.alice"}
        fakes.apple.user = '{"name": {"firstName": "Alice", "middleName": "P.", "lastName": "Liddell"}, "email": "x@example.com"}'
        first = self.come(service)
        assert first["user_metadata"] == {"name": "Alice Liddell"}
        fakes.apple.user = None
        assert self.come(service)["user_metadata"] == {"name": "Alice Liddell"}

    def come(self, service) -> dict[str, Any]:
        browser = service.browser()
        service.sign_in("apple", browser)
        return service.session(browser.submit()).get("/user").json


class TestAzure:
    def test_user_of_any_tenant_signs_in(self, service, fakes):
        fakes.azure.person = {"sub": "x", "email": "abeli@microsoft.com"}
        user = service.signed_in("azure").get("/user").json
        assert (user["email"], user["app_metadata"]["provider"]) == (None, "azure")

    @pytest.mark.parametrize(
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
        fakes.azure.person = {"sub": "x"}
        fakes.azure.claims |= {
            name: value.format(url=fakes.azure.url) if value else value for name, value in claims.items()
        }
        assert fragment(service.sign_in("azure"))["error_code"] == "bad_oauth_callback"
        assert database.count("users") == 0

    def test_one_tenant_can_be_required(self, make_service, fakes, database):
        tenant = fakes.azure.TENANT
        fakes.azure.DISCOVERY = f"/{tenant}/v2.0/.well-known/openid-configuration"
        try:
            fakes.azure.metadata = {"issuer": f"{fakes.azure.url}/{tenant}/v2.0"}
            service = make_service(AUTH_PROVIDER_AZURE_ISSUER=f"{fakes.azure.url}/{tenant}/v2.0")
            fakes.azure.person = {"sub": "x"}
            service.signed_in("azure")
            other = "11111111-2222-4333-8444-555555555555"
            fakes.azure.claims = {"iss": f"{fakes.azure.url}/{other}/v2.0", "tid": other}
            assert fragment(service.sign_in("azure"))["error_code"] == "bad_oauth_callback"
        finally:
            del fakes.azure.DISCOVERY
        assert database.count("users") == 1
