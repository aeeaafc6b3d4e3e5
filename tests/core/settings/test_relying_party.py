"""The settings of passkeys."""

import pytest

from auth.ops.processes import start_checks
from tests.core.settings.test_settings import problems
from tests.support.cases import cases

DOMAIN = "Must be a lower-case domain such as example.com, without a scheme or port."
ORIGINS = "Must be https origins such as https://app.example.com, without a path."


def test_defaults_follow_the_addresses(load):
    local = load(PORT="9000")
    assert (local.passkeys_enabled, local.webauthn_rp_id) == (True, "localhost")
    assert local.webauthn_origins == ("http://localhost:9000",)
    public = load(AUTH_BASE_URL="https://Auth.example.com:443/v1", AUTH_SITE_URL="https://app.example.com/x")
    assert public.webauthn_rp_id == "auth.example.com"
    assert public.webauthn_origins == ("https://auth.example.com", "https://app.example.com")


@cases("value", ["https://a.com", "a.com:443", "Example.com", "127.0.0.1", "a..b", "*.example.com"])
def test_relying_party_that_is_no_domain_is_refused(load, value):
    assert problems(load, AUTH_WEBAUTHN_RP_ID=value) == {"AUTH_WEBAUTHN_RP_ID": DOMAIN}


def test_origin_is_meant_as_browsers_send_it(load):
    origins = "https://App.Example.com:443, http://LOCALHOST:80,https://a.example:8443,android:apk-key-hash:"
    key = "Ab_9" * 10 + "xyz"
    expected = ("https://app.example.com", "http://localhost", "https://a.example:8443")
    loaded = load(AUTH_WEBAUTHN_ORIGINS=origins + key, AUTH_CORS_ORIGINS=origins.rpartition(",")[0])
    assert loaded.webauthn_origins == (*expected, f"android:apk-key-hash:{key}")
    assert loaded.cors_origins == expected
    assert load(AUTH_CORS_ORIGINS="capacitor://localhost,*").cors_origins == ("capacitor://localhost", "*")


@cases(
    "value",
    [
        *("http://example.com", "https://example.com/", "https://*.example.com", "https://*", "https://"),
        *("https://user@example.com", "example.com", "*", "android:apk-key-hash:short"),
    ],
)
def test_origin_that_browsers_do_not_send_is_refused(load, value):
    assert problems(load, AUTH_WEBAUTHN_ORIGINS=value) == {"AUTH_WEBAUTHN_ORIGINS": ORIGINS}


CERTIFICATE = ":".join(f"{number:02X}" for number in range(32))
APPS = {
    "AUTH_WEBAUTHN_APPLE_APPS": (
        "ABCDE12345.com.example.app",
        ["com.example.app", "abcde12345.com.example.app", "ABCDE12345", "ABCDE12345.", "ABCDE12345.a/b"],
    ),
    "AUTH_WEBAUTHN_ANDROID_APPS": (
        f"com.example.app/{CERTIFICATE}",
        [
            *("com.example.app", f"example/{CERTIFICATE}", f"com.example.app/{CERTIFICATE.lower()}"),
            *(f"com.example.app/{CERTIFICATE[:-3]}", f"com.example.app/{CERTIFICATE.replace(':', '')}"),
        ],
    ),
}


@cases(("name", "valid_id", "invalid_ids"), [(name, *values) for name, values in APPS.items()])
def test_ids_of_native_applications_are_checked(load, name, valid_id, invalid_ids):
    assert getattr(load(**{name: valid_id}), name.removeprefix("AUTH_").lower()) == (valid_id,)
    for value in invalid_ids:
        assert list(problems(load, **{name: f"{valid_id},{value}"})) == [name], value


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"AUTH_SITE_URL": "http://localhost:3000"}, None),
        ({"AUTH_SITE_URL": "https://app.example.com", "AUTH_WEBAUTHN_RP_ID": "example.com"}, None),
        ({"AUTH_SITE_URL": "https://example.com", "AUTH_PASSKEYS_ENABLED": "false"}, None),
        (
            {"AUTH_SITE_URL": "https://notexample.com", "AUTH_WEBAUTHN_RP_ID": "example.com"},
            "notexample.com, the host of AUTH_SITE_URL, is neither example.com nor a subdomain of it",
        ),
        ({"AUTH_BASE_URL": "http://127.0.0.1:8000"}, "127.0.0.1 is not a domain"),
    ],
    ids=str,
)
def test_start_reports_that_the_application_cannot_use_passkeys(load, changes, reason):
    remedy = "set it to a domain with which the hosts of AUTH_SITE_URL and AUTH_BASE_URL end."
    line = f"AUTH_WEBAUTHN_RP_ID: Passkeys won't work: {reason}. Before users have passkeys, {remedy}"
    assert start_checks.passkey_notice(load(**changes)) == (line if reason else None)
