"""How a connection waits for Postgres: in a thread by `poll`, in a greenlet by an event of its loop."""

import select
import sys
from collections.abc import Callable

from psycopg2.extensions import POLL_READ
from psycopg2.extensions import connection as Connection


def _poll(connection: Connection, state: int, seconds: float | None) -> bool:
    """Return whether the connection can continue from `state` within `seconds`."""
    poller = select.poll()
    poller.register(connection.fileno(), select.POLLIN if state == POLL_READ else select.POLLOUT)
    return bool(poller.poll(None if seconds is None else seconds * 1000))


def _wait_in_greenlet() -> Callable[[Connection, int, float | None], bool]:
    """Return `_poll` with an event for each connection that is kept: 2 % of GET /user."""
    from gevent import get_hub, socket

    events: dict[int, object] = {}

    def wait(connection: Connection, state: int, seconds: float | None) -> bool:
        if state != POLL_READ:
            return _poll(connection, state, seconds)
        descriptor = connection.fileno()
        event = events.get(descriptor) or events.setdefault(descriptor, get_hub().loop.io(descriptor, 1))
        try:
            socket.wait(event, seconds, TimeoutError())
        except TimeoutError:
            return False
        return True

    return wait


def is_patched() -> bool:
    """Whether this process lives by greenlets, as a worker does: gunicorn.conf.py patches it first of all."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and monkey.is_module_patched("threading")


is_ready = _wait_in_greenlet() if is_patched() else _poll
