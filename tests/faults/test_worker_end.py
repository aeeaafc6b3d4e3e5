"""A process of the service ends soon, regardless of its clients, and leaves nothing behind."""

import signal
import time
from contextlib import ExitStack

import pytest

from tests.support.processes import UnfinishedRequest, children_of, wait_until
from tests.support.raw_http import HOST, connect

pytestmark = pytest.mark.selection

# Seconds after which gunicorn kills a process that has not ended.
GRACE = 8
SENT = [
    b"",
    b"GET /settings HT",
    b"POST /signup HTTP/1.1\r\n" + HOST + b"Content-Length: 100\r\n\r\n{",
    b"GET /settings HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /settings HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n",
]


def test_open_connections_do_not_delay_the_stop(serve):
    with serve() as (service, _), ExitStack() as stack:
        for sent in SENT * 2:
            stack.enter_context(connect(service.port, sent))
        time.sleep(0.2)  # wait until they are accepted
        began = time.monotonic()
        service.process.terminate()
        assert service.process.wait(20) == 0
        assert time.monotonic() - began < GRACE - 1
        assert "SIGKILL" not in service.text()


def test_unfinished_request_delays_a_reload_only_for_the_grace_period(serve):
    with serve(AUTH_WORKERS="1") as (service, _):
        (old,) = children_of(service.process.pid)
        with UnfinishedRequest(service, "/signup"):
            began = time.monotonic()
            # On a reload gunicorn would wait for an unfinished request thirty seconds.
            service.process.send_signal(signal.SIGHUP)
            wait_until(lambda: old not in children_of(service.process.pid), 25)
            assert time.monotonic() - began < 2 * GRACE
        service.wait_until_healthy()
