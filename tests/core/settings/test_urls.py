"""Settings that are URLs: each spelling is taken for what it means, or refused by a line that names the setting."""

import dataclasses

import pytest

from auth.core.net.origins import Origins
from auth.core.net.redirects import AllowList
from auth.core.settings import Settings, SettingsError, name_of
from tests.support.cases import cases

HOST = "auth.example.com"
SECRETS = "whsec_" + "QUJD" * 8
HOOKS = ("BEFORE_USER_CREATED", "CUSTOM_ACCESS_TOKEN", "SEND_EMAIL", "SEND_SMS")
NAMES = (
    *("BASE_URL", "SITE_URL", "REDIRECT_ALLOW_LIST", "OAUTH_CONSENT_URL", "CORS_ORIGINS", "WEBAUTHN_ORIGINS"),
    *(
        "JWT_ISSUER",
        "PASSWORD_LEAKED",
        "TWILIO_API_URL",
        "BRAND_LOGO",
        "TERMS_URL",
        "PRIVACY_URL",
        "SUPPORT_URL",
    ),
)
TOKEN_SETTINGS = {"URL": "smtp://a%40b.c@mail.example.com", "CLIENT_ID": "x", "CLIENT_SECRET": "x"}
WITH_OTHERS: dict[str, dict[str, str]] = {
    "AUTH_SITE_LOGIN_URL": {"AUTH_REDIRECT_ALLOW_LIST": f"https://{HOST}/**"},
    "AUTH_CAPTCHA": {"AUTH_CAPTCHA_SECRET": "x"},
    "AUTH_SMTP_TOKEN_URL": {f"AUTH_SMTP_{name}": value for name, value in TOKEN_SETTINGS.items()},
    **{f"AUTH_HOOK_{name}": {f"AUTH_HOOK_{name}_SECRETS": SECRETS} for name in HOOKS},
    "AUTH_PROVIDER_ACME_ISSUER": {f"AUTH_PROVIDER_ACME_CLIENT_{name}": "x" for name in ("ID", "SECRET")},
}
# A good value of each setting that is a URL or a list of URLs, and the other settings that it needs.
URLS = {
    **{f"AUTH_{name}": (f"https://{HOST}", {}) for name in NAMES},
    "AUTH_RATE_LIMIT_STORAGE": (f"redis://{HOST}", {}),
    "AUTH_SMTP_URL": (f"smtp://{HOST}", {}),
    **{name: (f"https://{HOST}", others) for name, others in WITH_OTHERS.items()},
}
# URLs of databases, which libpq reads, have their own tests.
LIBPQ_URLS = {"AUTH_DATABASE_OWNER_URL", "DATABASE_URL"}
# Suffixes of a valid URL, and replacements of it.
ENDS = [
    *(":443", ":", ":0", ":99999", ":port", "/", "/%2F", "/%5c", "/..", "/a/../b", "/%2e%2e/x", "/a b", "/ü"),
    *("?", "?x=1", "#", "#x", "/*", "/**", "/{x}", "/|", "/\\", "\\", "@", "/%", "/;a", "//x", "/[", "]"),
]


def spellings(url: str) -> list[str]:
    scheme, _, host = url.partition("://")
    hosts = (
        host.upper(),
        "Äuth.example.com",
        "*.example.com",
        "[",
        "[::1",
        "",
        f"user:pw@{host}",
        f"a..{host}",
    )
    others = [f"{scheme.upper()}://{host}", f"{scheme}:{host}", f"{scheme}:///x", "["]
    return [*(f"{scheme}://{each}" for each in hosts), *others, *(url + end for end in ENDS)]


def test_each_setting_that_is_a_url_is_tried_here():
    names = {name_of(field.name) for field in dataclasses.fields(Settings) if field.metadata}
    likely = {name for name in names if name.endswith(("_URL", "_ORIGINS", "_LOGO", "_ISSUER", "_STORAGE"))}
    assert likely - LIBPQ_URLS <= URLS.keys()


@pytest.mark.parametrize("name", URLS)
def test_url_is_taken_or_refused_by_a_line_that_names_the_setting(load, name):
    url, others = URLS[name]
    accepted, lines = [], []
    for value in (url, *spellings(url)):
        try:
            loaded = load(**others | {name: value})
        except SettingsError as error:
            lines += [(value, line) for line in str(error).splitlines()]
            continue
        accepted.append(value)
        # The service creates them at the start.
        AllowList(loaded.site_url, loaded.redirect_allow_list, loaded.base_url, has_pages=loaded.pages)
        Origins(loaded)
    assert url in accepted
    # A line about a provider that lacks its issuer names its client.
    prefix = name.removesuffix("ISSUER") if "PROVIDER" in name else f"{name}: "
    assert [each for each in lines if not each[1].startswith(prefix)] == []


@cases("name", ["AUTH_BASE_URL", "AUTH_OAUTH_CONSENT_URL"])
@pytest.mark.parametrize("path", ["/..", "/%2F", "/a b", "/ü", ":", "/*", "?", "#"])
def test_ambiguous_url_of_the_service_is_refused(load, name, path):
    with pytest.raises(SettingsError, match=rf"\A{name}: [^\n]+\Z"):
        load(**{name: f"https://{HOST}{path}"})
