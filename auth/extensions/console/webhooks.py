"""The webhooks and their deliveries. Shows only the origin of a URL: the rest may be secret."""

import json
from functools import partial
from types import SimpleNamespace
from typing import Any

from flask import Blueprint, Response

from auth.core import constants
from auth.core.net.webhook_urls import EVENTS
from auth.core.net.webhook_urls import body as event_body
from auth.core.text.labels import counted, label
from auth.flows.admin import webhooks
from auth.flows.admin.schemas import NewWebhook, WebhookChange
from auth.flows.admin.webhooks import found_webhook, webhook_id_of
from auth.html.admin.access import administrator
from auth.html.admin.actions import Action, Subject, notice_of, serve
from auth.html.admin.console_page import ListQuery, console_page, page_of, place_of, pretty
from auth.web import fields
from auth.web.context import latchkey
from auth.web.input import check, read_query
from auth.web.schemas import Input
from sql import queries

blueprint = Blueprint("webhooks", __name__)

# Larger counts of waiting events are shown as `1,000+`.
_COUNTED = 1000
# A form has a checkbox for each event; marshmallow takes a dot in a name for a nested object.
_BOXES = {event.replace(".", "_"): event for event in EVENTS}
_WebhookForm = Input.of(
    **{name: fields.TypedText(load_default="") for name in ("url", "description")},
    **{box: fields.Choice("yes") for box in _BOXES},
)


class _DeliveriesQuery(ListQuery):
    state = fields.Choice("failed")


@blueprint.get("/console/webhooks")
@administrator
def show_webhooks() -> Response:
    return console_page("webhooks.html", webhooks=_states(), notice=notice_of(_WEBHOOK_ACTIONS))


@blueprint.get("/console/webhooks/<webhook_id>")
@administrator
def show_webhook(webhook_id: str) -> Response:
    """Show a webhook with its deliveries, newest first."""
    webhook, query = _webhook(webhook_id), read_query(_DeliveriesQuery)
    filters = {"webhook_id": webhook.id, "outcome": query.get("state")}
    with latchkey.db.search() as tx:
        rows = queries.search_deliveries(tx, **filters, **place_of(query))
    return console_page(
        "webhook.html",
        webhook=webhook,
        acts=_WEBHOOK_ACTIONS,
        possible=["test", "change", "new-secret", "enable" if webhook.disabled_at else "disable", "delete"],
        notice=notice_of(_WEBHOOK_ACTIONS | _DELIVERY_ACTIONS),
        **page_of(rows, "created_at"),
    )


@blueprint.get("/console/webhooks/<webhook_id>/deliveries/<delivery_id>")
@administrator
def show_delivery(webhook_id: str, delivery_id: str) -> Response:
    """Show the request of an event, and the response to its last attempt."""
    webhook, row = _find_delivery(webhook_id, delivery_id)
    body = pretty(event_body(row.details["event"], row.variables))
    return console_page(
        "delivery.html", webhook=webhook, event=row.details, body=body, acts=_DELIVERY_ACTIONS
    )


def _states(id: str | None = None) -> list[SimpleNamespace]:
    states = []
    for row in queries.list_webhook_states(latchkey.db, id=id, most=_COUNTED):
        is_few = row.waiting < _COUNTED
        waiting = counted(row.waiting, "waiting event") if is_few else f"{_COUNTED:,}+ waiting events"
        texts = {"waiting": waiting, "title": row.description or row.origin, "boxes": _BOXES}
        states.append(SimpleNamespace(**row._asdict() | texts))
    return states


def _webhook(id: str) -> SimpleNamespace:
    return found_webhook(next(iter(_states(webhook_id_of(id))), None))


def _subject(webhook_id: str) -> Subject:
    webhook = _webhook(webhook_id)
    webhook.titles = {event: label("events", event).capitalize() for event in EVENTS}
    return Subject(webhook.title, f"console/webhooks/{webhook.id}", webhook)


def _delivery(webhook_id: str, delivery_id: str) -> Subject:
    webhook, row = _find_delivery(webhook_id, delivery_id)
    others = webhook.waiting if webhook.failing_since else None
    event = SimpleNamespace(webhook_id=webhook.id, origin=webhook.origin, others=others, **row.details)
    return Subject(webhook.title, f"console/webhooks/{webhook.id}", event)


def _find_delivery(webhook_id: str, delivery_id: str) -> tuple[SimpleNamespace, "queries.SelectDelivery"]:
    webhook, id = _webhook(webhook_id), webhook_id_of(delivery_id)
    return webhook, found_webhook(queries.select_delivery(latchkey.db, webhook_id=webhook.id, id=id))


def _body(form: dict[str, str]) -> dict[str, Any]:
    events = [event for box, event in _BOXES.items() if box in form]
    url = {"url": form["url"]} if form["url"] else {}
    return {"events": events, "description": form["description"] or None, **url}


