"""A process that may open few files: silent clients leave room for others, and the operator is told."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.support.processes import Service
from tests.support.raw_http import HOST, connect

# More than the 200 files that the service may open.
CLIENTS = 260
REQUEST = b"GET /settings HTTP/1.1\r\n" + HOST + b"\r\n"
LINE = (
    "A process may open 200 files, so each worker accepts 100 connections instead of 800. Raise the limit to"
    " 1000: LimitNOFILE= of systemd, or ulimit -n."
)


@pytest.fixture
def start_after(new_state_dir) -> Callable[[str], Service]:
    """Make a service with one worker that a shell starts after a command."""

    def make(command: str) -> Service:
        script = f"{command} && exec {sys.executable} -m gunicorn wsgi:app"
        return Service(new_state_dir, command=["bash", "-c", script], AUTH_WORKERS="1")

    return make


@contextmanager
def clients(service: Service, sent: bytes) -> Iterator[list[bytes]]:
    """Open connections that stay open, and yield the status line of each answer to what they send."""
    with ExitStack() as stack:
        connections = [stack.enter_context(connect(service.port, sent)) for _ in range(CLIENTS)]
        yield [connection.recv(12) if sent else b"" for connection in connections]


def test_silent_clients_leave_room_for_others_and_the_start_names_the_limit(start_after):
    with start_after("ulimit -n 200") as service, clients(service, b""):
        assert [service.get("/health")[0] for _ in range(5)] == [200] * 5
        assert service.said().count(LINE) == 1
        assert "Too many open files" not in service.text()


def test_limit_that_a_process_may_raise_keeps_no_client_waiting(start_after):
    with start_after("ulimit -S -n 200") as service, clients(service, REQUEST) as answers:
        assert answers == [b"HTTP/1.1 200"] * CLIENTS
        assert service.get("/health")[0] == 200
        assert "may open" not in service.text()
