"""The facts that auth/rules decides about, from rows with the columns of SQL functions."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol, TypeAlias, cast

from auth.rules.clients import Client
from auth.rules.counts import KnownNetwork
from auth.rules.deciding import Deciding
from auth.rules.proofs import Addition, Kind
from auth.rules.sessions import OpenSession, ProvedSession
from auth.rules.users import is_anonymous, is_banned
from sql import queries

# All facts about a user and one of its sessions.
Person: TypeAlias = "queries.SelectPerson"
# Those of a session that is locked to be refreshed.
RefreshFacts: TypeAlias = "queries.LockSession | queries.LockClientSession"


class ClientFacts(Protocol):
    """A row with what an application admits. The columns are null if there is none."""

    @property
    def allowed_roles(self) -> Collection[str] | None: ...
    @property
    def resources(self) -> Collection[str] | None: ...
    @property
    def is_dynamic(self) -> bool | None: ...
    @property
    def is_blocked(self) -> bool | None: ...


def own_session_of(row: "Person") -> ProvedSession | None:
    """Return the row as a session, if the user has it."""
    return None if row.session_created_at is None else cast(ProvedSession, row)


def client_of(row: ClientFacts) -> Client | None:
    """Return the application, if there is one."""
    if row.allowed_roles is None or row.resources is None or row.is_dynamic is None or row.is_blocked is None:
        return None
    return Client(
        allowed_roles=frozenset(row.allowed_roles),
        resources=frozenset(row.resources),
        is_dynamic=row.is_dynamic,
        is_blocked=row.is_blocked,
    )


def networks_of_json(objects: Iterable[Mapping[str, Any]]) -> list[KnownNetwork]:
    """Return the networks and browsers of a user from a column of JSON."""
    return [
        KnownNetwork(
            network=each["name"],
            passed_at=each["passed_at"] and datetime.fromisoformat(each["passed_at"]),
            mail_proved_at=each["mail_proved_at"] and datetime.fromisoformat(each["mail_proved_at"]),
        )
        for each in objects
    ]


def open_sessions_of(objects: Iterable[Mapping[str, Any]]) -> list[OpenSession]:
    """Return the sessions of a user that no act has ended from a column of JSON."""
    return [
        OpenSession(
            id=each["id"],
            method=each["method"],
            aal=each["aal"],
            session_created_at=datetime.fromisoformat(each["created_at"]),
            refreshed_at=datetime.fromisoformat(each["refreshed_at"]),
        )
        for each in objects
    ]


def deciding_of(row: "queries.SelectDeciding") -> Deciding:
    """Return what decides about a token. A ban that is over does not."""
    return Deciding(
        id=row.id,
        role=row.role,
        email=row.email,
        email_confirmed_at=row.email_confirmed_at,
        phone=row.phone,
        phone_confirmed_at=row.phone_confirmed_at,
        app_metadata=row.app_metadata,
        banned_until=row.banned_until if is_banned(row, row.now) else None,
        is_anonymous=is_anonymous(row),
        created_at=row.created_at,
        providers=row.providers,
        factors=row.factors,
        session_id=row.session_id,
        aal=row.aal,
        ended_at=row.ended_at,
        factor_id=row.factor_id,
        amr=row.amr,
    )


def additions_of(rows: "Iterable[queries.ListAdditions]") -> list[Addition]:
    """Return what was added to a user."""
    return [
        Addition(
            id=row.id,
            kind="factor" if row.type in ("totp", "webauthn") else cast(Kind, row.type),
            added_at=row.added_at,
        )
        for row in rows
    ]
