"""A customer's provider for operators: whose it is, who turned it on, and what it has opened."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from auth.core.text.labels import counted, label, quoted
from auth.core.text.moments import clock
from auth.flows.admin import providers
from auth.flows.admin.providers import IDENTIFIER
from auth.flows.history import timeline
from auth.flows.history.subjects import called
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import queries

# Rows that a count reads, and the largest number that a sentence says.
_REACH, _MOST = 10_000, 1_000
_MOST_CALLED = 6
_TURNS = {"provider_added": "connected", "provider_enabled": "turned on", "provider_disabled": "turned off"}


class Opened(NamedTuple):
    """What gives tokens because a provider opened it, and what of earlier terms has not been ended yet.

    The numbers are those of `count_opened_by_provider`. Unless `is_whole`, there may be more.
    """

    users: int
    sessions: int
    of_applications: int
    api_keys: int
    members: int
    sessions_left: int
    api_keys_left: int
    is_whole: bool

    def said(self, name: str, noun: str, plural: str | None = None) -> str:
        """Return a number in words: `12 sessions`, or `more than 1,000 sessions`."""
        number = getattr(self, name)
        return f"{self.number(name)} {noun if number == 1 else plural or noun + 's'}"

    def number(self, name: str) -> str:
        number = getattr(self, name)
        if number > _MOST:
            return f"more than {_MOST:,}"
        return f"{number:,}" if self.is_whole else f"at least {number:,}"

    @property
    def is_any(self) -> bool:
        return bool(self.sessions or self.of_applications or self.api_keys)

    @property
    def in_words(self) -> str:
        """Return what it has opened: `3 sessions, 2 sessions of applications and 1 API key`."""
        return (
            f"{self.said('sessions', 'session')}, "
            f"{self.said('of_applications', 'session of applications', 'sessions of applications')}"
            f" and {self.said('api_keys', 'API key')}"
        )

    @property
    def left_in_words(self) -> str:
        """Return what is still to be ended, empty if nothing is."""
        parts = [
            self.said(f"{name}_left", noun)
            for name, noun in (("sessions", "session"), ("api_keys", "API key"))
            if getattr(self, f"{name}_left")
        ]
        return " and ".join(parts)


class Turn(NamedTuple):
    """When a provider was connected, or last turned on or off, and by whom."""

    what: str
    at: str
    entry: "queries.ListTurnsOfProvider"

    @property
    def by(self) -> str:
        """Return who acted, for a command."""
        row = self.entry
        ran = row.details.get("system_user")
        name = row.details.get("administrator") or row.actor_address
        if row.actor == "user":
            return (
                f"administrator {name}"
                if row.details.get("administrator")
                else name or f"user {row.actor_id}"
            )
        return timeline.key_of(row) or label("actors", row.actor) + (f" of {quoted(ran)}" if ran else "")


class ProviderStory(NamedTuple):
    """What operators read about a provider."""

    row: "queries.SelectIdentityProvider"
    organization: "queries.SelectOrganization | None"
    # What the organization demands of members, if it has any demand that concerns providers.
    requirement: "queries.SelectRequirementOfProvider | None"
    opened: Opened
    turns: list[Turn]

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

    Refuse a name of several: their identifiers are in the details.
    """
    rows = queries.list_providers_called(
        asked.db, text=text, identifier=f"{IDENTIFIER}{text}", most=_MOST_CALLED
    )
    first = [row for row in rows if row.rank == rows[0].rank]
    if len(first) > 1:
        others = ", ".join(f"{row.identifier} ({row.slug or 'no organization'})" for row in first)
        raise ApiError("validation_failed", f"{quoted(text)} is the name of several providers: {others}")
    return providers.found_provider(asked, first[0].id if first else text)


def story_of(asked: Asked, row: "queries.SelectIdentityProvider") -> ProviderStory:
    counts = queries.count_opened_by_provider(asked.db, id=row.id, reach=_REACH)
    users = queries.count_users_of_provider(asked.db, id=row.id).total
    if counts is None:
        raise ApiError("custom_provider_not_found")
    requirement = queries.select_requirement_of_provider(asked.db, id=row.id) if row.organization_id else None
    return ProviderStory(
        row,
        providers.organization_of(asked.db, row.organization_id),
        requirement,
        Opened(users=users, **counts._asdict()),
        [
            Turn(_TURNS[each.name], each.at, each)
            for each in queries.list_turns_of_provider(asked.db, id=row.id)
        ],
    )


def lines_of(story: ProviderStory) -> Iterator[tuple[str, str]]:
    """Yield the titles and texts of what a command prints about a provider besides its object."""
    opened, organization = story.opened, story.organization
    if organization:
        yield "organization", f"{quoted(organization.name)} ({organization.slug}, {organization.id})"
    for turn in story.turns:
        yield turn.what, f"{clock(turn.at)} by {turn.by}"
    if story.row.tried_at:
        yield "tested", clock(story.row.tried_at.isoformat())
    yield "users", counted(opened.users, "user")
    if organization:
        yield "has added", opened.said("members", "member")
    yield "open now", opened.in_words
    if left := opened.left_in_words:
        yield "still ending", f"{left}, of which none gives a token"


def object_of(story: ProviderStory) -> dict[str, Any]:
    """Return what a command adds to the object of a provider for `--json`."""
    organization = story.organization
    return {
        "organization": organization
        and {"id": organization.id, "slug": organization.slug, "name": organization.name},
        "opened": story.opened._asdict(),
        "turns": [
            {
                "action": turn.entry.name,
                "at": turn.at,
                "actor": turn.entry.actor,
                "actor_id": turn.entry.actor_id,
            }
            for turn in story.turns
        ],
    }
