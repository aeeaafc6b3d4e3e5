"""The list of users: search, filters, and pages in both directions."""

from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Response
from psycopg2.errors import QueryCanceled

from auth.console import user_search
from auth.console.access import administrator
from auth.console.page import console_page
from auth.context import latchkey
from auth.pages.page import root
from auth.text import names
from auth.web import fields
from auth.web.input import read_query
from auth.web.schemas import Input

blueprint = Blueprint("console_users", __name__)

# The filters on offer; "" matches all users.
_STATUSES = {
    "": "Any state",
    "banned": "Banned",
    "unconfirmed": "Not confirmed",
    "anonymous": "Anonymous",
    "administrator": "Administrators",
}
_FACTORS = {"": "With or without two-step", "yes": "With two-step", "no": "Without two-step"}
_SIGNED_IN = {
    "": "Any last sign-in",
    "day": "In the last day",
    "week": "In the last week",
    "month": "In the last 30 days",
    "not_month": "Not for 30 days",
    "not_quarter": "Not for 90 days",
    "not_year": "Not for a year",
    "never": "Never",
}
_SORTS = {"newest": "Newest first", "last_sign_in": "Last sign-in first"}
_READINGS = {"email": "emails", "phone": "phone numbers", "id": "ids", "domain": "domains"}

_Query = Input.from_dict(
    {
        **{name: fields.Text() for name in ("q", "provider", "after", "before")},
        "by": fields.Choice("", "all", *_READINGS),
        "status": fields.Choice(*_STATUSES),
        "factor": fields.Choice(*_FACTORS),
        "signed_in": fields.Choice(*_SIGNED_IN),
        "sort": fields.Choice(*_SORTS, load_default="newest"),
    }
)


@blueprint.get("/console/users")
@administrator
def show_users() -> Response:
    query = {name: value for name, value in read_query(_Query()).items() if value}
    choices = {
        "status": _STATUSES,
        "provider": _providers(),
        "factor": _FACTORS,
        "signed_in": _SIGNED_IN,
        "sort": _SORTS,
    }
    values = {"query": query, "choices": choices, "link": _linker(query), "readings": _READINGS}
    try:
        found = user_search.find(query)
    except QueryCanceled:
        return console_page("users.html", section="users", status=422, found=None, **values)
    return console_page("users.html", section="users", found=found, provider=_provider, **values)


def _linker(query: dict[str, Any]) -> Any:
    """Return a function that returns the URL of this list with another place or reading."""
    kept = {name: value for name, value in query.items() if name not in ("after", "before")}

    def link(**changes: str) -> str:
        query = {name: value for name, value in (kept | changes).items() if value != "all"}
        return f"{root()}console/users?{urlencode(query)}"

    return link


def _provider(name: str) -> str:
    return names.provider(name, latchkey.settings.provider_titles) or name


def _providers() -> dict[str, str]:
    named = {name: _provider(name) for name in sorted(latchkey.settings.providers)}
    return {"": "Any provider", "email": "Email", "phone": "Phone", **named}
