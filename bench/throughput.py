"""Requests a second of the main operations, each against its limit in the same round, and their slowest responses."""

import statistics
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import bcrypt

from bench import load
from bench.applications import Application
from bench.factors import Apps
from bench.figures import Figure, Pace, against, alone
from bench.load import CONNECTIONS, Load
from bench.passkeys import Passkeys
from bench.people import COST, PASSWORD, People
from bench.service import RAISED, WORKERS, BenchService, Constant, balanced_load, new_state_dir

# Seconds per measurement; hashing is slow and needs more.
SECONDS, HASHING_SECONDS = 3, 6
# More than a round takes: a challenge is good for one sign-in.
PASSKEY_SIGN_INS = 10_000
# Likewise: a factor takes one code in half a minute.
FACTORS_PER_SESSION = 16
# Few enough for the queue of a single worker, so that no log-in is refused.
LOG_IN_CONNECTIONS = 12
_CONSTANT = {
    "GET /user": "≥ 0.35",
    "refresh": "≥ 0.22",
    "GET /health": "≥ 0.65",
    "GET /settings": "≥ 0.65",
    "sign-in with a passkey": None,
    "verification of a TOTP code": None,
}
# Requests of applications, against the same ones of users.
_OF_APPLICATIONS = {
    "POST /oauth/token (refresh)": ("refresh", "≥ 0.8"),
    "GET /oauth/userinfo": ("GET /user", "≥ 0.9"),
}


def measure(pace: Pace) -> Iterator[Figure]:
    """Yield the figures."""
    loads: dict[str, list[Load]] = defaultdict(list)
    hashing: list[float] = []
    with ExitStack() as stack:
        state_dir, constant_dir = [stack.enter_context(new_state_dir()) for _ in range(2)]
        service = stack.enter_context(BenchService(state_dir, **RAISED))
        people = People(service, 1000)
        people.insert()
        tokens = people.access_tokens(people.refresh_tokens(pace.number(256, brief=CONNECTIONS)))
        answer = service.get("/user", Authorization=f"Bearer {tokens[0]}")[1]
        constant = stack.enter_context(Constant(constant_dir, len(answer)))
        passkeys = Passkeys(people)
        application = Application(people)
        of_clients = application.access_tokens(len(tokens))
        apps = Apps(people, tokens, pace.number(FACTORS_PER_SESSION, brief=1))
        seconds = pace.seconds(SECONDS)

        def send(requests: Callable[[], list[str]], **options: Any) -> Load:
            return balanced_load(service, requests, **{"seconds": seconds} | options)

        sign_ins = pace.number(PASSKEY_SIGN_INS, brief=CONNECTIONS)
        slowly = {"seconds": pace.seconds(HASHING_SECONDS), "connections": LOG_IN_CONNECTIONS}
        requests: dict[str, Callable[[], Load]] = {
            "constant": lambda: balanced_load(constant, lambda: [load.get("/constant")], seconds=seconds),
            "GET /user": lambda: send(lambda: [load.get("/user", token=token) for token in tokens]),
            "GET /oauth/userinfo": lambda: send(
                lambda: [load.get("/oauth/userinfo", token=token) for token in of_clients]
            ),
            "refresh": lambda: send(lambda: people.refreshes(CONNECTIONS * 2), renews=True),
            "POST /oauth/token (refresh)": lambda: send(
                lambda: application.refreshes(CONNECTIONS * 2), renews=True
            ),
            "GET /health": lambda: send(lambda: [load.get("/health")]),
            "GET /settings": lambda: send(lambda: [load.get("/settings")]),
            "sign-in with a passkey": lambda: send(lambda: passkeys.sign_ins(sign_ins)),
            "verification of a TOTP code": lambda: send(apps.verifications),
            "log-in": lambda: send(people.log_ins, **slowly),
        }
        if not pace.is_brief:
            for name in ("constant", *_CONSTANT, *_OF_APPLICATIONS):
                requests[name]()  # warm up
        # Each round starts with another measurement, so that none always follows the same one, which may
        # leave a busy disk or a hot core behind.
        order = deque(requests)
        for _ in range(pace.rounds):
            for name in order:
                loads[name].append(requests[name]())
            hashing.append(hashes_per_second(pace.seconds(HASHING_SECONDS - 2)))
            order.rotate(2)
    rates = {name: [one.per_second for one in taken] for name, taken in loads.items()}
    yield against("log-ins/s, against what the cores can hash", rates["log-in"], hashing, "≥ 0.93")
    for name, target in _CONSTANT.items():
        yield against(f"{name}/s, against the constant answer", rates[name], rates["constant"], target)
    for name, (other, goal) in _OF_APPLICATIONS.items():
        yield against(f"{name}/s, against {other}", rates[name], rates[other], goal)
    for name, target in {"constant": None, "GET /user": "≤ 5", "refresh": "≤ 5", "GET /health": None}.items():
        p99s, medians = ([one.percentile(percent) for one in loads[name]] for percent in (99, 50))
        yield against(f"{name}, p99 in ms at that load, against its median", p99s, medians, target)
    failures = sum(one.failures for taken in loads.values() for one in taken)
    yield alone("failed requests at those loads", failures, "≤ 0")
    yield alone("active users at a third of the load", _active_users(rates))


def _active_users(rates: dict[str, list[float]]) -> float:
    """Return the number of users who may each send a refresh and nine GET /user in an hour."""
    refresh, get_user = (statistics.median(rates[name]) for name in ("refresh", "GET /user"))
    seconds_per_user = 1 / refresh + 9 / get_user
    return round(3600 / 3 / seconds_per_user, -4)


def hashes_per_second(seconds: float) -> float:
    """Return the password checks a second of all cores, without other load."""
    password, password_hash = PASSWORD.encode(), bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(COST))
    barrier = threading.Barrier(WORKERS)

    def hash_for_a_while(_: int) -> float:
        barrier.wait()
        count, began = 0, time.monotonic()
        # bcrypt releases the GIL, so one thread per core is enough.
        while (spent := time.monotonic() - began) < seconds:
            bcrypt.checkpw(password, password_hash)
            count += 1
        return count / spent

    with ThreadPoolExecutor(WORKERS) as threads:
        return sum(threads.map(hash_for_a_while, range(WORKERS)))
