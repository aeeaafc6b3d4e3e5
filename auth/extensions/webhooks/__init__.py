"""Webhooks: events for other systems."""

from typing import TYPE_CHECKING

from auth.core.settings import Settings

if TYPE_CHECKING:
    from flask import Flask

    from auth.core.tokens.derived_keys import Sealer
    from auth.delivery.senders.sender import Sender
    from sql import Database


def init_app(app: "Flask") -> None:
    from auth.extensions.webhooks import routes

    app.register_blueprint(routes.blueprint)


def senders(settings: Settings, db: "Database | None", sealer: "Sealer | None") -> "dict[str, Sender]":
    """Return the sender of events, which needs the database."""
    from auth.delivery.senders.sender import EVENT_CHANNEL
    from auth.extensions.webhooks.events import EventSender

    if db is None or sealer is None:
        return {}
    return {EVENT_CHANNEL: EventSender(db, sealer, settings.webhook_private_networks)}


def commands() -> dict[str, str]:
    return {"webhooks": "auth.extensions.webhooks.command"}
