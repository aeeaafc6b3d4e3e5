"""Every setting: read from the environment and `.env` once, checked, frozen.

A field `access_token_lifetime` is the variable `AUTH_ACCESS_TOKEN_LIFETIME`; only `DATABASE_URL` and `PORT`,
which platforms set under those names, have no prefix. docs/settings.md explains each one.
"""

import dataclasses
import difflib
import functools
import os
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import limits
from dotenv import dotenv_values
from environs import Env, EnvValidationError
from limits import RateLimitItem
from marshmallow import ValidationError
from marshmallow.validate import Length, OneOf, Range, Regexp

from auth.net import redirects
from auth.net.networks import is_loopback
from auth.settings import messages as delivery_settings
from auth.settings import setting_checks, state
from auth.settings.providers import PROVIDER_PREFIX, ProviderSettings, read_providers

PASSWORD_CLASSES = ("lowercase", "uppercase", "numbers", "symbols")
_WITHOUT_PREFIX = {"database_url", "port"}
# Kubernetes and Docker links put the address of every service that they know into each container's
# environment: for one that is called "auth" these names, which nobody set as settings.
_INJECTED_BY_PLATFORMS = re.compile(r"AUTH_(SERVICE_HOST|SERVICE_PORT.*|PORT.*|NAME|ENV_.*)")
_RETIRED = {"AUTH_THREADS": "workers do not serve requests in threads any more"}


@dataclasses.dataclass(frozen=True, repr=False)
class Settings:
    """What this deployment has set. The repr is left out: many of these are secrets."""

    database_url: str
    port: int
    bind: str
    workers: int
    state_dir: Path
    base_url: str
    site_url: str
    redirect_allow_list: tuple[str, ...]
    secret_key: tuple[str, ...]
    service_role_key: tuple[str, ...]
    jwt_keys: str
    jwt_secret: str | None
    jwt_issuer: str
    jwt_audience: str
    access_token_lifetime: int
    refresh_token_lifetime: int
    refresh_token_rotation: bool
    refresh_reuse_interval: int
    session_timebox: int | None
    sessions_per_user: int
    disable_signup: bool
    autoconfirm: bool
    email_enabled: bool
    phone_enabled: bool
    email_confirm_required: bool
    phone_confirm_required: bool
    password_min_length: int
    password_requirements: tuple[str, ...]
    password_common_check: bool
    bcrypt_cost: int
    reauthentication_age: int | None
    verify_on_get: str
    rate_limits_enabled: bool
    rate_limit_storage: str
    rate_limit_signup: RateLimitItem
    rate_limit_login: RateLimitItem
    rate_limit_login_failures: RateLimitItem
    rate_limit_account_failures: RateLimitItem
    rate_limit_recover: RateLimitItem
    rate_limit_messages: tuple[RateLimitItem, ...]
    rate_limit_messages_per_recipient: tuple[RateLimitItem, ...]
    rate_limit_sms_total: RateLimitItem
    rate_limit_invite: RateLimitItem
    rate_limit_invite_per_address: RateLimitItem
    rate_limit_verify: RateLimitItem
    rate_limit_refresh: RateLimitItem
    rate_limit_logout: RateLimitItem
    rate_limit_user_changes: RateLimitItem
    rate_limit_address_changes: RateLimitItem
    trusted_proxies: int
    cors_origins: tuple[str, ...]
    smtp_url: str | None
    mail_from: str
    mail_templates: Path | None
    sms_provider: str | None
    sms_countries: tuple[str, ...]
    twilio_account_sid: str
    twilio_auth_token: str
    twilio_from: str
    twilio_api_url: str
    sms_webhook_url: str
    sms_webhook_secret: str
    dev_inbox: bool
    webhook_private_networks: bool
    providers: Mapping[str, ProviderSettings]
    deliver: bool
    audit_retention: int
    db_prepare: bool
    log_format: str
    log_level: str

    @property
    def is_local(self) -> bool:
        """Whether the public address is this machine: then messages may be shown to whoever runs it."""
        return is_loopback(urlsplit(self.base_url).hostname or "")


class SettingsError(Exception):
    """One line for each variable that is wrong."""


def name_of(field: str) -> str:
    """Return the variable that sets a field of `Settings`."""
    return field.upper() if field in _WITHOUT_PREFIX else f"AUTH_{field.upper()}"


