"""The parts of a running service, created once from its settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, cast

from flask import current_app

from auth import extensions
from auth.core.factors.webauthn import RelyingParty
from auth.core.health import HealthCheck
from auth.core.keys.key_ring import KeyRing
from auth.core.keys.openid_keys import OpenIdKeys
from auth.core.net.origins import Origins
from auth.core.net.redirects import AllowList
from auth.core.passwords.hashing import Passwords
from auth.core.passwords.leaked import LeakedPasswords, open_leaked_passwords
from auth.core.providers.client import Provider
from auth.core.settings import Settings
from auth.core.settings.constants import statement_constants
from auth.core.tokens.access_tokens import AccessTokens
from auth.core.tokens.api_keys import ApiKeys
from auth.core.tokens.client_tokens import ClientTokens
from auth.core.tokens.derived_keys import Sealer
from auth.core.tokens.one_time import Codes, RecoveryCodes, UserCodes
from auth.core.tokens.refresh_tokens import RefreshTokens
from auth.core.tokens.service_role import ServiceRoleKeys
from auth.extensions import AdmissionHook, Extension, TokenHook
from auth.rules.policy import FRESH_AGE, Policy, Window
from sql import Database
from sql.pool import SIZE

EXTENSION = "latchkey"


@dataclass(frozen=True)
class Latchkey:
    settings: Settings
    policy: Policy
    db: Database
    health: HealthCheck
    key_ring: KeyRing
    access_tokens: AccessTokens
    refresh_tokens: RefreshTokens
    client_tokens: ClientTokens
    client_refresh_tokens: RefreshTokens
    openid_keys: OpenIdKeys
    passwords: Passwords
    leaked_passwords: LeakedPasswords | None
    sealer: Sealer
    codes: Codes
    recovery_codes: RecoveryCodes
    user_codes: UserCodes
    api_keys: ApiKeys
    service_role_keys: ServiceRoleKeys
    redirects: AllowList
    origins: Origins
    providers: Mapping[str, Provider]
    relying_party: RelyingParty
    extensions: tuple[Extension, ...]
    token_hook: TokenHook | None
    admission_hooks: tuple[AdmissionHook, ...]


def make_parts(settings: Settings, origin: Callable[[], Mapping[str, str | None]]) -> Latchkey:
    """Create the parts. `origin` returns the actor for the audit log.

    Raises `NotRunningError`, or `SettingsError` for the file of leaked passwords.
    """
    key_ring, db = KeyRing(settings), make_database(settings, origin, size=SIZE - 1)
    openid_keys = OpenIdKeys(db, key_ring.sealer)
    passwords = Passwords(settings, key_ring.sign_up_salts)
    enabled = extensions.on(settings)
    return Latchkey(
        settings=settings,
        policy=policy_of(settings),
        db=db,
        health=HealthCheck(make_database(settings, origin, size=1)),
        key_ring=key_ring,
        access_tokens=key_ring.access_tokens,
        refresh_tokens=key_ring.refresh_tokens,
        client_tokens=ClientTokens(settings, key_ring.access_tokens, openid_keys),
        client_refresh_tokens=key_ring.client_refresh_tokens,
        openid_keys=openid_keys,
        passwords=passwords,
        leaked_passwords=open_leaked_passwords(settings),
        sealer=key_ring.sealer,
        codes=key_ring.codes,
        recovery_codes=key_ring.recovery_codes,
        user_codes=key_ring.user_codes,
        api_keys=key_ring.api_keys,
        service_role_keys=key_ring.service_role_keys,
        redirects=AllowList(
            settings.site_url, settings.redirect_allow_list, settings.base_url, has_pages=settings.pages
        ),
        origins=Origins(settings),
        providers={
            name: Provider(name, chosen, settings.base_url) for name, chosen in settings.providers.items()
        },
        relying_party=RelyingParty(settings),
        extensions=enabled,
        token_hook=next((hook for each in enabled if (hook := each.token_hook())), None),
        admission_hooks=tuple(each_hook for each in enabled if (each_hook := each.admission_hook())),
    )


def policy_of(settings: Settings) -> Policy:
    timebox, change_age = settings.session_timebox, settings.reauthentication_age
    refreshes = settings.rate_limit_refresh
    return Policy(
        refresh_token_lifetime=timedelta(seconds=settings.refresh_token_lifetime),
        refresh_window=Window(
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
    """Raises `NotRunningError`."""
    return Database(
        settings.find_database(),
        prepare=settings.db_prepare,
        constants=statement_constants(settings),
        origin=origin,
        size=size,
        has_timeouts=has_timeouts,
    )


def current_parts() -> Latchkey:
    parts: Latchkey = current_app.extensions[EXTENSION]
    return parts


class _Current:
    def __getattr__(self, name: str) -> Any:
        return getattr(current_app._get_current_object().extensions[EXTENSION], name)  # type: ignore[attr-defined]


latchkey = cast(Latchkey, _Current())
