"""Latency of a reader beside slow clients, idle connections, large bodies and floods of log-ins."""

import http.client
import itertools
import json
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

from auth.core.passwords.threads import NICENESS
from bench import load
from bench.clients import loopback
from bench.figures import Figure, Pace, against, alone
from bench.load import Load
from bench.people import LOG_IN, PASSWORD, People, log_in
from bench.processor import hashes_per_second
from bench.service import RAISED, BenchService, new_state_dir
from tests.support.processes import wait_until

SLOW, IDLE = 1000, 5000
# Clients that log in with wrong passwords.
FLOODING = 64
# Longer than the deadline of gunicorn, so that slow clients reconnect.
SECONDS = 11
_FLOOD_SECONDS = 4
_DRIP = 5
_HEAD = b"GET /settings HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
# Clients with the right password, per round, and how often they try.
_RIGHTFUL, _TRIES = 4, 3
# The longest that a log-in takes without load, in seconds, and how long to wait for that.
_CALM, _LONGEST_WAIT = 0.3, 60
# The deepest and the widest that POST /signup reads, and one that it refuses unread.
_LARGE_BODIES = {
    "deep bodies of 64 KiB": ('{"a":' * 13_108)[: 64 * 1024],
    "wide bodies of 64 KiB": json.dumps({f"{number:x}": 1 for number in range(5_400)}),
    "bodies of 60,000 members": json.dumps({f"{number:x}": 1 for number in range(60_000)}),
}


def measure(pace: Pace) -> Iterator[Figure]:
    """Yield the figures."""
    _allow_open_files(2 * IDLE)
    arguments = {"GUNICORN_CMD_ARGS": f"--worker-connections {IDLE}"}
    with new_state_dir() as state_dir, BenchService(state_dir, **RAISED, **arguments) as service:
        people = People(service, 1000)
        people.insert()
        reader = Reader(service, people)
        yield from _crowds(pace, reader)
        yield from _large_bodies(pace, reader)
        yield from _flood(pace, reader)


class Reader:
    """Sends GET /user and refreshes so rarely that the cores are left to others."""

    def __init__(self, service: BenchService, people: People) -> None:
        self.service, self.people = service, people
        tokens = people.access_tokens(people.refresh_tokens(64))
        self.requests = [load.get("/user", token=token) for token in tokens]

    def users(self, port: int, seconds: float) -> Load:
        return load.run(port, self.requests, seconds=seconds, connections=4, pause=0.05)

    def refreshes(self, port: int, seconds: float) -> Load:
        requests = self.people.refreshes(200)
        return load.run(port, requests, seconds=seconds, connections=4, pause=0.05, renews=True)


