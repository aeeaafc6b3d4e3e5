"""What happened in an organization, in sentences for its owners.

The rows are those of GET /organizations/{name}/audit.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import date
from itertools import groupby
from typing import Any, NamedTuple

from flask import Blueprint, Response
from markupsafe import Markup

from auth.core.providers import CAUSES_OF_TOKENS
from auth.extensions.organizations import access
from auth.extensions.organizations.pages import (
    PATH,
    address_below,
    age_in_words,
    name_of,
    object_of,
    role_title,
    showing,
)
from auth.extensions.organizations.pages.paging import ListPage, bounds_of
from auth.html.page import (
    address,
    application,
    date_alone,
    has_text,
    page,
    redirect_to_own,
    sentences,
    text,
    time_of_day,
)
from auth.html.problems import code
from auth.rules.organizations import OWNER
from auth.web import Level, fields
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.input import read_query
from auth.web.schemas import MOST_EVENTS, Input
from sql import queries

blueprint = Blueprint("organization_history", __name__)

_WEEK = "7"
_HistoryQuery = Input.of(page=fields.PageNumber(), days=fields.Choice("", _WEEK, load_default=""))
# The sentences about refusals, by the `error_code`. The log names no change that was refused.
_CAUSES = {
    "insufficient_permissions": "because_role",
    "insufficient_aal": "because_step",
    "reauthentication_needed": "because_proof",
    "reauthentication_not_valid": "because_proof",
    "current_password_invalid": "because_proof",
    "mfa_verification_failed": "because_proof",
    "last_owner": "because_last_owner",
    "organization_sign_in_needed": "because_own_sign_in",
    "own_sign_in_required": "because_required",
    "provider_not_tried": "because_untested",
    "user_not_found": "because_not_found",
}

# The details of a change about requirements.
_DEMANDS = {"requires", "requires_own_provider", "requires_max_age"}

Entry = Mapping[str, Any]


class Person(NamedTuple):
    """A member, or a former one whose address the log has. `below` is the address of one who is called by a
    name, which members choose themselves.
    """

    name: Markup
    below: Markup | None


# By their ids.
People = Mapping[str, Person]


@blueprint.get("/account/organizations/<slug>/history")
@showing(Level.AAL2)
def show_history(slug: str) -> Response:
    organization, query = access.find_admitted(current_asked(), slug, OWNER), read_query(_HistoryQuery)
    days, number = query["days"], query["page"]
    audit = queries.list_audit_of_organization(
        latchkey.db,
        organization_id=organization.id,
        days=int(days) if days else None,
        most=MOST_EVENTS,
        **bounds_of(number),
    )
    list_page = ListPage(number, audit.total, {"days": days} if days else {})
    if number > list_page.pages:
        return redirect_to_own(f"{PATH}/{slug}/history{list_page.query_of(list_page.pages)}")
    entries: list[Entry] = json.loads(audit.entries)
    ids = {id for entry in entries for id in (entry["user_id"], entry["actor_id"]) if id}
    rows = queries.list_people_of_audit(latchkey.db, organization_id=organization.id, ids=sorted(ids))
    columns = [row._asdict() for row in rows if row.name or row.email]
    people = {each["id"]: Person(name_of(each), address_below(each)) for each in columns}
    providers = {
        row.id: application(json.loads(row.provider_object)["name"])
        for row in queries.list_providers_of_organization(latchkey.db, organization_id=organization.id)
    }
    return page(
        "organizations/history.html",
        script=True,
        here=f"/{PATH}/{slug}/history",
        organization=object_of(organization),
        days=days,
        week=_WEEK,
        list_page=list_page,
        history=[
            (date_alone(date.fromisoformat(day)), [_row_of(entry, people, providers) for entry in of_day])
            for day, of_day in groupby(entries, lambda entry: str(entry["at"])[:10])
        ],
    )


def _row_of(entry: Entry, people: People, providers: Mapping[str, Markup]) -> dict[str, Any]:
    details = entry["details"]
    values = {
        "who": _who(entry, people),
        "member": _called(entry["user_id"] or "", people),
        "role": role_title(details["role"]) if "role" in details else None,
        "before": role_title(details["before"]) if "before" in details else None,
        "invited": address(details.get("invited", "")),
        "domain": address(details.get("domain", "")),
        "provider": providers.get(details.get("provider_id", ""), text("history", "provider")),
        "action": code(entry["action"]),
        "age": age_in_words(details["requires_max_age"]) if details.get("requires_max_age") else None,
    }
    if "invited_as" in details:
        values["role"] = role_title(details["invited_as"])
    acts = [_capitalized(text("history", name, **values)) for name in names_of_texts(entry)]
    # Of two members with one name, the address says which one it was.
    named = [people[id] for id in dict.fromkeys((entry["actor_id"], entry["user_id"])) if id in people]
    times = text("history", "times", n=entry["count"]) if entry["count"] > 1 else None
    return {
        "text": sentences(*acts, _cause(entry)),
        "below": [*(person.below for person in named if person.below), *([times] if times else [])],
        "at": time_of_day(entry["at"]),
    }


def _capitalized(sentence: Markup) -> Markup:
    """Return a sentence that may begin with words of ours, such as `the operator`. Names stay as they are."""
    return sentence[:1].upper() + sentence[1:]


def _who(entry: Entry, people: People) -> Markup:
    """Return who acted. Of an operator, owners do not learn which one, nor the name of a key."""
    if entry["actor"] in ("service_role", "command"):
        return text("history", "operator")
    if entry["actor"] == "service":
        return application(latchkey.settings.brand_name)
    # In a request without a session, the user proved who it is.
    id = entry["actor_id"] or entry["user_id"]
    return _called(id, people) if id else text("history", "someone")


def _called(id: str, people: People) -> Markup:
    return people[id].name if id in people else text("history", "former")


def names_of_texts(entry: Entry) -> Iterator[str]:
    """Yield the names of the sentences about an entry, of the table `history`."""
    action, details = entry["action"], entry["details"]
    if entry["reason"]:
        yield "sign_in_refused" if action == "oauth_refused" else "refused"
    elif action == "organization_changed" and details.keys() & _DEMANDS:
        if "requires" in details:
            yield f"requires_{details['requires']}"
        if "requires_own_provider" in details:
            yield "requires_own" if details["requires_own_provider"] else "lifts_own"
        if "requires_max_age" in details:
            yield "requires_age" if details["requires_max_age"] else "lifts_age"
    elif action == "membership_added":
        yield f"membership_added_{details['added_by']}"
    elif action == "membership_removed" and entry["actor_id"] in (entry["user_id"], None) and _is_user(entry):
        yield "membership_left"
    elif action == "domain_lost" and entry["actor"] == "service":
        yield "domain_expired"
    elif action == "domain_lost" and "by_record" in details:
        yield "domain_taken"
    elif action == "domain_proved" and "by_command" in details:
        yield "domain_proved_by_command"
    else:
        # A newer node may write other entries.
        yield action if has_text("history", action) else "plain"


def _is_user(entry: Entry) -> bool:
    return entry["actor"] in ("user", "anonymous")


def _cause(entry: Entry) -> Markup | None:
    """Return the sentence that says why an act or a sign-in was refused, if we have one."""
    because = entry["details"].get("because")
    if because in CAUSES_OF_TOKENS:
        return text("history", "because_code", code=code(because))
    name = f"because_{because}" if because else _CAUSES.get(entry["reason"] or "", "")
    return text("history", name) if has_text("history", name) else None
