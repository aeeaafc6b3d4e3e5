"""A customer's provider for operators: whose it is, who turned it on, and what it has opened."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from auth.core.text.labels import counted, label, quoted
from auth.core.text.moments import clock
from auth.flows.admin import providers
from auth.flows.admin.providers import IDENTIFIER
from auth.flows.history import timeline
from auth.flows.history.mentions import called
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import queries

# Rows that a count reads, and the largest number that a sentence says.
_REACH, _MOST = 10_000, 1_000
_MOST_NAMESAKES = 6
_TITLES = {"provider_added": "connected", "provider_enabled": "turned on", "provider_disabled": "turned off"}


class Opened(NamedTuple):
    """What gives tokens because a provider opened it, and what of earlier terms has not been ended yet.

    If it `has_more`, the numbers may be too low.
    """

    users: int
    sessions: int
    of_applications: int
    api_keys: int
    members: int
    sessions_left: int
    api_keys_left: int
    has_more: bool

    def counted(self, number: int, noun: str, plural: str | None = None) -> str:
        """Return a number with its noun: `12 sessions`, or `more than 1,000 sessions`."""
        return f"{self.number(number)} {noun if number == 1 else plural or noun + 's'}"

    def number(self, number: int) -> str:
        """Return a number as text, or a bound of it."""
        if number > _MOST:
            return f"more than {_MOST:,}"
        return f"at least {number:,}" if self.has_more else f"{number:,}"

    @property
    def is_any(self) -> bool:
        return bool(self.sessions or self.of_applications or self.api_keys)

    @property
    def in_words(self) -> str:
        """Return what it has opened: `3 sessions, 2 sessions of applications and 1 API key`."""
        return (
            f"{self.counted(self.sessions, 'session')}, "
            f"{self.counted(self.of_applications, 'session of applications', 'sessions of applications')}"
            f" and {self.counted(self.api_keys, 'API key')}"
        )

    @property
    def left_in_words(self) -> str:
        """Return what is still to be ended, empty if nothing is."""
        parts = [
            self.counted(number, noun)
            for number, noun in ((self.sessions_left, "session"), (self.api_keys_left, "API key"))
            if number
        ]
        return " and ".join(parts)

    @property
    def end(self) -> str:
        """Return how far the end of what it had opened has come."""
        left = self.left_in_words
        return (
            f"Still being ended, and giving no token: {left}."
            if left
            else "All that it had opened has ended."
        )


class ProviderSummary(NamedTuple):
    """What operators read about a provider."""

    row: "queries.SelectIdentityProvider"
    organization: "queries.SelectOrganization | None"
    # Whether members of the organization need its sign-in.
    requirement: "queries.SelectRequirementOfProvider | None"
    opened: Opened
    # Who connected it, and who turned it on and off last, as far as the log has the entries.
    entries: "list[queries.ListEntriesOfProvider]"

    @property
    def name(self) -> str:
        return called(self.row.name, self.organization.name if self.organization else None)

    @property
    def state(self) -> str:
        if self.row.enabled:
            return "on"
        if self.row.organization_id and not self.row.is_blocked:
            return "off" if self.row.tried_at else "off, not tested"
        return "disabled"


def find(asked: Asked, text: str) -> "queries.SelectIdentityProvider":
    """Return the provider with an id, an identifier, with or without its prefix, a domain or a name.

    Refuse a name that several have, with their identifiers in the details.
    """
    rows = queries.list_providers_called(
        asked.db,
        text=text,
        lower_text=text.lower(),
        identifier=f"{IDENTIFIER}{text}",
        most=_MOST_NAMESAKES,
    )
    best = [row for row in rows if row.rank == rows[0].rank]
    if not best:
        raise ApiError("custom_provider_not_found")
    if len(best) > 1:
        choices = ", ".join(f"{row.identifier} ({row.slug or 'no organization'})" for row in best)
        raise ApiError("validation_failed", f"{quoted(text)} is the name of several providers: {choices}")
    return providers.found_provider(asked, best[0].id)


def summary_of(asked: Asked, row: "queries.SelectIdentityProvider") -> ProviderSummary:
    opened = queries.count_opened_by_provider(asked.db, id=row.id, reach=_REACH)
    unended = queries.count_unended_of_provider(asked.db, id=row.id, reach=_REACH)
    if opened is None or unended is None:
        raise ApiError("custom_provider_not_found")
    users = queries.count_users_of_provider(asked.db, id=row.id).total
    requirement = queries.select_requirement_of_provider(asked.db, id=row.id) if row.organization_id else None
    return ProviderSummary(
        row,
        providers.organization_of(asked.db, row.organization_id),
        requirement,
        Opened(users=users, **opened._asdict(), **unended._asdict()),
        queries.list_entries_of_provider(asked.db, id=row.id),
    )


def title_of(entry: "queries.ListEntriesOfProvider") -> str:
    return _TITLES[entry.name]


def actor_of(entry: "queries.ListEntriesOfProvider") -> str:
    """Return who acted, for a command."""
    administrator, system_user = entry.details.get("administrator"), entry.details.get("system_user")
    if entry.actor == "user":
        user = entry.actor_address or f"user {entry.actor_id}"
        return f"administrator {administrator}" if administrator else user
    by = f" of {quoted(system_user)}" if system_user else ""
    return timeline.key_of(entry) or label("actors", entry.actor) + by


def lines_of(summary: ProviderSummary) -> Iterator[tuple[str, str]]:
    """Yield the titles and texts of what a command prints about a provider besides its object."""
    opened, organization = summary.opened, summary.organization
    if organization:
        yield "organization", f"{quoted(organization.name)} ({organization.slug}, {organization.id})"
    for entry in summary.entries:
        yield title_of(entry), f"{clock(entry.at)} by {actor_of(entry)}"
    if summary.row.tried_at:
        yield "tested", clock(summary.row.tried_at.isoformat())
    yield "users", counted(opened.users, "user")
    if organization:
        yield "has added", opened.counted(opened.members, "member")
    yield "open now", opened.in_words
    if left := opened.left_in_words:
        yield "still ending", f"{left}, of which none gives a token"


def object_of(summary: ProviderSummary) -> dict[str, Any]:
    """Return what a command adds to the object of a provider for `--json`."""
    organization = summary.organization
    return {
        "organization": organization
        and {"id": organization.id, "slug": organization.slug, "name": organization.name},
        "opened": summary.opened._asdict(),
        "entries": [
            {"action": entry.name, "at": entry.at, "actor": entry.actor, "actor_id": entry.actor_id}
            for entry in summary.entries
        ],
    }
