"""API keys of the account."""

from datetime import UTC, date, datetime
from typing import Any

from flask import Blueprint, Response

from auth.flows.account import api_keys
from auth.flows.sign_in.reauthentication import add, require
from auth.html.browser_sessions import signed_in
from auth.html.page import ago, date_alone, page, text
from auth.html.problems import Problem, form
from auth.web import Level, audited, fields, schemas
from auth.web.asked import current_asked
from auth.web.input import check, read_form

blueprint = Blueprint("api_keys", __name__)

DAYS = (30, 90, 365)
_Form = schemas.Input.of(
    name=fields.Name(required=True),
    days=fields.Choice("", *map(str, DAYS), load_default=""),
    scopes=fields.Text(load_default=""),
)
_Scopes = schemas.Input.of(scopes=fields.KeyScopes(required=True))


def shown_keys() -> list[dict[str, Any]]:
    """Return the caller's API keys for the account page."""
    return [key | {"states": states(key)} for key in api_keys.own(current_asked())]


def states(key: dict[str, Any]) -> list[Any]:
    """Return when an API key was added, used and expires, as texts."""
    used, today = key["last_used_on"], datetime.now(UTC).date()
    states = [text("account", "added", ago=ago(key["created_at"]))]
    if used is None:
        states.append(text("api_keys", "unused"))
    elif date.fromisoformat(used) >= today:
        states.append(text("api_keys", "used_today"))
    else:
        states.append(text("account", "used", ago=ago(f"{used}T00:00:00+00:00")))
    if key["expires_at"]:
        expires_at = datetime.fromisoformat(key["expires_at"])
        name = "expired" if expires_at <= datetime.now(UTC) else "expires"
        states.append(text("api_keys", name, date=date_alone(expires_at)))
    return states


@blueprint.get("/account/api-keys")
@signed_in(Level.PROOF)
def show_new_api_key(problem: Problem | None = None) -> Response:
    require(current_asked(), add("api_key"))
    return page("api_keys/new.html", script=True, here="/account/api-keys", problem=problem, days=DAYS)


@blueprint.post("/account/api-keys")
@form("add_api_key", shown=show_new_api_key, level=Level.PROOF)
@audited("change_refused")
def submit_new_api_key() -> Response:
    """Add an API key, and show it once."""
    entries = read_form(_Form)
    body = {"name": entries["name"].strip()} | check(_Scopes, {"scopes": entries["scopes"].split()})
    if entries["days"]:
        body["expires_in"] = int(entries["days"]) * 86_400
    api_key = api_keys.add(current_asked(), body)
    return page("api_keys/made.html", script=True, here=None, key=api_key["key"])
