"""This checkout against another revision of it, or under another Python, in turn: processor time, rate and latency."""

import os
import subprocess
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

from bench import load
from bench.figures import Figure, Pace, against, alone
from bench.interpreter import described
from bench.people import PASSWORD, log_in, refresh
from bench.processor import milliseconds_of_a_hash
from bench.service import RAISED, BenchService, new_state_dir
from bench.throughput import LOG_IN_CONNECTIONS, Measured, measure_requests
from bench.tokens import NewTokens
from tests.support.processes import CHECKOUT

_USERS = load.CONNECTIONS
# How many of each request are sent in a round.
_NUMBERS = {
    "GET /user": 5000,
    "GET /user, new tokens": 5000,
    "POST /introspect": 2000,
    "POST /introspect, new tokens": 2000,
    "PUT /user": 1000,
    "refresh": 3000,
    "log-in": 40,
    "sign-up": 40,
    "GET /health": 3000,
}


class _Contender:
    """A service with users that have signed up, so that any schema will do."""

    def __init__(self, service: BenchService) -> None:
        self.service = service
        self.measured: dict[str, list[Measured]] = defaultdict(list)
        self._signed_up = 0
        users = [service.post("/signup", self._new_user())[1] for _ in range(_USERS)]
        self._tokens = [user["access_token"] for user in users]
        self._new_tokens = NewTokens(service, self._tokens)
        data = {"name": "Another User", "theme": "dark"}
        self._changes = [load.put("/user", {"data": data}, token=token) for token in self._tokens]
        self._refreshes = [refresh(user["refresh_token"]) for user in users]

    def _new_user(self) -> dict[str, object]:
        self._signed_up += 1
        email = f"user{self._signed_up}@bench.example"
        return {"email": email, "password": PASSWORD, "data": {"name": "A. User"}}

    def measure(self, name: str, number: int) -> None:
        """Send a number of requests, and keep what was measured."""
        match name:
            case "GET /user":
                taken = self._send(self._reads(self._tokens), number)
            case "GET /user, new tokens":
                taken = self._send(self._reads(self._new_tokens.make(number)), number)
            case "POST /introspect":
                taken = self._send(self._introspections(self._tokens), number)
            case "POST /introspect, new tokens":
                taken = self._send(self._introspections(self._new_tokens.make(number)), number)
            case "PUT /user":
                taken = self._send(self._changes, number)
            case "refresh":
                taken = self._send(self._refreshes, number, renews=True)
                self._refreshes = taken.load.requests_left
            case "log-in":
                requests = [log_in(user + 1) for user in range(_USERS)]
                taken = self._send(requests, number, connections=LOG_IN_CONNECTIONS)
            case "sign-up":
                requests = [load.post("/signup", self._new_user()) for _ in range(number)]
                taken = self._send(requests, number, connections=LOG_IN_CONNECTIONS)
            case path:
                taken = self._send([load.get(path.removeprefix("GET "))], number)
        self.measured[name].append(taken)

    def _reads(self, tokens: list[str]) -> list[str]:
        return [load.get("/user", token=token) for token in tokens]

    def _introspections(self, tokens: list[str]) -> list[str]:
        return [load.introspection(token, self.service.service_role_key()) for token in tokens]

    def _send(self, requests: list[str], number: int, **options: int) -> Measured:
        return measure_requests(self.service, requests, number=number, **options)


def measure(pace: Pace, revision: str = "", pythons: Sequence[str] = ()) -> Iterator[Figure]:
    """Yield the figures. The other checkout, and environments, stay below `var` for the next comparison."""
    places = {"": (CHECKOUT, sys.executable)}
    if revision:
        places[revision] = _worktree(revision)
    for python in pythons:
        places[described(python)] = CHECKOUT, environment(python)
    taken, hashes = contend(pace, places, _NUMBERS)
    for name in _NUMBERS:
        mine = taken[""][name]
        for what in list(places)[1:]:
            for figure, value in _FIGURES.items():
                values, limits = ([value(one) for one in each] for each in (mine, taken[what][name]))
                if any(limits):
                    yield against(f"{name}{figure}, against {what}", values, limits)
        times = [one.spent.total for one in mine]
        yield against(f"{name}, processor time in ms, against a hash", times, hashes)
    failures = sum(one.load.failures for each in taken.values() for some in each.values() for one in some)
    yield alone("failed requests", failures, "≤ 0")


def contend(
    pace: Pace, places: dict[str, tuple[Path, str]], names: Iterable[str]
) -> tuple[dict[str, dict[str, list[Measured]]], list[float]]:
    """Measure requests at services of several checkouts and interpreters in turn.

    Returns the rounds by contender and request, and the processor time of a hash in each round.
    """
    hashes: list[float] = []
    with ExitStack() as stack:
        contenders = {name: _start(stack, *place) for name, place in places.items()}
        order = deque(contenders.values())
        for number in range(pace.warm_ups + pace.rounds):
            for name in names:
                for contender in order:
                    contender.measure(name, pace.number(_NUMBERS[name], brief=40))
            hashes.append(milliseconds_of_a_hash())
            order.rotate()
            print(f"  round {number} of {pace.rounds}", flush=True)
    taken = {
        name: {request: rounds[pace.warm_ups :] for request, rounds in contender.measured.items()}
        for name, contender in contenders.items()
    }
    return taken, hashes[pace.warm_ups :]


_FIGURES: dict[str, Callable[[Measured], float]] = {
    ", processor time in ms": lambda one: one.spent.total,
    ", processor time in ms, of Python in user mode": lambda one: one.spent.user,
    ", processor time in ms, of Python in the kernel": lambda one: one.spent.system,
    ", processor time in ms, of Postgres": lambda one: one.spent.postgres,
    "/s": lambda one: one.load.per_second,
    ", p99 in ms": lambda one: one.load.percentile(99),
}


def _start(stack: ExitStack, directory: Path, python: str) -> _Contender:
    service = BenchService(
        stack.enter_context(new_state_dir()), str(directory), python, AUTH_AUTOCONFIRM="true", **RAISED
    )
    return _Contender(stack.enter_context(service))


def _worktree(revision: str) -> tuple[Path, str]:
    """Return a worktree of the revision and the interpreter of its environment."""
    text = subprocess.run(
        ["git", "rev-parse", "--verify", f"{revision}^{{commit}}"],
        cwd=CHECKOUT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    place = CHECKOUT / "var" / f"compare-{text[:12]}"
    if not place.exists():
        subprocess.run(["git", "worktree", "add", "--detach", str(place), text], cwd=CHECKOUT, check=True)
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    subprocess.run([sys.executable, "make_venv.py"], cwd=place, check=True, env=environment)
    return place, str(place / ".venv/bin/python")


def environment(python: str) -> str:
    """Return the interpreter of an environment below `var`, made by a Python, with the packages of a release."""
    place = CHECKOUT / "var" / f"python-{sha256(python.encode()).hexdigest()[:12]}"
    made = str(place / "bin/python")
    if not place.exists():
        subprocess.run([python, "-m", "venv", "--without-pip", str(place)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", made, "install", "--quiet", "--only-binary", ":all:"]
    subprocess.run([*pip, "--require-hashes", "-r", str(CHECKOUT / "requirements.lock")], check=True)
    return made
