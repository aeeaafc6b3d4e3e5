"""The interface of the doctor's checks, and the context that they examine."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import dns.resolver

from auth.core import constants
from auth.core.settings import Settings
from sql import Database


@dataclass(frozen=True)
class Failure:
    """A problem with its consequence, and the setting or command that fixes it.

    With `timed_out`, the cause may be that this machine is overloaded.
    """

    sentence: str
    remedy: str
    timed_out: bool = False


class Note(Failure):
    """A possible improvement. It does not count as a failure."""


class NotChecked(Exception):
    """The check does not apply, or cannot run because of a problem that another check reports."""


NOT_PUBLIC = "AUTH_BASE_URL is this machine"


@dataclass(frozen=True)
class Context:
    settings: Settings
    db: Database
    resolver: dns.resolver.Resolver
    gives_up_at: float  # on connections, a time of `time.monotonic`

    @property
    def seconds_left(self) -> float:
        return max(0.1, round(self.gives_up_at - time.monotonic(), 1))


@dataclass(frozen=True)
class Check:
    """`title` describes a healthy service, for which `look` returns None. It may raise `psycopg2.Error`."""

    name: str
    title: str
    look: Callable[[Context], Failure | None]


def check(name: str, title: str) -> Callable[[Callable[[Context], Failure | None]], Check]:
    return partial(Check, name, title)


def span(seconds: int) -> str:
    """Return a duration for people, such as `3 hours`."""
    for unit, length in (("days", constants.DAY), ("hours", constants.HOUR), ("minutes", constants.MINUTE)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
