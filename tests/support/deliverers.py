"""Deliverers in the process of the tests."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from auth.delivery.deliverer import GRACE, Deliverer


def deliver_due(parts: Any) -> int:
    """Send the due messages with the configured senders, and return their number."""
    return Deliverer(parts.settings, parts.db, parts.sealer).deliver_due()


class RunningDeliverer:
    """A deliverer in a separate thread, until `stop` or the end of the context."""

    def __init__(self, deliverer: Deliverer, grace: float = GRACE) -> None:
        self._deliverer = deliverer
        # `run` does not wait for its end, so the janitor could still clean the tables of the next test.
        self._has_kept_house = threading.Event()
        setattr(deliverer, "_keep_house", partial(self._keep_house, deliverer._keep_house))  # noqa: B010
        self._thread = threading.Thread(target=deliverer.run, args=(grace,))
        self._thread.start()

    def stop(self) -> None:
        self._deliverer.end()
        self._thread.join()
        assert self._has_kept_house.wait(60)

    def _keep_house(self, keep_house: Callable[[], None]) -> None:
        try:
            keep_house()
        finally:
            self._has_kept_house.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
