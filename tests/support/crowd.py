"""A full hashing queue."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from auth.passwords.hashing import Passwords, TooManyWaiting


@contextmanager
def crowd(passwords: Passwords) -> Iterator[None]:
    """Fill the hashing queue: some threads are admitted for as long as the context lasts, and the others
    wait.
    """
    is_full, over = Event(), Event()

    def wait_in_line() -> None:
        try:
            with passwords.queue():
                over.wait()
        except TooManyWaiting:
            is_full.set()

    threads = []
    while not is_full.is_set():
        threads.append(Thread(target=wait_in_line))
        threads[-1].start()
        is_full.wait(0.002)
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
