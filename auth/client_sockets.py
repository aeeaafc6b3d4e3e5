"""The socket of a client, as gunicorn uses it, with fewer system calls.

Python's lock is let go of for each, and whoever waits for it is woken, mostly in vain: of what a request costs, that is a large part.
"""

import socket
from typing import Any

# Bytes of an answer that are kept until they are sent.
_KEPT = 65_536


class ClientSocket(socket.socket):
    """A socket that stays as it is, blocking, and sends the head of an answer together with its body.

    gunicorn would change it five times for each request. Who must not wait says so with each call, by `MSG_DONTWAIT`.
    """

    def __init__(self, accepted: socket.socket) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, accepted.detach())
        self._unsent = b""
        # Whether the answer that is on its way asks the client to come back later.
        self.is_refused = False

    def has_ended(self) -> bool:
        """Whether the client has closed it, and has sent nothing before that is still to be read."""
        try:
            return not self.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def setblocking(self, flag: bool) -> None:
        """Do nothing."""

    def settimeout(self, value: float | None) -> None:
        """Do nothing: the worker's own deadline ends what takes too long."""

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Keep what is to be sent until `flush`, unless it is much."""
        self._unsent += data
        if len(self._unsent) > _KEPT:
            self.flush()

    def flush(self) -> None:
        """Send what has been kept. Raises `OSError`."""
        if self._unsent:
            data, self._unsent = self._unsent, b""
            super().sendall(data)
