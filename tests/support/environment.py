"""The settings of the tests."""

import os
from pathlib import Path

import pytest

from auth.core.settings import kept_secrets
from tests.support.extensions import EXTENSIONS_OFF

BASE_URL = "http://localhost:8000"
SERVICE_ROLE_KEY = "the-service-role-key-of-these-tests"
# Settings of all tests: the cheapest hashes, no limits, and no delivery except to the mailbox.
ENVIRONMENT = {
    "AUTH_BASE_URL": BASE_URL,
    "AUTH_SERVICE_ROLE_KEY": SERVICE_ROLE_KEY,
    "AUTH_BCRYPT_COST": "4",
    "AUTH_DELIVER": "false",
    "AUTH_LOG_FORMAT": "json",
    "AUTH_LOG_LEVEL": "info",
    "AUTH_RATE_LIMITS_ENABLED": "false",
}
# Of applications and services of this release: no page that offers a passkey stands between a sign-in and its
# destination.
SIGN_INS_LEAD_ON = {"AUTH_PASSKEY_OFFER": "off"}
# Moves the clock of all programs: tests/support/shifted_clock.c.
CLOCK = {name: os.environ[name] for name in ("LD_PRELOAD", "CLOCK_SHIFT") if name in os.environ}
# tests/system/test_extensions.py starts a process that runs some tests without extensions.
if os.environ.get("TEST_EXTENSIONS") == "none":
    ENVIRONMENT |= EXTENSIONS_OFF


def secret(name: str) -> str:
    """Return a secret of 32 characters that the settings accept."""
    return f"{name:_<10}-of-these-test-deploys"


def clear_settings(patch: pytest.MonkeyPatch) -> None:
    """Remove all settings from the environment."""
    for name in list(os.environ):
        if name.startswith("AUTH_") or name in ("DATABASE_URL", "PORT"):
            patch.delenv(name)


def make_keys(directory: Path) -> None:
    """Make the secrets of a state directory that are missing, as the first start of a service does."""
    kept_secrets.make({field: directory / name for field, name in kept_secrets.FILES.items()})
