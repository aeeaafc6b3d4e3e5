"""Lists of an organization's members and of all organizations, with a search, a total and pages."""

from typing import TypedDict, Unpack

from sql import Database, queries


class Page(TypedDict):
    page_size: int
    page_offset: int


def members(
    db: Database, organization_id: str, *, q: str | None, with_addresses: bool, **page: Unpack[Page]
) -> "queries.ListMembers":
    """Return a page of the members, in the order in which they joined, as JSON, and the number of matches.

    `q` is the beginning of each word of a name or address. Without `with_addresses`, of names alone.
    """
    return queries.list_members(
        db, organization_id=organization_id, q=q, with_addresses=with_addresses, **page
    )
