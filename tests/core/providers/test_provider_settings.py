"""AUTH_PROVIDER_…: configured providers, their listing in GET /settings, and errors that prevent the start."""

import re

import pytest

from auth.core.providers.client import Provider
from auth.core.settings.presets import PRESETS
from tests.core.settings.test_settings import problems
from tests.support.cases import cases
from tests.support.contract import OPENAPI

pytest_plugins = ["tests.support.oauth_fixtures"]
GOOGLE = {"AUTH_PROVIDER_GOOGLE_CLIENT_ID": "x", "AUTH_PROVIDER_GOOGLE_CLIENT_SECRET": "a-secret-of-google"}
ACME = {"AUTH_PROVIDER_ACME_CLIENT_ID": "x", "AUTH_PROVIDER_ACME_ISSUER": "https://acme.example"}

OUR_OWN = {"AUTH_PROVIDER_OUR_OWN_2_CLIENT_ID": "x", "AUTH_PROVIDER_OUR_OWN_2_ISSUER": "https://own.example"}


def settings_of(app) -> tuple[bool, dict[str, bool]]:
    """Return sign-up and providers as GET /settings lists them."""
    body = app.test_client().get("/settings").json
    providers = [(provider["name"], provider["enabled"]) for provider in body["external_providers"]]
    assert len(dict(providers)) == len(providers)
    return body["external_providers_enabled"], dict(providers)


class TestListing:
    @pytest.mark.parametrize(
        ("changes", "enabled"),
        [({}, {}), (GOOGLE, {"google": True}), (ACME, {"acme": True}), (OUR_OWN, {"our_own_2": True})],
        ids=["none", "preset", "generic", "several words"],
    )
    def test_configured_providers_are_listed_with_the_presets(self, make_app, changes, enabled):
        assert settings_of(make_app(**changes)) == (bool(enabled), dict.fromkeys(PRESETS, False) | enabled)

    def test_only_listed_providers_can_sign_in(self, service, fakes):
        providers = settings_of(service.app)[1]
        assert {name for name, enabled in providers.items() if enabled} == {fake.name for fake in fakes.all}
        for name, enabled in providers.items():
            assert service.client.get(f"/authorize?provider={name}").status_code == (302 if enabled else 400)

    def test_settings_contain_no_secret(self, service, fakes):
        text = service.client.get("/settings").text
        for provider in fakes.all:
            assert not any(
                value in text for value in (provider.client_secret, provider.client_id, provider.url)
            )


URLS = ["ISSUER", "AUTHORIZE_URL", "TOKEN_URL", "USERINFO_URL", "EMAILS_URL"]


class TestStartupErrors:
    @cases("name", sorted(PRESETS))
    def test_preset_without_client_id_prevents_the_start(self, load, name):
        variable = f"AUTH_PROVIDER_{name.upper()}_CLIENT_ID"
        assert set(problems(load, **{f"AUTH_PROVIDER_{name.upper()}_CLIENT_SECRET": "x"})) == {variable}
        for value in ("", "a,,b"):
            assert set(problems(load, **{variable: value})) == {variable}

    @cases("missing", ["ISSUER", "AUTHORIZE_URL", "TOKEN_URL", "USERINFO_URL"])
    def test_generic_provider_without_issuer_or_an_endpoint_prevents_the_start(self, load, missing):
        names = {"AUTHORIZE_URL", "TOKEN_URL", "USERINFO_URL"} - {missing} if missing != "ISSUER" else ()
        endpoints = {f"AUTH_PROVIDER_ACME_{name}": "https://acme.example/x" for name in names}
        secret = {"AUTH_PROVIDER_ACME_CLIENT_SECRET": "y"}
        lines = problems(load, AUTH_PROVIDER_ACME_CLIENT_ID="x", **endpoints, **secret)
        assert set(lines) == {"AUTH_PROVIDER_ACME_CLIENT_ID"}

    @cases("name", ["GOOGLE_CLIENTID", "GOOGLE", "GOOGLE_", "_CLIENT_ID", "Google_CLIENT_ID"])
    def test_unknown_variable_prevents_the_start(self, load, name):
        assert f"AUTH_PROVIDER_{name}" in problems(load, **{f"AUTH_PROVIDER_{name}": "x"})

    @cases(
        "url",
        [
            *("x", "//x", "ftp://x", "javascript:alert(1)", "https://", "https://user@x", "https://x#y"),
            *("file:///etc/passwd", "https://x:y"),
            # An attacker on the network could read codes and the client secret, and choose who signs in.
            *("http://id.example.com", "http://10.0.0.1", "http://127.0.0.1.example.com"),
            "http://localhost.example.com",
        ],
    )
    @cases("name", URLS)
    def test_malformed_url_or_http_url_of_another_host_prevents_the_start(self, load, name, url):
        variable = f"AUTH_PROVIDER_GITHUB_{name}"
        lines = problems(load, AUTH_PROVIDER_GITHUB_CLIENT_ID="x", **{variable: url})
        assert set(lines) == {variable}
        assert not url.startswith("http://") or "https" in lines[variable]

    @pytest.mark.parametrize(
        "url", ["http://127.0.0.1:9/x", "http://localhost:9", "http://[::1]:9", "http://id.localhost:9"]
    )
    def test_http_url_of_loopback_is_accepted(self, load, url):
        assert load(**ACME | {"AUTH_PROVIDER_ACME_ISSUER": url}).providers["acme"].issuer == url

    @pytest.mark.parametrize("name", ["EMAIL", "PHONE"])
    def test_reserved_provider_name_prevents_the_start(self, load, name):
        # Its operator could claim the subjects of email and phone identities, which are user ids, and sign in
        # as any user.
        prefix = f"AUTH_PROVIDER_{name}_"
        assert problems(load, **{f"{prefix}CLIENT_ID": "x", f"{prefix}ISSUER": "https://acme.example"})

    @pytest.mark.parametrize("key", ["x", "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----", "{}"])
    def test_malformed_private_key_prevents_the_start(self, load, key):
        variable = "AUTH_PROVIDER_APPLE_PRIVATE_KEY"
        others = {f"AUTH_PROVIDER_APPLE_{name}": "x" for name in ("CLIENT_ID", "TEAM_ID", "KEY_ID")}
        lines = problems(load, **others, **{variable: key})
        assert (set(lines), key in lines[variable]) == ({variable}, False)

    @pytest.mark.parametrize("missing", ["TEAM_ID", "KEY_ID", "PRIVATE_KEY"])
    def test_apple_without_a_part_of_its_secret_prevents_the_start(self, load, fakes, missing):
        changes = fakes.apple.settings()
        del changes[f"AUTH_PROVIDER_APPLE_{missing}"]
        assert f"AUTH_PROVIDER_APPLE_{missing}" in problems(load, **changes)


