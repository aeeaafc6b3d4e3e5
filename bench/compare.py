"""This checkout against another revision of it, in turn: throughput, latency and processor time of three requests."""

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench import load
from bench.figures import Figure, Pace, against, alone
from bench.load import Load
from bench.people import LOG_IN, PASSWORD, refresh
from bench.service import RAISED, WORKERS, BenchService, balanced_load, new_state_dir, processor_seconds
from tests.support.processes import CHECKOUT

_SECONDS = 5
_USERS = 2 * load.CONNECTIONS
# Of throughput and of p99.
_TARGETS = {"GET /user": ("≥ 0.95", "≤ 0.7"), "refresh": ("≥ 0.95", "≤ 0.75"), "GET /health": (None, "≤ 0.4")}


class _Contender:
    """A service with users that have signed up, so that any schema will do."""

    def __init__(self, service: BenchService) -> None:
        self.service = service
        self.loads: dict[str, list[Load]] = defaultdict(list)
        self.processor_time: dict[str, list[float]] = defaultdict(list)
        users = [self._sign_up(number) for number in range(_USERS)]
        self._requests = {
            "GET /user": lambda: [load.get("/user", token=user["access_token"]) for user in users],
            "refresh": lambda: [refresh(self._sign_in(number)["refresh_token"]) for number in range(_USERS)],
            "GET /health": lambda: [load.get("/health")],
        }

    def _sign_up(self, number: int) -> dict[str, str]:
        body = {"email": f"user{number}@bench.example", "password": PASSWORD, "data": {"name": "A. User"}}
        return self.service.post("/signup", body)[1]

    def _sign_in(self, number: int) -> dict[str, str]:
        body = {"email": f"user{number}@bench.example", "password": PASSWORD}
        return self.service.post(LOG_IN, body)[1]

    def measure(self, name: str, seconds: float) -> None:
        """Send one of the requests, and keep what was measured."""
        requests = self._requests[name]()
        began = processor_seconds(self.service.process.pid)
        taken = balanced_load(self.service, lambda: requests, seconds=seconds, renews=name == "refresh")
        spent = processor_seconds(self.service.process.pid) - began
        self.loads[name].append(taken)
        self.processor_time[name].append(spent / max(1, taken.requests))


def measure(pace: Pace, revision: str) -> Iterator[Figure]:
    """Yield the figures. The revision stays in a worktree below `var`, for the next comparison."""
    other = CHECKOUT if revision == "." else _worktree(revision)
    with ExitStack() as stack:
        ours, theirs = (_Contender(stack.enter_context(_start(stack, place))) for place in (CHECKOUT, other))
        for number in range(pace.warm_ups + pace.rounds):
            for name in _TARGETS:
                for contender in (ours, theirs) if number % 2 else (theirs, ours):
                    contender.measure(name, pace.seconds(_SECONDS))
    for name, (rate, p99) in _TARGETS.items():
        loads = ours.loads[name][pace.warm_ups :], theirs.loads[name][pace.warm_ups :]
        rates = [[one.per_second for one in each] for each in loads]
        yield against(f"{name}/s, against {revision}", rates[0], rates[1], rate)
        for percent, target in ((50, None), (99, p99)):
            times = [[one.percentile(percent) for one in each] for each in loads]
            yield against(f"{name} p{percent} in ms, against {revision}", times[0], times[1], target)
        mine, its = (
            [1000 * each for each in one.processor_time[name][pace.warm_ups :]] for one in (ours, theirs)
        )
        yield against(f"{name}, processor time in ms, against {revision}", mine, its)
    failures = sum(one.failures for who in (ours, theirs) for loads in who.loads.values() for one in loads)
    yield alone("failed requests", failures, "≤ 0")


def _start(stack: ExitStack, directory: Path) -> BenchService:
    return BenchService(
        stack.enter_context(new_state_dir()),
        "" if directory == CHECKOUT else str(directory),
        AUTH_AUTOCONFIRM="true",
        AUTH_BCRYPT_COST="4",
        AUTH_WORKERS=str(WORKERS),
        **RAISED,
    )


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
