"""Settings: read from the environment and `.env` once, checked, frozen.

The field `access_token_lifetime` is the variable `AUTH_ACCESS_TOKEN_LIFETIME`; only `DATABASE_URL` and
`PORT`, which platforms set, have no prefix. docs/settings.md explains each one.
"""

import dataclasses
import difflib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import limits
from dotenv import dotenv_values
from environs import Env, EnvValidationError
from limits import RateLimitItem
from marshmallow.validate import Length, OneOf, Range, Regexp

from auth.net.networks import is_loopback
from auth.settings import checks, kept_secrets, state, targets
from auth.settings.checks import Check, validator
from auth.settings.kept_secrets import Missing
from auth.settings.providers import PROVIDER_PREFIX, ProviderSettings, read_providers

PASSWORD_CLASSES = ("lowercase", "uppercase", "numbers", "symbols")
_WITHOUT_PREFIX = {"database_url", "port"}
# Set by Kubernetes and Docker links for a service called "auth".
_INJECTED_BY_PLATFORMS = re.compile(r"AUTH_(SERVICE_HOST|SERVICE_PORT.*|PORT.*|NAME|ENV_.*)")
# Read by the commands backup and restore alone.
_OF_COMMANDS = {"AUTH_BACKUP_PASSPHRASE"}
_NEEDED_BY_SMS_PROVIDER = {
    "twilio": ("twilio_account_sid", "twilio_auth_token", "twilio_from"),
    "webhook": ("sms_webhook_url", "sms_webhook_secret"),
}


def _setting(read: Callable[[Env, str], object], *, may_be_empty: bool = False) -> Any:
    """Declare a setting by the function that reads its variable; `Env` collects the errors."""
    return dataclasses.field(metadata={"read": read, "may_be_empty": may_be_empty})


def _text(default: str | None, *each: Check) -> Any:
    return _setting(lambda env, name: env.str(name, default, validate=validator(*each)))


def _number(default: int | None, least: int, most: int) -> Any:
    problem = f"Must be a whole number from {least} to {most}."
    options: dict[str, Any] = {
        "validate": Range(least, most, error=problem),
        "error_messages": {"invalid": problem},
    }
    return _setting(lambda env, name: env.int(name, default, **options))


def _flag(default: bool | None) -> Any:
    return _setting(lambda env, name: checks.flag(env, name, default))


def _choice(default: str | None, *choices: str) -> Any:
    return _text(default, OneOf(choices, error=f"Must be one of {', '.join(filter(None, choices))}."))


def _list(default: tuple[str, ...], check: Check, *, may_be_empty: bool = True) -> Any:
    def check_all(values: list[str]) -> None:
        for value in values:
            check(value)

    options: dict[str, Any] = {"subcast": str.strip, "validate": validator(check_all)}
    return _setting(
        lambda env, name: tuple(env.list(name, list(default), **options) or ()), may_be_empty=may_be_empty
    )


def _limits(default: str) -> Any:
    check = validator(checks.rate_limits)
    return _setting(
        lambda env, name: tuple(limits.parse_many(env.str(name, default, validate=check) or default))
    )


def _limit(default: str) -> Any:
    check = validator(checks.rate_limit)
    return _setting(lambda env, name: limits.parse(env.str(name, default, validate=check) or default))


def _reauthentication_age(env: Env, name: str) -> int | None:
    form = Regexp(r"\A([0-9]{1,9}|always|never)\Z", error="Must be seconds, always or never.")
    text = env.str(name, "86400", validate=form) or "never"
    return {"always": 0, "never": None}[text] if text.isalpha() else int(text)


def _cores() -> int:
    # A container may be given fewer cores than the machine has.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclasses.dataclass(frozen=True, repr=False)
