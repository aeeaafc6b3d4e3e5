"""Waits for the notifications that Postgres sends for new messages in the outbox."""

import select
import socket
import time
from contextlib import suppress

import psycopg2

from sql.pool import DEADLINE, Connection, connect


class Notifications:
    """Waits for new messages, or for `interrupt`.

    Without a URL it does not listen: PgBouncer would give the listening session to another client.
    """

    def __init__(self, url: str | None) -> None:
        self._url = url
        self._connection: Connection | None = None
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def wait(self, seconds: float) -> bool:
        """Wait for a message, `interrupt` or the timeout. Return whether a message may have been written.

        Returns at once when the connection is made or lost, because messages may have been written meanwhile.
        """
        previous = self._connection
        connection = self._listen()
        if connection is not previous:
            return True
        if connection and connection.notifies:
            connection.notifies.clear()
            return True
        descriptors = [self._reader.fileno(), *([connection.fileno()] if connection else [])]
        readable, _, _ = select.select(descriptors, [], [], seconds)
        if self._reader.fileno() in readable:
            self._reader.recv(4096)
        is_notified = connection is not None and connection.fileno() in readable
        if connection and is_notified:
            try:
                connection.poll()
                connection.notifies.clear()
            except psycopg2.Error:
                self._disconnect()
        return is_notified

    def interrupt(self) -> None:
        """End the wait. Safe in signal handlers and other threads."""
        # Either the buffer is full, and the wait ends anyway, or the reader is closed.
        with suppress(OSError):
            self._writer.send(b"\0")

    def close(self) -> None:
        self._disconnect()
        self._reader.close()
        self._writer.close()

    def _listen(self) -> Connection | None:
        """Return the connection that listens, or None while Postgres is unavailable, which LISTEN detects."""
        if self._url is None:
            return None
        try:
            deadline = time.monotonic() + DEADLINE
            self._connection = self._connection or connect(self._url, deadline)
            self._connection.deadline = deadline
            with self._connection.cursor() as cursor:
                cursor.execute("LISTEN outbox")
        except psycopg2.Error:
            self._disconnect()
        return self._connection

    def _disconnect(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None
