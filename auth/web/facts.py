"""The facts that auth/rules decides about, from settings and from rows with the columns of SQL functions."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Literal, TypeAlias, cast

from auth.core.settings import Settings
from auth.rules.counts import Network
from auth.rules.links import Link
from auth.rules.policy import FRESH_AGE, Policy
from auth.rules.sessions import Session
from auth.rules.tokens import ApiKey
from auth.rules.users import Address, User
from sql import queries

_NONE: Mapping[str, object] = MappingProxyType({})

# The rows with the columns of `caller_facts`.
CallerFacts: TypeAlias = (
    "queries.SelectUser | queries.SelectCaller | queries.SelectSessions | queries.SelectGrants"
    " | queries.SelectApiKeys | queries.SelectRecoveryCodes | queries.SelectClientCaller"
)
# Those with the columns of `user_facts`, and the level and the end of an API key.
KeyFacts: TypeAlias = "queries.SelectApiKey | queries.SelectUserOfApiKey"


def policy_of(settings: Settings) -> Policy:
    timebox, change_age = settings.session_timebox, settings.reauthentication_age
    return Policy(
        refresh_token_lifetime=timedelta(seconds=settings.refresh_token_lifetime),
        session_timebox=None if timebox is None else timedelta(seconds=timebox),
        mfa_required=cast(Literal["none", "admins", "all"], settings.mfa_required),
        proof_age=FRESH_AGE if change_age is None else min(timedelta(seconds=change_age), FRESH_AGE),
        change_age=None if change_age is None else timedelta(seconds=change_age),
    )


def moment_of(seconds: int) -> datetime:
    """Return a time of a token, in Unix seconds, as the rules take it."""
    return datetime.fromtimestamp(seconds, UTC)


def user_of(row: "CallerFacts | KeyFacts", app_metadata: Mapping[str, object] = _NONE) -> User:
    """Return the user without the addresses and the password, which no token depends on. Tokens of clients
    alone depend on the app metadata.
    """
    return User(
        role=row.role,
        made_by=row.made_by,
        converted_at=row.converted_at,
        banned_until=row.banned_until,
        oldest_factor_at=row.oldest_factor_at,
        has_second_step=row.has_second_step,
        app_metadata=app_metadata,
    )


def person_of(row: "queries.SelectPerson") -> User:
    """Return the user, with all facts."""
    return User(
        role=row.role,
        made_by=row.made_by,
        email=_address(row.email, row.email_added_at, row.email_confirmed_at, row.email_proved),
        phone=_address(row.phone, row.phone_added_at, row.phone_confirmed_at, row.phone_proved),
        converted_at=row.converted_at,
        banned_until=row.banned_until,
        last_sign_in_at=row.last_sign_in_at,
        has_password=row.password_hash is not None,
        is_password_vouched=row.is_password_vouched,
        oldest_factor_at=row.oldest_factor_at,
        has_second_step=row.has_second_step,
        app_metadata=row.app_metadata,
    )


def _address(
    value: str | None, added_at: datetime, confirmed_at: datetime | None, is_proved: bool
) -> Address | None:
    if value is None:
        return None
    return Address(value=value, added_at=added_at, confirmed_at=confirmed_at, is_proved=is_proved)


def own_session_of(row: "queries.SelectPerson") -> Session | None:
    """Return the session with all facts, if the user has it."""
    if row.method is None or row.aal is None or row.session_created_at is None or row.refreshed_at is None:
        return None
    return Session(
        method=row.method,
        aal=row.aal,
        created_at=row.session_created_at,
        refreshed_at=row.refreshed_at,
        ended_at=row.ended_at,
        reauthenticated_at=row.reauthenticated_at,
        factor_proved_at=row.factor_proved_at,
        code_given_at=row.code_given_at,
        first_passkey_at=row.first_passkey_at,
        opened_by=row.opened_by,
        resource=row.resource,
    )


def session_of(row: "CallerFacts") -> Session | None:
    """Return the session, if the user has it."""
    if row.method is None or row.aal is None or row.session_created_at is None or row.refreshed_at is None:
        return None
    return Session(
        method=row.method,
        aal=row.aal,
        created_at=row.session_created_at,
        refreshed_at=row.refreshed_at,
        ended_at=row.ended_at,
        first_passkey_at=row.first_passkey_at,
    )


def key_of(row: "KeyFacts") -> ApiKey | None:
    """Return the API key, if the user has it."""
    return None if row.key_aal is None else ApiKey(aal=row.key_aal, expires_at=row.key_expires_at)


def networks_of(rows: "Iterable[queries.ListKnownNetworks]") -> list[Network]:
    """Return the networks and browsers of a user."""
    return [
        Network(name=row.network, passed_at=row.passed_at, mail_proved_at=row.mail_proved_at) for row in rows
    ]


def link_of(row: "queries.SelectLink | queries.ListCodes") -> Link:
    return Link(
        purpose=row.purpose,
        created_at=row.created_at,
        expires_at=row.expires_at,
        spent_at=row.spent_at,
        is_of_sign_up=row.is_of_sign_up,
        newer=row.newer,
        code_expires_at=row.code_expires_at,
        browser=None if row.browser_hash is None else bytes(row.browser_hash),
    )
