"""Lists in pages of fifty rows, with *Previous* and *Next*, and the place in the list of members."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from urllib.parse import urlencode

from auth.web import fields
from auth.web.input import read_query
from auth.web.schemas import Bounds, Input, bounds

_MOST = 50
MembersQuery = Input.of(page=fields.PageNumber(), q=fields.TypedText(load_default=""))


def bounds_of(number: int) -> Bounds:
    return bounds({"page": number, "per_page": _MOST})


@dataclass(frozen=True)
class ListPage:
    """A page of a list of `total` rows, or more. The `filters` of the list are in the query of each page."""

    number: int
    total: int
    filters: Mapping[str, str] = field(default_factory=dict)
    has_more: bool = False

    @property
    def first(self) -> int:
        return (self.number - 1) * _MOST + 1

    @property
    def last(self) -> int:
        return min(self.number * _MOST, self.total)

    @property
    def pages(self) -> int:
        return max(1, ceil(self.total / _MOST))

    @property
    def place(self) -> str:
        """The query of this page, empty for the first one of the whole list."""
        values = {**self.filters, **({"page": self.number} if self.number > 1 else {})}
        return f"?{urlencode(values)}" if values else ""

    def query_of(self, number: int) -> str:
        return f"?{urlencode({**self.filters, 'page': number})}"


def place_in_members() -> str:
    """Return the query of the list of members that a page about one of them was opened from."""
    query = read_query(MembersQuery)
    return ListPage(query["page"], 0, {"q": query["q"]} if query["q"] else {}).place
