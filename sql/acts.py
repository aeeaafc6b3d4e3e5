"""Acts: transactions that change a state. An act locks first, then reads its facts in a new statement,
decides, and writes. Nothing else locks what an act decides about.

All acts lock in this order, so that they never wait for each other in a circle:

1. counts, by `record_verdict`: its upsert is the lock, because a row that is not there cannot be locked
2. providers of customers, then applications
3. users, by id: FOR UPDATE, because a new email would deadlock with a weaker lock
4. the administrators
5. organizations, by id: they guard their owners and requirements. A membership is a row of its user
6. rows of a locked user: links, codes, sessions, requests

A refresh locks its session alone: what ends a user ends the rows of the sessions, too. A session that it
must end is ended by another act, which locks the user first.

The time of an act is the `now` of the first facts that it reads, `clock_timestamp()` after the locks; if
there is nothing to read, that of its first effect. Its statements write it: they have a parameter `acted_at`.
`now()` is BEGIN, which may be before what the previous holder of a lock wrote.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import psycopg2

from sql import Database, Runner, Transaction, queries
from sql.pool import ASYNCHRONOUS, BEGIN, NotInTime


class Facts(Protocol):
    @property
    def now(self) -> datetime: ...


class CountedLimit(Protocol):
    """At most `amount` in `seconds`, for a subject from a network."""

    @property
    def kind(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def network(self) -> str | None: ...
    @property
    def amount(self) -> int: ...
    @property
    def seconds(self) -> int: ...


F = TypeVar("F", bound=Facts | None)
P = ParamSpec("P")
# Looks for the users to lock, by something that may change: an address, a link, an identity.
Find = Callable[[Runner], Iterable[str | None]]
_TRIES = 3
# An act has nothing slow to do between two statements.
_BEGIN = f"{BEGIN}; SET LOCAL idle_in_transaction_session_timeout = '3s'"
_COUNTS, _PROVIDERS, _CLIENTS, _USERS, _ADMINISTRATORS, _ORGANIZATIONS, _REST = range(7)


class _Moved(psycopg2.DatabaseError):
    """The row that was looked up belongs to another user now."""


_running: ContextVar[bool] = ContextVar("_running", default=False)


class Act(Transaction):
    """The transaction of an act."""

    # The place of the last lock in the order.
    _last_place = -1
    # Whether a verdict was recorded, which must be committed whatever the act decides.
    has_verdict = False
    _acted_at: datetime | None = None

    @property
    def acted_at(self) -> datetime:
        if self._acted_at is None:
            self._acted_at = queries.read_time(self).now
        return self._acted_at

    def read(self, query: "Callable[Concatenate[Runner, P], F]", *args: "P.args", **kwargs: "P.kwargs") -> F:
        """Run a statement that reads facts after the locks, with their `now`, and return its row."""
        row = query(self, *args, **kwargs)
        if row is not None and self._acted_at is None:
            self._acted_at = row.now
        return row

    def record_verdict(
        self, limits: Sequence[CountedLimit], *, is_right: bool, tries: int = 1
    ) -> "queries.RecordVerdict":
        """Count a verdict in its limits. If `refused_by` is the kind of one, nobody may learn the verdict.

        Lock the user after it, also if the verdict is wrong, or the lock would reveal it. The act returns its
        refusal, because an exception would roll the count back.
        """
        self._follow(_COUNTS)
        self.has_verdict = True
        return queries.record_verdict(
            self,
            kinds=[limit.kind for limit in limits],
            subjects=[limit.subject for limit in limits],
            networks=[limit.network for limit in limits],
            amounts=[limit.amount for limit in limits],
            seconds=[limit.seconds for limit in limits],
            tries=tries,
            is_right=is_right,
        )

    def drop_verdict(self) -> None:
        """Let the act raise its refusal, and roll back a verdict that nobody may learn."""
        self.has_verdict = False

    def share_provider(self, id: str | None) -> None:
        """Keep a customer's provider as it is."""
        self._follow(_PROVIDERS)
        queries.share_provider(self, id=id)

    def lock_provider(self, id: str) -> None:
        """Lock a customer's provider, to change it."""
        self._follow(_PROVIDERS)
        queries.lock_provider(self, id=id)

    def lock_providers_of(self, organization_id: str) -> None:
        """Lock the providers of an organization."""
        for row in queries.list_providers_of_organization(self, organization_id=organization_id):
            self.lock_provider(row.id)

    def share_client(self, id: str | None) -> None:
        """Keep an application as it is."""
        self._follow(_CLIENTS)
        queries.share_client(self, id=id)

    def lock_client(self, id: str) -> None:
        """Lock an application, to change it."""
        self._follow(_CLIENTS)
        queries.lock_client(self, id=id)

    def lock_users(self, ids: Iterable[str | None]) -> None:
        """Lock users, with the next statement. None, an address without a user, takes the same statement."""
        self._follow(_USERS)
        self.later(queries.lock_users, ids=sorted({id for id in ids if id is not None}))

    def lock_administrators(self) -> None:
        """Keep other acts from making or unmaking administrators. The user is locked before."""
        self._follow(_ADMINISTRATORS)
        queries.lock_administrators(self)

    def lock_organizations(self, ids: Iterable[str]) -> None:
        """Lock organizations, to change what decides about their members."""
        self._follow(_ORGANIZATIONS)
        queries.lock_organizations(self, ids=sorted(ids))

    def lock_request(self, id: str | None) -> None:
        """Lock an authorization request, of a browser or device, which may have no user yet."""
        self._follow(_REST)
        queries.lock_request(self, id=id)

    def lock(self, lock: Callable[Concatenate[Runner, P], F], *args: P.args, **kwargs: P.kwargs) -> F:
        """Lock a row of a locked user, or the session of a refresh, and return it with its facts."""
        self._follow(_REST)
        return self.read(lock, *args, **kwargs)

    def _follow(self, place: int) -> None:
        if place < self._last_place or (place == self._last_place and place in (_USERS, _ORGANIZATIONS)):
            raise RuntimeError("an act must lock in the order of sql/acts.py")
        self._last_place = place


