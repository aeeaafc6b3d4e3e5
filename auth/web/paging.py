"""Paginated lists: the query, the envelope, and the headers X-Total-Count and Link (RFC 8288)."""

import math
from collections.abc import Mapping
from typing import TypedDict
from urllib.parse import urlencode

from flask import Response, json, request
from marshmallow import RAISE

from auth.web import fields
from auth.web.application import JsonResponse
from auth.web.schemas import Input


class PageQuery(Input):
    # The offset of the last page must fit into a bigint.
    page = fields.PageNumber(1, most=2**31)
    per_page = fields.PageNumber(20, most=100, most_in_dialect=1000)


class AdminPageQuery(PageQuery):
    """The query of an administrative list. Unknown parameters are refused, except in the dialect."""

    class Meta:
        unknown = RAISE

    error_messages = {"unknown": "is not a parameter of this list"}  # noqa: RUF012 (so does the base class)


class Bounds(TypedDict):
    page_size: int
    page_offset: int


def bounds(query: Mapping[str, int]) -> Bounds:
    return {"page_size": query["per_page"], "page_offset": (query["page"] - 1) * query["per_page"]}


def paginated(
    items: str, total: int, query: Mapping[str, int], *, name: str = "data", **others: str
) -> Response:
    """Return one page of a list, the member `name`. `items` and `others`, further members, are JSON."""
    page, per_page = query["page"], query["per_page"]
    total_pages = math.ceil(total / per_page)
    pagination = {"page": page, "per_page": per_page, "total": total, "total_pages": total_pages}
    members = {name: items, **others, "pagination": json.dumps(pagination)}
    response = JsonResponse("{" + ", ".join(f'"{name}": {value}' for name, value in members.items()) + "}")
    response.headers["X-Total-Count"] = str(total)
    last = max(1, total_pages)
    pages = {"first": 1, "prev": page - 1, "next": page + 1, "last": last}
    # Always include the first and the last page: without the header, clients ignore the total.
    kept = [
        (name, value) for name, value in request.args.items(multi=True) if name not in ("page", "per_page")
    ]
    rest = urlencode([("per_page", per_page), *kept])
    response.headers["Link"] = ", ".join(
        f'<{request.script_root}{request.path}?page={number}&{rest}>; rel="{rel}"'
        for rel, number in pages.items()
        if 1 <= number <= last
    )
    return response
