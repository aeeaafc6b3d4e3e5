"""A user's page: whether they can sign in, their details, actions, and timeline."""

import json
from dataclasses import replace
from itertools import chain
from typing import Any

from flask import Blueprint, Response

from auth.core.text import names
from auth.core.text.labels import counted, quoted
from auth.extensions.console.user_actions import DONE, USER_ACTIONS
from auth.flows.history import explanation
from auth.flows.history.mentions import Mentions, mentions_of
from auth.html.admin import entries
from auth.html.admin.access import administrator
from auth.html.admin.actions import notice_of
from auth.html.admin.console_page import ListQuery, console_page, first_page, page_after, pretty
from auth.web import fields, g
from auth.web.context import latchkey
from auth.web.errors import ApiError
from auth.web.input import canonical_id, read_query
from sql import queries

blueprint = Blueprint("user", __name__)

ENTRIES = 25
_SESSIONS, _MESSAGES = 10, 10
_LONGEST_NAME = 200
# The actions that support needs most often. They are buttons, and the others are in a menu.
_OFTEN = ("invite-again", "recover", "end-sessions", "reset-two-step", "unban")
_KINDS_OF_ENTRIES = {
    "act": "Actions",
    "refusal": "Refused",
    "session": "Sessions",
    "message": "Messages",
    "event": "Events",
}


class _TimelineQuery(ListQuery):
    kind = fields.Choice(*_KINDS_OF_ENTRIES, load_default=None)
    # The order of entries of one moment.
    before_place = fields.Choice(*"0123", load_default=None)


@blueprint.get("/console/users/<user_id>")
@administrator
def show_user(user_id: str) -> Response:
    """Show a user, or the history of a deleted one."""
    id, query = canonical_id(user_id, "user_not_found"), read_query(_TimelineQuery)
    rows = queries.list_timeline_before(latchkey.db, user_id=id, page_size=ENTRIES, **query)
    last = rows[ENTRIES - 1] if len(rows) > ENTRIES else None
    user = queries.select_summary(latchkey.db, id=id, email=None, phone=None)
    # The user may be deleted between the statements.
    facts = user and queries.select_user_facts(latchkey.db, id=id)
    if facts is None and not rows:
        raise ApiError("user_not_found")
    sessions = queries.list_any_sessions(latchkey.db, user_id=id, most=_SESSIONS) if facts else []
    methods = [each["provider"] for each in facts.identities] if facts else []
    methods += [each.provider for each in sessions]
    mentions = mentions_of(latchkey.db, [row.details for row in rows], methods)
    story = {
        "entries": entries.sentences(rows[:ENTRIES], mentions),
        "kinds": _KINDS_OF_ENTRIES,
        "kind": query["kind"],
        "first": first_page(),
        "older": page_after(last.at, last.id, before_place=str(last.place)) if last else None,
    }
    values: dict[str, Any] = {"id": id, "story": story, "notice": notice_of(DONE), "acts": USER_ACTIONS}
    if user is None or facts is None:
        return console_page("user_deleted.html", **values)
    values |= {"sessions": sessions, "mentions": mentions, "path_of": entries.path_of}
    return console_page("user.html", **values, **_about(user, facts, mentions))


def _about(
    user: "queries.SelectSummary", facts: "queries.SelectUserFacts", mentions: Mentions
) -> dict[str, Any]:
    explained = explanation.explain(latchkey.settings, latchkey.db, user, mentions)
    if facts.invited_at:
        # The invitation is the message that confirms the address.
        obstacles = [obstacle for obstacle in explained.obstacles if obstacle.act != "recover"]
        explained = replace(explained, obstacles=obstacles)
    is_administrator = user.role == "admin"
    steps = [factor for factor in facts.factors if factor["type"] != "passkey"]
    # Without a reserve, losing the phone locks the user out.
    has_reserve = user.recovery_codes > 0 or len(steps) != 1 or explanation.PASSKEY in explained.ways
    codes_left = (
        f"{counted(user.recovery_codes, 'recovery code')} left"
        if user.recovery_codes
        else "No recovery codes"
    )
    return {
        "user": user,
        "facts": facts,
        "name": (names.of_user(facts.user_metadata) or "")[:_LONGEST_NAME],
        "metadata": {kind: pretty(getattr(facts, kind)) for kind in ("user_metadata", "app_metadata")},
        "explained": explained,
        "claims": json.dumps(explained.claims, ensure_ascii=False),
        "verdict": _verdict(explained, steps),
        "has_second_step": bool(steps),
        "codes_left": codes_left,
        "tone": _tone(explained, has_reserve=has_reserve and not facts.invited_at),
        "is_administrator": is_administrator,
        "is_self": user.id == g.administrator.user_id,
        "possible": [] if is_administrator else list(_possible(user, facts, explained)),
        "quiet": _OFTEN,
        "messages": queries.list_messages_of(latchkey.db, user_id=user.id, most=_MESSAGES),
        "tabs": dict(chain.from_iterable(each.user_tabs(user.id).items() for each in latchkey.extensions)),
    }


def _verdict(explained: explanation.Explanation, steps: list[dict[str, Any]]) -> str:
    if not explained.ways:
        return "Locked:" if explained.is_locked else "Can’t sign in:"
    ways = _either(explained.ways)
    first_steps = [way for way in explained.ways if way != explanation.PASSKEY]
    if steps and first_steps:
        ways = f"{_either(first_steps)}, then {_either([_step(factor) for factor in steps])}"
        # A passkey is both steps.
        ways += ", or with a passkey alone" if len(first_steps) < len(explained.ways) else ""
    if explained.is_locked:
        return f"Locked, except with {ways}:"
    return f"Can sign in with {ways}" + (", but:" if explained.obstacles else ".")


def _tone(explained: explanation.Explanation, *, has_reserve: bool) -> str:
    if not explained.ways or explained.is_locked:
        return "bad"
    return "good" if has_reserve and not explained.obstacles else ""


def _step(factor: dict[str, Any]) -> str:
    name = quoted(factor["name"]) if factor["name"] else None
    if factor["type"] == "totp":
        return f"a code from {name or 'an authenticator app'}"
    return f"the security key {name}" if name else "a security key"


def _either(texts: list[str]) -> str:
    *others, last = texts
    return f"{', '.join(others)} or {last}" if others else last


def _possible(
    user: "queries.SelectSummary", facts: "queries.SelectUserFacts", explained: explanation.Explanation
) -> list[str]:
    is_invited = facts.invited_at is not None and user.email is not None
    is_offered = {
        "invite-again": is_invited and not user.banned_until,
        "recover": user.email is not None and not user.banned_until and not is_invited,
        "end-sessions": user.live_sessions + user.sessions_of_applications > 0,
        "reset-two-step": bool(facts.factors),
        "ban": not user.banned_until,
        "unban": bool(user.banned_until),
        "unlock": any(obstacle.act == "unlock" for obstacle in explained.obstacles),
    }
    return [name for name in USER_ACTIONS if is_offered.get(name, True)]
