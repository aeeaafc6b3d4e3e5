"""A full hashing queue."""

from collections.abc import Iterator
from contextlib import contextmanager

from auth.passwords.hashing import Passwords


@contextmanager
def full_queue(passwords: Passwords) -> Iterator[None]:
    """Take all places of the hashing queue inside the context."""
    taken = 0
    while passwords._queue.acquire(blocking=False):
        taken += 1
    try:
        yield
    finally:
        passwords._queue.release(taken)
