"""What a client does while its request is served, and the threads that serve: nothing of it disturbs others or is lost."""

import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from http.client import HTTPException
from pathlib import Path
from queue import SimpleQueue

import pytest
from gunicorn.config import Config

from auth.connections import Connection, Line
from auth.threads import Threads
from tests.support.processes import Service, children_of, descriptors_of, free_port, wait_until
from tests.support.wire import HOST, connect, read

# Served as long as a hash takes.
LOG_IN = b'{"email": "nobody@example.com", "password": "Wrong-Horse-1"}'
SLOW = b"POST /token?grant_type=password HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(LOG_IN) + LOG_IN
NEXT = b"GET /settings HTTP/1.1\r\n" + HOST + b"\r\n"
LAST = NEXT[:-2] + b"Connection: close\r\n\r\n"


@pytest.fixture
def service(slow_service):
    return slow_service


def statuses(connection: socket.socket) -> list[int]:
    with connection:
        return [reply.status for reply in read(connection)]


def seconds_of_processor(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class TestAClient:
    @pytest.mark.parametrize("parts", [[LAST], [NEXT, LAST], [NEXT[:20], NEXT[20:] + LAST]])
    def test_may_send_its_next_requests_while_one_is_served(self, service: Service, parts):
        connection = connect(service.port, SLOW)
        for part in parts:
            time.sleep(0.05)  # so that it comes by itself, while the first one is served
            connection.sendall(part)

        assert statuses(connection) == [401] + [200] * b"".join(parts).count(b"GET ")

    def test_may_send_them_all_at_once(self, service):
        assert statuses(connect(service.port, NEXT + SLOW + NEXT + LAST)) == [200, 401, 200, 200]

    def test_that_sent_them_all_at_once_is_not_kept_waiting_between_them(self, service):
        began = time.monotonic()
        assert statuses(connect(service.port, NEXT * 8 + LAST)) == [200] * 9
        # The process would look at them again within a second, whatever happens.
        assert time.monotonic() - began < 3

    def test_that_has_begun_its_next_request_holds_no_thread(self, service):
        begun, rest = NEXT[:5], NEXT[5:-2] + b"Connection: close\r\n\r\n"
        connections = [connect(service.port, NEXT + begun) for _ in range(16)]
        for connection in connections:
            assert connection.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 200"
        began = time.monotonic()
        assert service.get("/settings")[0] == 200
        assert time.monotonic() - began < 5
        for connection in connections:
            connection.sendall(rest)
            assert statuses(connection) == [200, 200]

    def test_that_sends_more_while_it_is_served_keeps_the_process_no_busier(self, service):
        (worker,) = children_of(service.process.pid)

        def cost_of(early: bytes) -> float:
            before = seconds_of_processor(worker)
            connections = [connect(service.port, SLOW) for _ in range(4)]
            time.sleep(0.05)  # until they are served
            for connection in connections:
                connection.sendall(early)
            for connection in connections:
                assert connection.recv(12) == b"HTTP/1.1 401"
                connection.close()
            return seconds_of_processor(worker) - before

        cost_of(b"")
        # A poller that is told of it again and again takes as much as the hashes do, or more.
        assert cost_of(NEXT) < cost_of(b"") * 1.5 + 0.1

    def test_that_says_no_more_while_it_is_served_is_answered(self, service):
        connection = connect(service.port, SLOW)
        connection.shutdown(socket.SHUT_WR)

        assert statuses(connection) == [401]

    def test_that_leaves_while_it_is_served_leaves_nothing_behind(self, service):
        (worker,) = children_of(service.process.pid)

        def leave() -> None:
            for _ in range(40):
                connect(service.port, SLOW).close()
            assert service.get("/settings")[0] == 200

        leave()
        before = descriptors_of(worker)
        leave()

        # Connections to Postgres may have been added; those of the clients may not.
        wait_until(lambda: descriptors_of(worker) <= before + 9)
        assert "Traceback" not in service.text()


def test_who_leaves_before_it_is_told_to_send_its_body_is_no_fault_of_ours(small_service):
    logged = len(small_service.log())
    for _ in range(20):
        connection = connect(small_service.port, SLOW.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n").partition(b"{")[0])
        # What it closes like this is reset: nothing can be written to it.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    wait_until(lambda: small_service.get("/settings")[0] == 200)
    assert "Traceback" not in small_service.log()[logged:]


class FailingService(Service):
    """One process of the service's worker, which may have so many files open, with an application that fails in the middle of its answers."""

    def __init__(self, state_dir: Path, files: int = 1000, connections: int = 500) -> None:
        port = free_port()
        how = ["--config", os.devnull, "--bind", f"127.0.0.1:{port}", "--worker-class", "auth.gunicorn_worker.Worker", "--threads", "8"]
        gunicorn = [sys.executable, "-m", "gunicorn", *how, "--worker-connections", str(connections), "tests.support.failing_app:app"]
        super().__init__(state_dir, command=["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh", *gunicorn], PORT=str(port))

    def _is_healthy(self) -> bool:
        try:
            return self.get("/")[0] == 200
        except (OSError, HTTPException):
            return False


def test_connections_that_threads_have_closed_are_no_others(new_state_dir):
    with FailingService(new_state_dir) as service:
        workers = children_of(service.process.pid)

        def fail_often(_: int) -> None:
            for _ in range(100):
                with suppress(ConnectionError), connect(service.port, b"GET /fails HTTP/1.1\r\n" + HOST + b"\r\n") as connection:
                    while connection.recv(1000):
                        pass

        with ThreadPoolExecutor(8) as clients:
            list(clients.map(fail_often, range(8)))

        assert service.get("/")[0] == 200
        assert children_of(service.process.pid) == workers
        assert "already registered" not in service.text()


def test_connections_that_end_have_files_open_too(new_state_dir):
    with FailingService(new_state_dir, files=160, connections=100) as service, ExitStack() as stack:
        (worker,) = children_of(service.process.pid)
        # Clients that don't close what has ended. Beyond a hundred they wait until others have had their time.
        for _ in range(300):
            stack.enter_context(connect(service.port, b"GET / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"))
        wait_until(lambda: descriptors_of(worker) >= 100)
        time.sleep(0.3)  # for more, if they are taken
        assert descriptors_of(worker) <= 140
        before = seconds_of_processor(worker)
        time.sleep(1)
        assert seconds_of_processor(worker) - before < 0.5
        assert service.get("/", timeout=30)[0] == 200


def test_those_who_only_close_keep_nobody_waiting(small_service):
    time.sleep(2)  # what others have had turned away has been told of by now
    logged = len(small_service.log())
    with ExitStack() as stack:
        for sent in [b"", NEXT] * 200:
            connection = stack.enter_context(connect(small_service.port, sent))
            assert not sent or connection.recv(12) == b"HTTP/1.1 200"

    assert [small_service.get("/settings")[0] for _ in range(20)] == [200] * 20
    time.sleep(1.1)  # what is turned away is told of once a second
    assert small_service.get("/settings")[0] == 200
    assert "turned_away" not in small_service.log()[logged:]


class TestALine:
    def test_is_in_the_order_in_which_they_came(self):
        line, address = Line(), ("127.0.0.1", 8000)
        with socket.socket() as client:
            conns = [Connection(Config(), client, address, address) for _ in range(4)]
        for conn in conns:
            line.append(conn)

        assert (line[0], len(line), list(line)) == (conns[0], 4, conns)
        line.remove(conns[1])
        assert [line.popleft(), line.popleft(), line.popleft()] == [conns[0], conns[2], conns[3]]
        assert not line
        with pytest.raises(KeyError):
            line.remove(conns[1])


class TestThreads:
    @pytest.fixture
    def threads(self):
        threads = Threads(3)
        yield threads
        threads.shutdown()

    def test_as_many_run_as_there_may_be_and_the_rest_waits_in_order(self, threads):
        going, begun, order = threading.Event(), SimpleQueue[int](), []

        def work(number: int) -> Callable[[], None]:
            def run() -> None:
                begun.put(number)
                going.wait(10)
                order.append(number)

            return run

        for number in range(3):
            threads.run(work(number), number + 1)
        assert {begun.get(timeout=5) for _ in range(3)} == {0, 1, 2}
        for number in range(3, 50):
            threads.run(work(number), number + 1)
        assert begun.empty()
        going.set()

        assert [begun.get(timeout=5) for _ in range(47)] == list(range(3, 50))
        wait_until(lambda: len(order) == 50)

    def test_none_is_started_that_is_not_needed(self, threads):
        done = SimpleQueue[int]()

        for _ in range(20):
            threads.run(lambda: done.put(threading.get_ident()), 1)

        assert len({done.get(timeout=5) for _ in range(20)}) == 1

    def test_what_fails_takes_no_thread_along(self, threads):
        done = SimpleQueue[bool]()

        for fail in (lambda: 1 / 0, sys.exit) * 4:
            threads.run(fail, 1)
        threads.run(lambda: done.put(True), 1)

        assert done.get(timeout=5)

    def test_where_none_can_be_started_those_go_on_that_there_are(self, threads, monkeypatch):
        going, done = threading.Event(), SimpleQueue[int]()
        threads.run(lambda: going.wait(10), 1)

        def fail(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", fail)
            threads.run(lambda: done.put(1), 2)
        assert done.empty()
        # There are some again: the next one does what waits.
        threads.run(lambda: done.put(2), 3)
        assert [done.get(timeout=5), done.get(timeout=5)] == [1, 2]
        going.set()

    def test_they_end_when_all_is_done(self):
        done, threads = [], Threads(2)
        for number in range(10):
            threads.run(lambda: done.append(1), number + 1)
        threads.shutdown()

        wait_until(lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("request-")])
        assert len(done) == 10
