"""So many at once, and all others in the order in which they came."""

import time
from collections.abc import Callable
from contextlib import contextmanager
from threading import Thread

from auth.turns import Turns
from tests.support.processes import wait_until
from tests.support.server import at_once

LONG = 30
MANY = 30


@contextmanager
def in_line(turns: Turns, act: Callable[[], None], seconds: float = LONG):
    """Have somebody wait for a turn, and do something in it."""

    def wait() -> None:
        if turns.take(seconds):
            act()
            turns.give_back()

    thread, before = Thread(target=wait), turns.waiting
    thread.start()
    wait_until(lambda: turns.waiting == before + 1)
    yield
    thread.join()


def test_there_are_so_many_and_no_more():
    turns = Turns(2, MANY)
    assert [turns.take(0.01) for _ in range(3)] == [True, True, False]
    turns.give_back()
    assert [turns.take(0.01) for _ in range(2)] == [True, False]


def test_who_waits_longest_is_next_and_a_newcomer_comes_last():
    turns, order = Turns(1, MANY), []
    assert turns.take(0)
    with in_line(turns, lambda: order.append("first")), in_line(turns, lambda: order.append("second")):
        turns.give_back()
        assert turns.take(LONG)
        assert order == ["first", "second"]


def test_who_finds_the_line_full_does_not_wait():
    turns, order = Turns(1, 1), []
    assert turns.take(0)
    with in_line(turns, lambda: order.append("first")):
        assert not turns.take(LONG)
        turns.give_back()
    assert order == ["first"]


def test_who_gives_up_is_passed_over():
    turns, order = Turns(1, MANY), []
    assert turns.take(0)
    with in_line(turns, lambda: order.append("impatient"), seconds=2), in_line(turns, lambda: order.append("patient")):
        wait_until(lambda: turns.waiting == 1)
        turns.give_back()
    assert order == ["patient"]
    assert turns.take(0)


def test_none_is_lost_when_they_come_as_patience_ends():
    turns, at_work, most = Turns(3, MANY), [], []

    def act(number: int) -> None:
        for step in range(100):
            if turns.take((number + step) % 4 * 0.0002):
                at_work.append(number)
                most.append(len(at_work))
                time.sleep(0.0002)
                at_work.remove(number)
                turns.give_back()

    at_once(16, act)
    assert max(most) == 3
    assert turns.waiting == 0
    assert [turns.take(0) for _ in range(4)] == [True, True, True, False]
