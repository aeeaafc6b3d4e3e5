"""Webhooks: events for other systems."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from auth.registry import Extension

if TYPE_CHECKING:
    from auth.core.sender import Sender
    from auth.core.tokens.derived_keys import Sealer
    from sql import Database


class Webhooks(Extension):
    api = ("routes",)
    command = "webhooks"

    def senders(self, db: "Database | None", sealer: "Sealer | None") -> "Mapping[str, Sender]":
        """Return the sender of events, which needs the database."""
        from auth.core.sender import EVENT_CHANNEL
        from auth.extensions.webhooks.events import EventSender

        if db is None or sealer is None:
            return {}
        return {EVENT_CHANNEL: EventSender(db, sealer, self.settings.webhook_private_networks)}


EXTENSION = Webhooks
