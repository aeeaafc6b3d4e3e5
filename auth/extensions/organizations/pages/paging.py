"""Lists in pages of fifty rows, with *Previous* and *Next*."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from urllib.parse import urlencode

from auth.web.schemas import Bounds, bounds

_MOST = 50


def bounds_of(number: int) -> Bounds:
    return bounds({"page": number, "per_page": _MOST})


@dataclass(frozen=True)
class ListPage:
    """A page of a list of `total` rows, or more. The `filters` of the list are in the query of each page."""

    number: int
    total: int
    filters: Mapping[str, str] = field(default_factory=dict)
    is_more: bool = False

    @property
    def first(self) -> int:
        return (self.number - 1) * _MOST + 1

    @property
    def last(self) -> int:
        return min(self.number * _MOST, self.total)

    @property
    def pages(self) -> int:
        return max(1, ceil(self.total / _MOST))

    def query_of(self, number: int) -> str:
        return f"?{urlencode({**self.filters, 'page': number})}"
