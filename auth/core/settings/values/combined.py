"""Combinations of settings: defaults that depend on others, and values that exclude each other."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from psycopg2.extensions import parse_dsn

from auth.core.net.networks import is_loopback
from auth.core.net.redirects import AllowList
from auth.core.settings import relying_party
from auth.core.settings.values import Values, hooks, urls, validators

PASSWORD_CLASSES = ("lowercase", "uppercase", "numbers", "symbols")
# All but the log-in ask by default.
CAPTCHA_ROUTES = ("signup", "recover", "resend", "magiclink", "otp", "token")
_OF_ORGANIZATIONS = ("organization", "organizations")
_NEEDED_BY_TWILIO = ("twilio_account_sid", "twilio_auth_token", "twilio_from")


def complete(values: Values, *, has_timebox: bool) -> None:
    """Set defaults that depend on settings. `has_timebox` if the environment has AUTH_SESSION_TIMEBOX."""
    values["base_url"] = (values["base_url"] or f"http://localhost:{values['port']}").rstrip("/")
    for field in ("site_url", "jwt_issuer"):
        values[field] = values[field] or values["base_url"]
    if values["session_timebox"] and not has_timebox:
        values["session_timebox"] = max(values["session_timebox"], values["refresh_token_lifetime"])
    values["site_login_url"] = values["site_login_url"] or values["site_url"]
    values |= relying_party.defaults(values)
    if values["console"] is None:
        values["console"] = values["pages"]
    values["brand_name"] = values["brand_name"] or urlsplit(values["site_url"]).netloc
    required = values["password_requirements"]
    values["password_requirements"] = tuple(name for name in PASSWORD_CLASSES if name in required)
    leaked = values["password_leaked_file"] or values["state_dir"] / "leaked-passwords"
    values["password_leaked_file"] = leaked
    values["password_leaked"] = values["password_leaked"] or ("file" if leaked.exists() else "off")
    values["verify_on_get"] = values["verify_on_get"] or ("programs" if is_local(values) else "never")
    if values["mfa_required"] is None:
        values["mfa_required"] = "admins" if values["mfa_enabled"] and not is_local(values) else "none"
    if values["webhook_private_networks"] is None:
        values["webhook_private_networks"] = is_local(values) and is_loopback(values["bind"])


def is_local(values: Values) -> bool:
    return is_loopback(urlsplit(values["base_url"]).hostname or "")


def contradictions(values: Values) -> Iterator[str]:
    """Yield a line for each setting that is valid alone, but not with the others."""
    for field in _NEEDED_BY_TWILIO:
        if values["sms_provider"] == "twilio" and not values[field]:
            yield f"AUTH_{field.upper()}: Must be set when AUTH_SMS_PROVIDER is twilio."
    for name in (f"hook_{name}" for name in hooks.NAMES):
        if values[name].startswith("http") and not values[f"{name}_secrets"]:
            yield (
                f"AUTH_{name.upper()}_SECRETS: Must be set when AUTH_{name.upper()} is a URL."
                " Make one with latchkey hooks secret."
            )
    yield from _contradictions_of_smtp(values)
    if values["database_owner_url"] and "user" not in parse_dsn(values["database_url"]):
        yield "DATABASE_URL: Must be set, and name a user, when AUTH_DATABASE_OWNER_URL is set."
    if values["jwt_keys"] and not values["jwt_secret"]:
        try:
            validators.signing_jwk_set(values["jwt_keys"])
        except ValueError as error:
            yield f"AUTH_JWT_KEYS: {validators.sentence(error)}"
    if values["jwt_audience"] == f"{values['jwt_issuer']}/oauth/userinfo":
        yield (
            "AUTH_JWT_AUDIENCE: Is the audience of tokens of applications. Use another name, such as"
            " authenticated."
        )
    if not AllowList(values["site_url"], values["redirect_allow_list"]).allowed(values["site_login_url"]):
        yield (
            "AUTH_SITE_LOGIN_URL: Must be at the origin of AUTH_SITE_URL, or match AUTH_REDIRECT_ALLOW_LIST."
        )
    for field in ("token_claims", "id_claims"):
        names = sorted(name for name in values[field] if name.lower() in _OF_ORGANIZATIONS)
        if names and values["organizations"] != "off":
            yield f"AUTH_{field.upper()}: AUTH_ORGANIZATIONS has the claim {names[0]}. Use another name."
    if values["mfa_required"] != "none" and not values["mfa_enabled"]:
        yield "AUTH_MFA_REQUIRED: Must be none when AUTH_MFA_ENABLED is false."
    if values["console"] and not values["pages"]:
        yield "AUTH_CONSOLE: Must be false when AUTH_PAGES is false, because it needs the sign-in page."
    if values["signup_domains"] and values["anonymous_enabled"]:
        yield "AUTH_ANONYMOUS_ENABLED: Must be false when AUTH_SIGNUP_DOMAINS is set."
    if values["captcha"] not in ("off", "altcha") and not values["captcha_secret"]:
        yield "AUTH_CAPTCHA_SECRET: Must be set when AUTH_CAPTCHA names a provider, which gave it to you."
    if values["dev_inbox"] and not is_local(values):
        yield (
            "AUTH_DEV_INBOX: Must be false unless AUTH_BASE_URL is this machine, because it shows every link."
        )


def _contradictions_of_smtp(values: Values) -> Iterator[str]:
    url, secret, key = values["smtp_url"], values["smtp_client_secret"], values["smtp_client_key"]
    server = None if url in (None, urls.CONSOLE) else urls.smtp_server(url)
    if not values["smtp_token_url"]:
        if server and server.user and not server.password:
            yield "AUTH_SMTP_URL: Must have both a user and a password, unless AUTH_SMTP_TOKEN_URL is set."
        for field in ("smtp_client_id", "smtp_client_secret", "smtp_client_key", "smtp_scope"):
            if values[field]:
                yield f"AUTH_{field.upper()}: Is set without AUTH_SMTP_TOKEN_URL. Set both or neither."
        return
    if not server or not server.user or server.password:
        yield (
            "AUTH_SMTP_URL: Must be a mail server with a user and without a password when AUTH_SMTP_TOKEN_URL"
            " is set, such as smtp://no-reply%40example.com@smtp.office365.com."
        )
    if not values["smtp_client_id"]:
        yield "AUTH_SMTP_CLIENT_ID: Must be set when AUTH_SMTP_TOKEN_URL is set."
    if secret and key:
        yield "AUTH_SMTP_CLIENT_KEY: Is set beside AUTH_SMTP_CLIENT_SECRET. Unset one of the two."
    if not secret and not key:
        yield (
            "AUTH_SMTP_CLIENT_SECRET: Must be set when AUTH_SMTP_TOKEN_URL is, or AUTH_SMTP_CLIENT_KEY must."
        )
