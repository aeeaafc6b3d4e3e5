"""The interface of all senders, and the senders that need no server."""

from collections.abc import Callable
from typing import Any

from auth.delivery.messages import Message
from sql import Database

_LONGEST_REASON = 300


class Refused(Exception):
    """The server refuses this message for good."""


class TryLater(Exception):
    """The message could not be sent now.

    `seconds` is the pause that the server asks for. `is_down`: any other message would have failed too.
    """

    def __init__(self, reason: str, *, seconds: float | None = None, is_down: bool = False) -> None:
        super().__init__(reason)
        self.seconds = seconds
        self.is_down = is_down


class Sender:
    """One way to send messages. Used by several threads at once."""

    # The number of threads for quick targets, and again for slow ones.
    threads = 2
    # Whether the database itself tracks the slow targets.
    tracks_slow_targets = False

    def claim(self, db: Database, channel: str, /, **parameters: Any) -> Any:
        """Claim the next message and return its row, or None. Raises `psycopg2.Error`."""
        return db.one("claim_message", channel=channel, **parameters)

    def compose(self, row: Any, render: Callable[[Any], Message], /) -> Message:
        """Return the message of a row of the outbox; `render` makes one for people."""
        return render(row)

    def send(self, recipient: str, message: Message) -> str | None:
        """Send a message and return the server's reply in one line. Raises `Refused` or `TryLater`."""
        raise NotImplementedError

    def close_idle(self) -> None:
        """Close connections that were not used for a while."""

    def close(self) -> None:
        """Close all connections."""


class ConsoleSender(Sender):
    """Prints messages on standard output, for development. Never in the log: logs are kept and shipped."""

    def send(self, recipient: str, message: Message) -> str:
        rule = "-" * 72
        subject = f"Subject: {message.subject}\n" if message.subject else ""
        print(f"{rule}\nTo: {recipient}\n{subject}\n{message.text}{rule}\n", end="", flush=True)
        return "standard output"


class DiscardingSender(Sender):
    """Sends nothing, because the development inbox has the message already."""

    def send(self, recipient: str, message: Message) -> str:
        return "kept in the development inbox"


def one_line(text: str, *secrets: str | None) -> str:
    """Return a reply or an error in one short printable line without the secrets of the message."""
    for secret in filter(None, secrets):
        text = text.replace(secret, "…")
    printable = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(printable.split())[:_LONGEST_REASON]
