"""What clients were told while something was at fault, and what must be true because of it.

Each person is in the hands of one client, which asks for one change at a time. A change that is answered
moves the person on. One that is not answered (no answer, half of one, or 503) may have been carried out: the
client then leaves the person alone, whose state must in the end be one of two, with all that belongs to it.
"""

import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Self

import httpx

from tests.support.cast import Session
from tests.support.server import ServerClient


@dataclass(frozen=True)
class State:
    """A person as the service must know them: `live` are the sessions they were told of, with the counters of
    their tokens.
    """

    exists: bool = False
    confirmed: bool = False
    banned: bool = False
    number: int | None = None
    live: frozenset[tuple[str, int]] = frozenset()
    # Sessions that were made by a request without an answer.
    untold: int = 0
    mails: tuple[str, ...] = ()
    password: str = ""

    def but(self, **changes: Any) -> Self:
        return replace(self, **changes)

    def with_mail(self, kind: str) -> Self:
        return replace(self, mails=tuple(sorted([*self.mails, kind])))

    def with_session(self, id: str) -> Self:
        return replace(self, live=self.live | {(id, 0)})

    def without_sessions(self, but: str | None = None) -> Self:
        return replace(self, live=frozenset(known for known in self.live if known[0] == but), untold=0)

    def refreshed(self, id: str) -> Self:
        return replace(self, live=frozenset((known, counter + (known == id)) for known, counter in self.live))


@dataclass
class Held:
    """A session as its client holds it: the tokens of today, and every refresh token it ever had."""

    session: Session
    refresh_tokens: list[str]

    @property
    def id(self) -> str:
        return self.session.id


@dataclass
class Person:
    """One address: what all answers add up to, and what the one request without an answer would have made of
    it.
    """

    email: str
    state: State = field(default_factory=State)
    after: State | None = None
    id: str = ""
    unanswered: str = ""
    held: list[Held] = field(default_factory=list)

    def live(self) -> list[Held]:
        ids = {id for id, _ in self.state.live}
        return [held for held in self.held if held.id in ids]

    def dead(self) -> list[Held]:
        """Return the sessions that no answer leaves alive."""
        ids = {id for state in (self.state, self.after or self.state) for id, _ in state.live}
        return [held for held in self.held if held.id not in ids]

    def states(self) -> list[State]:
        return [self.state, *([self.after] if self.after else [])]


class Unanswered(Exception):
    """A change may have been made or not: its person is left alone from now on."""


class History:
    """All persons, and what was wrong with any answer; the clients write it together."""

    def __init__(self, client: ServerClient) -> None:
        self.client = client
        self.persons: list[Person] = []
        self.violations: list[str] = []
        self.statuses: Counter[Any] = Counter()
        self.slowest = (0.0, "")
        # Where Postgres itself crashes, the newest counters of sessions may be lost: a plain refresh does not
        # wait for the disk.
        self.may_lose_counters = False
        self.spent: Counter[str] = Counter()
        self._lock = threading.Lock()

    def person(self, email: str) -> Person:
        person = Person(email)
        with self._lock:
            self.persons.append(person)
        return person

    def violate(self, what: str) -> None:
        with self._lock:
            self.violations.append(what)

    def ask(self, method: str, path: str, **options: Any) -> Any:
        """Return a response, or None where none came, or half of one. Whatever comes is held to the contract."""
        began = time.monotonic()
        response, status = None, None
        try:
            response = self.client.open(path, method, **options)
            status = response.status_code
        except httpx.TransportError:
            pass
        except AssertionError as error:
            self.violate(str(error))
        took = time.monotonic() - began
        with self._lock:
            self.statuses[status] += 1
            self.slowest = max(self.slowest, (took, f"{method} {path} {status}"))
        if response is not None and status != 503 and response.status_code >= 500:
            self.violate(
                f"{method} {path} answered {response.status_code}: {response.get_data(as_text=True)}"
            )
        return response

    def note_spent(self, token: str, successes: int) -> None:
        """Count how often a single-use secret has worked."""
        with self._lock:
            self.spent[token] += successes
            if self.spent[token] > 1:
                self.violations.append(f"a single-use secret worked {self.spent[token]} times")

    def forget_times(self) -> None:
        """Measure the slowest answer from now on."""
        with self._lock:
            self.slowest = (0.0, "")

    def answered(self) -> int:
        return sum(count for status, count in self.statuses.items() if status not in (None, 503))

    def failed(self) -> int:
        return self.statuses[None] + self.statuses[503]

    def summary(self) -> str:
        """Return what was seen, in a line."""
        seconds, slowest = self.slowest
        return (
            f"{self.answered()} requests answered, {self.statuses[503]} refused (503), {self.statuses[None]} without an answer;"
            f" {len(self.persons)} users, {sum(bool(person.unanswered) for person in self.persons)} of them in doubt;"
            f" slowest {seconds:.1f} s ({slowest}); {len(self.violations)} violations"
        )
