"""The threads that send what waits in the outbox.

A message is taken for the length of a lease and sent outside any transaction; should the process die, another takes it after
the lease. So nothing is lost, and at most the message in flight is doubled.
"""

import threading

import psycopg2
import structlog

from auth.delivery.console import ConsoleSender
from auth.delivery.messages import render
from auth.keys import CannotOpen, Sealer
from auth.settings import Settings
from sql import Database

# Seconds. The interval is for what other processes have written: our own wakes the thread.
INTERVAL = 2.0
LEASE = 60
BATCH = 20

log = structlog.get_logger()


class Deliverer:
    """Sends messages from one thread of this process."""

    def __init__(self, settings: Settings, db: Database, sealer: Sealer, sender: ConsoleSender | None) -> None:
        self._settings = settings
        self._db = db
        self._sealer = sealer
        self._sender = sender
        self._due = threading.Event()

    def start(self) -> None:
        """Begin to send, unless the deployment sends elsewhere or nowhere."""
        if self._settings.deliver and self._sender is not None:
            threading.Thread(target=self._run, name="delivery", daemon=True).start()

    def wake(self) -> None:
        """Say that a message may have been written."""
        self._due.set()

    def deliver_due(self) -> int:
        """Send what is due now, and return how many messages were taken. Raises `psycopg2.Error`."""
        if self._sender is None:
            return 0
        messages = self._db.all("claim_messages", lease=LEASE, batch=BATCH)
        for message in messages:
            try:
                secret = self._sealer.open(bytes(message.secret), message.id) if message.secret else None
            except CannotOpen as error:
                log.error("message_unreadable", message_id=message.id, reason=str(error))
                self._db.run("finish_message", id=message.id, outcome="void")
                continue
            self._sender.send(message.recipient, render(self._settings, message.kind, message.recipient, secret, message.variables))
            self._db.run("finish_message", id=message.id, outcome="sent")
        return len(messages)

    def _run(self) -> None:
        while True:
            self._due.wait(INTERVAL)
            self._due.clear()
            try:
                while self.deliver_due():
                    pass
            # The database is away; what waits there waits for the next round.
            except psycopg2.Error as error:
                log.warning("delivery_waits", reason=str(error).strip())
            # One broken message must not end the thread: it comes up again after its lease.
            except Exception:
                log.exception("delivery_failed")
