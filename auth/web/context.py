"""The parts of a running service, created once from its settings."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import chain
from typing import Any, Literal, cast

from flask import current_app

from auth import registry
from auth.core.factors.webauthn import RelyingParty
from auth.core.health import HealthCheck
from auth.core.keys.key_ring import KeyRing
from auth.core.keys.openid_keys import OpenIdKeys
from auth.core.net.origins import Origins
from auth.core.net.redirects import AllowList
from auth.core.passwords.hashing import Passwords
from auth.core.passwords.leaked import open_leaked_passwords
from auth.core.providers.client import Provider
from auth.core.settings import Settings
from auth.core.settings.statement_constants import statement_constants
from auth.core.tokens.client_tokens import ClientTokens
from auth.rules.policy import FRESH_AGE, Policy, RefreshWindow
from sql import Database
from sql.pool import SIZE

EXTENSION = "latchkey"


class Latchkey:
    """The parts. `origin` returns the actor for the audit log.

    Raises `NotRunningError`, or `SettingsError` for the file of leaked passwords.
    """

    def __init__(self, settings: Settings, origin: Callable[[], Mapping[str, str | None]]) -> None:
        self.settings = settings
        self.policy = policy_of(settings)
        self.db = make_database(settings, origin, size=SIZE - 1)
        self.health = HealthCheck(make_database(settings, origin, size=1))
        self.key_ring = keys = KeyRing(settings)
        self.sealer = keys.sealer
        self.access_tokens = keys.access_tokens
        self.refresh_tokens = keys.refresh_tokens
        self.client_refresh_tokens = keys.client_refresh_tokens
        self.organization_refresh_tokens = keys.organization_refresh_tokens
        self.codes = keys.codes
        self.recovery_codes = keys.recovery_codes
        self.user_codes = keys.user_codes
        self.api_keys = keys.api_keys
        self.service_role_keys = keys.service_role_keys
        self.openid_keys = OpenIdKeys(self.db, keys.sealer)
        self.client_tokens = ClientTokens(settings, keys.access_tokens, self.openid_keys)
        self.passwords = Passwords(settings, keys.sign_up_salts)
        self.leaked_passwords = open_leaked_passwords(settings)
        self.redirects = AllowList(
            settings.site_url, settings.redirect_allow_list, settings.base_url, has_pages=settings.pages
        )
        self.origins = Origins(settings)
        self.providers: Mapping[str, Provider] = {
            name: Provider(name, provider_settings, settings.base_url)
            for name, provider_settings in settings.providers.items()
        }
        self.relying_party = RelyingParty(settings)
        self.extensions = extensions = registry.on(settings)
        self.token_hook = next((hook for each in extensions if (hook := each.token_hook())), None)
        self.operation_checks = dict(
            chain.from_iterable(each.operation_checks().items() for each in extensions)
        )
        self.admission_hooks = tuple(asks for each in extensions if (asks := each.admission_hook()))


def policy_of(settings: Settings) -> Policy:
    timebox, change_age = settings.session_timebox, settings.reauthentication_age
    refreshes = settings.rate_limit_refresh
    return Policy(
        refresh_token_lifetime=timedelta(seconds=settings.refresh_token_lifetime),
        refresh_window=RefreshWindow(
            most=refreshes.amount if settings.rate_limits_enabled else None,
            age=timedelta(seconds=refreshes.get_expiry()),
        ),
        reuse_interval=timedelta(seconds=settings.refresh_reuse_interval),
        session_timebox=None if timebox is None else timedelta(seconds=timebox),
        mfa_required=cast(Literal["none", "admins", "all"], settings.mfa_required),
        proof_age=FRESH_AGE if change_age is None else min(timedelta(seconds=change_age), FRESH_AGE),
        change_age=None if change_age is None else timedelta(seconds=change_age),
    )


def make_database(
    settings: Settings,
    origin: Callable[[], Mapping[str, str | None]],
    *,
    size: int = SIZE,
    has_timeouts: bool = True,
) -> Database:
    """Return the database of the settings. Raises `NotRunningError`."""
    return Database(
        settings.find_database(),
        prepare=settings.db_prepare,
        constants=statement_constants(settings),
        origin=origin,
        size=size,
        has_timeouts=has_timeouts,
    )


class _Current:
    def __getattr__(self, name: str) -> Any:
        return getattr(current_app._get_current_object().extensions[EXTENSION], name)  # type: ignore[attr-defined]


latchkey = cast(Latchkey, _Current())
