"""GET /settings: the public settings of the service."""

import pytest

from tests.support.answers import assert_ok

DEFAULTS = {
    "external_email_enabled": True,
    "external_phone_enabled": True,
    "external_anonymous_users_enabled": False,
    "external_providers_enabled": False,
    "disable_signup": False,
    "autoconfirm": False,
    "password_min_length": 8,
    "password_requirements": {"lowercase": True, "uppercase": True, "numbers": True, "symbols": True},
    "email_confirm_required": True,
    "phone_confirm_required": True,
    "session_timeout": 2_592_000,
    "refresh_token_rotation_enabled": True,
    "mfa_enabled": True,
    "mfa_max_enrolled_factors": 10,
    "rate_limits": {
        "signup": {"requests": 30, "window": 300},
        "login": {"requests": 30, "window": 300},
        "recover": {"requests": 30, "window": 300},
    },
}


def test_response_shows_the_defaults(make_app):
    response = make_app(AUTH_RATE_LIMITS_ENABLED="true").test_client().get("/settings")
    providers = response.json["external_providers"]
    assert all(
        set(provider) == {"name", "enabled"} and provider["enabled"] is False for provider in providers
    )
    assert_ok(response, DEFAULTS | {"external_providers": providers})


@pytest.mark.parametrize(
    ("name", "value", "field", "shown"),
    [
        ("AUTH_EMAIL_ENABLED", "false", "external_email_enabled", False),
        ("AUTH_PHONE_ENABLED", "false", "external_phone_enabled", False),
        ("AUTH_ANONYMOUS_ENABLED", "true", "external_anonymous_users_enabled", True),
        ("AUTH_DISABLE_SIGNUP", "true", "disable_signup", True),
        ("AUTH_AUTOCONFIRM", "true", "autoconfirm", True),
        ("AUTH_PASSWORD_MIN_LENGTH", "12", "password_min_length", 12),
        (
            "AUTH_PASSWORD_REQUIREMENTS",
            "numbers",
            "password_requirements",
            {"lowercase": False, "uppercase": False, "numbers": True, "symbols": False},
        ),
        (
            "AUTH_PASSWORD_REQUIREMENTS",
            "",
            "password_requirements",
            {"lowercase": False, "uppercase": False, "numbers": False, "symbols": False},
        ),
        ("AUTH_EMAIL_CONFIRM_REQUIRED", "false", "email_confirm_required", False),
        ("AUTH_PHONE_CONFIRM_REQUIRED", "false", "phone_confirm_required", False),
        ("AUTH_REFRESH_TOKEN_LIFETIME", "86400", "session_timeout", 86400),
        ("AUTH_REFRESH_TOKEN_ROTATION", "false", "refresh_token_rotation_enabled", False),
    ],
)
def test_response_shows_changed_settings(make_app, name, value, field, shown):
    client = make_app(AUTH_RATE_LIMITS_ENABLED="true", **{name: value}).test_client()
    assert_ok(
        client.get("/settings"),
        DEFAULTS | {field: shown, "external_providers": client.get("/settings").json["external_providers"]},
    )


def test_response_contains_no_secret(client, parts):
    text = client.get("/settings").text
    for secret in (*parts.settings.service_role_key, *parts.settings.secret_key, parts.settings.database_url):
        assert secret not in text


def test_response_needs_no_database(client, parts):
    before = parts.db.statements_run
    client.get("/settings")
    assert parts.db.statements_run == before
