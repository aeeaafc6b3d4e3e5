"""Processor time of the service, and of a bcrypt hash on the same cores. Linux only."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import bcrypt

from auth.core.passwords.bcrypt_hash import hashpw
from bench.people import COST, PASSWORD
from bench.service import WORKERS
from tests.support.processes import children_of


@dataclass(frozen=True)
class Spent:
    """Seconds of processor time: of Python's main threads in user and in kernel mode, of its other threads, which
    hash, and of Postgres.
    """

    user: float = 0.0
    system: float = 0.0
    threads: float = 0.0
    postgres: float = 0.0

    @property
    def total(self) -> float:
        return self.user + self.system + self.threads + self.postgres

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(*(one + another for one, another in zip(self._parts(), other._parts(), strict=True)))

    def per_request(self, since: "Spent", requests: int) -> "Spent":
        """Return milliseconds for each of the requests since an earlier measurement."""
        parts = zip(self._parts(), since._parts(), strict=True)
        return Spent(*(1000 * (now - before) / max(1, requests) for now, before in parts))

    def _parts(self) -> tuple[float, float, float, float]:
        return self.user, self.system, self.threads, self.postgres


def spent(pid: int) -> Spent:
    """Return what a process and its descendants, also those that have ended, spent so far."""
    try:
        name, user, system, ended = _read(f"/proc/{pid}/stat")
        _, main_user, main_system, _ = _read(f"/proc/{pid}/task/{pid}/stat")
    except OSError:
        return Spent()
    if name == "postgres":
        own = Spent(postgres=user + system + ended)
    else:
        threads = max(0.0, user + system - main_user - main_system)
        own = Spent(main_user + ended, main_system, threads)
    return sum(map(spent, children_of(pid)), own)


def _read(path: str) -> tuple[str, float, float, float]:
    """Return the name, the seconds in user and in kernel mode, and those of children that have ended."""
    head, _, rest = Path(path).read_text().rpartition(")")
    user, system, *ended = (int(field) / os.sysconf("SC_CLK_TCK") for field in rest.split()[11:15])
    return head.partition("(")[2], user, system, sum(ended)


def milliseconds_of_a_hash(number: int = 10) -> float:
    """Return the processor time of a password check by the bcrypt package, whichever bcrypt the service has."""
    password, password_hash = _password()
    began = time.thread_time()
    for _ in range(number):
        bcrypt.checkpw(password, password_hash)
    return 1000 * (time.thread_time() - began) / number


def hashes_per_second(seconds: float, niceness: int = 0) -> float:
    """Return the password checks a second of all cores, by threads of this niceness."""
    password, password_hash = _password()
    barrier = threading.Barrier(WORKERS)

    def hash_for_a_while(_: int) -> float:
        os.nice(niceness)  # of this thread
        barrier.wait()
        count, began = 0, time.monotonic()
        # It releases the GIL, so one thread per core is enough.
        while (elapsed := time.monotonic() - began) < seconds:
            hashpw(password, password_hash)
            count += 1
        return count / elapsed

    with ThreadPoolExecutor(WORKERS) as threads:
        return sum(threads.map(hash_for_a_while, range(WORKERS)))


def _password() -> tuple[bytes, bytes]:
    return PASSWORD.encode(), bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(COST))
