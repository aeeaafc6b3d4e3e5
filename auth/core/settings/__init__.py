"""Settings: read from the environment and `.env` once, checked, frozen.

The field `access_token_lifetime` is the variable `AUTH_ACCESS_TOKEN_LIFETIME`; only `DATABASE_URL` and
`PORT`, which platforms set, have no prefix. docs/settings.md explains each one.
"""

import dataclasses
import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from dotenv import dotenv_values
from environs import Env
from limits import RateLimitItem
from marshmallow.validate import Length

from auth.core.cores import cores
from auth.core.net.networks import is_loopback, parse
from auth.core.settings import brand, kept_secrets, relying_party, state
from auth.core.settings.kept_secrets import Missing
from auth.core.settings.providers import PROVIDER_PREFIX, ProviderSettings, kind_of, read_providers
from auth.core.settings.values import combined, encryption, hooks, kinds, mistakes, texts, urls, validators
from auth.core.tokens import claim_rules

_WITHOUT_PREFIX = {"database_url", "port"}


@dataclasses.dataclass(frozen=True, repr=False)
class Settings:
    """No repr: it would show secrets."""

    providers: Mapping[str, ProviderSettings]
    # Lines about variables that are not settings.
    warnings: tuple[str, ...]
    # The files of keys that are not in the environment, by field.
    key_files: Mapping[str, Path]
    # `environment` or the path of the file, by the name of the variable.
    origins: Mapping[str, str] = dataclasses.field(compare=False)
    database_url: str = kinds.database_url()
    database_owner_url: str = kinds.database_url()
    port: int = kinds.number(8000, 1, 65_535)
    bind: str = kinds.parsed(validators.bind, "127.0.0.1", texts.whole)
    workers: int = kinds.number(cores(), 1, 256)
    state_dir: Path = kinds.path("var")
    base_url: str = kinds.url(validators.public_url)
    site_url: str = kinds.url(validators.public_url)
    site_login_url: str = kinds.url(validators.site_login_url)
    redirect_allow_list: tuple[str, ...] = kinds.list_of((), validators.redirect_pattern)
    # All are accepted. Each may end in @ and the time of its first use; otherwise the first one is used.
    secret_key: tuple[str, ...] = kinds.secret(kinds.list_of((), validators.timed_secret, may_be_empty=False))
    service_role_key: tuple[str, ...] = kinds.secret(
        kinds.list_of((), validators.secret, may_be_empty=False), is_header=True
    )
    service_role_jwt: bool = kinds.flag(False)
    jwt_keys: str = kinds.secret(kinds.document(validators.jwk_set), is_lenient=False)
    jwt_secret: str | None = kinds.secret(kinds.text(None, validators.jwt_secret))
    key_overlap: int = kinds.number(86_400, 60, 2_592_000, " of seconds")
    backup_recipients: tuple[str, ...] = kinds.list_of((), validators.backup_recipient)
    jwt_issuer: str = kinds.text("", validators.issuer)
    jwt_audience: str = kinds.text("authenticated", validators.audience)
    token_claims: claim_rules.Paths = kinds.claims_of(claim_rules.ACCESS_TOKEN_RULES)
    id_claims: claim_rules.Paths = kinds.claims_of(claim_rules.ID_TOKEN_RULES)
    access_token_lifetime: int = kinds.number(3600, 30, 86_400, " of seconds")
    refresh_token_lifetime: int = kinds.number(2_592_000, 60, 315_360_000, " of seconds")
    refresh_token_rotation: bool = kinds.flag(True)
    refresh_reuse_interval: int = kinds.number(60, 0, 3600, " of seconds")
    session_timebox: int | None = kinds.number_or_none(400 * 86_400, 60, 315_360_000, " of seconds")
    sessions_per_user: int = kinds.number(100, 1, 10_000)
    disable_signup: bool = kinds.flag(False)
    signup_domains: frozenset[str] = kinds.domains()
    signup_blocked_domains: frozenset[str] = kinds.domains()
    autoconfirm: bool = kinds.flag(False)
    anonymous_enabled: bool = kinds.flag(False)
    manual_linking: bool = kinds.flag(True)
    passkeys_enabled: bool = kinds.flag(True)
    passkey_offer: str = kinds.choice("auto", "off", "button", "auto")
    webauthn_rp_id: str = kinds.text("", relying_party.rp_id)
    webauthn_origins: tuple[str, ...] = kinds.list_of(
        (), relying_party.origin, may_be_empty=False, each=urls.origin
    )
    webauthn_apple_apps: tuple[str, ...] = kinds.list_of((), relying_party.apple_app, may_be_empty=False)
    webauthn_android_apps: tuple[str, ...] = kinds.list_of((), relying_party.android_app, may_be_empty=False)
    email_enabled: bool = kinds.flag(True)
    phone_enabled: bool = kinds.flag(True)
    email_confirm_required: bool = kinds.flag(True)
    phone_confirm_required: bool = kinds.flag(True)
    password_min_length: int = kinds.number(8, 1, 128)
    password_requirements: tuple[str, ...] = kinds.some_of(combined.PASSWORD_CLASSES)
    password_common_check: bool = kinds.flag(True)
    password_leaked: str = kinds.secret_url(kinds.text("", validators.leaked_passwords))
    password_leaked_file: Path = kinds.path("")
    bcrypt_cost: int = kinds.number(10, 4, 16)
    reauthentication_age: int | None = kinds.age("86400")
    notify_sign_in: bool = kinds.flag(True)
    mfa_enabled: bool = kinds.flag(True)
    mfa_max_enrolled_factors: int = kinds.number(10, 1, 100)
    mfa_required: str = kinds.choice(None, "none", "admins", "all")
    mfa_tokens: str = kinds.choice("second_step", "second_step", "full")
    verify_on_get: str = kinds.choice(None, "programs", "never")
    oauth_server: bool = kinds.flag(True)
    oauth_consent_url: str = kinds.url(validators.public_url)
    oauth_dynamic_registration: bool = kinds.flag(False)
    oauth_client_documents: tuple[str, ...] = kinds.document_hosts()
    oauth_redirect_schemes: tuple[str, ...] = kinds.list_of(
        ("cursor", "vscode", "vscode-insiders", "windsurf"), validators.redirect_scheme
    )
    oauth_api_scopes: Mapping[str, tuple[str, ...]] = kinds.api_scopes()
    api_keys: bool = kinds.flag(False)
    sso: bool = kinds.flag(False)
    sso_public_domains: frozenset[str] = kinds.domains()
    organizations: str = kinds.choice("off", "off", "admins", "users")
    captcha: str = kinds.secret_url(kinds.text("off", validators.captcha))
    captcha_secret: str = kinds.secret(kinds.text(""))
    captcha_site_key: str = kinds.text("", validators.site_key)
    captcha_routes: tuple[str, ...] = kinds.some_of(combined.CAPTCHA_ROUTES, combined.CAPTCHA_ROUTES[:-1])
    captcha_cost: int = kinds.number(5000, 1, 1_000_000)
    captcha_remote_ip: bool = kinds.flag(False)
    rate_limits_enabled: bool = kinds.flag(True)
    rate_limit_storage: str = kinds.secret_url(kinds.text("postgresql", validators.rate_limit_storage))
    rate_limit_signup: RateLimitItem = kinds.rate_limit("30 per 5 minutes")
    rate_limit_anonymous: RateLimitItem = kinds.rate_limit("30 per hour")
    rate_limit_login: RateLimitItem = kinds.rate_limit("30 per 5 minutes")
    # Twice `login`: each view of /sign-in needs a challenge for a passkey, which costs a row and no hash.
    rate_limit_authorize: RateLimitItem = kinds.rate_limit("60 per 5 minutes")
    rate_limit_login_failures: RateLimitItem = kinds.rate_limit("10 per 15 minutes")
    rate_limit_account_failures: RateLimitItem = kinds.rate_limit("100 per day")
    rate_limit_recover: RateLimitItem = kinds.rate_limit("30 per 5 minutes")
    rate_limit_messages: tuple[RateLimitItem, ...] = kinds.rate_limits("1 per minute; 5 per hour")
    rate_limit_messages_per_recipient: tuple[RateLimitItem, ...] = kinds.rate_limits("20 per hour")
    rate_limit_mail_total: RateLimitItem = kinds.rate_limit("1000 per hour")
    rate_limit_sms_total: RateLimitItem = kinds.rate_limit("200 per hour")
    rate_limit_notices_sms_total: RateLimitItem = kinds.rate_limit("200 per hour")
    rate_limit_invite: RateLimitItem = kinds.rate_limit("30 per hour")
    rate_limit_invite_per_address: RateLimitItem = kinds.rate_limit("3 per day")
    rate_limit_links: RateLimitItem = kinds.rate_limit("30 per 5 minutes")
    rate_limit_verify: RateLimitItem = kinds.rate_limit("30 per 5 minutes")
    rate_limit_waiting: RateLimitItem = kinds.rate_limit("600 per 5 minutes")
    rate_limit_refresh: RateLimitItem = kinds.rate_limit("60 per 5 minutes")
    rate_limit_logout: RateLimitItem = kinds.rate_limit("20 per 5 minutes")
    rate_limit_user_changes: RateLimitItem = kinds.rate_limit("30 per 5 minutes")
    rate_limit_address_changes: RateLimitItem = kinds.rate_limit("5 per hour")
    rate_limit_client_registration: RateLimitItem = kinds.rate_limit("10 per 5 minutes")
    rate_limit_client_tokens: RateLimitItem = kinds.rate_limit("600 per 5 minutes")
    rate_limit_api_keys: RateLimitItem = kinds.rate_limit("600 per 5 minutes")
    rate_limit_console: RateLimitItem = kinds.rate_limit("60 per 5 minutes")
    rate_limit_captcha: RateLimitItem = kinds.rate_limit("120 per 5 minutes")
    trusted_proxies: int = kinds.number(0, 0, 10)
    cors_origins: tuple[str, ...] | None = kinds.list_of(None, validators.origin, each=urls.origin)
    pages: bool = kinds.flag(True)
    console: bool = kinds.flag(None)
    brand_name: str = kinds.text("", brand.check_name)
    brand_company: str = kinds.text("", brand.check_company)
    brand_logo: str | None = kinds.text(None, brand.check_logo)
    brand_color: str = kinds.text(brand.DEFAULT_COLOR, brand.check_color)
    terms_url: str | None = kinds.text(None, brand.check_page)
    privacy_url: str | None = kinds.text(None, brand.check_page)
    support_url: str | None = kinds.text(None, brand.check_support)
    smtp_url: str | None = kinds.secret_url(kinds.text(None, validators.smtp_url))
    smtp_token_url: str = kinds.secret_url(kinds.text("", validators.https_url))
    smtp_client_id: str = kinds.text("")
    smtp_client_secret: str = kinds.secret(kinds.text(""))
    smtp_client_key: Path | None = kinds.secret(kinds.path(None), is_lenient=False)
    smtp_scope: str = kinds.text("")
    mail_from: str = kinds.text("no-reply@localhost", urls.mail_address)
    mail_templates: Path | None = kinds.path(None)
    sms_provider: str | None = kinds.text(None, validators.sms_provider)
    sms_countries: tuple[str, ...] = kinds.list_of((), validators.country_prefix)
    twilio_account_sid: str = kinds.text("", validators.twilio_id)
    twilio_auth_token: str = kinds.secret(kinds.text(""), is_header=True)
    twilio_from: str = kinds.text("", Length(max=64, error="Must be at most 64 characters."))
    twilio_api_url: str = kinds.text("https://api.twilio.com", urls.http_url)
    dev_inbox: bool = kinds.flag(False)
    webhook_private_networks: bool = kinds.flag(None)
    deliver: bool = kinds.flag(True)
    hook_before_user_created: str = kinds.secret_url(kinds.text("", urls.http_url))
    hook_before_user_created_secrets: tuple[str, ...] = kinds.secret(kinds.parsed(hooks.secrets))
    hook_custom_access_token: str = kinds.secret_url(kinds.text("", hooks.url_or_function))
    hook_custom_access_token_secrets: tuple[str, ...] = kinds.secret(kinds.parsed(hooks.secrets))
    hook_send_email: str = kinds.secret_url(kinds.text("", urls.http_url))
    hook_send_email_secrets: tuple[str, ...] = kinds.secret(kinds.parsed(hooks.secrets))
    hook_send_sms: str = kinds.secret_url(kinds.text("", urls.http_url))
    hook_send_sms_secrets: tuple[str, ...] = kinds.secret(kinds.parsed(hooks.secrets))
    audit_retention: int = kinds.number(400, 1, 36_500, " of days")
    unconfirmed_retention: int = kinds.number(30, 1, 36_500, " of days")
    db_prepare: bool = kinds.flag(True)
    metrics_bind: str | None = kinds.text(None, validators.address)
    log_format: str = kinds.choice("", "", "text", "json")
    log_audit: bool = kinds.flag(False)
    log_level: str = kinds.choice("info", "debug", "info", "warning", "error")

    @functools.cached_property
    def is_local(self) -> bool:
        """Whether `base_url` is this machine. Messages may then be printed."""
        return is_loopback(urlsplit(self.base_url).hostname or "")

    @functools.cached_property
    def serves_this_machine(self) -> bool:
        """Whether no other machine reaches the service: the host of `base_url` and `bind` are loopback."""
        return self.is_local and is_loopback(self.bind)

    @functools.cached_property
    def message_totals(self) -> dict[str, RateLimitItem]:
        """The limits of all messages together, by the names of their counts."""
        totals = {"mail": self.rate_limit_mail_total, "sms": self.rate_limit_sms_total}
        return totals | {"notices_sms": self.rate_limit_notices_sms_total}

    @functools.cached_property
    def has_site(self) -> bool:
        """Whether there is an application: `AUTH_SITE_URL` differs from the URL of the service."""
        return self.site_url.rstrip("/") != self.base_url

    @functools.cached_property
    def logos(self) -> dict[str, str]:
        """The logos of the brand and the providers, by the names of their settings."""
        logos = {f"{PROVIDER_PREFIX}{name.upper()}_LOGO": each.logo for name, each in self.providers.items()}
        return {name: logo for name, logo in {"AUTH_BRAND_LOGO": self.brand_logo, **logos}.items() if logo}

    @functools.cached_property
    def links(self) -> dict[str, str]:
        """The operator's pages in the footer of ours, by the names of their texts."""
        pages = {"terms": self.terms_url, "privacy": self.privacy_url, "support": self.support_url}
        return {name: url for name, url in pages.items() if url}

    @functools.cached_property
    def offers_phone(self) -> bool:
        """Whether users can sign in by phone: it is enabled, and SMS can be sent."""
        has_substitute = bool(self.hook_send_sms) or (self.sms_provider is None and self.is_local)
        return self.phone_enabled and (self.sms_provider not in (None, "none") or has_substitute)

    @functools.cached_property
    def offers_passkeys(self) -> bool:
        """Whether our pages offer passkeys: they are enabled, and `base_url` has a domain. Browsers use none
        at an IP address.
        """
        return self.passkeys_enabled and parse(urlsplit(self.base_url).hostname or "") is None

    def confirm_required(self, kind: Literal["email", "phone"]) -> bool:
        return self.email_confirm_required if kind == "email" else self.phone_confirm_required

    def hook(self, name: str) -> hooks.Hook | None:
        """Return the hook of AUTH_HOOK_<NAME>, if it is set."""
        url, secrets = getattr(self, f"hook_{name}"), getattr(self, f"hook_{name}_secrets")
        return hooks.Hook(hooks.NAMES[name], url, secrets, self.webhook_private_networks) if url else None

    def find_database(self) -> str:
        """Return the URL of the database for the role of requests. Raises `state.NotRunningError`."""
        return self.database_url or state.of_requests(state.running_postgres_url(self.state_dir))

    def find_owner(self) -> str:
        """Return the URL for the role that owns the tables. Raises `state.NotRunningError`."""
        return self.database_owner_url or self.database_url or state.running_postgres_url(self.state_dir)

    @property
    def owner_setting(self) -> str:
        """The name of the setting that `find_owner` returns."""
        return name_of("database_owner_url" if self.database_owner_url else "database_url")

    @property
    def open_connections(self) -> list[str]:
        """A line for each unencrypted or unverified connection to another machine."""
        databases = {name_of(field): getattr(self, field) for field in ("database_url", "database_owner_url")}
        return [*encryption.notices(databases, self.smtp_url)]

    def find_requests(self) -> str | None:
        """Return the URL for the role of requests, None if that is the owner. Raises `NotRunningError`."""
        url = self.find_database()
        return None if url == self.find_owner() else url


