"""Latency of other requests while 64 clients flood POST /token with wrong passwords, with default and with
raised limits.
"""

import http.client
import itertools
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from bench import load
from bench.figures import ROUNDS, Figure, against, alone
from bench.flooder import flood, loopback
from bench.load import Load
from bench.people import LOG_IN, PASSWORD, REFRESH, People
from bench.service import RAISED, BenchService, new_state_dir
from bench.throughput import hashes_per_second
from tests.support.processes import wait_until

SECONDS = 5
# About 80 requests a second: enough to measure latency, few enough to leave the cores to hashing.
_READERS = {"seconds": SECONDS, "connections": 4, "pause": 100}
# Clients with the right password, per round.
_RIGHTFUL = 4
_TRIES = 3
# The longest that a log-in takes without load, in seconds, and how long to wait for that.
_CALM, _LONGEST_WAIT = 0.3, 60
# Few enough addresses that the flood uses up their default limits within seconds.
_ADDRESSES = 8


def measure() -> Iterator[Figure]:
    """Yield the figures."""
    yield from _measure("limits as shipped", {}, _ADDRESSES)
    yield from _measure("limits raised", RAISED)


def seconds_until_calm(service: BenchService) -> float:
    """Wait until the hashing queue is empty, and return the seconds that took."""
    # Log in from other addresses, so that limits do not interfere with the measurement.
    began, addresses = time.monotonic(), map(loopback, itertools.count(50_000))

    def asked_in_calm() -> float | None:
        asked = time.monotonic()
        status, _ = service.post(
            LOG_IN, {"email": "user500@bench.example", "password": PASSWORD}, source=next(addresses)
        )
        return asked if status == 200 and time.monotonic() - asked < _CALM else None

    asked = wait_until(asked_in_calm, _LONGEST_WAIT)
    assert asked
    return asked - began


def _measure(title: str, limits: dict[str, str], addresses: int | None = None) -> Iterator[Figure]:
    quiet, flooded = defaultdict(list), defaultdict(list)
    hashing, checked, failures, logged_in = [], [], 0, 0
    with new_state_dir() as state_dir, BenchService(state_dir, **limits) as service:
        people = People(service, 1000)
        people.insert()
        tokens = people.access_tokens(people.refresh_tokens(64))
        if addresses:
            with flood(service.port, addresses=addresses) as result:
                # Use up the thirty attempts of each address, which take a hash each, before the first round.
                time.sleep(_ADDRESSES * 2)
            seconds_until_calm(service)
        for number in range(ROUNDS):
            for name, taken in _read(service, people, tokens).items():
                quiet[name].append(taken.p99)
            hashing.append(hashes_per_second(2))
            with flood(service.port, addresses=addresses) as result, ThreadPoolExecutor(_RIGHTFUL) as threads:
                log_ins = threads.map(
                    lambda rightful: _logs_in(service, rightful),
                    range(1000 - _RIGHTFUL * number, 1000 - _RIGHTFUL * (number + 1), -1),
                )
                for name, taken in _read(service, people, tokens).items():
                    flooded[name].append(taken.p99)
                    failures += taken.failures
                succeeded = sum(log_ins)
            logged_in += succeeded
            checked.append((result.statuses.get("401", 0) + succeeded) / result.seconds)
            print(f"    {title}: {result}", flush=True)
            assert bool(result.statuses.get("429")) == bool(addresses), result
            seconds_until_calm(service)
    for name in quiet:
        yield against(
            f"p99 of {name} during a flood ({title}), in ms, against without",
            flooded[name],
            quiet[name],
            "≤ 5",
        )
    yield alone(f"failed requests during a flood ({title})", failures, "≤ 0")
    yield alone(
        f"share of rightful log-ins that succeed within three tries during a flood ({title})",
        logged_in / ROUNDS / _RIGHTFUL,
        "≥ 1",
    )
    if limits:
        yield against(
            f"log-ins/s during a flood ({title}), against what the cores can hash", checked, hashing, "≥ 0.85"
        )


def _read(service: BenchService, people: People, tokens: list[str]) -> dict[str, Load]:
    refresh_tokens = people.refresh_tokens(200)
    with ThreadPoolExecutor(2) as threads:
        user = threads.submit(load.run, service.port, "get_as", "/user", tokens, **_READERS)
        refresh = threads.submit(load.run, service.port, "refresh", REFRESH, refresh_tokens, **_READERS)
        return {"GET /user": user.result(), "refresh": refresh.result()}


def _logs_in(service: BenchService, number: int) -> bool:
    for _ in range(_TRIES):
        try:
            status, _ = service.post(LOG_IN, {"email": f"user{number}@bench.example", "password": PASSWORD})
        except (OSError, http.client.HTTPException):
            status = 0
        if status == 200:
            return True
        time.sleep(2)  # the Retry-After
    return False
