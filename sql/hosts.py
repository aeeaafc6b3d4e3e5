"""Connecting to a URL with several hosts: each is tried in turn, for its share of the time.

libpq skips hosts that refuse or are read-only, but spends all its time on one that hangs, and never reaches
the host that has taken over.
"""

import time
from typing import Any

import psycopg2
from psycopg2.extensions import connection as Connection
from psycopg2.extensions import make_dsn, parse_dsn

# Seconds per host without a deadline.
_PATIENCE = 10.0
_LISTS = ("host", "hostaddr", "port")
# By URL; this host is tried first.
_served_last: dict[str, str] = {}


class UnansweredError(psycopg2.OperationalError):
    """Postgres did not answer in time."""


def connect_to_any(url: str, connection_factory: type[Connection], deadline: float | None) -> Any:
    """Connect to the first host that serves, within `deadline` seconds.

    The attribute `deadline` of the factory's connections limits each wait (see sql/pool.py). Raises
    `psycopg2.OperationalError`: `UnansweredError` if a host hangs, otherwise the last host's error.
    """
    hosts = sorted(_hosts(url), key=lambda host: host != _served_last.get(url))
    if len(hosts) == 1:
        return psycopg2.connect(url, connection_factory=connection_factory, application_name="latchkey")
    hung: psycopg2.OperationalError | None = None
    ends_at = time.monotonic() + (_PATIENCE * len(hosts) if deadline is None else deadline)
    while True:
        host = hosts.pop(0)
        share = max(0.0, ends_at - time.monotonic()) / (len(hosts) + 1)
        hurried = type(connection_factory.__name__, (connection_factory,), {"deadline": share})
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
    """Return a URL for each host of one."""
    lists = {name: value.split(",") for name, value in parse_dsn(url).items() if name in _LISTS}
    count = max(map(len, lists.values()), default=1)
    # A single port is that of all hosts.
    return [
        make_dsn(url, **{name: values[i % len(values)] for name, values in lists.items()})
        for i in range(count)
    ]