class Settings:
    """No repr: it would show secrets."""

    providers: Mapping[str, ProviderSettings]
    # Lines about variables that are not settings.
    warnings: tuple[str, ...]
    database_url: str = _text("", checks.optional(checks.postgres_url))
    port: int = _number(8000, 1, 65_535)
    bind: str = _text("127.0.0.1")
    workers: int = _number(_cores(), 1, 256)
    state_dir: Path = _text("var")
    base_url: str = _text("", checks.optional(checks.public_url))
    site_url: str = _text("", checks.optional(checks.site_url))
    redirect_allow_list: tuple[str, ...] = _list((), checks.redirect_pattern)
    # Of these two, the first value is used and all are accepted.
    secret_key: tuple[str, ...] = _list((), checks.secret, may_be_empty=False)
    service_role_key: tuple[str, ...] = _list((), checks.secret, may_be_empty=False)
    service_role_jwt: bool = _flag(False)
    jwt_keys: str = _text("", checks.optional(checks.jwk_set))
    jwt_secret: str | None = _text(None, checks.jwt_secret)
    jwt_issuer: str = _text("")
    jwt_audience: str = _text("authenticated")
    access_token_lifetime: int = _number(3600, 30, 86_400)
    refresh_token_lifetime: int = _number(2_592_000, 60, 315_360_000)
    refresh_token_rotation: bool = _flag(True)
    refresh_reuse_interval: int = _number(60, 0, 3600)
    session_timebox: int | None = _number(None, 60, 315_360_000)
    sessions_per_user: int = _number(100, 1, 10_000)
    disable_signup: bool = _flag(False)
    autoconfirm: bool = _flag(False)
    manual_linking: bool = _flag(True)
    email_enabled: bool = _flag(True)
    phone_enabled: bool = _flag(True)
    email_confirm_required: bool = _flag(True)
    phone_confirm_required: bool = _flag(True)
    password_min_length: int = _number(8, 1, 128)
    password_requirements: tuple[str, ...] = _list(
        PASSWORD_CLASSES, OneOf(PASSWORD_CLASSES, error="Must be among {choices}.")
    )
    password_common_check: bool = _flag(True)
    bcrypt_cost: int = _number(10, 4, 16)
    reauthentication_age: int | None = _setting(_reauthentication_age)
    verify_on_get: str = _choice(None, "programs", "never")
    rate_limits_enabled: bool = _flag(True)
    rate_limit_storage: str = _text("postgresql", checks.rate_limit_storage)
    rate_limit_signup: RateLimitItem = _limit("30 per 5 minutes")
    rate_limit_login: RateLimitItem = _limit("30 per 5 minutes")
    rate_limit_authorize: RateLimitItem = _limit("30 per 5 minutes")
    rate_limit_login_failures: RateLimitItem = _limit("10 per 15 minutes")
    rate_limit_account_failures: RateLimitItem = _limit("100 per day")
    rate_limit_recover: RateLimitItem = _limit("30 per 5 minutes")
    rate_limit_messages: tuple[RateLimitItem, ...] = _limits("1 per minute; 5 per hour")
    rate_limit_messages_per_recipient: tuple[RateLimitItem, ...] = _limits("20 per hour")
    rate_limit_sms_total: RateLimitItem = _limit("200 per hour")
    rate_limit_sms_new_numbers: RateLimitItem = _limit("10 per hour")
    rate_limit_invite: RateLimitItem = _limit("30 per hour")
    rate_limit_invite_per_address: RateLimitItem = _limit("3 per day")
    rate_limit_links: RateLimitItem = _limit("30 per 5 minutes")
    rate_limit_verify: RateLimitItem = _limit("30 per 5 minutes")
    rate_limit_refresh: RateLimitItem = _limit("60 per 5 minutes")
    rate_limit_logout: RateLimitItem = _limit("20 per 5 minutes")
    rate_limit_user_changes: RateLimitItem = _limit("30 per 5 minutes")
    rate_limit_address_changes: RateLimitItem = _limit("5 per hour")
    trusted_proxies: int = _number(0, 0, 10)
    cors_origins: tuple[str, ...] = _list(("*",), checks.origin)
    smtp_url: str | None = _text(None, checks.smtp_url)
    mail_from: str = _text("Latchkey <no-reply@localhost>", targets.mail_address)
    mail_templates: Path | None = _text(None, checks.folder)
    sms_provider: str | None = _choice(None, "none", targets.CONSOLE, *_NEEDED_BY_SMS_PROVIDER)
    sms_countries: tuple[str, ...] = _list((), checks.country_prefix)
    twilio_account_sid: str = _text("", checks.twilio_id)
    twilio_auth_token: str = _text("")
    twilio_from: str = _text("", Length(max=64, error="Must be at most 64 characters."))
    twilio_api_url: str = _text("https://api.twilio.com", targets.http_url)
    sms_webhook_url: str = _text("", targets.http_url)
    sms_webhook_secret: str = _text("", targets.webhook_secret)
    dev_inbox: bool = _flag(False)
    webhook_private_networks: bool = _flag(None)
    deliver: bool = _flag(True)
    audit_retention: int = _number(400, 1, 36_500)
    unconfirmed_retention: int = _number(30, 1, 36_500)
    db_prepare: bool = _flag(True)
    log_format: str = _choice("", "", "text", "json")
    log_level: str = _choice("info", "debug", "info", "warning", "error")

    @property
    def is_local(self) -> bool:
        """Whether `base_url` is this machine. Then messages may be shown on the console."""
        return is_loopback(urlsplit(self.base_url).hostname or "")

    @property
    def offers_phone(self) -> bool:
        """Whether users can sign in by phone: it is enabled, and SMS can be sent."""
        has_substitute = self.sms_provider is None and (self.is_local or self.dev_inbox)
        return self.phone_enabled and (self.sms_provider not in (None, "none") or has_substitute)

    def find_database(self) -> str:
        """Return the URL of the database. Raises `state.NotRunningError`."""
        return self.database_url or state.running_postgres_url(self.state_dir)


