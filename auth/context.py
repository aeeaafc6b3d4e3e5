"""The parts of a running service, made once from its settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from flask import current_app

from auth.net.redirects import AllowList
from auth.passwords.hashing import Passwords
from auth.providers.client import Provider
from auth.settings import Settings
from auth.settings.constants import statement_constants
from auth.tokens import keys
from auth.tokens.access_tokens import AccessTokens
from auth.tokens.one_time import Codes
from auth.tokens.refresh_tokens import RefreshTokens
from sql import Database

EXTENSION = "latchkey"


@dataclass(frozen=True)
class Latchkey:
    settings: Settings
    db: Database
    access_tokens: AccessTokens
    refresh_tokens: RefreshTokens
    passwords: Passwords
    sealer: keys.Sealer
    codes: Codes
    redirects: AllowList
    providers: Mapping[str, Provider]


def make_parts(settings: Settings, origin: Callable[[], Mapping[str, Any]]) -> Latchkey:
    """Make the parts. `origin` returns the actor for the audit log. Raises `NotRunningError`."""
    return Latchkey(
        settings=settings,
        db=make_database(settings, origin),
        access_tokens=AccessTokens(
            jwk_set=settings.jwt_keys,
            secret=settings.jwt_secret,
            issuer=settings.jwt_issuer,
            audience=settings.jwt_audience,
            lifetime=settings.access_token_lifetime,
        ),
        refresh_tokens=RefreshTokens(settings.secret_key),
        passwords=Passwords(settings),
        sealer=keys.Sealer(keys.derive(settings.secret_key, "outbox")),
        codes=Codes(settings.secret_key),
        redirects=AllowList(settings.site_url, settings.redirect_allow_list),
        providers={
            name: Provider(name, chosen, settings.base_url) for name, chosen in settings.providers.items()
        },
    )


def make_database(
    settings: Settings, origin: Callable[[], Mapping[str, Any]], *, has_timeouts: bool = True
) -> Database:
    """Raises `NotRunningError`."""
    return Database(
        settings.find_database(),
        prepare=settings.db_prepare,
        constants=statement_constants(settings),
        origin=origin,
        has_timeouts=has_timeouts,
    )


class _Current:
    def __getattr__(self, name: str) -> Any:
        return getattr(current_app._get_current_object().extensions[EXTENSION], name)  # type: ignore[attr-defined]


latchkey = cast(Latchkey, _Current())
