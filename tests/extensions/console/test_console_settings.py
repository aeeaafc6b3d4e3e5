"""/console/settings: each setting with its value and origin, and no secret."""

import html
import json

from auth.core.settings import names
from auth.core.settings.values import kinds
from tests.support.environment import secret
from tests.support.pages import Visitor


def test_every_setting_is_shown_with_its_origin(operator):
    page = operator.visit("/console/settings")
    assert page.status == 200
    assert [name for name in names() if f"<code>{name}</code>" not in page.text] == []
    chosen, _, defaults = page.text.partition('id="defaults"')
    assert "<code>AUTH_BCRYPT_COST</code>" in chosen
    assert "<code>AUTH_MFA_REQUIRED</code>" in defaults


def test_page_shows_no_secret_of_the_settings_and_of_the_state_directory(operator, parts, state_dir):
    settings = parts.key_ring.settings
    files = [file.read_text(errors="replace").strip() for file in state_dir.iterdir() if file.is_file()]
    keys = [key for text in files if text.startswith("{") for key in json.loads(text).get("keys", ())]
    secrets = [*settings.secret_key, *settings.service_role_key, *files]
    secrets += [key[part] for key in keys for part in ("d", "k") if part in key]
    secrets = [each for each in secrets if each]
    assert len(secrets) > 3
    text = html.unescape(operator.visit("/console/settings").text)
    assert [each[:8] for each in secrets if each in text] == []


def test_page_shows_no_password_of_a_url(make_app, carol):
    hidden = {
        "AUTH_SMTP_URL": "smtp://mailer:the-smtp-password@mail.example.com:587",
        "AUTH_JWT_SECRET": secret("the-jwt-secret"),
        "AUTH_PROVIDER_GITHUB_CLIENT_ID": "the-client-id",
        "AUTH_PROVIDER_GITHUB_CLIENT_SECRET": "the-client-secret",
    }
    text = Visitor(make_app(**hidden)).signed_in_as(carol).visit("/console/settings").text
    assert "smtp://mail.example.com:587" in text
    assert "the-client-id" in text
    assert "AUTH_PROVIDER_GITHUB_CLIENT_SECRET" in text
    for each in ("the-smtp-password", hidden["AUTH_JWT_SECRET"], "the-client-secret"):
        assert each not in text


def test_database_is_shown_without_its_user_and_password():
    url = "postgresql://ada:pa%40ss@a:6432,b:6433/auth?sslmode=require&password=pass"
    assert kinds.database(url) == "host=a,b port=6432,6433 dbname=auth sslmode=require"
