"""How passwords are hashed and checked. The only module that sees bcrypt."""

import base64
import hashlib
import os
import re
import time
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import bcrypt

from auth.scheduling import give_way
from auth.settings import Settings
from auth.turns import Turns

T = TypeVar("T")

MAX_BYTES = 1024
# What bcrypt reads of its input; the library refuses more.
_BCRYPT_BYTES = 72
# In each worker two threads hash: connections are never spread evenly, and one worker alone must be able to keep two cores busy.
_THREADS = 2
# So many requests for each of them are at work, so that there is always one to hash: what they ask the database before and after takes
# time as well. All others wait in line, and take none.
_AT_WORK = 3 * _THREADS
# At most so many passwords are hashed or wait; fewer, where that would take more seconds than a client waits, on the one core that a
# worker can count on. They stay below the request threads by two, so that a flood of log-ins leaves some for everything else.
_PLACES = 61
_PATIENCE = 5
# Seconds, where the machine is slower than it was, or the database: who waits longer is told so. What the turn itself takes comes on top,
# and the worker cuts off what takes longer than ten.
LONGEST_WAIT = 5.0


class TooManyWaiting(Exception):
    """The hashing queue is full, or moves too slowly."""


def normalize(password: str) -> str:
    """Return a password in NFC: keyboards disagree on how they compose a letter (NIST SP 800-63B, 5.1.1.2)."""
    return unicodedata.normalize("NFC", password)


class Passwords:
    """Hashes and checks the passwords of one deployment. Every password is in NFC (`normalize`)."""

    def __init__(self, settings: Settings) -> None:
        self._cost = settings.bcrypt_cost
        # At low priority: a log-in may wait a little longer, so that nothing else waits for a log-in.
        self._threads = ThreadPoolExecutor(_THREADS, "hashing", give_way)
        began = time.thread_time()
        # What stands in where there is no password to check, so that it takes as long.
        self._dummy_hash = bcrypt.hashpw(os.urandom(16).hex().encode(), bcrypt.gensalt(self._cost)).decode()
        affordable = int(_PATIENCE / (time.thread_time() - began))
        # How many requests may hash, or wait for it.
        self.places = max(_THREADS, min(_PLACES, settings.threads - 2, affordable))
        at_work = min(_AT_WORK, self.places)
        self._turns = Turns(at_work, self.places - at_work)

    @contextmanager
    def slot(self) -> Iterator["Slot"]:
        """Lend what a request hashes with, all in one turn, which ends with this."""
        slot = Slot(self._threads, self._turns, self._cost, self._dummy_hash)
        try:
            yield slot
        finally:
            slot.end_turn()

    def hash(self, password: str) -> str:
        """Return a new hash. Raises `TooManyWaiting`."""
        with self.slot() as slot:
            return slot.hash(password)


class Slot:
    """What a request hashes with, in one turn, which it waits for when it first hashes, or before. All methods may raise `TooManyWaiting`."""

    def __init__(self, threads: ThreadPoolExecutor, turns: Turns, cost: int, dummy_hash: str) -> None:
        self._threads = threads
        self._turns = turns
        self._cost = cost
        self._dummy_hash = dummy_hash
        self._has_turn = False

    def await_turn(self) -> None:
        """Take a place in the queue of those who hash, and wait for its turn, unless it has come. Where there is no place, `TooManyWaiting` at once."""
        if not self._has_turn and not self._turns.take(LONGEST_WAIT):
            raise TooManyWaiting
        self._has_turn = True

    def end_turn(self) -> None:
        """Let others hash."""
        if self._has_turn:
            self._has_turn = False
            self._turns.give_back()

    def hash(self, password: str) -> str:
        """Return a new hash."""
        return self._in_turn(lambda: bcrypt.hashpw(_prepare(password), bcrypt.gensalt(self._cost)).decode())

    def check(self, password: str, password_hash: str | None) -> bool:
        """Whether this is the password; False, after as long, where there is none."""
        matches = self._in_turn(lambda: bcrypt.checkpw(_prepare(password), (password_hash or self._dummy_hash).encode()))
        return matches and password_hash is not None

    def renewed_hash(self, password: str, password_hash: str) -> str | None:
        """Return a hash at today's cost for one that was made at another, else None."""
        cost = re.match(r"\$2[aby]\$(\d\d)\$", password_hash)
        return None if cost and int(cost[1]) == self._cost else self.hash(password)

    def _in_turn(self, work: Callable[[], T]) -> T:
        self.await_turn()
        # Behind as many as are at work, and no more: it is not long.
        return self._threads.submit(work).result()


def _prepare(password: str) -> bytes:
    """Return what bcrypt is given: what is longer than it reads is hashed first, so that every byte counts."""
    password_bytes = password.encode()
    if len(password_bytes) <= _BCRYPT_BYTES:
        return password_bytes
    return base64.b64encode(hashlib.sha256(password_bytes).digest())