def _allow_open_files(number: int) -> None:
    """Raise the limit of open files for this process and its children, as far as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < number:
        most = number if hard == resource.RLIM_INFINITY else min(number, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _crowds(pace: Pace, reader: Reader) -> Iterator[Figure]:
    port = reader.service.port
    slow, idle = pace.number(SLOW, brief=20), pace.number(IDLE, brief=20)
    crowds: dict[str, AbstractContextManager[None]] = {
        "no other clients": nullcontext(),
        f"{slow:,} slow clients": slow_clients(port, slow),
        f"{idle:,} idle connections": idle_connections(port, idle),
    }
    failures = 0
    for name, crowd in crowds.items():
        with crowd:
            answered = reader.users(port, pace.seconds(SECONDS))
        failures += answered.failures
        yield alone(f"p99 of GET /user with {name}, in ms", answered.percentile(99))
    yield alone("failed GET /user with such clients", failures, "≤ 0")


def _large_bodies(pace: Pace, reader: Reader) -> Iterator[Figure]:
    port, seconds = reader.service.port, pace.seconds(_FLOOD_SECONDS)

    def p99() -> float:
        # 50 requests a second.
        return load.run(port, reader.requests, seconds=seconds, connections=4, pause=0.08).percentile(99)

    quiet: list[float] = []
    beside: dict[str, list[float]] = {name: [] for name in _LARGE_BODIES}
    for _ in range(pace.rounds):
        quiet.append(p99())
        for name, body in _LARGE_BODIES.items():
            with load.sending(port, [load.post("/signup", body)], connections=1, pause=0.1):
                beside[name].append(p99())
    for name, taken in beside.items():
        yield against(
            f"p99 of GET /user beside ten {name} a second, in ms, against without", taken, quiet, "≤ 2"
        )


def _flood(pace: Pace, reader: Reader) -> Iterator[Figure]:
    service, seconds = reader.service, pace.seconds(_FLOOD_SECONDS)
    quiet, flooded, hashing, checked, failures, logged_in = [], [], [], [], 0, 0
    for number in range(pace.rounds):
        quiet.append(reader.users(service.port, seconds))
        # The readers take a sixth of two cores, and go first here too.
        with ThreadPoolExecutor(2) as threads:
            readings = [
                threads.submit(read, service.port, seconds) for read in (reader.users, reader.refreshes)
            ]
            hashing.append(hashes_per_second(seconds, NICENESS))
        failures += sum(each.result().failures for each in readings)
        with (
            _wrong_passwords(service, pace.number(FLOODING, brief=4)) as stop,
            ThreadPoolExecutor(_RIGHTFUL + 1) as threads,
        ):
            refreshing = threads.submit(reader.refreshes, service.port, seconds)
            first = 1000 - _RIGHTFUL * number
            log_ins = threads.map(lambda user: _logs_in(service, user), range(first, first - _RIGHTFUL, -1))
            flooded.append(reader.users(service.port, seconds))
            failures += flooded[-1].failures + refreshing.result().failures
            succeeded = sum(log_ins)
            flood = stop()
        logged_in += succeeded
        checked.append((len(flood.milliseconds.get("401", [])) + succeeded) / flood.seconds)
        seconds_until_calm(service)
    during, before = ([one.percentile(99) for one in taken] for taken in (flooded, quiet))
    yield against("p99 of GET /user during a flood, in ms, against without", during, before, "≤ 5")
    yield alone("failed requests of others during a flood", failures, "≤ 0")
    share = logged_in / pace.rounds / _RIGHTFUL
    yield alone("share of rightful log-ins that succeed within three tries during a flood", share, "≥ 1")
    name = "log-ins/s during a flood, against what the cores can hash beside the same readers"
    yield against(name, checked, hashing, "≥ 0.85")


def _wrong_passwords(service: BenchService, clients: int) -> AbstractContextManager[Callable[[], Load]]:
    requests = [log_in(number, "Wrong-Horse-1") for number in range(1, 901)]
    return load.sending(service.port, requests, connections=clients, addresses=clients)


def seconds_until_calm(service: BenchService) -> float:
    """Wait until the hashing queue is empty, and return the seconds that took."""
    # Log in from other addresses, so that limits do not interfere with the measurement.
    began, addresses = time.monotonic(), map(loopback, itertools.count(50_000))

    def asked_in_calm() -> float | None:
        asked = time.monotonic()
        body = {"email": "user500@bench.example", "password": PASSWORD}
        status, _ = service.post(LOG_IN, body, source=next(addresses))
        return asked if status == 200 and time.monotonic() - asked < _CALM else None

    asked = wait_until(asked_in_calm, _LONGEST_WAIT)
    assert asked
    return asked - began


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


@contextmanager
def slow_clients(port: int, number: int) -> Iterator[None]:
    """Send a byte of a head every few seconds over `number` connections, reconnecting closed ones."""
    connections = [_connect(port, _HEAD) for _ in range(number)]
    is_over = threading.Event()

    def drip() -> None:
        while not is_over.wait(_DRIP):
            for place, connection in enumerate(connections):
                try:
                    connection.send(b"x")
                except OSError:
                    connection.close()
                    connections[place] = _connect(port, _HEAD)

    with ThreadPoolExecutor(1) as threads:
        dripping = threads.submit(drip)
        try:
            yield
        finally:
            is_over.set()
            dripping.result()
            for connection in connections:
                connection.close()


@contextmanager
def idle_connections(port: int, number: int) -> Iterator[None]:
    """Open `number` connections and send nothing."""
    with ExitStack() as stack:
        for _ in range(number):
            stack.enter_context(_connect(port, b""))
        yield


def _connect(port: int, sent: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(sent)
    return connection