def names() -> list[str]:
    """Return the variables there are, in the order of `Settings`."""
    return [name_of(field.name) for field in dataclasses.fields(Settings) if field.name != "providers"]


def retired() -> list[str]:
    """Return a line for each variable that is set and has no meaning any more. Call `load` first, which reads
    `.env`.
    """
    return [
        f"{name} is gone, remove it: {reason}." for name, reason in _RETIRED.items() if name in os.environ
    ]


def load(dotenv: str | Path = ".env") -> Settings:
    """Read all settings; make and keep the secrets that are not set, under `AUTH_STATE_DIR`.

    Raises `SettingsError` naming every variable, or file of a secret, that is wrong. Warns of unknown names
    that begin with `AUTH_`.
    """
    env = Env(eager=False)
    env.read_env(dotenv, recurse=False)
    environment = {**dotenv_values(dotenv), **os.environ}
    values = _read(env) | {"providers": read_providers(env, environment)}
    try:
        env.seal()
    except EnvValidationError as error:
        # environs quotes its messages only; the values, which may be secrets, are never printed.
        messages: Mapping[str, list[str]] = dict(error.error_messages)  # type: ignore[arg-type]
        lines = [
            f"{name}: {' '.join(str(text) for text in texts)}" for name, texts in sorted(messages.items())
        ]
        raise SettingsError("\n".join(lines)) from None
    _warn_of_unknown(environment)

    values["base_url"] = (values["base_url"] or f"http://localhost:{values['port']}").rstrip("/")
    for field in ("site_url", "jwt_issuer"):
        values[field] = values[field] or values["base_url"]
    is_local = is_loopback(urlsplit(values["base_url"]).hostname or "")
    if values["webhook_private_networks"] is None:
        values["webhook_private_networks"] = is_local and is_loopback(values["bind"])
    if lines := delivery_settings.problems(values, is_local=is_local):
        raise SettingsError("\n".join(lines))
    directory = values["state_dir"] = Path(values["state_dir"]).resolve()
    _add_kept_secrets(values, directory)
    return Settings(**values)


def _add_kept_secrets(values: dict, directory: Path) -> None:
    """Fill in the secrets that are not set from the state directory, under the checks of those that are."""
    lines = []

    def kept(name: str, read: Callable[[Path], str], check: Callable[[str], None]) -> str:
        secret = read(directory)
        try:
            check(secret)
        except ValidationError as error:
            lines.append(f"{directory / name}: {' '.join(map(str, error.messages))}")
        return secret

    for field in ("secret_key", "service_role_key"):
        if not values[field]:
            values[field] = (
                kept(
                    field,
                    functools.partial(state.kept_secret, name=field),
                    setting_checks.at_least_32_characters,
                ),
            )
    if not values["jwt_keys"] and not values["jwt_secret"]:
        values["jwt_keys"] = kept("jwt_keys.json", state.kept_jwt_keys, setting_checks.jwk_set)
    if lines:
        raise SettingsError("\n".join(lines))


