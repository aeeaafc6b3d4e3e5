"""The main requests: processor time against a bcrypt hash of cost 10, rate against what the cores can hash, latency."""

import statistics
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from bench import load
from bench.applications import Application
from bench.figures import Figure, Pace, against, alone
from bench.load import CONNECTIONS, Load
from bench.people import People
from bench.processor import Spent, hashes_per_second, milliseconds_of_a_hash, spent
from bench.service import RAISED, BenchService, balanced_load, new_state_dir
from bench.tokens import NewTokens

# Few enough for the queue of a single worker, so that no log-in is refused.
LOG_IN_CONNECTIONS = 12
_HASHING_SECONDS = 4
# The requests whose processor time is reported in parts.
_IN_PARTS = ("GET /user", "GET /user, new tokens", "refresh", "log-in")


@dataclass(frozen=True)
class Measured:
    """Requests of one round: their load, and the processor time of each in milliseconds."""

    load: Load
    spent: Spent


@dataclass(frozen=True)
class _Request:
    """A request, how many of it are sent in a round, and the target of its p99."""

    make: Callable[[], list[str]]
    number: int
    p99: str | None = None
    connections: int = CONNECTIONS
    renews: bool = False


def measure_requests(service: BenchService, requests: list[str], **options: int) -> Measured:
    """Send a number of requests. The `options` are those of `load.connected`."""
    before = spent(service.process.pid)
    taken = balanced_load(service, requests, **options)
    return Measured(taken, spent(service.process.pid).per_request(before, taken.requests))


def measure(pace: Pace) -> Iterator[Figure]:
    """Yield the figures."""
    measured: dict[str, list[Measured]] = defaultdict(list)
    hashing: list[float] = []
    hashes: list[float] = []
    with new_state_dir() as state_dir, BenchService(state_dir, **RAISED) as service:
        requests = _requests(pace, People(service, 1000))
        # Each round starts with another measurement, so that none always follows the same one, which may
        # leave a busy disk or a hot core behind.
        order = deque(requests)
        for number in range(pace.warm_ups + pace.rounds):
            for name in order:
                it = requests[name]
                options = {"number": pace.number(it.number, 40), "connections": it.connections}
                one = measure_requests(service, it.make(), **options, renews=it.renews)
                if number >= pace.warm_ups:
                    measured[name].append(one)
            if number >= pace.warm_ups:
                hashes.append(milliseconds_of_a_hash())
                hashing.append(hashes_per_second(pace.seconds(_HASHING_SECONDS)))
            order.rotate(2)
    for name, taken in measured.items():
        yield from _processor_times(name, [one.spent for one in taken], hashes)
    rates = {name: [one.load.per_second for one in each] for name, each in measured.items()}
    for name, each in rates.items():
        target = "≥ 0.85" if name == "log-in" else None
        yield against(f"{name}/s, against what the cores can hash", each, hashing, target)
    for name, it in requests.items():
        p99s, medians = ([one.load.percentile(percent) for one in measured[name]] for percent in (99, 50))
        if it.p99:
            yield against(f"{name}, p99 in ms at that load, against its median", p99s, medians, it.p99)
    failures = sum(one.load.failures for each in measured.values() for one in each)
    yield alone("failed requests at those loads", failures, "≤ 0")
    yield alone("active users at a third of the load", _active_users(rates))


def _requests(pace: Pace, people: People) -> dict[str, _Request]:
    people.insert()
    tokens = people.access_tokens(people.refresh_tokens(pace.number(256, brief=CONNECTIONS)))
    new_tokens = NewTokens(people.service, tokens).make
    application = Application(people)
    of_clients = application.access_tokens(len(tokens))

    def reads(path: str, tokens: list[str]) -> list[str]:
        return [load.get(path, token=token) for token in tokens]

    def introspections(tokens: list[str]) -> list[str]:
        return [load.introspection(token, people.service.service_role_key()) for token in tokens]

    def unseen(number: int) -> list[str]:
        return new_tokens(pace.number(number, brief=40))

    return {
        "GET /user": _Request(lambda: reads("/user", tokens), 6000, "≤ 5"),
        "GET /user, new tokens": _Request(lambda: reads("/user", unseen(6000)), 6000, "≤ 5"),
        "POST /introspect": _Request(lambda: introspections(tokens), 3000),
        "POST /introspect, new tokens": _Request(lambda: introspections(unseen(3000)), 3000),
        "GET /oauth/userinfo": _Request(lambda: reads("/oauth/userinfo", of_clients), 6000),
        "refresh": _Request(partial(people.refreshes, 2 * CONNECTIONS), 3000, "≤ 5", renews=True),
        "POST /oauth/token (refresh)": _Request(
            partial(application.refreshes, 2 * CONNECTIONS), 3000, renews=True
        ),
        "log-in": _Request(people.log_ins, 150, connections=LOG_IN_CONNECTIONS),
    }


def _processor_times(name: str, each: list[Spent], hashes: list[float]) -> Iterator[Figure]:
    parts = {"": [one.total for one in each]}
    if name in _IN_PARTS:
        parts[", of Python in user mode"] = [one.user for one in each]
        parts[", of Python in the kernel"] = [one.system for one in each]
        parts[", of Postgres"] = [one.postgres for one in each]
    for part, values in parts.items():
        yield against(f"{name}, processor time in ms{part}, against a hash", values, hashes)


def _active_users(rates: dict[str, list[float]]) -> float:
    """Return the number of users who may each send a refresh and nine GET /user in an hour.

    They are more than the tokens that a worker caches, so it verifies the token of each request.
    """
    refresh, get_user = (statistics.median(rates[name]) for name in ("refresh", "GET /user, new tokens"))
    seconds_per_user = 1 / refresh + 9 / get_user
    return round(3600 / 3 / seconds_per_user, -4)
