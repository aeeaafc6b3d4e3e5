"""Compares what decides in a restored database with the one that it replaces.

What was ended, taken away or restricted after the backup is back. For each, there is a command that ends it.
"""

import json
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg2

from auth.flows.admin.users import changed_members
from auth.rules.users import ADDRESS_KINDS
from sql import Runner, queries, schema

_PAGE = 1000
_Terms = Mapping[str, Any]
# What had happened to something since the backup, and the command that does it again.
_Ends = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Returned:
    """Something of the backup that had ended or changed since: `carol@example.com`, who `was banned`."""

    kind: str
    id: str
    name: str
    change: str
    command: str


class _Row(Protocol):
    """A row of a statement. `terms` are its columns that decide."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def terms(self) -> Any: ...


def is_comparable(on: Runner) -> bool:
    """Whether a database has a schema that the statements can read."""
    with suppress(psycopg2.Error):
        row = queries.select_schema_version(on)
        return row is not None and row.version >= schema.OLDEST_IN_BACKUPS
    return False


class Comparison:
    """A restored database, and the one that it replaces, or None if there was none to compare with."""

    def __init__(self, restored: Runner, replaced: Runner | None, *, with_sessions: bool) -> None:
        self._restored, self._replaced, self._with_sessions = restored, replaced, with_sessions
        # The ids of users and organizations that the replaced database did not have.
        self._gone: set[str] = set()

    def returned(self) -> Iterator[Returned]:
        """Yield what is back. Without a replaced database, only what acts for others or lets them act."""
        parts: list[tuple[str, Callable[[Runner], Iterable[Any]], Callable[[Any, _Terms | None], _Ends]]] = [
            ("organization", queries.list_deciding_organizations, self._ends_of_organization),
            ("user", self._users, self._ends_of_user),
            ("membership", _memberships, self._ends_of_membership),
            ("invitation", queries.list_deciding_invitations, self._ends_of_invitation),
            ("domain", queries.list_deciding_domains, self._ends_of_domain),
            ("provider", queries.list_deciding_providers, self._ends_of_provider),
            ("client", queries.list_deciding_clients, _ends_of_client),
            ("webhook", queries.list_deciding_webhooks, _ends_of_webhook),
            ("admin_key", queries.list_deciding_admin_keys, _ends_of_admin_key),
            ("openid_key", queries.list_deciding_openid_keys, self._ends_of_openid_key),
        ]
        for kind, rows, ends_of in parts:
            others = rows(self._replaced) if self._replaced else ()
            for row, before in _pairs(rows(self._restored), others):
                for change, command in ends_of(row, before):
                    yield Returned(kind, row.id, row.name, change, command)

    def _users(self, on: Runner) -> Iterator["queries.ListDecidingUsers"]:
        def page(after: str | None) -> Sequence["queries.ListDecidingUsers"]:
            return queries.list_deciding_users(on, after=after, most=_PAGE, with_sessions=self._with_sessions)

        return _pages(page)

    def _ends_of_organization(self, row: "queries.ListDecidingOrganizations", before: _Terms | None) -> _Ends:
        if self._replaced and before is None:
            self._gone.add(row.id)
            yield "had ended", _command("organizations", "end", row.name, "--yes")
        elif before:
            if before["level"] > row.terms["level"]:
                yield "required a second step", _command("organizations", "require", row.name, "aal2")
            if before["needs_own_provider"] and not row.terms["needs_own_provider"]:
                again = _command("organizations", "require", row.name, "own-sign-in")
                yield "required its own sign-in", again
            if before["max_age"] and before["max_age"] < (row.terms["max_age"] or math.inf):
                seconds = str(before["max_age"])
                again = _command("organizations", "require", row.name, "max-age", seconds)
                yield "required a recent sign-in", again

    def _ends_of_user(self, row: "queries.ListDecidingUsers", before: _Terms | None) -> _Ends:
        if before:
            yield from _changes_of_user(row, before)
        elif self._replaced:
            if not row.terms["is_passing"]:
                self._gone.add(row.id)
                yield "was deleted", _command("users", "delete", row.id, "--yes")
        elif row.terms["role"] == "admin":
            yield "is an administrator", _command("users", "change", row.id, "--role", "authenticated")

    def _ends_of_membership(self, row: "queries.ListDecidingMemberships", before: _Terms | None) -> _Ends:
        place, role = (row.organization_id, row.user_id), row.terms["role"]
        if before is None:
            if not self._gone.intersection(place):
                yield f"is {role}", _command("organizations", "remove", *place)
        elif before["role"] != role:
            yield f"was {before['role']}", _command("organizations", "add", *place, "--role", before["role"])

    def _ends_of_invitation(self, row: "queries.ListDecidingInvitations", before: _Terms | None) -> _Ends:
        if before is None and row.organization_id not in self._gone:
            email = row.terms["email"]
            # An address may look like an option.
            words = (row.organization_id, *(["--"] if email.startswith("-") else []), email)
            yield "is invited", _command("organizations", "withdraw", *words)

    def _ends_of_domain(self, row: "queries.ListDecidingDomains", before: _Terms | None) -> _Ends:
        if self._replaced and before is None and row.organization_id not in self._gone:
            yield "was lost", _command("organizations", "forget", row.organization_id, row.domain)

    def _ends_of_provider(self, row: "queries.ListDecidingProviders", before: _Terms | None) -> _Ends:
        if not row.terms["is_on"] or row.organization_id in self._gone:
            return
        disable = _command("providers", "disable", row.id, "--yes")
        if not (before and before["is_on"]):
            yield "signs users in", disable
        elif before["settings"] != row.terms["settings"]:
            yield "had other settings", disable

    def _ends_of_openid_key(self, _row: "queries.ListDecidingOpenidKeys", before: _Terms | None) -> _Ends:
        if self._replaced and before is None:
            yield "was removed", _command("keys", "rotate", "openid", "--now")


def _pairs(restored: Iterable[_Row], replaced: Iterable[_Row]) -> Iterator[tuple[_Row, _Terms | None]]:
    """Yield the restored rows, each with the terms of the replaced one. Both come in the order of ids."""
    others = iter(replaced)
    other = next(others, None)
    for row in restored:
        while other and other.id < row.id:
            other = next(others, None)
        yield row, other.terms if other and other.id == row.id else None


def _memberships(on: Runner) -> Iterator["queries.ListDecidingMemberships"]:
    def page(after: str | None) -> Sequence["queries.ListDecidingMemberships"]:
        user, organization = after.split(" ") if after else (None, None)
        return queries.list_deciding_memberships(
            on, after_user=user, after_organization=organization, most=_PAGE
        )

    return _pages(page)


def _pages(page: Callable[[str | None], Sequence[Any]]) -> Iterator[Any]:
    after = None
    while rows := page(after):
        yield from rows
        after = rows[-1].id


def _command(*words: str) -> str:
    return f"latchkey {shlex.join(words)}"


def _changes_of_user(row: "queries.ListDecidingUsers", before: _Terms) -> _Ends:
    after = row.terms
    change = ("users", "change", row.id)
    if after["role"] != before["role"] != "admin":
        yield f"had the role {before['role']}", _command(*change, "--role", before["role"])
    # Together, because a user keeps one.
    differing = [kind for kind in ADDRESS_KINDS if after[kind] != before[kind]]
    addresses = [word for kind in differing for word in (f"--{kind}", before[kind] or "")]
    for kind in differing:
        if after[kind]:
            had = f"had the {kind} {before[kind]}" if before[kind] else f"had no {kind}"
            yield had, _command(*change, *addresses)
    if members := changed_members(after["app_metadata"], before["app_metadata"]):
        yield "had other app metadata", _command(*change, "--app-metadata", json.dumps(members))
    ban, unban = _command("users", "ban", row.id), _command("users", "unban", row.id)
    # Moments are JSON in UTC, so a later one is a greater text.
    if (before["banned_until"] or "") > (after["banned_until"] or ""):
        minutes = before["ban_minutes"]
        yield "was banned", f"{ban} --for {minutes}m" if minutes else ban
    elif not after["banned_until"]:
        identities = after["identities"].items() - before["identities"].items()
        for _, provider in sorted(identities):
            yield f"had disconnected {provider}", ban
        if {*after["sessions"]} - {*before["sessions"]}:
            yield "had ended sessions", _command("users", "sign-out", row.id)
        if {*after["access"]} - {*before["access"]}:
            yield "had ended API keys, or applications’ access", f"{ban} && {unban}"
    # `password` is when it was set, empty before 0.7.1.
    if after["password"] is not None and (
        before["password"] is None or after["password"] < before["password"]
    ):
        yield "had another password", _command(*change, "--void-password")
    elif after["password"] == before["password"] is not None and before["factors"] and not after["factors"]:
        yield "had a second factor, which is lost", _command(*change, "--void-password")
    if {*after["factors"], *after["unused_passkeys"]} - {*before["factors"], *before["unused_passkeys"]}:
        yield "had removed a factor or passkey", _command("users", "remove-factors", row.id, "--yes")


def _ends_of_client(row: "queries.ListDecidingClients", before: _Terms | None) -> _Ends:
    after, update = row.terms, ("clients", "update", row.id)
    if before is None:
        if not after["is_passing"]:
            yield "is an application", _command("clients", "delete", row.id)
        return
    if before["is_blocked"] and not after["is_blocked"]:
        yield "was blocked", _command(*update, "--block")
    if before["roles"] and after["roles"] != before["roles"]:
        roles = [word for role in before["roles"] for word in ("--role", role)]
        yield "admitted other roles", _command(*update, *roles)
    if before["organization"] and after["organization"] != before["organization"]:
        organization = before["organization"]
        yield f"admitted members of {organization}", _command(*update, "--organization", organization)
    if not after["is_passing"]:
        lists = [name for name, items in before["lists"].items() if {*after["lists"][name]} != {*items}]
        options = [
            word for name in lists for item in before["lists"][name] or [""] for word in (f"--{name}", item)
        ]
        ends = [
            f"--{name}" for name, is_trusted in after["trust"].items() if is_trusted > before["trust"][name]
        ]
        if lists or ends:
            yield "had other settings", _command(*update, *options, *ends)
    if after["secret"] != before["secret"] and after["secret"] and after["updated_at"] < before["updated_at"]:
        yield "had another secret", _command("clients", "rotate", row.id)


def _ends_of_webhook(row: "queries.ListDecidingWebhooks", before: _Terms | None) -> _Ends:
    if not row.terms["is_on"]:
        return
    disable = _command("webhooks", "disable", row.id, "--yes")
    if not (before and before["is_on"]):
        yield "gets events", disable
    elif row.terms["url"] != before["url"] or {*row.terms["events"]} - {*before["events"]}:
        yield "had another URL or fewer events", disable


def _ends_of_admin_key(row: "queries.ListDecidingAdminKeys", before: _Terms | None) -> _Ends:
    if before is None:
        yield "is an administrative key", _command("keys", "end", row.id)
