"""The list of settings for the console: values with their origins, and no secret."""

import dataclasses
import json
import re

import pytest

from auth.core import settings
from auth.core.settings import Settings
from auth.core.settings.listing import Listed, listed
from auth.core.settings.providers import ProviderSettings
from auth.core.settings.values import kinds
from tests.core.tokens.test_access_tokens import private_jwk

# Fields whose names sound like a secret's.
_PUBLIC = {
    *("access_token_lifetime", "refresh_token_lifetime", "refresh_token_rotation", "password_min_length"),
    *("password_requirements", "password_common_check", "passkeys_enabled", "key_overlap", "key_id"),
    "passkey_offer",
    *("service_role_jwt", "token_url", "key_files", "mfa_tokens", "token_claims", "rate_limit_client_tokens"),
    *("api_keys", "rate_limit_api_keys", "captcha_site_key", "password_leaked_file"),
}
_CANARY = "Canary7b1e9d03c5f2a4"


def listed_by_name(loaded) -> dict[str, Listed]:
    return {each.name: each for each in listed(loaded)}


def test_value_shows_whether_it_comes_from_the_environment_a_file_or_the_default(load, tmp_path):
    (tmp_path / ".env").write_text("AUTH_BRAND_NAME=Acme\nPORT=8100\n")
    listing = listed_by_name(load(PORT="8200", AUTH_AUTOCONFIRM="true", AUTH_RATE_LIMIT_LOGIN="5 per minute"))

    assert list(listing) == settings.names()
    assert listing["AUTH_BRAND_NAME"][:3] == ("AUTH_BRAND_NAME", "Acme", str(tmp_path / ".env"))
    assert listing["PORT"][:3] == ("PORT", "8200", "environment")
    assert listing["AUTH_AUTOCONFIRM"][:3] == ("AUTH_AUTOCONFIRM", "true", "environment")
    assert listing["AUTH_RATE_LIMIT_LOGIN"].value == "5 per 1 minute"
    assert listing["AUTH_REAUTHENTICATION_AGE"].value == "86400"
    assert listing["AUTH_BIND"][:3] == ("AUTH_BIND", "127.0.0.1", "default")
    assert listing["AUTH_SECRET_KEY"][:3] == (
        "AUTH_SECRET_KEY",
        "hidden",
        str(tmp_path / "var" / "secret_key"),
    )
    assert listing["AUTH_SMTP_URL"][:3] == ("AUTH_SMTP_URL", "", "default")
    # Loading again, from an environment that now has the variables of the file.
    assert listed_by_name(settings.load())["AUTH_BRAND_NAME"] == listing["AUTH_BRAND_NAME"]


def test_no_secret_is_listed(load):
    secrets = {
        "AUTH_SECRET_KEY": f"{_CANARY}-the-first-root,{_CANARY}-the-second-root",
        "AUTH_SERVICE_ROLE_KEY": f"{_CANARY}-of-the-service-role",
        "AUTH_JWT_SECRET": f"{_CANARY}-of-the-tokens-of-this",
        "AUTH_JWT_KEYS": json.dumps({"keys": [private_jwk("ES256", kid="a")]}),
        "DATABASE_URL": f"postgresql://latchkey:{_CANARY}@db.example.com:5432/auth?password={_CANARY}",
        "AUTH_RATE_LIMIT_STORAGE": f"rediss://:{_CANARY}@redis.example.com/{_CANARY}",
        "AUTH_SMTP_URL": f"smtp://{_CANARY}:{_CANARY}%40x@mail.example.com:587",
        "AUTH_HOOK_SEND_SMS": f"https://hooks.example.com/{_CANARY}?key={_CANARY}",
        "AUTH_HOOK_SEND_SMS_SECRETS": f"v1,whsec_{_CANARY * 2}|v1,whsec_{_CANARY * 3}",
        "AUTH_TWILIO_AUTH_TOKEN": _CANARY,
        "AUTH_PROVIDER_GOOGLE_CLIENT_ID": "the-client",
        "AUTH_PROVIDER_GOOGLE_CLIENT_SECRET": _CANARY,
    }
    listing = listed_by_name(load(**secrets))

    text = str(listing)
    assert _CANARY not in text
    assert json.loads(secrets["AUTH_JWT_KEYS"])["keys"][0]["d"] not in text
    assert listing["AUTH_SECRET_KEY"].value == "hidden: 2 secrets"
    assert listing["DATABASE_URL"].value == "host=db.example.com port=5432 dbname=auth sslmode=verify-full"
    assert listing["AUTH_RATE_LIMIT_STORAGE"].value == "rediss://redis.example.com"
    assert listing["AUTH_SMTP_URL"].value == "smtp://mail.example.com:587"
    assert listing["AUTH_HOOK_SEND_SMS"].value == "https://hooks.example.com"
    assert listing["AUTH_HOOK_SEND_SMS_SECRETS"].value == "hidden: 2 secrets"
    assert listing["AUTH_PROVIDER_GOOGLE_CLIENT_ID"].value == "the-client"
    assert listing["AUTH_PROVIDER_GOOGLE_CLIENT_SECRET"][1:3] == ("hidden", "environment")


@pytest.mark.parametrize("owner", [Settings, ProviderSettings])
def test_every_field_that_sounds_secret_is_declared_so(owner):
    sounds = re.compile("secret|password|token|key|storage|database|smtp_url")
    url = f"postgresql://user:{_CANARY}@host/name?password={_CANARY}"
    fields = [field for field in dataclasses.fields(owner) if sounds.search(field.name)]

    assert {field.name for field in fields if _CANARY in kinds.shown(field, url)} <= _PUBLIC
