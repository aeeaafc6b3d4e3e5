"""The mails and SMS of the outbox: which wait, which failed and why. Never their texts, links or codes."""

from collections.abc import Sequence

from flask import Blueprint, Response

from auth import addresses
from auth.admin import resending
from auth.admin.resending import REQUESTED
from auth.console.access import administrator
from auth.console.acts import Act, Subject, serve, told
from auth.console.filters import Filters, page_of, place_of
from auth.console.page import console_page
from auth.context import latchkey
from auth.history import timeline
from auth.web import fields
from auth.web.input import read_query

blueprint = Blueprint("messages", __name__)

# The outcomes of a filter. An expired message has failed too: it could not be sent in time.
STATES = {
    "waiting": ["waiting"],
    "failed": ["failed", "expired"],
    "sent": ["sent"],
    "void": ["void"],
}
_ALL = [outcome for outcomes in STATES.values() for outcome in outcomes]
# Counted up to here, and then shown as `1,000+`.
_COUNTED = 1000


class _MessageFilters(Filters):
    state = fields.Choice(*STATES)
    to = fields.Text()


@blueprint.get("/console/messages")
@administrator
def show_messages() -> Response:
    """Show the messages, newest first."""
    query = read_query(_MessageFilters())
    place = place_of(query)
    states = STATES[query["state"]] if "state" in query else _ALL
    if "to" in query:
        recipient = _canonical(query["to"])
        rows = latchkey.db.all("search_messages_to", recipient=recipient, states=states, **place)
    else:
        rows = latchkey.db.all("search_messages", states=states, **place)
    return console_page(
        "messages.html",
        section="messages",
        counts=_counts(),
        outcome=timeline.outcome,
        name=timeline.message,
        notice=told(ACTS),
        **page_of(rows, "written_at"),
    )


def _counts() -> dict[str, str]:
    found = latchkey.db.all("count_messages", states=["waiting", "failed", "expired"], most=_COUNTED)
    totals = {row.state: row.total for row in found}
    totals["failed"] += totals.pop("expired")
    return {state: f"{total:,}" + "+" * (total >= _COUNTED) for state, total in totals.items()}


def _canonical(text: str) -> str:
    try:
        return addresses.canonical(text)
    except addresses.InvalidAddress:
        return text


def _find(message_id: str) -> Subject:
    message = resending.find(message_id)
    name = f"{timeline.message(message.channel, message.kind)} to {message.recipient}"
    return Subject(name=name, path="console/messages", row=message)


def _effects(subject: Subject) -> Sequence[str]:
    message, what = subject.row, f"the {subject.name}"
    if message.outcome == "waiting":
        return [f"Tries to send {what} now; it is waiting."]
    effects = [f"Sends 1 message: {what} again, which counts against the limits of this address."]
    if message.kind in REQUESTED or message.kind == "invite":
        effects.append("It has a new link or code, which you do not see.")
    return effects


ACTS = {
    "resend": Act(
        title="Send again",
        effects=_effects,
        undo="It cannot be taken back once it is sent.",
        do=lambda subject, _form: resending.resend(subject.row.id),
        done="The message will be sent within seconds.",
    ),
}


serve(blueprint, "/console/messages/<message_id>", ACTS, _find, "messages")
