"""Deliverers in the process of the tests."""

import threading
from typing import Any, ClassVar, Self

from auth.delivery.deliverer import GRACE, Deliverer
from auth.delivery.senders import channels


def deliverer(parts: Any) -> Deliverer:
    """Return a deliverer with the configured senders."""
    senders = channels.senders(parts.settings, parts.db, parts.sealer)
    return Deliverer(parts.settings, parts.db, parts.sealer, senders)


def deliver_due(parts: Any) -> int:
    """Send the due messages with the configured senders, and return their number."""
    return deliverer(parts).deliver_due()


class RunningDeliverer:
    """A deliverer in a separate thread, until `stop` or the end of the context."""

    _running: ClassVar[set["RunningDeliverer"]] = set()

    def __init__(self, deliverer: Deliverer, grace: float = GRACE) -> None:
        self._deliverer = deliverer
        self._thread = threading.Thread(target=deliverer.run, args=(grace,))
        self._thread.start()
        self._running.add(self)

    def stop(self) -> None:
        self._deliverer.end()
        self._thread.join()
        self._running.discard(self)
        # Housekeeping may take longer than `grace`, and would hold the janitor's lock in the next test.
        for thread in [] if self._running else threading.enumerate():
            if thread.name == "delivery housekeeping":
                thread.join(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
