"""Lists of an organization's members and of all organizations, with a search, a total and pages.

A search reads rows in their order until a page and a total are full, unless there are many rows and a sample
has few matches: then it collects what an index of words finds.
"""

import re
from typing import NamedTuple, TypedDict, Unpack

from auth.core.text.labels import counted
from auth.flows import totals
from auth.web.fields import is_uuid
from auth.web.schemas import Bounds
from sql import Database, queries

# `members` of an organization in a list ends here: it then means this many or more.
MOST_MEMBERS = 1_000
# Up to this number of members, a search reads all of them and takes no sample.
_FEW = 2_000
# A sample of members has 50 of each quarter of the organization's time, one of organizations has 200. With
# 2 matches in each quarter, or 10, a word is common.
_QUARTER, _MANY_IN_QUARTER = 50, 2
_SAMPLE, _MANY = 200, 10
# A search that collects this number reads rows in their order instead: the word is common outside the
# organization, or the sample misled.
_MOST_COLLECTED = 20_000
# Each word of a search reads a range of an index.
_MOST_WORDS = 10


class _Search(TypedDict):
    organization_id: str
    q: str | None
    with_addresses: bool


class Members(NamedTuple):
    """A page of members, as JSON, and the number of all who match. `has_more` if there may be others."""

    members: str
    total: int
    has_more: bool = False


class Organizations(NamedTuple):
    """A page of organizations, as JSON, and the number of all that match."""

    organizations: str
    total: int


def members(
    db: Database, organization_id: str, *, q: str | None, with_addresses: bool, **page: Unpack[Bounds]
) -> Members:
    """Return a page of the members, in the order in which they joined.

    Each word of `q` begins a word of the name or, with `with_addresses`, of the email address and its domain.
    The total of a search may stop `totals.EXACT` matches after the page's first.
    """
    search = _search_in(q)
    filters: _Search = {"organization_id": organization_id, "q": search, "with_addresses": with_addresses}
    with db.search() as tx:
        if search is not None:
            matches = queries.sample_members(tx, **filters, few=_FEW, most=_QUARTER).matches
            if matches is not None and matches < _MANY_IN_QUARTER:
                found = queries.find_members(tx, **filters, **page, most=_MOST_COLLECTED)
                if found.collected != _MOST_COLLECTED:
                    return Members(found.members, found.total)
        most = page["page_offset"] + max(page["page_size"], totals.EXACT)
        row = queries.list_members(tx, **filters, **page, most=most)
    if search is None and row.total >= totals.EXACT:
        return Members(row.members, totals.total_of(totals.EXACT, _count_members, db, organization_id))
    return Members(row.members, row.total, has_more=row.total == most)


def _count_members(db: Database, organization_id: str) -> int:
    return queries.count_all_members(db, organization_id=organization_id).total


def organizations(db: Database, *, q: str | None, **page: Unpack[Bounds]) -> Organizations:
    """Return a page of all organizations, newest first.

    `q` is an id, the beginning of a short name, or words that each begin a word of the name. The total of a
    search may stop `totals.EXACT` matches after the page's first.
    """
    search = _search_in(q)
    id = search if search and is_uuid(search) else None
    with db.search() as tx:
        if search is not None:
            sample = queries.sample_organizations(tx, id=id, q=search, most=_SAMPLE)
            if sample.matches < _MANY:
                collected = queries.find_organizations(
                    tx, id=id, q=search, **page, most=_MOST_COLLECTED, most_members=MOST_MEMBERS
                )
                if collected.total < _MOST_COLLECTED:
                    return Organizations(collected.organizations, collected.total)
        row = queries.list_organizations(
            tx,
            id=id,
            q=search,
            **page,
            most=totals.EXACT + (page["page_offset"] if search else 0),
            most_members=MOST_MEMBERS,
        )
    if search is None:
        return Organizations(row.organizations, totals.total_of(row.total, _count_organizations, db))
    return Organizations(row.organizations, row.total)


def _count_organizations(db: Database) -> int:
    return queries.count_organizations(db).total


def number_of_members(members: int) -> str:
    """Return a number of members that ends at `MOST_MEMBERS`, in words."""
    number = counted(members, "member")
    return f"{number} or more" if members == MOST_MEMBERS else number


def _search_in(q: str | None) -> str | None:
    """Return a search as GET /admin/users takes it, with its first `_MOST_WORDS` words, None without one."""
    search = (q or "").strip().lower().removeprefix("@")
    ends = [word.end() for word in re.finditer(r"[^\W_]+", search)]
    return (search[: ends[_MOST_WORDS - 1]] if len(ends) > _MOST_WORDS else search) or None
