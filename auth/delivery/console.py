"""Messages on standard output, for development: never in the log, which is kept and shipped."""

import sys
import threading

from auth.delivery.messages import Message


class ConsoleSender:
    """Prints what would be sent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def send(self, recipient: str, message: Message) -> None:
        """Print one message, in one piece."""
        rule = "-" * 72
        with self._lock:
            sys.stdout.write(f"{rule}\nTo: {recipient}\nSubject: {message.subject}\n\n{message.text}\n{rule}\n")
            sys.stdout.flush()
