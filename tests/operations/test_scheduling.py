"""Each process keeps to a core, hashing makes room for everything else, and connections are spread over the processes."""

import os
import signal
import socket
import sys
from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

import pytest

from auth import scheduling
from auth.scheduling import CORES
from auth.shares import Share, Shares
from tests.support.processes import Service, children_of, sockets_of, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and Linux alone schedules threads one by one")
NICENESS = 13


def workers_of(service: Service, number: int) -> list[int]:
    return wait_until(lambda: pids if len(pids := children_of(service.process.pid)) == number else [])


def cores_of(pid: int) -> tuple[int, ...]:
    return tuple(sorted(os.sched_getaffinity(pid)))


def threads_of(pid: int) -> list[int]:
    return [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]


def has_another_in_place_of(service: Service, pid: int, number: int) -> bool:
    return pid not in (workers := children_of(service.process.pid)) and len(workers) == number


@pytest.fixture
def service(serve):
    """A process for each core, and for one of them a second."""
    with serve(AUTH_WORKERS=str(len(CORES) + 1)) as (service, _):
        workers_of(service, len(CORES) + 1)
        yield service


def test_each_process_keeps_to_a_core_and_no_core_has_two_more_than_another(service):
    kept = Counter(cores_of(pid) for pid in children_of(service.process.pid))

    assert sorted(kept.values()) == [1] * (len(CORES) - 1) + [2]
    assert set(kept) == {(core,) for core in CORES}


def test_a_process_that_takes_the_place_of_a_killed_one_takes_its_core(service):
    workers = children_of(service.process.pid)
    kept = Counter(cores_of(pid) for pid in workers)

    for pid in workers:
        os.kill(pid, signal.SIGKILL)
        wait_until(partial(has_another_in_place_of, service, pid, len(workers)))

    wait_until(lambda: Counter(map(cores_of, children_of(service.process.pid))) == kept)


def test_the_threads_of_a_process_keep_to_its_core_and_those_that_hash_to_none(serve):
    with serve(AUTH_WORKERS=str(len(CORES))) as (service, client):
        client.post("/token?grant_type=password", json={"email": "nobody@example.com", "password": "Wrong-Horse-1"})
        tasks = [task for pid in workers_of(service, len(CORES)) for task in threads_of(pid)]

        hashing = [task for task in tasks if os.getpriority(os.PRIO_PROCESS, task) == NICENESS]
        assert hashing
        assert {cores_of(task) for task in hashing} == {CORES}
        assert {len(cores_of(task)) for task in tasks if task not in hashing} == {1}


@pytest.mark.skipif(len(CORES) == 1, reason="there are no fewer than one")
def test_fewer_processes_than_cores_keep_to_none(serve):
    with serve(AUTH_WORKERS="1") as (service, _):
        assert [cores_of(pid) for pid in workers_of(service, 1)] == [CORES]


def test_connections_are_spread_over_the_processes(serve):
    with serve(AUTH_WORKERS="2") as (service, _):
        workers = workers_of(service, 2)

        def fewest_of_60() -> int:
            """Make sixty connections; return how many of them the process has that has the fewest."""
            before = [len(sockets_of(pid)) for pid in workers]

            def taken() -> list[int]:
                return [len(sockets_of(pid)) - had for pid, had in zip(workers, before, strict=True)]

            with ExitStack() as stack:
                for _ in range(60):
                    stack.enter_context(socket.create_connection(("127.0.0.1", service.port)))
                wait_until(lambda: sum(taken()) >= 60)
                fewest = min(taken())
            wait_until(lambda: sum(taken()) == 0)
            return fewest

        # One of them may still be loading.
        wait_until(fewest_of_60)
        assert median(fewest_of_60() for _ in range(5)) >= 10


def test_the_core_that_fewest_keep_to_is_next(monkeypatch):
    monkeypatch.setattr(scheduling, "CORES", (2, 5))

    assert scheduling.least_used([]) == 2
    assert scheduling.least_used([2]) == 5
    assert scheduling.least_used([5, 5, 2]) == 2
    assert scheduling.least_used([None, 2, 5]) == 2


def test_a_core_that_is_not_there_any_more_is_no_reason_to_fail(monkeypatch):
    before = cores_of(0)

    scheduling.keep_to(max(CORES) + 500)

    assert cores_of(0) == before


def test_a_sandbox_that_forbids_it_is_no_reason_to_fail(monkeypatch):
    def forbid(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", forbid)
    monkeypatch.setattr(os, "sched_setaffinity", forbid)
    scheduling.give_way()
    scheduling.keep_to(0)


def test_elsewhere_nothing_is_said(monkeypatch):
    monkeypatch.setattr(scheduling, "_SCHEDULES_THREADS", False)
    before = cores_of(0), os.getpriority(os.PRIO_PROCESS, 0)

    scheduling.keep_to(CORES[0])
    scheduling.give_way()

    assert (cores_of(0), os.getpriority(os.PRIO_PROCESS, 0)) == before


class TestShares:
    """The processes' counts of connections, in memory that they share."""

    def test_who_has_clearly_more_than_another_has_a_large_share(self):
        shares = Shares(3)
        few, many = shares.take([]), shares.take([Share(place=0)])

        few.tell(3)
        for count, is_large in ((0, False), (3, False), (4, False), (5, True), (100, True)):
            many.tell(count)
            assert many.is_large() is is_large
        assert not few.is_large()

    def test_a_lead_may_be_larger_among_many(self):
        shares = Shares(2)
        few, many = shares.take([]), shares.take([Share(place=0)])

        few.tell(80)
        many.tell(91)
        assert not many.is_large()
        many.tell(92)
        assert many.is_large()

    def test_who_ends_is_not_waited_for(self):
        shares = Shares(2)
        ending, other = shares.take([]), shares.take([Share(place=0)])

        ending.tell(0)
        other.tell(50)
        assert other.is_large()
        ending.leave()
        assert not other.is_large()

    def test_a_new_process_takes_a_place_that_nobody_has_and_begins_anew(self):
        shares = Shares(2)
        killed = shares.take([])
        other = shares.take([killed])
        killed.tell(0)
        other.tell(50)

        successor = shares.take([other])

        assert successor.place == killed.place
        assert not other.is_large()

    def test_who_was_killed_is_not_waited_for_whoever_takes_its_place(self):
        # After a reload there are more places than processes.
        shares = Shares(2)
        ended = shares.take([])
        killed = shares.take([ended])
        other = shares.take([ended, killed])
        killed.tell(0)
        other.tell(50)

        assert shares.take([other]).place == ended.place
        assert not other.is_large()

    def test_alone_nobody_is_waited_for(self):
        for alone in (Share(), Shares(1).take([])):
            alone.tell(1000)
            assert not alone.is_large()

    def test_who_finds_no_place_waits_for_nobody(self):
        shares = Shares(1)
        crowd: list[Share] = []
        for _ in range(5):
            crowd.append(shares.take(crowd))
        crowd[0].tell(0)
        crowd[3].tell(1000)
        crowd[4].tell(1000)
        assert [crowd[3].is_large(), crowd[4].is_large()] == [True, False]