def _show_secret(webhook_object: str, secret: str | None) -> Response:
    webhook = _webhook(json.loads(webhook_object)["id"])
    use, path = "Verify signatures with it.", f"console/webhooks/{webhook.id}"
    return console_page("secret.html", name=webhook.title, use=use, facts={"Secret": secret}, path=path)


def _effects_of_redelivery(subject: Subject) -> list[str]:
    event, name = subject.row, label("events", subject.row.event)
    outcome = (
        "; waiting for the next" if event.status == "waiting" else f": {label('outcomes', event.status)}"
    )
    attempts = f"{counted(event.attempts, 'attempt')} so far{outcome}."
    others = f"The webhook is failing. If it accepts this event, the others will follow: {event.others}."
    return [
        f"Sends 1 event ({name}) to {event.origin} again, with the same ID. {attempts}",
        others if event.others else "",
    ]


_action = partial(Action, needs_factor=True)
_writing = partial(_action, form=_WebhookForm, template="act_webhook.html")
_MAKING = {
    "new": _writing(
        title="Add a webhook",
        effects=lambda _subject: [
            f"You have {len(_states())} of {counted(constants.MOST_WEBHOOKS, 'webhook')}.",
            "You’ll see its secret once, on the next page.",
        ],
        undo="You can delete it at any time, but sent events can’t be recalled.",
        do=lambda asked, _subject, body: _show_secret(*webhooks.create(asked, body)),
        done="Webhook created.",
        check=lambda _subject, form: check(NewWebhook, _body(form)),
    ),
}
_WEBHOOK_ACTIONS = {
    "test": _action(
        title="Send a test event",
        effects=lambda subject: [f"Sends 1 event to {subject.row.origin}, about a made-up user."],
        undo="A sent event can’t be recalled.",
        do=lambda asked, subject, form: webhooks.send_test(asked, subject.row.id, form["event"]),
        done="The test event will be sent within seconds.",
        form=Input.of(event=fields.Choice(*EVENTS, required=True)),
        template="act_webhook_test.html",
    ),
    "change": _writing(
        title="Change webhook",
        effects=lambda subject: ["Changes 1 webhook.", f"{subject.row.waiting} will go to a new URL."],
        undo="You can change it back, but events sent to the new URL can’t be recalled.",
        do=lambda asked, subject, body: webhooks.change(asked, subject.row.id, body),
        done="Webhook changed.",
        check=lambda _subject, form: check(WebhookChange, _body(form)),
    ),
    "new-secret": _action(
        title="Create a new secret",
        effects=lambda _subject: [
            "Creates 1 secret, which you’ll see once.",
            "The old secret keeps signing for a day.",
        ],
        undo="The old secret can’t be restored.",
        do=lambda asked, subject, _form: _show_secret(
            *webhooks.change(asked, subject.row.id, {"rotate_secret": True})
        ),
        done="Secret created.",
    ),
    "disable": _action(
        title="Disable",
        effects=lambda subject: [
            "Stops 1 webhook. It won’t get events until you enable it.",
            f"{subject.row.waiting} will be kept for three days, then fail.",
        ],
        undo="You can enable it again, but missed events won’t be sent.",
        do=lambda asked, subject, _form: webhooks.change(asked, subject.row.id, {"disabled": True}),
        done="Webhook disabled.",
        is_destructive=True,
    ),
    "enable": _action(
        title="Enable",
        effects=lambda subject: ["Starts 1 webhook.", f"{subject.row.waiting} will be sent immediately."],
        undo="You can disable it again.",
        do=lambda asked, subject, _form: webhooks.change(asked, subject.row.id, {"disabled": False}),
        done="Webhook enabled.",
    ),
    "delete": _action(
        title="Delete",
        effects=lambda subject: [
            "Deletes 1 webhook with its secret.",
            f"{subject.row.waiting} won’t be sent.",
        ],
        undo="This can’t be undone.",
        do=lambda asked, subject, _form: webhooks.delete(asked, subject.row.id),
        done="Webhook deleted.",
        then="console/webhooks",
        is_destructive=True,
    ),
}
_DELIVERY_ACTIONS = {
    "redeliver": Action(
        title="Send again",
        effects=_effects_of_redelivery,
        undo="A sent event can’t be recalled. Receivers recognise repeats by the event’s ID.",
        do=lambda asked, subject, _form: webhooks.redeliver(asked, subject.row.webhook_id, subject.row.id),
        done="The event will be sent within seconds.",
    ),
}

_NEW = Subject("Webhooks", "console/webhooks", SimpleNamespace(origin=None, events=EVENTS, boxes=_BOXES))
serve(blueprint, "/console/webhooks", _MAKING, lambda: _NEW)
serve(blueprint, "/console/webhooks/<webhook_id>", _WEBHOOK_ACTIONS, _subject)
serve(blueprint, "/console/webhooks/<webhook_id>/deliveries/<delivery_id>", _DELIVERY_ACTIONS, _delivery)