def _cores() -> int:
    # A container may be given fewer than there are.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read(env: Env) -> dict:
    """Parse every variable; what is wrong is collected in `env`, to be reported together by its `seal`."""
    return {
        "database_url": env.str("DATABASE_URL", "", validate=setting_checks.postgres_url),
        "port": env.int("PORT", 8000, validate=Range(1, 65535)),
        "bind": env.str("AUTH_BIND", "127.0.0.1", validate=Length(min=1)),
        "workers": env.int("AUTH_WORKERS", _cores(), validate=Range(1, 256)),
        "state_dir": env.str("AUTH_STATE_DIR", "var", validate=Length(min=1)),
        "base_url": env.str("AUTH_BASE_URL", "", validate=setting_checks.http_url),
        "site_url": env.str("AUTH_SITE_URL", "", validate=_site_url),
        "redirect_allow_list": tuple(
            env.list("AUTH_REDIRECT_ALLOW_LIST", [], subcast=str.strip, validate=_redirect_patterns) or ()
        ),
        "secret_key": _secrets(env, "AUTH_SECRET_KEY"),
        "service_role_key": _secrets(env, "AUTH_SERVICE_ROLE_KEY"),
        "jwt_keys": env.str("AUTH_JWT_KEYS", "", validate=setting_checks.optional(setting_checks.jwk_set)),
        "jwt_secret": env.str("AUTH_JWT_SECRET", None, validate=setting_checks.at_least_32_bytes),
        "jwt_issuer": env.str("AUTH_JWT_ISSUER", ""),
        "jwt_audience": env.str("AUTH_JWT_AUDIENCE", "authenticated", validate=Length(min=1)),
        "access_token_lifetime": env.int("AUTH_ACCESS_TOKEN_LIFETIME", 3600, validate=Range(30, 86_400)),
        "refresh_token_lifetime": env.int(
            "AUTH_REFRESH_TOKEN_LIFETIME", 2_592_000, validate=Range(60, 315_360_000)
        ),
        "refresh_token_rotation": env.bool("AUTH_REFRESH_TOKEN_ROTATION", True),
        "refresh_reuse_interval": env.int("AUTH_REFRESH_REUSE_INTERVAL", 60, validate=Range(0, 3600)),
        "session_timebox": env.int("AUTH_SESSION_TIMEBOX", None, validate=Range(60, 315_360_000)),
        "sessions_per_user": env.int("AUTH_SESSIONS_PER_USER", 100, validate=Range(1, 10_000)),
        "disable_signup": env.bool("AUTH_DISABLE_SIGNUP", False),
        "autoconfirm": env.bool("AUTH_AUTOCONFIRM", False),
        "email_enabled": env.bool("AUTH_EMAIL_ENABLED", True),
        "phone_enabled": env.bool("AUTH_PHONE_ENABLED", True),
        "email_confirm_required": env.bool("AUTH_EMAIL_CONFIRM_REQUIRED", True),
        "phone_confirm_required": env.bool("AUTH_PHONE_CONFIRM_REQUIRED", True),
        "password_min_length": env.int("AUTH_PASSWORD_MIN_LENGTH", 8, validate=Range(1, 128)),
        "password_requirements": _names_among(env, "AUTH_PASSWORD_REQUIREMENTS", PASSWORD_CLASSES),
        "password_common_check": env.bool("AUTH_PASSWORD_COMMON_CHECK", True),
        "bcrypt_cost": env.int("AUTH_BCRYPT_COST", 10, validate=Range(4, 16)),
        "reauthentication_age": _reauthentication_age(env),
        "verify_on_get": env.str(
            "AUTH_VERIFY_ON_GET",
            "programs",
            validate=OneOf(["programs", "never"], error="Must be programs or never."),
        ),
        "rate_limits_enabled": env.bool("AUTH_RATE_LIMITS_ENABLED", True),
        "rate_limit_storage": env.str(
            "AUTH_RATE_LIMIT_STORAGE",
            "postgresql",
            validate=Regexp(
                r"(postgresql|memory://|rediss?://.+)\Z", error="Must be postgresql, memory:// or redis://…."
            ),
        ),
        "rate_limit_signup": _rate_limit(env, "AUTH_RATE_LIMIT_SIGNUP", "30 per 5 minutes"),
        "rate_limit_login": _rate_limit(env, "AUTH_RATE_LIMIT_LOGIN", "30 per 5 minutes"),
        "rate_limit_login_failures": _rate_limit(env, "AUTH_RATE_LIMIT_LOGIN_FAILURES", "10 per 15 minutes"),
        "rate_limit_account_failures": _rate_limit(env, "AUTH_RATE_LIMIT_ACCOUNT_FAILURES", "100 per day"),
        "rate_limit_recover": _rate_limit(env, "AUTH_RATE_LIMIT_RECOVER", "30 per 5 minutes"),
        "rate_limit_messages": _rate_limits(env, "AUTH_RATE_LIMIT_MESSAGES", "1 per minute; 5 per hour"),
        "rate_limit_messages_per_recipient": _rate_limits(
            env, "AUTH_RATE_LIMIT_MESSAGES_PER_RECIPIENT", "20 per hour"
        ),
        "rate_limit_sms_total": _rate_limit(env, "AUTH_RATE_LIMIT_SMS_TOTAL", "200 per hour"),
        "rate_limit_invite": _rate_limit(env, "AUTH_RATE_LIMIT_INVITE", "30 per hour"),
        "rate_limit_invite_per_address": _rate_limit(env, "AUTH_RATE_LIMIT_INVITE_PER_ADDRESS", "3 per day"),
        "rate_limit_verify": _rate_limit(env, "AUTH_RATE_LIMIT_VERIFY", "30 per 5 minutes"),
        "rate_limit_refresh": _rate_limit(env, "AUTH_RATE_LIMIT_REFRESH", "60 per 5 minutes"),
        "rate_limit_logout": _rate_limit(env, "AUTH_RATE_LIMIT_LOGOUT", "20 per 5 minutes"),
        "rate_limit_user_changes": _rate_limit(env, "AUTH_RATE_LIMIT_USER_CHANGES", "30 per 5 minutes"),
        "rate_limit_address_changes": _rate_limit(env, "AUTH_RATE_LIMIT_ADDRESS_CHANGES", "5 per hour"),
        "trusted_proxies": env.int("AUTH_TRUSTED_PROXIES", 0, validate=Range(0, 10)),
        "cors_origins": tuple(
            env.list("AUTH_CORS_ORIGINS", ["*"], subcast=str.strip, validate=_each(setting_checks.origin))
            or ()
        ),
        **delivery_settings.read(env),
        "deliver": env.bool("AUTH_DELIVER", True),
        "audit_retention": env.int("AUTH_AUDIT_RETENTION", 400, validate=Range(1, 36_500)),
        "db_prepare": env.bool("AUTH_DB_PREPARE", True),
        "log_format": env.str(
            "AUTH_LOG_FORMAT", "", validate=OneOf(["", "text", "json"], error="Must be text or json.")
        ),
        "log_level": env.str("AUTH_LOG_LEVEL", "info", validate=OneOf(["debug", "info", "warning", "error"])),
    }


