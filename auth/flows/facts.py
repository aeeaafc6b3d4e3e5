"""The facts that auth/rules decides about, from rows with the columns of SQL functions."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias, cast

from auth.rules.clients import Client
from auth.rules.counts import KnownNetwork, Tally
from auth.rules.proofs import Addition, Kind
from auth.rules.sessions import OpenSession, ProvedSession
from sql import queries

# All facts about a user and one of its sessions.
PersonFacts: TypeAlias = "queries.SelectPerson"
# The facts that decide which proof a caller must give.
ProofFacts: TypeAlias = "PersonFacts | queries.SelectMember"
# The facts about a session that is locked to be refreshed.
RefreshFacts: TypeAlias = "queries.LockSession | queries.LockClientSession"
# What an application admits. The columns are null if there is none.
ClientFacts: TypeAlias = "queries.LockClientSession | queries.SelectClientCaller | queries.SelectOauthCode"


def own_session_of(row: "ProofFacts") -> ProvedSession | None:
    """Return the row as a session, if the user has it."""
    return None if row.session_created_at is None else cast(ProvedSession, row)


def client_of(row: "ClientFacts") -> Client | None:
    """Return the application, if there is one."""
    if row.allowed_roles is None or row.resources is None or row.is_dynamic is None or row.is_blocked is None:
        return None
    organizations = {row.organization_id, row.for_organization_id} - {None}
    return Client(
        organizations=frozenset(cast(set[str], organizations)),
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


def tallies_of_json(objects: Mapping[str, Mapping[str, Any]]) -> dict[str, Tally]:
    """Return the tallies of limits, by kind, from a column of JSON."""
    return {
        kind: Tally(each["count"], datetime.fromisoformat(each["expires_at"]))
        for kind, each in objects.items()
    }


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


def additions_of(rows: "Iterable[queries.ListAdditions]") -> list[Addition]:
    """Return what was added to a user."""
    return [
        Addition(
            id=row.id,
            kind="factor" if row.type in ("totp", "webauthn") else cast(Kind, row.type),
            added_at=row.added_at,
            is_unused=row.is_unused,
        )
        for row in rows
    ]
