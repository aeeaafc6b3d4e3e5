"""What the pages of consent say about organizations: the choice, and what a user lacks."""

import json
from typing import Any

from flask import request

from auth.core.json_bodies import JsonObject
from auth.core.text.names import in_one_line
from auth.extensions.openid import memberships
from auth.extensions.openid.memberships import RequestRow
from auth.flows import organizations
from auth.html.membership_steps import MembershipSteps
from auth.rules.consent import Lack
from auth.web.asked import Asked
from auth.web.context import latchkey
from sql import queries

# A longer choice is a list that opens.
_MOST_BUTTONS = 6


def variables(
    asked: Asked,
    row: RequestRow,
    client: "queries.SelectClient",
    person: "queries.SelectPerson | None",
    lack: Lack | None,
    next_page: str,
) -> dict[str, Any]:
    """Return what a page says of a request. From the pages of steps, the user comes back to `next_page`."""
    needed = memberships.needed(row, client, person)
    counting = [each for each in memberships.offered(row, client, person) if "role" in each]
    steps = MembershipSteps(person)
    waiting = [
        {"name": in_one_line(each["name"]), "step": step}
        for each in needed
        if (step := steps.step(each, next_page))
    ]
    return {
        "lack": lack,
        "is_refused": lack is not None,
        "organizations": counting,
        "has_buttons": len(counting) <= _MOST_BUTTONS,
        "chosen": counting[0]["id"] if len(counting) == 1 else request.form.get("organization"),
        "waiting": waiting,
        "is_named": memberships.names_one(row, client),
        **_ways_in(asked, row, client, person, lack),
    }


def _ways_in(
    asked: Asked,
    row: RequestRow,
    client: "queries.SelectClient",
    person: "queries.SelectPerson | None",
    lack: Lack | None,
) -> dict[str, Any]:
    """Return the ways of a user to a membership: open invitations, and an organization of their own."""
    if lack not in ("membership", "named_membership"):
        return {"invitations": [], "may_found": False}
    may_found = person is not None and organizations.may_found(latchkey.settings, person)
    return {
        "invitations": [each for each in _invitations(asked) if memberships.serves(row, client, each)],
        "may_found": may_found and lack == "membership",
    }


def _invitations(asked: Asked) -> list[JsonObject]:
    """Return the organizations that have invited the caller."""
    own = asked.admit_reader(queries.select_own_organizations(asked.db, **asked.caller_ids))
    return [each["organization"] for each in json.loads(own.invitations)]
