"""Each setting, with what quotes, `echo` and editors add to a value: refused by name, or without a meaning.

No setting is left out: the default of a new one is its example, or it needs one here.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pyrage import x25519

from auth.core.settings import Settings, SettingsError, name_of
from auth.core.settings.providers import SUFFIXES
from auth.core.settings.values import kinds, texts
from auth.core.tokens import signing_keys
from tests.support.environment import secret
from tests.support.users import PASSWORD

MAIL = "smtp://user@mail.example.com"
AGE = str(x25519.Identity.generate().to_public())
HOOK_SECRET = "whsec_MDAwMTAyMDMwNDA1MDYwNzA4MDkwYTBiMGMwZDBl"
PROVIDER = "AUTH_PROVIDER_ACME_"
OF_PROVIDER = {
    f"{PROVIDER}CLIENT_ID": "client",
    f"{PROVIDER}CLIENT_SECRET": "secret-of-acme",
    f"{PROVIDER}ISSUER": "https://acme.example",
}
PEM = (
    ec.generate_private_key(ec.SECP256R1())
    .private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    .decode()
)
SIGNING = {f"{PROVIDER}TEAM_ID": "TEAM", f"{PROVIDER}KEY_ID": "KEY", f"{PROVIDER}PRIVATE_KEY": PEM}
TOKENS = {
    "AUTH_SMTP_URL": MAIL,
    "AUTH_SMTP_TOKEN_URL": "https://login.example.com/token",
    "AUTH_SMTP_CLIENT_ID": "client",
    "AUTH_SMTP_CLIENT_SECRET": "secret-of-mail",
}
HOOKS = ("BEFORE_USER_CREATED", "CUSTOM_ACCESS_TOKEN", "SEND_EMAIL", "SEND_SMS")
# Valid values of the settings whose defaults are none, and what else must be set.
EXAMPLES: dict[str, str] = {
    "DATABASE_URL": "postgresql://auth@localhost/auth",
    "AUTH_DATABASE_OWNER_URL": "postgresql://owner@localhost/auth",
    "AUTH_STATE_DIR": "",
    "AUTH_BASE_URL": "https://auth.example.com",
    "AUTH_SITE_URL": "https://app.example.com",
    "AUTH_SITE_LOGIN_URL": "https://app.example.com/login",
    "AUTH_REDIRECT_ALLOW_LIST": "https://app.example.com/**",
    "AUTH_SECRET_KEY": secret("a"),
    "AUTH_SERVICE_ROLE_KEY": secret("b"),
    "AUTH_JWT_KEYS": "",
    "AUTH_JWT_SECRET": secret("c"),
    "AUTH_BACKUP_RECIPIENTS": AGE,
    "AUTH_JWT_ISSUER": "https://auth.example.com",
    "AUTH_TOKEN_CLAIMS": '{"plan": "app_metadata.plan"}',
    "AUTH_ID_CLAIMS": '{"plan": "app_metadata.plan"}',
    "AUTH_OAUTH_API_SCOPES": '{"https://api.example.com": "read"}',
    "AUTH_SIGNUP_DOMAINS": "example.com",
    "AUTH_SIGNUP_BLOCKED_DOMAINS": "example.com",
    "AUTH_SSO_PUBLIC_DOMAINS": "example.com",
    "AUTH_WEBAUTHN_RP_ID": "localhost",
    "AUTH_WEBAUTHN_ORIGINS": "https://app.example.com",
    "AUTH_WEBAUTHN_APPLE_APPS": "ABCDE12345.com.example.app",
    "AUTH_WEBAUTHN_ANDROID_APPS": "com.example.app/" + ":".join(["AB"] * 32),
    "AUTH_PASSWORD_LEAKED": "https://range.example.com",
    "AUTH_PASSWORD_LEAKED_FILE": "/srv/leaked-passwords",
    "AUTH_MFA_REQUIRED": "none",
    "AUTH_OAUTH_CONSENT_URL": "https://app.example.com/consent",
    "AUTH_CAPTCHA": "off",
    "AUTH_CAPTCHA_SECRET": "secret-of-captcha",
    "AUTH_CAPTCHA_SITE_KEY": "site-key",
    "AUTH_RATE_LIMIT_STORAGE": "redis://localhost:6379/0",
    "AUTH_CORS_ORIGINS": "https://app.example.com",
    "AUTH_BRAND_NAME": "Acme",
    "AUTH_BRAND_COMPANY": "Acme Inc.",
    "AUTH_BRAND_LOGO": "https://acme.example/logo.svg",
    "AUTH_TERMS_URL": "https://acme.example/terms",
    "AUTH_PRIVACY_URL": "https://acme.example/privacy",
    "AUTH_SUPPORT_URL": "https://acme.example/support",
    **TOKENS,
    "AUTH_SMTP_CLIENT_KEY": "/srv/client.pem",
    "AUTH_SMTP_SCOPE": "mail.send",
    "AUTH_MAIL_FROM": "Acme <no-reply@acme.example>",
    "AUTH_MAIL_TEMPLATES": "/srv/templates",
    "AUTH_SMS_PROVIDER": "none",
    "AUTH_SMS_COUNTRIES": "+1",
    "AUTH_TWILIO_ACCOUNT_SID": "AC0123",
    "AUTH_TWILIO_AUTH_TOKEN": "token-of-twilio",
    "AUTH_TWILIO_FROM": "Acme",
    **{f"AUTH_HOOK_{name}": "https://hooks.example.com" for name in HOOKS},
    **{f"AUTH_HOOK_{name}_SECRETS": HOOK_SECRET for name in HOOKS},
    "AUTH_METRICS_BIND": "127.0.0.1:9100",
    "AUTH_LOG_FORMAT": "json",
    **OF_PROVIDER,
    f"{PROVIDER}AUTHORIZE_URL": "https://acme.example/authorize",
    f"{PROVIDER}TOKEN_URL": "https://acme.example/token",
    f"{PROVIDER}USERINFO_URL": "https://acme.example/userinfo",
    f"{PROVIDER}EMAILS_URL": "https://acme.example/emails",
    f"{PROVIDER}SCOPES": "openid email",
    f"{PROVIDER}TITLE": "Acme",
    f"{PROVIDER}LOGO": "https://acme.example/logo.svg",
    f"{PROVIDER}LINK_BY_EMAIL": "true",
    **SIGNING,
}
# Secrets that were valid with it: another text would be another secret.
LENIENT = {
    *("AUTH_SECRET_KEY", "AUTH_SERVICE_ROLE_KEY", "AUTH_JWT_SECRET", "AUTH_CAPTCHA_SECRET"),
    *("AUTH_SMTP_CLIENT_SECRET", "AUTH_TWILIO_AUTH_TOKEN", f"{PROVIDER}CLIENT_SECRET"),
}
# JSON and PEM, which their parsers check.
DOCUMENTS = {"AUTH_JWT_KEYS", f"{PROVIDER}PRIVATE_KEY"}
DIRT: dict[str, Callable[[str], str]] = {
    "a final line feed": "{}\n".format,
    "a final carriage return": "{}\r".format,
    "a final line end of Windows": "{}\r\n".format,
    "a space before": " {}".format,
    "a space behind": "{} ".format,
    "a tab before": "\t{}".format,
    "a byte order mark": "\ufeff{}".format,
    "double quotes": '"{}"'.format,
    "single quotes": "'{}'".format,
    "a bell": lambda text: f"{text[:3]}\a{text[3:]}",
    "an escape sequence": lambda text: f"{text[:3]}\x1b[1m{text[3:]}",
    "a delete": lambda text: f"{text[:3]}\x7f{text[3:]}",
    "a control character beyond ASCII": lambda text: f"{text[:3]}\x85{text[3:]}",
    "a line feed inside": lambda text: f"{text[:3]}\n{text[3:]}",
    "a line separator": lambda text: f"{text[:3]}\u2028{text[3:]}",
    "a reversal of the direction": lambda text: f"{text[:3]}\u202e{text[3:]}",
    "a space of no width": "{}\u200b".format,
    "a byte order mark inside": lambda text: f"{text[:3]}\ufeff{text[3:]}",
    "100 KB": lambda text: text + "x" * 100_000,
}
SWITCHES = ("AUTH_RATE_LIMIT_STORAGE", "AUTH_RATE_LIMITS_ENABLED")
FIELDS = {name_of(field.name): field for field in dataclasses.fields(Settings) if field.metadata}
SECRET = {name for name, field in FIELDS.items() if field.metadata.get("is_secret")} - {"AUTH_CAPTCHA"}
NAMES = [*FIELDS, *(f"{PROVIDER}{suffix}" for suffix in SUFFIXES)]


def value_of(loaded: Settings, name: str) -> Any:
    if name in FIELDS:
        return getattr(loaded, FIELDS[name].name)
    field = name.removeprefix(PROVIDER).lower().replace("client_id", "client_ids")
    return getattr(loaded.providers["acme"], field)


@pytest.fixture(params=["AUTH_SMTP_CLIENT_SECRET", "AUTH_SMTP_CLIENT_KEY"])
def clean(request, load, tmp_path) -> dict[str, str]:
    """A valid value of each setting, but of one of the two that exclude each other."""
    defaults = load()
    shown = {
        name: kinds.shown(field, getattr(defaults, field.name)).replace(", ", ",")
        for name, field in FIELDS.items()
    }
    limits = {
        name: "5 per hour" for name in FIELDS if name.startswith("AUTH_RATE_LIMIT_") and name not in SWITCHES
    }
    own = {"AUTH_STATE_DIR": str(tmp_path / "var"), "AUTH_JWT_KEYS": signing_keys.new_jwk_set()}
    examples = shown | limits | EXAMPLES | own
    assert [name for name in NAMES if not examples.get(name)] == []
    return {name: examples[name] for name in NAMES if name != request.param}


def refused(load: Callable[..., Settings], environment: dict[str, str]) -> dict[str, str]:
    """Return the lines about refused settings, by their names."""
    try:
        load(**environment)
    except SettingsError as error:
        lines = [line.split(": ", 1) for line in str(error).splitlines()]
        return {name: text for name, text in lines if not text.startswith("The secret ")}
    return {}


@pytest.mark.parametrize("dirt", DIRT)
def test_what_is_added_to_a_value_is_refused_by_name_or_means_nothing(load, clean, dirt):
    values = load(**clean)
    assert values.warnings == ()
    dirty = {name: DIRT[dirt](value) for name, value in clean.items()}
    lines = refused(load, dirty)
    assert lines.keys() <= clean.keys()
    assert [name for name in lines.keys() & SECRET if clean[name] in lines[name]] == []
    assert lines.keys() & LENIENT == set()
    # The text of a setting that is not parsed is never taken with it.
    whole = {name for name in clean if name in FIELDS and FIELDS[name].metadata["texts"] is texts.whole}
    assert whole - LENIENT - lines.keys() == set()

    taken = dirty.keys() - lines.keys()
    loaded = load(**clean | {name: dirty[name] for name in taken})
    changed = {name for name in taken if value_of(loaded, name) != value_of(values, name)} - DOCUMENTS
    assert changed <= LENIENT
    for name in changed:
        assert value_of(loaded, name) in (dirty[name], (dirty[name].strip(),))
    end = "It is used as it stands until 0.9.0, which refuses it. Replace it by one without."
    told = {line.partition(": ")[0]: line for line in loaded.warnings}
    assert told.keys() == changed
    assert all(line.startswith(f"{name}: The secret ") for name, line in told.items())
    assert all(line.endswith(end) for line in told.values())
    assert [line for name, line in told.items() if clean[name] in line] == []


# Texts that people read, or that are sent in bodies, in base64 or percent-encoded, or stay on this machine.
MAY_BE_INTERNATIONAL = {
    *("AUTH_BRAND_NAME", "AUTH_BRAND_COMPANY", "AUTH_MAIL_FROM", "AUTH_TWILIO_FROM", f"{PROVIDER}TITLE"),
    *(
        "AUTH_SECRET_KEY",
        "AUTH_JWT_SECRET",
        "AUTH_CAPTCHA_SECRET",
        "AUTH_SMTP_CLIENT_SECRET",
        "AUTH_JWT_ISSUER",
    ),
    *("AUTH_SMTP_CLIENT_ID", "AUTH_SMTP_SCOPE", f"{PROVIDER}CLIENT_ID", f"{PROVIDER}CLIENT_SECRET"),
    *(f"{PROVIDER}SCOPES", f"{PROVIDER}TEAM_ID", f"{PROVIDER}KEY_ID"),
    *("AUTH_STATE_DIR", "AUTH_PASSWORD_LEAKED_FILE", "AUTH_MAIL_TEMPLATES", "AUTH_SMTP_CLIENT_KEY"),
    *("DATABASE_URL", "AUTH_DATABASE_OWNER_URL", "AUTH_JWT_AUDIENCE", "AUTH_TOKEN_CLAIMS", "AUTH_ID_CLAIMS"),
    *("AUTH_SIGNUP_DOMAINS", "AUTH_SIGNUP_BLOCKED_DOMAINS", "AUTH_SSO_PUBLIC_DOMAINS", *DOCUMENTS),
}


QUOTED = "has quotes around it, which are part of the value here"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("text\n", "ends with a line break"),
        ("text\r\n", "ends with a line break"),
        ("\ntext", "has a space at its beginning or end"),
        ("text\N{NO-BREAK SPACE}", "has a space at its beginning or end"),
        ("\ufefftext", "begins with a byte order mark"),
        ("te\ufeffxt", "has an invisible character (U+FEFF)"),
        ("te\xadxt", "has an invisible character (U+00AD)"),
        ("te\x00xt", "has a control character (U+0000)"),
        ('"text"', QUOTED),
        ("'text'", QUOTED),
        ('"text', None),
        ("'text\"", None),
        ('"one" and "two"', None),
        ("x" * 4096, None),
        ("x" * 4097, "has text beyond 4096 characters"),
        ("é", None),
    ],
)
def test_problem_of_a_text_is_the_first_that_explains_it(text, problem):
    assert texts.problem_of(text) == problem


def test_text_of_a_header_is_ascii():
    assert texts.problem_of("é", is_header=True) == "is sent in a header, and has letters beyond ASCII"
    assert texts.problem_of("e", is_header=True) is None


def test_quotes_around_a_whole_list_are_refused():
    quoted = '"https://a.example.com,https://b.example.com"'
    assert next(filter(None, map(texts.problem_of, texts.parts(quoted)))) == QUOTED


@pytest.mark.parametrize("value", ['{"keys": []}', "[]", " [\n]\n"])
def test_json_is_no_text_and_the_path_of_a_file_is(value):
    assert list(texts.document(value)) == []
    assert list(texts.document(f"/srv/{value}")) == [f"/srv/{value}"]


def test_byte_that_is_not_utf8_is_refused_in_every_setting(load, clean):
    lines = refused(load, {name: f"{value[:3]}\udcff{value[3:]}" for name, value in clean.items()})
    assert set(clean) - lines.keys() == set()
    line = "Has a byte that is not UTF-8. Remove that."
    assert set(lines.values()) == {line}


@pytest.mark.parametrize(
    "name",
    [
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u200f\u05e9\u05dc\u05d5\u05dd\u200e",
        "\U0001f469\u200d\U0001f680",
    ],
)
def test_letters_that_join_others_stay_in_names(load, name):
    assert load(AUTH_BRAND_NAME=name).brand_name == name


@pytest.mark.parametrize("letter", ["ü", "中"])
def test_what_goes_into_headers_is_ascii_or_warned_about(load, clean, letter):
    dirty = {name: f"{value[:3]}{letter}{value[3:]}" for name, value in clean.items()}
    taken = clean.keys() - refused(load, dirty).keys() - MAY_BE_INTERNATIONAL
    assert taken == {"AUTH_SERVICE_ROLE_KEY", "AUTH_TWILIO_AUTH_TOKEN"}
    warnings = load(**clean | {name: dirty[name] for name in taken}).warnings
    problem = "The secret is sent in a header, and has letters beyond ASCII."
    assert {line.partition(" It is used")[0] for line in warnings} == {f"{name}: {problem}" for name in taken}


@pytest.mark.parametrize(
    "dirty", [pytest.param(lambda text: f"{text}\n", id="newline"), pytest.param('"{}"'.format, id="quotes")]
)
def test_tokens_of_a_secret_with_dirt_go_on_verifying(make_app, alice, dirty):
    """Sessions and other services that verify have the text as it stands."""
    jwt_secret = dirty(secret("signing"))
    client = make_app(AUTH_JWT_SECRET=jwt_secret).test_client()
    body = {"email": alice.email, "password": PASSWORD}
    token = client.post("/token?grant_type=password", json=body).json["access_token"]
    claims = jwt.decode(token, jwt_secret, algorithms=["HS256"], audience="authenticated")
    assert claims["email"] == alice.email
    again = make_app(AUTH_JWT_SECRET=jwt_secret).test_client()
    assert again.get("/user", headers={"Authorization": f"Bearer {token}"}).status_code == 200
