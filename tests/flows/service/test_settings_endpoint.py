"""GET /settings: the public settings of the service."""

import pytest

from tests.support.answers import assert_ok
from tests.support.checked_rows import statements_run

NO_CHARACTERS = dict.fromkeys(["lowercase", "uppercase", "numbers", "symbols"], False)
DEFAULTS = {
    "external_email_enabled": True,
    "external_phone_enabled": True,
    "external_anonymous_users_enabled": False,
    "external_providers_enabled": False,
    "disable_signup": False,
    "autoconfirm": False,
    "password_min_length": 8,
    "password_requirements": dict.fromkeys(NO_CHARACTERS, True),
    "email_confirm_required": True,
    "phone_confirm_required": True,
    "session_timeout": 2_592_000,
    "refresh_token_rotation_enabled": True,
    "mfa_enabled": True,
    "mfa_max_enrolled_factors": 10,
    "rate_limits": {name: {"requests": 30, "window": 300} for name in ("signup", "login", "recover")},
}


def response_and_expected(make_app, **changes):
    """Return the response, whose providers are all disabled, and the expected one."""
    response = make_app(AUTH_RATE_LIMITS_ENABLED="true", **changes).test_client().get("/settings")
    providers = response.json["external_providers"]
    assert [set(provider) for provider in providers] == [{"name", "enabled"}] * len(providers)
    assert not any(provider["enabled"] for provider in providers)
    return response, DEFAULTS | {"external_providers": providers}


def test_response_shows_the_defaults(make_app):
    assert_ok(*response_and_expected(make_app))


@pytest.mark.parametrize(
    ("name", "value", "field", "expected"),
    [
        ("AUTH_ANONYMOUS_ENABLED", "true", "external_anonymous_users_enabled", True),
        ("AUTH_PASSWORD_REQUIREMENTS", "numbers", "password_requirements", NO_CHARACTERS | {"numbers": True}),
        ("AUTH_EMAIL_CONFIRM_REQUIRED", "false", "email_confirm_required", False),
        ("AUTH_REFRESH_TOKEN_LIFETIME", "86400", "session_timeout", 86400),
    ],
)
def test_response_shows_changed_settings(make_app, name, value, field, expected):
    response, defaults = response_and_expected(make_app, **{name: value})
    assert_ok(response, defaults | {field: expected})


def test_response_contains_no_secret_and_needs_no_database(client, parts):
    before = statements_run()
    text = client.get("/settings").text
    for secret in (*parts.settings.service_role_key, *parts.settings.secret_key, parts.settings.database_url):
        assert secret not in text
    assert statements_run() == before
