"""The entries of the audit log that the console and a command search."""

from typing import Any

from sql import Runner, queries

# The filters that have an index, the most selective first.
INDEXED = ("request_id", "subject", "done_by", "organization", "action")
_NO_FILTERS: dict[str, Any] = dict.fromkeys(
    ("subject", "done_by", "action", "organization", "since", "until", "before_at", "before_id")
)


# Organizations with one name that a caller lists.
_MOST_NAMESAKES = 10


def first_of(values: dict[str, Any]) -> dict[str, Any]:
    """Return the filter whose index a search reads, as parameters of its statement."""
    index = next((name for name in INDEXED if values[name]), None)
    return {f"first_{name}": values[name] if name == index else None for name in INDEXED}


def entries_of_organization(on: Runner, id: str, most: int) -> "list[queries.SearchAudit]":
    """Return the newest entries of an organization, also of one that has ended."""
    first = first_of(dict.fromkeys(INDEXED) | {"organization": id})
    return queries.search_audit(on, **first, **_NO_FILTERS, reach=most, most=most)


def organizations_called(on: Runner, text: str) -> "list[queries.ListOrganizationsCalled]":
    """Return the organization with a short name, else those with a name in any case."""
    rows = queries.list_organizations_called(on, text=text, lower_text=text.lower(), most=_MOST_NAMESAKES)
    return rows[:1] if rows and rows[0].has_slug else rows
