"""This checkout against another revision of it, or under another Python, in turn: processor time, rate and latency."""

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from bench import load
from bench.figures import Figure, Pace, against, alone
from bench.people import PASSWORD, log_in, refresh
from bench.processor import milliseconds_of_a_hash
from bench.service import RAISED, BenchService, new_state_dir
from bench.throughput import LOG_IN_CONNECTIONS, Measured, measure_requests
from tests.support.processes import CHECKOUT

_USERS = load.CONNECTIONS
# How many of each request are sent in a round.
_NUMBERS = {"GET /user": 5000, "refresh": 3000, "log-in": 80, "sign-up": 80, "GET /health": 5000}


class _Contender:
    """A service with users that have signed up, so that any schema will do."""

    def __init__(self, service: BenchService) -> None:
        self.service = service
        self.measured: dict[str, list[Measured]] = defaultdict(list)
        self._signed_up = 0
        users = [service.post("/signup", self._new_user())[1] for _ in range(_USERS)]
        self._users = [load.get("/user", token=user["access_token"]) for user in users]
        self._refreshes = [refresh(user["refresh_token"]) for user in users]

    def _new_user(self) -> dict[str, object]:
        self._signed_up += 1
        email = f"user{self._signed_up}@bench.example"
        return {"email": email, "password": PASSWORD, "data": {"name": "A. User"}}

    def measure(self, name: str, number: int) -> None:
        """Send a number of requests, and keep what was measured."""
        match name:
            case "GET /user":
                taken = self._send(self._users, number)
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

    def _send(self, requests: list[str], number: int, **options: int) -> Measured:
        return measure_requests(self.service, requests, number=number, **options)


def measure(pace: Pace, revision: str = "", python: str = "") -> Iterator[Figure]:
    """Yield the figures. The other checkout, or environment, stays below `var` for the next comparison."""
    place = _worktree(revision) if revision else CHECKOUT
    executable = str(place / ".venv/bin/python") if revision else sys.executable
    if python:
        executable = environment(python, place)
    what = " under ".join(filter(None, (revision, python)))
    hashes: list[float] = []
    with ExitStack() as stack:
        ours = _start(stack, CHECKOUT, sys.executable)
        other = _start(stack, place, executable)
        for number in range(pace.warm_ups + pace.rounds):
            for name, usual in _NUMBERS.items():
                for contender in (ours, other) if number % 2 else (other, ours):
                    contender.measure(name, pace.number(usual, brief=40))
            hashes.append(milliseconds_of_a_hash())
    for name in _NUMBERS:
        mine, its = (contender.measured[name][pace.warm_ups :] for contender in (ours, other))
        for figure, value in _FIGURES.items():
            values, limits = ([value(one) for one in each] for each in (mine, its))
            yield against(f"{name}{figure}, against {what}", values, limits)
        times = [one.spent.total for one in mine]
        yield against(f"{name}, processor time in ms, against a hash", times, hashes[pace.warm_ups :])
    failures = sum(
        one.load.failures for each in (ours, other) for taken in each.measured.values() for one in taken
    )
    yield alone("failed requests", failures, "≤ 0")


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


def _worktree(revision: str) -> Path:
    """Return a worktree of the revision with an environment of its own."""
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
    return place


def environment(python: str, checkout: Path = CHECKOUT) -> str:
    """Return an interpreter with a checkout's packages: that of an environment below `var`, made by a Python."""
    code = "import platform, sys; print(platform.python_version(), hash(sys.prefix) % 2**24)"
    named = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    place = CHECKOUT / "var" / f"python-{'-'.join(named)}"
    made = str(place / "bin/python")
    if not place.exists():
        subprocess.run([python, "-m", "venv", "--without-pip", str(place)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", made, "install", "--quiet", "--only-binary", ":all:"]
    lock = str(checkout / "requirements.lock")
    subprocess.run([*pip, "--require-hashes", "-r", lock], check=True)
    return made
