"""A mailbox that receives the application's mail."""

import re
from dataclasses import dataclass
from typing import Any

from auth.delivery.deliverer import Deliverer
from auth.delivery.senders import Sender


@dataclass(frozen=True)
class Letter:
    """A message that arrived."""

    to: str
    subject: str
    text: str


class Mailbox(Sender):
    """Delivers the outbox to itself on each read."""

    def __init__(self, parts: Any) -> None:
        self._deliverer = Deliverer(parts.settings, parts.db, parts.sealer, {"email": self, "sms": self})
        self._letters: list[Letter] = []

    def send(self, recipient: str, message: Any) -> None:
        """Store a message of the deliverer."""
        self._letters.append(Letter(recipient, message.subject, message.text))

    def messages(self) -> list[Letter]:
        """Return all messages so far, oldest first."""
        while self._deliverer.deliver_due():
            pass
        return list(self._letters)

    def messages_to(self, address: str) -> list[Letter]:
        return [letter for letter in self.messages() if letter.to == address]

    def link_for(self, address: str) -> str:
        """Return the link in the newest message to an address that has one."""
        links = [
            link
            for letter in self.messages_to(address)
            for link in re.findall(r"^https?://\S+$", letter.text, re.MULTILINE)
        ]
        assert links, f"no link has come to {address}"
        return links[-1]
