"""The parts of a running service, created once from its settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from flask import Blueprint, current_app
from flask.typing import ResponseReturnValue

from auth import extensions
from auth.core.factors.webauthn import RelyingParty
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
from auth.web.health import HealthCheck
from sql import Database
from sql.pool import SIZE

EXTENSION = "latchkey"


@dataclass(frozen=True)
class Waiting:
    """An application whose request waits until the user has signed in, or has signed in again."""

    name: str
    redirect_uri: str
    login_hint: str | None
    # Whether the sign-in is as recent as the application asks.
    is_fresh: bool
    # The path and the fields of a form that sends the browser back without a sign-in.
    declining: str
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Lists:
    """What the wings that are on have added to the house: the house asks these, and imports no wing."""

    # Asked when an act of auth/web/limits.py has been counted, before it does anything; raises `ApiError`.
    acts: "dict[str, Callable[[], object]]" = field(default_factory=dict)
    # Asked with an id, addresses, data and a provider, outside any transaction, before a user is made or gets
    # an address; raises `ApiError`.
    new_user: "list[Callable[..., object]]" = field(default_factory=list)
    # Asked with the claims of a token and how the user authenticated, outside any transaction; returns the
    # claims to sign, or raises `ApiError`. One at most.
    claims: "list[Callable[[dict[str, Any], str], dict[str, Any]]]" = field(default_factory=list)
    # Asked for a provider by a name that the settings do not have; returns it, or None.
    providers: "list[Callable[[str], Provider | None]]" = field(default_factory=list)
    # Asked with an email before its password is read; returns the name of the provider that signs it in, or
    # None.
    entrances: "list[Callable[[str], str | None]]" = field(default_factory=list)
    # The grants of POST /token by their names, beside those of the house: a view for each.
    grants: "dict[str, Callable[[], ResponseReturnValue]]" = field(default_factory=dict)
    # Asked with a token and the client that introspects it, or None for the service role key; returns the
    # claims of a token that is good now, or None.
    tokens: "list[Callable[[str, Any], dict[str, Any] | None]]" = field(default_factory=list)
    # Reads an introspection that has the credentials of a client; returns the token and the client's row, or
    # raises an error that the wing answers. One at most.
    introspecting_clients: "list[Callable[[], tuple[str, Any]]]" = field(default_factory=list)
    # Asked for members of the metadata below /.well-known.
    metadata: "list[Callable[[], dict[str, Any]]]" = field(default_factory=list)
    # The pages that a sign-in, a second step or a proof may return to: the pattern of a parameter `next`, and
    # the page's path, in which {} is that parameter.
    next_pages: "list[tuple[str, str]]" = field(default_factory=list)
    # Asked with the page that a form leads to; returns the application that waits behind it, or None.
    waiting: "list[Callable[[str], Waiting | None]]" = field(default_factory=list)
    # Pages beside those of the account, and sections of the console, with place, path and title of those that
    # its navigation names.
    pages: "list[Blueprint]" = field(default_factory=list)
    sections: "list[Blueprint]" = field(default_factory=list)
    navigation: "list[tuple[int, str, str]]" = field(default_factory=list)
    # What the account page shows in <name>/tab.html as `shown`, below the text `tab` of the table <name>,
    # unless it is None; what the console shows of a user in <name>/user_tab.html; what the data file has.
    tabs: "dict[str, Callable[[], Any]]" = field(default_factory=dict)
    user_tabs: "dict[str, Callable[[str], Any]]" = field(default_factory=dict)
    data: "dict[str, Callable[[], Any]]" = field(default_factory=dict)


@dataclass(frozen=True)
class Latchkey:
    settings: Settings
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
    lists: Lists = field(default_factory=Lists)


def make_parts(settings: Settings, origin: Callable[[], Mapping[str, Any]]) -> Latchkey:
    """Create the parts. `origin` returns the actor for the audit log.

    Raises `NotRunningError`, or `SettingsError` for a file of leaked passwords.
    """
    key_ring, db = KeyRing(settings), make_database(settings, origin, size=SIZE - 1)
    openid_keys = OpenIdKeys(db, key_ring.sealer)
    passwords = Passwords(settings, key_ring.sign_up_salts)
    parts = Latchkey(
        settings=settings,
        db=db,
        health=HealthCheck(make_database(settings, origin, size=1)),
        key_ring=key_ring,
        access_tokens=key_ring.access_tokens,
        refresh_tokens=key_ring.refresh_tokens,
        client_tokens=ClientTokens(
            key_ring.access_tokens,
            openid_keys,
            issuer=settings.jwt_issuer,
            document_hosts=settings.oauth_client_documents,
        ),
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
            settings.site_url, settings.redirect_allow_list, settings.own_pages, settings.own_redirects
        ),
        origins=Origins(settings.base_url, settings.cors_origins, settings.urls_of_applications),
        providers={
            name: Provider(name, chosen, settings.base_url) for name, chosen in settings.providers.items()
        },
        relying_party=RelyingParty(settings),
    )
    extensions.init_domain(parts)
    return parts


def make_database(
    settings: Settings,
    origin: Callable[[], Mapping[str, Any]],
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


class _Current:
    def __getattr__(self, name: str) -> Any:
        return getattr(current_app._get_current_object().extensions[EXTENSION], name)  # type: ignore[attr-defined]


latchkey = cast(Latchkey, _Current())
