"""Requests a second of the main operations, each against its limit in the same round."""

import statistics
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import bcrypt

from bench import load
from bench.factors import VERIFY, Apps
from bench.figures import ROUNDS, Figure, against, alone
from bench.load import CONNECTIONS, Load
from bench.passkeys import SIGN_IN, Passkeys
from bench.people import COST, LOG_IN, PASSWORD, REFRESH, People
from bench.service import RAISED, WORKERS, BenchService, Constant, new_state_dir

# Seconds per measurement; hashing is slow and needs more.
SECONDS, HASHING_SECONDS = 3, 6
# More than a round takes: a challenge is good for one sign-in.
PASSKEY_SIGN_INS = 10_000
# Likewise: a factor takes one code in half a minute.
FACTORS_PER_SESSION = 16
# Few enough for the queue of a single worker, so that no log-in is refused.
LOG_IN_CONNECTIONS = 12


def measure() -> Iterator[Figure]:
    """Yield the figures."""
    rates: dict[str, list[float]] = defaultdict(list)
    loads: dict[str, list[Load]] = defaultdict(list)
    with ExitStack() as stack:
        state_dir, constant_dir = [stack.enter_context(new_state_dir()) for _ in range(2)]
        service = stack.enter_context(BenchService(state_dir, **RAISED))
        people = People(service, 1000)
        people.insert()
        tokens = people.access_tokens(people.refresh_tokens(256))
        answer = service.get("/user", Authorization=f"Bearer {tokens[0]}")[1]
        constant = stack.enter_context(Constant(constant_dir, len(answer)))
        log_ins, passkeys, apps = (
            people.log_ins(),
            Passkeys(people),
            Apps(people, tokens, FACTORS_PER_SESSION),
        )
        requests: dict[str, Callable[[], Load]] = {
            "constant": lambda: load.run(constant.port, "get", "/constant", seconds=SECONDS),
            "user": lambda: load.run(service.port, "get_as", "/user", tokens, seconds=SECONDS),
            "refresh": lambda: load.run(
                service.port, "refresh", REFRESH, people.refresh_tokens(CONNECTIONS * 2), seconds=SECONDS
            ),
            "health": lambda: load.run(service.port, "get", "/health", seconds=SECONDS),
            "settings": lambda: load.run(service.port, "get", "/settings", seconds=SECONDS),
            "passkey": lambda: load.run(
                service.port, "post", SIGN_IN, passkeys.sign_ins(PASSKEY_SIGN_INS), seconds=SECONDS
            ),
            "totp": lambda: load.run(service.port, "post_as", VERIFY, apps.verifications(), seconds=SECONDS),
            "log-in": lambda: load.run(
                service.port, "post", LOG_IN, log_ins, seconds=HASHING_SECONDS, connections=LOG_IN_CONNECTIONS
            ),
        }
        ceilings: dict[str, Callable[[], float]] = {
            "hashing": lambda: hashes_per_second(HASHING_SECONDS - 2),
        }
        for name in ("constant", "user", "refresh", "health", "settings", "passkey", "totp"):
            requests[name]()  # warm up
        # Each round starts with another measurement, so that none always follows the same one, which may
        # leave a busy disk or a hot core behind.
        order = deque([*requests, *ceilings])
        for _ in range(ROUNDS):
            for name in order:
                if name in ceilings:
                    rates[name].append(ceilings[name]())
                    continue
                taken = requests[name]()
                assert taken.failures == 0, (name, taken)
                rates[name].append(taken.per_second)
                loads[name].append(taken)
            order.rotate(2)
    yield against("log-ins/s, against what the cores can hash", rates["log-in"], rates["hashing"], "≥ 0.93")
    yield against(
        "sign-ins/s with a passkey, against the constant answer", rates["passkey"], rates["constant"]
    )
    yield against(
        "verifications/s of a TOTP code, against the constant answer", rates["totp"], rates["constant"]
    )
    yield against("GET /user/s, against the constant answer", rates["user"], rates["constant"], "≥ 0.35")
    yield against("refreshes/s, against the constant answer", rates["refresh"], rates["constant"], "≥ 0.22")
    yield against("GET /health/s, against the constant answer", rates["health"], rates["constant"], "≥ 0.65")
    yield against(
        "GET /settings/s, against the constant answer", rates["settings"], rates["constant"], "≥ 0.65"
    )
    titles = {"user": "GET /user", "refresh": "refresh", "health": "GET /health", "settings": "GET /settings"}
    titles |= {"passkey": "sign-in with a passkey", "totp": "verification of a TOTP code"}
    for name, title in titles.items():
        for percentile in ("p50", "p95", "p99"):
            values, limits = (
                [getattr(one, percentile) for one in loads[which]] for which in (name, "constant")
            )
            yield against(
                f"{title} {percentile} in ms at that load, against the constant answer", values, limits
            )
    for percentile in ("p50", "p95", "p99"):
        yield alone(
            f"log-in {percentile} in ms at that load",
            statistics.median(getattr(one, percentile) for one in loads["log-in"]),
        )


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