def test_documented_configuration_works_in_five_lines(load, fakes):
    names = []
    text = (OPENAPI.parent / "docs/oauth.md").read_text(encoding="utf-8")
    blocks = [block for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "AUTH_PROVIDER_" in block]
    for lines in map(str.splitlines, blocks):
        assert len(lines) <= 5
        settings = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
        if (key := "AUTH_PROVIDER_APPLE_PRIVATE_KEY") in settings:
            settings[key] = fakes.apple.settings()[key]
        loaded = load(**settings).providers
        (name,) = [name for name in loaded if name not in names]
        names.append(name)
        # The documented redirect URI is the one that is sent.
        comments = " ".join(line for line in lines if line.startswith("#"))
        urls = re.findall(r"https://[^\s;,]+/callback", comments)
        assert urls == [Provider(name, loaded[name], "https://auth.example.com").redirect_uri]
    assert names == ["google", "github", "apple", "azure", "acme"]


class TestParsing:
    def test_client_ids_are_a_list(self, load):
        loaded = load(AUTH_PROVIDER_GOOGLE_CLIENT_ID="web,android,ios").providers["google"]
        assert loaded.client_ids == ("web", "android", "ios")

    def test_private_key_may_be_one_line_and_no_secret_is_in_the_repr(self, load, fakes):
        changes = fakes.apple.settings()
        assert "\n" not in changes["AUTH_PROVIDER_APPLE_PRIVATE_KEY"]
        loaded = load(**changes, **GOOGLE)
        assert loaded.providers["apple"].private_key.startswith("-----BEGIN PRIVATE KEY-----\n")
        for text in (repr(loaded), str(loaded), repr(loaded.providers)):
            assert ("a-secret-of-google" in text, "PRIVATE KEY" in text) == (False, False)


def test_provider_without_a_secret_is_a_public_client(make_service, google, monkeypatch):
    def authenticates(request):
        is_public = "authorization" not in request.headers and "client_secret" not in request.parameters
        return is_public and request.parameters["client_id"] == google.client_id

    monkeypatch.setattr(google, "authenticates", authenticates)
    google.person = {"sub": "x"}
    values = {"ISSUER": google.url, "CLIENT_ID": google.client_id}
    make_service(**{f"AUTH_PROVIDER_PUBLIC_{name}": value for name, value in values.items()}).signed_in(
        "public"
    )


def test_configured_endpoints_override_discovery(make_service, google, acme):
    google.person = {"sub": "x"}
    google.metadata = {"authorization_endpoint": f"{acme.url}/authorize"}
    addresses = {"ISSUER": google.url, "AUTHORIZE_URL": f"{google.url}/authorize"}
    service = make_service(**{f"AUTH_PROVIDER_GOOGLE_{name}": url for name, url in addresses.items()})
    service.signed_in("google")
    assert acme.requests == []
