"""How a process of the service ends: soon, whatever its clients do, and nothing of it is left."""

import os
import select
import selectors
import signal
import socket
import time

import pytest
import structlog
from gunicorn.config import Config
from gunicorn.workers.gthread import PollableMethodQueue

from auth.gunicorn_worker import Worker
from auth.shares import Shares
from tests.support.processes import UnfinishedRequest, children_of, wait_until
from tests.support.wire import HOST, connect

# Seconds after which gunicorn kills a process that has not ended.
GRACE = 8
SENT = {
    "nothing": b"",
    "half a head": b"GET /settings HT",
    "half a body": b"POST /signup HTTP/1.1\r\n" + HOST + b"Content-Length: 100\r\n\r\n{",
    "a request": b"GET /settings HTTP/1.1\r\n" + HOST + b"\r\n",
    "its last request": b"GET /settings HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n",
}


@pytest.mark.parametrize("sent", SENT.values(), ids=list(SENT))
def test_a_client_that_has_sent_no_more_than_that_does_not_hold_it(serve, sent):
    with serve() as (service, _):
        with connect(service.port, sent):
            time.sleep(0.2)  # so that it has been taken
            began = time.monotonic()
            service.process.terminate()
            assert service.process.wait(20) == 0
            assert time.monotonic() - began < GRACE - 1
        assert "SIGKILL" not in service.text()


def test_a_request_that_does_not_end_holds_a_process_no_longer_than_others(serve):
    with serve(AUTH_WORKERS="1") as (service, _):
        (old,) = children_of(service.process.pid)
        with UnfinishedRequest(service, "/signup"):
            began = time.monotonic()
            # After a reload gunicorn waits for whoever is not done, and would kill it after thirty seconds.
            service.process.send_signal(signal.SIGHUP)
            wait_until(lambda: old not in children_of(service.process.pid), 25)
            assert time.monotonic() - began < GRACE + 5
        service.wait_until_healthy()


@pytest.fixture
def worker():
    """A worker that has not begun to serve."""
    with socket.create_server(("127.0.0.1", 0)) as listener, selectors.DefaultSelector() as poller:
        worker = Worker(1, os.getpid(), [listener], None, 30, Config(), structlog.get_logger())
        worker.poller = poller
        worker.method_queue.init()
        worker.set_accept_enabled(True)
        try:
            yield worker
        finally:
            PollableMethodQueue.close(worker.method_queue)
            for conn in worker.pending_conns:
                conn.close()
            worker.tmp.close()


def test_it_takes_who_has_connected_already_and_is_compared_with_others_no_more(worker):
    shares = Shares(2)
    worker.share = shares.take([])
    other = shares.take([worker.share])
    other.tell(50)
    with socket.create_connection(worker.sockets[0].getsockname()):
        select.select(worker.sockets, [], [])
        worker.alive = False
        worker.set_accept_enabled(False)

        assert (worker.nr_conns, worker.sockets) == (1, [])
        assert not other.is_large()


def test_a_thread_that_ends_later_writes_to_no_other_file(worker):
    worker.method_queue.close()
    worker.method_queue.defer(lambda: None)

    # Its pipe is still its own.
    assert os.read(worker.method_queue.fileno(), 10) == b"\0"
