"""The promises of responses during a fault, and the states that are consistent with them.

Each person belongs to one client, which sends one change at a time. An answered change moves the person to
the next state. A change without an answer (none, a truncated one, or 503) may or may not have been committed:
the client then leaves the person alone, and the final state must be exactly one of the two.
"""

import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Self

import httpx

from tests.support.awake import awake
from tests.support.server import ServerClient
from tests.support.users import Session


@dataclass(frozen=True)
class State:
    """The expected state of a person. `live` holds the known sessions with the counters of their tokens."""

    exists: bool = False
    confirmed: bool = False
    banned: bool = False
    number: int | None = None
    live: frozenset[tuple[str, int]] = frozenset()
    # The number of sessions that a request without an answer may have started.
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
        return replace(self, live=frozenset(session for session in self.live if session[0] == but), untold=0)

    def refreshed(self, id: str) -> Self:
        return replace(
            self,
            live=frozenset((session_id, counter + (session_id == id)) for session_id, counter in self.live),
        )


@dataclass
class ClientSession:
    """A session as its client has it: the current tokens, and every refresh token so far."""

    session: Session
    refresh_tokens: list[str]

    @property
    def id(self) -> str:
        return self.session.id


@dataclass
class Person:
    """One address: its state after all answered changes, and the state after a change without an answer, if any."""

    email: str
    state: State = field(default_factory=State)
    after: State | None = None
    id: str = ""
    unanswered: str = ""
    sessions: list[ClientSession] = field(default_factory=list)

    def live(self) -> list[ClientSession]:
        ids = {id for id, _ in self.state.live}
        return [each for each in self.sessions if each.id in ids]

    def dead(self) -> list[ClientSession]:
        """Return the sessions that have ended in every possible state."""
        ids = {id for state in (self.state, self.after or self.state) for id, _ in state.live}
        return [each for each in self.sessions if each.id not in ids]

    def states(self) -> list[State]:
        return [self.state, *([self.after] if self.after else [])]


class Unanswered(Exception):
    """A change may or may not have been made. Its person does nothing from now on."""


class History:
    """All persons, and all violations; shared by the clients."""

    def __init__(self, client: ServerClient) -> None:
        self.client = client
        self.persons: list[Person] = []
        self.violations: list[str] = []
        self.statuses: Counter[Any] = Counter()
        self.slowest = (0.0, "")
        # A crash of Postgres may lose the newest counters of sessions: a plain refresh does not wait for the
        # disk.
        self.may_lose_counters = False
        self.spent: Counter[str] = Counter()
        self._lock = threading.Lock()

    def person(self, email: str) -> Person:
        person = Person(email)
        with self._lock:
            self.persons.append(person)
        return person

    def violate(self, problem: str) -> None:
        with self._lock:
            self.violations.append(problem)

    def ask(self, method: str, path: str, **options: Any) -> Any:
        """Send a request, and return the checked response; None without one, or for a truncated one."""
        response = self._ask(method, path, **options)
        if response is not None and response.status_code >= 500 and response.status_code != 503:
            self.violate(
                f"{method} {path} answered {response.status_code}: {response.get_data(as_text=True)}"
            )
        return response

    def _ask(self, method: str, path: str, **options: Any) -> Any:
        started_at = awake()
        response, status = None, None
        try:
            response = self.client.open(path, method, **options)
            status = response.status_code
        except httpx.TransportError:
            pass
        except AssertionError as error:
            self.violate(str(error))
        seconds = awake() - started_at
        with self._lock:
            self.statuses[status] += 1
            self.slowest = max(self.slowest, (seconds, f"{method} {path} {status}"))
        return response

    def note_spent(self, token: str, successes: int) -> None:
        """Count the uses of a single-use secret that succeeded."""
        with self._lock:
            self.spent[token] += successes
            if self.spent[token] > 1:
                self.violations.append(f"a single-use secret worked {self.spent[token]} times")

    def answered(self) -> int:
        return sum(count for status, count in self.statuses.items() if status not in (None, 503))

    def failed(self) -> int:
        return self.statuses[None] + self.statuses[503]

    def summary(self) -> str:
        """Return a summary in one line."""
        seconds, slowest = self.slowest
        return (
            f"{self.answered()} requests answered, {self.statuses[503]} refused (503), {self.statuses[None]} without an answer;"
            f" {len(self.persons)} users, {sum(bool(person.unanswered) for person in self.persons)} of them in doubt;"
            f" slowest {seconds:.1f} s ({slowest}); {len(self.violations)} violations"
        )
