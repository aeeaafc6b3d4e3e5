"""A full hashing queue."""

from collections.abc import Iterator
from contextlib import contextmanager

from auth.core.passwords.hashing import LONGEST_QUEUE, Passwords


@contextmanager
def full_queue(passwords: Passwords) -> Iterator[None]:
    """Take all places of the hashing queue inside the context."""
    passwords.queue_length += LONGEST_QUEUE
    try:
        yield
    finally:
        passwords.queue_length -= LONGEST_QUEUE
