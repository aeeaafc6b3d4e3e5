"""Mailboxes that receive the application's mail: from the outbox, or by SMTP."""

import html
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from auth.core.sender import Sender
from auth.delivery.deliverer import Deliverer
from tests.support.processes import wait_until
from tests.support.smtp_server import MailServer


@dataclass(frozen=True)
class Letter:
    """A message that arrived."""

    to: str
    subject: str
    text: str
    written_at: datetime


class Mailbox(Sender):
    """Delivers the outbox to itself on each read."""

    def __init__(self, parts: Any) -> None:
        self._deliverer = Deliverer(parts.settings, parts.db, parts.sealer, {"email": self, "sms": self})
        self._letters: list[Letter] = []

    def send(self, recipient: str, message: Any) -> None:
        """Store a message of the deliverer."""
        self._letters.append(Letter(recipient, message.subject, message.text, message.created_at))

    def messages(self) -> list[Letter]:
        """Return all messages so far, in the order in which they were written: notices are sent last."""
        while self._deliverer.deliver_due():
            pass
        return sorted(self._letters, key=lambda letter: letter.written_at)

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


class Post:
    """The mails that a service has sent to a mail server, as their readers see them."""

    def __init__(self, server: MailServer) -> None:
        self._server = server
        self.clear()

    def clear(self) -> None:
        self._server.mails.clear()

    def read(self, address: str, subject: str) -> "Mail":
        """Wait for a mail, and return the newest one with this subject."""

        def newest() -> Any:
            mails = [mail for mail in self._server.mails if mail["To"] == address]
            return next((mail for mail in reversed(mails) if subject in mail["Subject"]), None)

        return Mail(wait_until(newest, 30).get_body(("html",)).get_content())


class Mail:
    """The HTML of a mail."""

    def __init__(self, source: str) -> None:
        self._source = source

    @property
    def text(self) -> str:
        """What its reader sees."""
        return " ".join(html.unescape(re.sub("<[^>]*>", " ", self._source)).split())

    @property
    def link(self) -> str:
        """The target of the button."""
        match = re.search(r'<td bgcolor[^>]*><a href="([^"]+)"', self._source)
        assert match
        return html.unescape(match[1])

    @property
    def code(self) -> str:
        match = re.search(r">([0-9]{3})<span[^>]*>([0-9]{3})</span>", self._source)
        assert match
        return match[1] + match[2]

    @property
    def wrong_code(self) -> str:
        return f"{(int(self.code) + 1) % 1_000_000:06}"
