"""Entries of the audit log in the console: their sentences, with links to what they are about."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from auth.core.text.labels import details
from auth.flows.history import timeline
from auth.flows.history.mentions import Mention, Mentions, mentions_of, provider_id_of
from auth.web.context import latchkey
from sql import queries


class Piece(NamedTuple):
    """A part of a text, which leads to a page of the console if it has a path."""

    text: str
    path: str | None = None
    title: str | None = None


def for_page(
    rows: "Sequence[queries.SearchAudit]", *, is_whole: bool, organization: str | None = None
) -> list[dict[str, Any]]:
    """Return entries for a list: without IDs, unless the list is of one request or action, and without the
    organization that all are about.
    """
    mentions = mentions_of(latchkey.db, [row.details for row in rows])
    omitted = {"organization"} if organization else set[str]()
    return [_entry(row, mentions, omitted, is_whole=is_whole) for row in rows]


def sentences(rows: "Sequence[queries.ListTimelineBefore]", mentions: Mentions) -> list[dict[str, Any]]:
    """Return the entries of a user's timeline, in sentences."""
    return [
        row._asdict() | {"text": linked(timeline.sentence(row, mentions), mentions.of(row.details))}
        for row in rows
    ]


def linked(text: str, mentions: Iterable[Mention]) -> list[Piece]:
    """Return a text in pieces, of which the mentions lead to their pages."""
    places = sorted(
        ((text.find(each.text), each) for each in mentions if each.text in text), key=lambda place: place[0]
    )
    return list(_pieces(text, places))


def _pieces(text: str, places: Iterable[tuple[int, Mention]]) -> Iterator[Piece]:
    end = 0
    for start, mention in places:
        # The name of one may contain that of the other.
        if start >= end:
            yield Piece(text[end:start])
            yield Piece(mention.text, path_of(mention), mention.title)
            end = start + len(mention.text)
    yield Piece(text[end:])


def path_of(mention: Mention) -> str | None:
    """Return the path of its page, unless its section is off."""
    sections = {path for each in latchkey.extensions for _place, path, _title in each.navigation}
    is_on = any((mention.path or "").startswith((f"{section}/", f"{section}?")) for section in sections)
    return mention.path if is_on else None


def actor_of(row: "queries.ListEntriesOfProvider") -> dict[str, Any]:
    """Return what the macro `actor` needs of an entry without a user."""
    return row._asdict() | {"key": timeline.key_of(row), "is_by_user": False}


def _entry(
    row: "queries.SearchAudit", mentions: Mentions, omitted: set[str], *, is_whole: bool
) -> dict[str, Any]:
    text, key, named = timeline.what(row, mentions), timeline.key_of(row), mentions.of(row.details)
    omitted = omitted | ({"administrator"} if key else set())
    if row.request_id and not is_whole:
        omitted |= {name for name in row.details if name == "id" or name.endswith("_id")}
        omitted |= {"by"} if row.name == "invited" else set()
    if mentions.providers.get(provider_id_of(row.details) or ""):
        # The sentence names the provider.
        omitted |= {"provider", "provider_name", "method"} | (set() if is_whole else {"provider_id"})
    members = row.details | dict.fromkeys(omitted)
    moment = datetime.fromisoformat(row.at).astimezone(UTC)
    is_of_year = moment.year == datetime.now(UTC).year
    return row._asdict() | {
        "text": linked(text, named),
        "details_line": linked(details(members, line=f"{text} {row.actor_address}"), named),
        "key": key,
        "is_by_user": timeline.is_by_user(row),
        "time": f"{moment:%b %-d, %H:%M:%S}" if is_of_year else f"{moment:%Y-%m-%d %H:%M:%S}",
    }
