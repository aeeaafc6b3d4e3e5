"""The webhooks, and the deliveries of each."""

from flask import Blueprint, Response

from auth.console.access import administrator
from auth.console.acts import told
from auth.console.filters import Filters, page_of, place_of
from auth.console.page import console_page
from auth.console.webhook_acts import DELIVERY_ACTS, WEBHOOK_ACTS, webhook, webhook_states
from auth.context import latchkey
from auth.senders.webhooks import EVENTS
from auth.web import fields
from auth.web.input import read_query

blueprint = Blueprint("webhooks", __name__)


class _DeliveryFilters(Filters):
    state = fields.Choice("failed")


@blueprint.get("/console/webhooks")
@administrator
def show_webhooks() -> Response:
    """Show the webhooks, oldest first."""
    return console_page(
        "webhooks.html", section="webhooks", webhooks=webhook_states(), notice=told(WEBHOOK_ACTS)
    )


@blueprint.get("/console/webhooks/<webhook_id>")
@administrator
def show_webhook(webhook_id: str) -> Response:
    """Show a webhook with its deliveries, newest first."""
    known, query = webhook(webhook_id), read_query(_DeliveryFilters())
    statement = "search_failed_deliveries" if "state" in query else "search_deliveries"
    rows = latchkey.db.all(statement, webhook_id=known.id, **place_of(query))
    return console_page(
        "webhook.html",
        section="webhooks",
        webhook=known,
        all_events=len(known.events) == len(EVENTS),
        acts=WEBHOOK_ACTS,
        possible=["test", "change", "new-secret", "enable" if known.disabled_at else "disable", "delete"],
        notice=told(WEBHOOK_ACTS | DELIVERY_ACTS),
        **page_of(rows, "created_at"),
    )