@contextmanager
def begin(db: Database, options: str = "") -> Iterator[Act]:
    """Run the block's statements as one act that has locked nothing yet. It cannot contain another act.

    Once a verdict was recorded, the block returns its refusal instead of raising it: the verdict would be
    rolled back.
    """
    if _running.get():
        raise RuntimeError("an act cannot begin within another one")
    token = _running.set(True)
    act = None
    try:
        with db.begin(Act, _BEGIN + options) as act:
            yield act
    except psycopg2.Error:
        raise
    except Exception as error:
        if act and act.has_verdict:
            raise RuntimeError("an act must not raise after a verdict") from error
        raise
    finally:
        _running.reset(token)


@contextmanager
def refresh(
    db: Database, lock: Callable[Concatenate[Runner, P], F], *args: P.args, **kwargs: P.kwargs
) -> Iterator[tuple[Act, F]]:
    """Run the block's statements as the act of a refresh, in which `lock` locks the session and reads the
    facts. Yield its row, too. The session is held before, in the same round trip: after a wait, the statement
    that waited would read only the session again, and not its user.

    If a crash loses what it has committed, the client's token is ahead of the session. This is accepted.
    """
    with begin(db, f"; {ASYNCHRONOUS}") as act:
        act.later(queries.hold_session, session_id=str(kwargs["session_id"]))
        yield act, act.lock(lock, *args, **kwargs)


@contextmanager
def on(db: Database, *user_ids: str | None) -> Iterator[Act]:
    """Run the block's statements as one act, with these users locked."""
    with begin(db) as act:
        act.lock_users(user_ids)
        yield act


@contextmanager
def on_found(
    db: Database, find: Find, before: Callable[[Act], object] = lambda _: None
) -> Iterator[tuple[Act, Sequence[str]]]:
    """Run the block's statements as one act, with the users locked whom `find` finds; yield their ids, too.

    `find` runs again after the lock. If it finds other users, the act begins again, three times at most.
    `before` takes the locks that come before users.

    Raises `NotInTime`.
    """
    for _ in range(_TRIES):
        with suppress(_Moved), begin(db) as act:
            before(act)
            ids = _found(find, act)
            act.lock_users(ids)
            if _found(find, act) != ids:
                raise _Moved
            yield act, ids
            return
    raise NotInTime("the user of this request has changed three times")


def _found(find: Find, act: Act) -> list[str]:
    return sorted({id for id in find(act) if id is not None})