class SettingsError(Exception):
    """One line for each invalid variable: the problem, unless it is obvious, and the remedy."""


def name_of(field: str) -> str:
    return field.upper() if field in _WITHOUT_PREFIX else f"AUTH_{field.upper()}"


def names() -> list[str]:
    return [name_of(field.name) for field in dataclasses.fields(Settings) if field.metadata]


def load(dotenv: str | Path = ".env", *, missing_secrets: Missing = "refuse") -> Settings:
    """Read and check all settings and the kept secrets, and write nothing. Raises `SettingsError`."""
    if lines := mistakes.malformed_lines(Path(dotenv)):
        raise SettingsError("\n".join(lines))
    fields = [field for field in dataclasses.fields(Settings) if field.metadata]
    public = {name_of(field.name) for field in fields if not field.metadata.get("is_secret")}
    lost = mistakes.lost_references(Path(dotenv), os.environ, public)
    env = Env(eager=False)
    env.read_env(dotenv, recurse=False)
    file = dotenv_values(dotenv)
    environment = {**file, **os.environ}
    readers = {field.name: field.metadata["read"] for field in fields}
    values = {name: read(env, name_of(name)) for name, read in readers.items()}
    values["providers"] = read_providers(env, environment)
    values["warnings"] = mistakes.unknown(environment, names()) + lost
    own = {name_of(field) for field in readers}
    values["origins"] = {
        name: str(Path(dotenv).resolve()) if file.get(name) == value else "environment"
        for name, value in environment.items()
        if name in own or name.startswith(PROVIDER_PREFIX)
    }
    full = {name_of(field.name) for field in fields if not field.metadata["may_be_empty"]}
    empty = [
        name
        for name, value in environment.items()
        if (name in full or name.startswith(PROVIDER_PREFIX)) and value is not None and not value.strip()
    ]
    faults, notices = _faults_of_texts(environment)
    values["warnings"] += notices
    problems = mistakes.problems_of(env) | faults
    problems |= dict.fromkeys(empty, "Is empty. Unset it or give it a value.")
    _refuse([f"{name}: {text}" for name, text in sorted(problems.items())], values["warnings"])

    combined.complete(values, has_timebox="AUTH_SESSION_TIMEBOX" in environment)
    lines = [*combined.contradictions(values)] or kept_secrets.add(values, missing_secrets)
    _refuse(lines, values["warnings"])
    return Settings(**values)


def _faults_of_texts(environment: Mapping[str, str | None]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return problems of texts by variable, and warnings about secrets, which are used so until 0.9.0."""
    kinds_of = {name_of(field.name): field.metadata for field in dataclasses.fields(Settings)}
    problems, notices = {}, []
    for name, value in sorted(environment.items()):
        kind = kinds_of.get(name) or kind_of(name)
        if not kind or not value or value.isspace():
            continue
        if not texts.is_utf8(value):
            problems[name] = "Has a byte that is not UTF-8. Remove that."
            continue
        is_header = kind.get("is_header", False)
        found = (texts.problem_of(text, is_header=is_header) for text in kind["texts"](value))
        if problem := next(filter(None, found), None):
            if kind.get("is_lenient"):
                notices.append(
                    f"{name}: The secret {problem}. It is used as it stands until 0.9.0, which refuses it."
                    " Replace it by one without."
                )
            else:
                problems[name] = f"{problem[:1].upper()}{problem[1:]}. Remove that."
    return problems, tuple(notices)


def _refuse(lines: list[str], warnings: tuple[str, ...]) -> None:
    if lines:
        raise SettingsError("\n".join([*lines, *warnings]))
