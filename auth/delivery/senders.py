"""What all ways to send have in common: how one says that it couldn't, and the printing one."""

import sys
import threading
from collections.abc import Callable
from typing import Any

from auth.delivery.messages import Message
from sql import Database

_LONGEST_REASON = 300


class Refused(Exception):
    """This message will never be taken: trying again is no use."""


class TryLater(Exception):
    """It could not be sent now. `seconds` is how long the server asks us to wait; `is_down`, whether any message would have failed."""

    def __init__(self, reason: str, *, seconds: float | None = None, is_down: bool = False) -> None:
        super().__init__(reason)
        self.seconds = seconds
        self.is_down = is_down


class Sender:
    """One way to send messages. It may be called from several threads at once."""

    # How many threads send by it, and as many again to its slow targets.
    threads = 2
    # Whether the database knows which of its targets are slow.
    are_slow_known = False

    def claim(self, db: Database, channel: str, /, **how: Any) -> Any:
        """Take the next message of a channel that this one is to send; return its row, or None. Raises `psycopg2.Error`."""
        return db.one("claim_message", channel=channel, **how)

    def compose(self, waiting: Any, render: Callable[[Any], Message], /) -> Message:
        """Return what a row of the outbox says; `render` makes a message for people of it."""
        return render(waiting)

    def send(self, recipient: str, message: Message) -> str | None:
        """Send a message, and return what the server said, shortly. Raises `Refused` or `TryLater`."""
        raise NotImplementedError

    def rest(self) -> None:
        """Let go of what is no longer needed: nothing has been due for a moment."""

    def close(self) -> None:
        """Let go of everything."""


class ConsoleSender(Sender):
    """Prints what would be sent, for development: on standard output, never in the log, which is kept and shipped."""

    _lock = threading.Lock()

    def send(self, recipient: str, message: Message) -> str:
        """Print one message, in one piece."""
        rule = "-" * 72
        subject = f"Subject: {message.subject}\n" if message.subject else ""
        with self._lock:
            sys.stdout.write(f"{rule}\nTo: {recipient}\n{subject}\n{message.text}{rule}\n")
            sys.stdout.flush()
        return "standard output"


class DiscardingSender(Sender):
    """Sends nothing: the development inbox, which has kept the message, is all that it goes to."""

    def send(self, recipient: str, message: Message) -> str:
        """Say so."""
        return "kept in the development inbox"


def one_line(text: str, *secrets: str | None) -> str:
    """Return what a server or an error said, short enough to be kept, without control characters and the secrets of the message."""
    for secret in filter(None, secrets):
        text = text.replace(secret, "…")
    printable = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(printable.split())[:_LONGEST_REASON]
