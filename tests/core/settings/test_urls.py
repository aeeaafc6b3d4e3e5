"""Settings that are URLs: each spelling is taken for what it means, or refused by a line that names the setting."""

import dataclasses

import pytest

from auth.core.net.origins import Origins
from auth.core.net.redirects import AllowList
from auth.core.settings import Settings, SettingsError, name_of
from tests.support.cases import cases

HOST = "auth.example.com"
# Of each setting that is a URL, or a list of some: one that is good, and what else it needs.
SECRETS = "whsec_" + "QUJD" * 8
URLS = {
    "AUTH_BASE_URL": (f"https://{HOST}", {}),
    "AUTH_SITE_URL": (f"https://{HOST}", {}),
    "AUTH_SITE_LOGIN_URL": (f"https://{HOST}", {"AUTH_REDIRECT_ALLOW_LIST": f"https://{HOST}/**"}),
    "AUTH_REDIRECT_ALLOW_LIST": (f"https://{HOST}", {}),
    "AUTH_OAUTH_CONSENT_URL": (f"https://{HOST}", {}),
    "AUTH_CORS_ORIGINS": (f"https://{HOST}", {}),
    "AUTH_WEBAUTHN_ORIGINS": (f"https://{HOST}", {}),
    "AUTH_JWT_ISSUER": (f"https://{HOST}", {}),
    "AUTH_PASSWORD_LEAKED": (f"https://{HOST}", {}),
    "AUTH_CAPTCHA": (f"https://{HOST}", {"AUTH_CAPTCHA_SECRET": "x"}),
    "AUTH_RATE_LIMIT_STORAGE": (f"redis://{HOST}", {}),
    "AUTH_SMTP_URL": (f"smtp://{HOST}", {}),
    "AUTH_SMTP_TOKEN_URL": (
        f"https://{HOST}",
        {
            "AUTH_SMTP_URL": "smtp://a%40b.c@mail.example.com",
            "AUTH_SMTP_CLIENT_ID": "x",
            "AUTH_SMTP_CLIENT_SECRET": "x",
        },
    ),
    "AUTH_TWILIO_API_URL": (f"https://{HOST}", {}),
    "AUTH_BRAND_LOGO": (f"https://{HOST}", {}),
    "AUTH_TERMS_URL": (f"https://{HOST}", {}),
    "AUTH_PRIVACY_URL": (f"https://{HOST}", {}),
    "AUTH_SUPPORT_URL": (f"https://{HOST}", {}),
    **{
        f"AUTH_HOOK_{name}": (f"https://{HOST}", {f"AUTH_HOOK_{name}_SECRETS": SECRETS})
        for name in ("BEFORE_USER_CREATED", "CUSTOM_ACCESS_TOKEN", "SEND_EMAIL", "SEND_SMS")
    },
    "AUTH_PROVIDER_ACME_ISSUER": (
        f"https://{HOST}",
        {"AUTH_PROVIDER_ACME_CLIENT_ID": "x", "AUTH_PROVIDER_ACME_CLIENT_SECRET": "x"},
    ),
}
# Databases have their own tests, in words of libpq.
OTHERS = {"AUTH_DATABASE_OWNER_URL", "DATABASE_URL"}
# Suffixes of a valid URL, and replacements of it.
ENDS = [
    *(":443", ":", ":0", ":99999", ":port", "/", "/%2F", "/%5c", "/..", "/a/../b", "/%2e%2e/x", "/a b", "/ü"),
    *(
        "?",
        "?x=1",
        "#",
        "#x",
        "/*",
        "/**",
        "/{x}",
        "/|",
        "/\\",
        "\\",
        "@",
        "/%",
        "/;a",
        "//x",
        "/[",
        "]",
        "^",
        "\t/x",
    ),
]


def spellings(url: str) -> list[str]:
    scheme, _, host = url.partition("://")
    others = [f"{scheme}://{host.upper()}", f"{scheme.upper()}://{host}", f"{scheme}://Äuth.example.com"]
    others += [
        f"{scheme}://*.example.com",
        f"{scheme}://[",
        f"{scheme}://[::1",
        f"{scheme}://",
        f"{scheme}:{host}",
    ]
    others += [
        f"{scheme}://user:pw@{host}",
        f"{scheme}://@{host}",
        f"{scheme}://a..{host}",
        f"{scheme}:///x",
        "[",
    ]
    return [*others, *(url + end for end in ENDS)]


def test_each_setting_that_is_a_url_is_walked():
    named = {name_of(field.name) for field in dataclasses.fields(Settings) if field.metadata}
    likely = {name for name in named if name.endswith(("_URL", "_ORIGINS", "_LOGO", "_ISSUER", "_STORAGE"))}
    assert likely - OTHERS <= URLS.keys()


@pytest.mark.parametrize("name", URLS)
def test_url_is_taken_or_refused_by_a_line_that_names_the_setting(load, name):
    url, others = URLS[name]
    taken, lines = [], []
    for given in (url, *spellings(url)):
        try:
            loaded = load(**others | {name: given})
        except SettingsError as error:
            lines += [(given, line) for line in str(error).splitlines()]
            continue
        taken.append(given)
        # The service creates them at the start.
        AllowList(loaded.site_url, loaded.redirect_allow_list, loaded.own_pages, loaded.own_redirects)
        Origins(loaded.base_url, loaded.cors_origins, loaded.urls_of_applications)
    assert url in taken
    # That a provider lacks its issuer is a line about its client.
    prefix = name.removesuffix("ISSUER") if "PROVIDER" in name else f"{name}: "
    assert [each for each in lines if not each[1].startswith(prefix)] == []


@cases("field", ["base_url", "site_url", "site_login_url", "oauth_consent_url"])
def test_case_of_a_host_has_no_meaning(load, field):
    loaded = load(
        **{name_of(field): "HTTPS://App.Example.COM/Path", "AUTH_SITE_URL": "https://app.example.com/Path"}
    )
    assert getattr(loaded, field) == "https://app.example.com/Path"


@cases("name", ["AUTH_BASE_URL", "AUTH_OAUTH_CONSENT_URL"])
@pytest.mark.parametrize("path", ["/..", "/%2F", "/a b", "/ü", ":", "/*", "?", "#"])
def test_ambiguous_url_of_the_service_is_refused(load, name, path):
    with pytest.raises(SettingsError, match=rf"\A{name}: [^\n]+\Z"):
        load(**{name: f"https://{HOST}{path}"})


@cases("name", ["AUTH_BASE_URL", "AUTH_SITE_URL", "AUTH_CORS_ORIGINS", "AUTH_WEBAUTHN_ORIGINS"])
def test_wildcard_is_refused_where_none_is_meant(load, name):
    with pytest.raises(SettingsError, match=rf"\A{name}: [^\n]+\Z"):
        load(**{name: "https://*.example.com"})
