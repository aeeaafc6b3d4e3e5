"""The interface of what sends the messages of a channel, and the messages."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

_LONGEST_REASON = 300
# The channel of events for other systems.
EVENT_CHANNEL = "webhook"


@dataclass(frozen=True)
class RenderedMessage:
    """A message, with the same id in every attempt."""

    id: str
    kind: str
    created_at: datetime
    subject: str
    text: str
    html: str | None = None
    link: str | None = None
    code: str | None = None
    # The target of the request, which is not allowed, for the development inbox.
    refused_target: str | None = None

    @property
    def token(self) -> str:
        """The token of the link, if any."""
        return parse_qs(urlsplit(self.link or "").query).get("token", [""])[0]

    def masked(self, text: str) -> str:
        """Return a reply or an error in one line, without the secrets of this message."""
        return one_line(text, self.link, self.token, self.code)


class DeliveryFailure(Exception):
    """`reason` is the whole reply, which may repeat secrets of the message. The text is its beginning.

    `step` is a step of SMTP: token, resolve, connect, tls, starttls, login, sender, recipient or data.
    """

    def __init__(self, reason: str, step: str = "") -> None:
        super().__init__(one_line(reason))
        self.reason = reason
        self.step = step


class RefusedByServer(DeliveryFailure):
    """The server refuses this message permanently."""


class TryLater(DeliveryFailure):
    """The message cannot be sent now; with `is_down`, no message can. `retry_after` is in seconds."""

    def __init__(
        self, reason: str, step: str = "", *, retry_after: float = 0.0, is_down: bool = False
    ) -> None:
        super().__init__(reason, step)
        self.retry_after = retry_after
        self.is_down = is_down


class Sender:
    """Sends the messages of a channel. Used by several threads at once."""

    threads = 2  # for quick targets, and the same number for slow ones
    # Makes the message of a row, if the templates do not.
    compose: Callable[[Any], RenderedMessage] | None = None

    def send(self, recipient: str, message: RenderedMessage) -> str | None:
        """Send a message and return the server's reply in one line.

        Raises `RefusedByServer` or `TryLater`.
        """
        raise NotImplementedError

    def close_idle(self) -> None:
        """Close connections that have been idle for a while."""

    def close(self) -> None:
        """Close all connections."""


def one_line(text: str, *secrets: str | None) -> str:
    """Return a reply or an error in one short printable line, without secrets."""
    for secret in filter(None, secrets):
        text = text.replace(secret, "…")
    start = text[: 4 * _LONGEST_REASON]
    printable = "".join(character if character.isprintable() else " " for character in start)
    return " ".join(printable.split())[:_LONGEST_REASON]
