"""The emails and SMS of the outbox, with the reasons of failures, but without texts, links and codes."""

from collections.abc import Sequence
from itertools import chain

from flask import Blueprint, Response

from auth.flows.admin import messages
from auth.flows.history import timeline
from auth.html.admin.access import administrator
from auth.html.admin.actions import Action, Subject, notice_of, serve
from auth.html.admin.console_page import ListQuery, console_page, page_of, place_of, whole_address
from auth.web import fields
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.input import read_query
from sql import queries

blueprint = Blueprint("messages", __name__)

# The outcomes of a filter. An expired message has failed: it could not be sent in time.
_STATES = {"waiting": ["waiting"], "failed": ["failed", "expired"], "sent": ["sent"], "void": ["void"]}
# Larger counts are shown as `1,000+`.
_COUNTED = 1000


class _MessagesQuery(ListQuery):
    state = fields.Choice(*_STATES)
    to = fields.Text()


@blueprint.get("/console/messages")
@administrator
def show_messages() -> Response:
    query = read_query(_MessagesQuery)
    counts = queries.count_messages(latchkey.db, states=["waiting", "failed", "expired"], most=_COUNTED)
    totals = {row.state: row.total for row in counts}
    totals["failed"] += totals.pop("expired")
    states = _STATES[query["state"]] if "state" in query else [*chain(*_STATES.values())]
    recipient = (whole_address(query["to"]) or query["to"]) if "to" in query else None
    with latchkey.db.search() as tx:
        rows = queries.search_messages(tx, states=states, recipient=recipient, **place_of(query))
    return console_page(
        "messages.html",
        counts={state: f"{total:,}" + "+" * (total >= _COUNTED) for state, total in totals.items()},
        outcome=timeline.outcome,
        name=timeline.message,
        notice=notice_of(_ACTIONS),
        **page_of(rows, "written_at"),
    )


def _find(message_id: str) -> Subject:
    message = messages.find(current_asked(), message_id)
    name = _name(message)
    return Subject(name[:1].upper() + name[1:], "console/messages", message)


def _name(message: "queries.SelectMessage") -> str:
    return f"{timeline.message(message.channel, message.kind)} to {message.recipient}"


def _effects(subject: Subject) -> Sequence[str]:
    message, what = subject.row, f"the {_name(subject.row)}"
    if message.outcome == "waiting":
        return [f"Sends {what} now."]
    effects = [f"Sends 1 message again: {what}. It counts toward the limits of this address."]
    if message.kind in messages.REQUESTED or message.kind == "invite":
        effects.append("It has a new link or code, which you won’t see.")
    return effects


_ACTIONS = {
    "resend": Action(
        title="Send again",
        effects=_effects,
        undo="A sent message can’t be recalled.",
        do=lambda asked, subject, _form: messages.resend(asked, subject.row.id),
        done="The message will be sent within seconds.",
    ),
}

serve(blueprint, "/console/messages/<message_id>", _ACTIONS, _find)