def _secrets(env: Env, name: str) -> tuple[str, ...]:
    """Read `new,old`: the first one is used, all are accepted."""
    return tuple(
        env.list(name, [], subcast=str.strip, validate=_each(setting_checks.at_least_32_characters)) or ()
    )


def _names_among(env: Env, name: str, allowed: Collection[str]) -> tuple[str, ...]:
    chosen = (
        env.list(
            name,
            list(allowed),
            subcast=str.strip,
            validate=_each(OneOf(allowed, error="Must be among {choices}.")),
        )
        or []
    )
    return tuple(choice for choice in allowed if choice in chosen)


def _reauthentication_age(env: Env) -> int | None:
    """Seconds; 0 for `always`, None for `never`."""
    form = Regexp(r"\A([0-9]{1,9}|always|never)\Z", error="Must be seconds, always or never.")
    text = env.str("AUTH_REAUTHENTICATION_AGE", "86400", validate=form)
    return {"always": 0, "never": None}.get(text) if text in ("always", "never") else int(text or 0)


def _rate_limit(env: Env, name: str, default: str) -> RateLimitItem:
    """Read one limit in the notation of the limits library: `30 per 5 minutes`."""
    text = env.str(name, default, validate=setting_checks.rate_limit)
    return limits.parse(text if text else default)


def _rate_limits(env: Env, name: str, default: str) -> tuple[RateLimitItem, ...]:
    """Read limits that all hold: `1 per minute; 5 per hour`."""
    text = env.str(name, default, validate=setting_checks.rate_limits)
    return tuple(limits.parse_many(text if text else default))


def _redirect_patterns(values: Collection[str]) -> None:
    for value in values:
        try:
            redirects.parse_pattern(value)
        except redirects.InvalidUrl as error:
            raise ValidationError(f"Must be URLs or patterns: {error}.") from None


def _site_url(value: str) -> None:
    setting_checks.http_url(value)
    if value:
        _redirect_patterns([value])


def _each(check: Callable) -> Callable[[Collection[str]], None]:
    def validate(values: Collection[str]) -> None:
        for value in values:
            check(value)

    return validate


def _warn_of_unknown(environment: Mapping[str, str | None]) -> None:
    known = names()
    for name in sorted(set(environment) - set(known) - set(_RETIRED)):
        if (
            name.startswith("AUTH_")
            and not name.startswith(PROVIDER_PREFIX)
            and not _INJECTED_BY_PLATFORMS.fullmatch(name)
        ):
            nearest = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            warnings.warn(f"{name} is not a setting{hint}", stacklevel=3)