class SettingsError(Exception):
    """One line for each variable that is wrong."""


def name_of(field: str) -> str:
    return field.upper() if field in _WITHOUT_PREFIX else f"AUTH_{field.upper()}"


def names() -> list[str]:
    return [name_of(field.name) for field in dataclasses.fields(Settings) if field.metadata]


def load(dotenv: str | Path = ".env", *, missing_secrets: Missing = "make") -> Settings:
    """Read and check all settings, and the secrets of the state directory. Raises `SettingsError`."""
    env = Env(eager=False)
    env.read_env(dotenv, recurse=False)
    environment = {**dotenv_values(dotenv), **os.environ}
    readers = {field.name: field.metadata["read"] for field in dataclasses.fields(Settings) if field.metadata}
    values = {name: read(env, name_of(name)) for name, read in readers.items()}
    values["providers"] = read_providers(env, environment)
    values["warnings"] = _unknown(environment)
    problems = _problems(env) | dict.fromkeys(_empty(environment), "Is empty. Unset it or give it a value.")
    _refuse([f"{name}: {text}" for name, text in sorted(problems.items())], values)

    values["base_url"] = (values["base_url"] or f"http://localhost:{values['port']}").rstrip("/")
    for field in ("site_url", "jwt_issuer"):
        values[field] = values[field] or values["base_url"]
    chosen = values["password_requirements"]
    values["password_requirements"] = tuple(name for name in PASSWORD_CLASSES if name in chosen)
    values["state_dir"] = Path(values["state_dir"]).resolve()
    if values["mail_templates"]:
        values["mail_templates"] = Path(values["mail_templates"]).resolve()
    is_local = is_loopback(urlsplit(values["base_url"]).hostname or "")
    values["verify_on_get"] = values["verify_on_get"] or ("programs" if is_local else "never")
    if values["webhook_private_networks"] is None:
        values["webhook_private_networks"] = is_local and is_loopback(values["bind"])
    _refuse(_contradictions(values, is_local) or kept_secrets.add(values, missing_secrets), values)
    return Settings(**values)


def _refuse(lines: list[str], values: Mapping[str, Any]) -> None:
    if lines:
        raise SettingsError("\n".join([*lines, *values["warnings"]]))


def _problems(env: Env) -> dict[str, str]:
    """Return what is wrong by the name of the variable, without values, which may be secrets."""
    try:
        env.seal()
    except EnvValidationError as error:
        messages: Mapping[str, list[str]] = dict(error.error_messages)  # type: ignore[arg-type]
        return {name: " ".join(map(str, texts)) for name, texts in messages.items()}
    return {}


def _empty(environment: Mapping[str, str | None]) -> list[str]:
    """Return the names of variables that are empty and must not be."""
    may_be = {
        name_of(field.name) for field in dataclasses.fields(Settings) if field.metadata.get("may_be_empty")
    }
    return [
        name
        for name, value in environment.items()
        if value is not None
        and not value.strip()
        and (name in set(names()) - may_be or name.startswith(PROVIDER_PREFIX))
    ]


def _contradictions(values: Mapping[str, Any], is_local: bool) -> list[str]:
    provider = values["sms_provider"]
    lines = [
        f"{name_of(field)}: Must be set where AUTH_SMS_PROVIDER is {provider}."
        for field in _NEEDED_BY_SMS_PROVIDER.get(provider, ())
        if not values[field]
    ]
    if values["jwt_keys"] and not values["jwt_secret"]:
        try:
            checks.signing_jwk_set(values["jwt_keys"])
        except ValueError as error:
            lines.append(f"AUTH_JWT_KEYS: {checks.sentence(error)}")
    # The inbox shows every link to the holder of the service role key.
    if values["dev_inbox"] and not is_local and values["rate_limits_enabled"]:
        lines.append(
            "AUTH_DEV_INBOX: Must be false unless AUTH_BASE_URL is this machine, or"
            " AUTH_RATE_LIMITS_ENABLED=false marks a test environment."
        )
    return lines


def _unknown(environment: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return a line for each variable that looks like a setting."""
    known, lines = names(), []
    for name in sorted(set(environment) - set(known) - _OF_COMMANDS):
        if not name.startswith("AUTH_") or name.startswith(PROVIDER_PREFIX):
            continue
        if not _INJECTED_BY_PLATFORMS.fullmatch(name):
            nearest = difflib.get_close_matches(name, known, 1)
            lines.append(f"{name} is not a setting" + (f"; did you mean {nearest[0]}?" if nearest else "."))
    return tuple(lines)
