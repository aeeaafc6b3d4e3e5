"""A URL of several hosts: each is tried in its turn, for its share of the time.

libpq goes on from a host that refuses, and from one that may not be written to; but for one that hangs it would wait until all the time
is used up, and never come to the one that has taken over.
"""

import time
from typing import Any

import psycopg2
from psycopg2.extensions import connection as Connection
from psycopg2.extensions import make_dsn, parse_dsn

# Seconds for each host, where whoever connects has time.
_PATIENCE = 10.0
_LISTS = ("host", "hostaddr", "port")
# The host of a URL that served last is tried first.
_served_last: dict[str, str] = {}


class UnansweredError(psycopg2.OperationalError):
    """Postgres has not answered in time, not even to say no."""


def connect_to_any(url: str, connection_factory: type[Connection], deadline: float | None) -> Any:
    """Open a connection to the first host that serves, within so many seconds. Raises `psycopg2.OperationalError`: that one hangs, or what the last one said.

    The factory's connections wait as long as their attribute `deadline` says (see sql/pool.py).
    """
    hosts = sorted(_hosts(url), key=lambda host: host != _served_last.get(url))
    if len(hosts) == 1:
        return psycopg2.connect(url, connection_factory=connection_factory, application_name="latchkey")
    hung: psycopg2.OperationalError | None = None
    ends_at = time.monotonic() + (_PATIENCE * len(hosts) if deadline is None else deadline)
    while True:
        host = hosts.pop(0)
        hurried = type(connection_factory.__name__, (connection_factory,), {"deadline": max(0.0, ends_at - time.monotonic()) / (len(hosts) + 1)})
        try:
            connection = psycopg2.connect(host, connection_factory=hurried, application_name="latchkey")
        except psycopg2.OperationalError as error:
            if isinstance(error, UnansweredError):
                hung = error
            if not hosts:
                raise hung or error from None
        else:
            connection.deadline = deadline
            _served_last[url] = host
            return connection


def _hosts(url: str) -> list[str]:
    """Return a URL for each host that one names."""
    lists = {name: value.split(",") for name, value in parse_dsn(url).items() if name in _LISTS}
    count = max(map(len, lists.values()), default=1)
    # One port may stand for all.
    return [make_dsn(url, **{name: values[place % len(values)] for name, values in lists.items()}) for place in range(count)]
