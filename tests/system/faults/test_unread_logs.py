"""A log that is not read: the service goes on, and says later how many lines are lost."""

import fcntl
import http.client
import json
import os
import pty
import re
import signal
import socket
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import pytest

from tests.support.commands import start_process
from tests.support.metered import Metered
from tests.support.outbox import Outbox
from tests.support.processes import Service, children_of, is_running, wait_until
from tests.support.smtp_server import MailServer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="makes a pipe small")

LOST_LINES = re.compile(r"The log was not read: (\d+) lines of this process are lost\.")


class UnreadLog:
    """A log whose `descriptor` blocks its writers until `read`."""

    def __init__(self, reader: int, descriptor: int, release: Callable[[], None] = lambda: None) -> None:
        self.descriptor = descriptor
        self._reader, self._release = reader, release
        self._received = b""

    def read(self) -> None:
        self._release()
        threading.Thread(target=self._keep, daemon=True).start()

    def _keep(self) -> None:
        with suppress(OSError):  # the terminal is closed
            while data := os.read(self._reader, 65_536):
                self._received += data

    def lines(self) -> list[str]:
        """Return the whole lines that were read."""
        return [line for line in self._received.decode().split("\n")[:-1] if line.strip()]

    def requests(self) -> int:
        return sum('"event": "request"' in line for line in self.lines())

    def lost(self) -> list[int]:
        """Return the numbers of lost lines, as the log says them."""
        return [int(number) for number in LOST_LINES.findall("\n".join(self.lines()))]


def full_pipe() -> UnreadLog:
    reader, writer = os.pipe()
    size = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, b"\n" * size)
    return UnreadLog(reader, writer)


def stopped_terminal() -> UnreadLog:
    """A terminal in which Ctrl-S was pressed."""
    reader, writer = pty.openpty()
    termios.tcflow(writer, termios.TCOOFF)
    return UnreadLog(reader, writer, partial(termios.tcflow, writer, termios.TCOON))


def stopped_journal() -> UnreadLog:
    """The stream socket of a log daemon that hangs."""
    reader, writer = socket.socketpair()
    with suppress(BlockingIOError):
        while True:
            writer.send(b"\n", socket.MSG_DONTWAIT)
    return UnreadLog(reader.detach(), writer.detach())


@contextmanager
def opened(make: Callable[[], UnreadLog]) -> Iterator[UnreadLog]:
    log = make()
    try:
        yield log
    finally:
        os.close(log.descriptor)


@pytest.fixture
def full() -> Iterator[UnreadLog]:
    with opened(full_pipe) as log:
        yield log


def ask(service: Service, times: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    for _ in range(times):
        connection.request("GET", "/settings")
        response = connection.getresponse()
        assert (response.status, response.read()[:1]) == (200, b"{")
    connection.close()


@pytest.mark.parametrize(
    ("make", "requests", "some_are_lost"),
    [(full_pipe, 10_000, True), (stopped_terminal, 1_000, False), (stopped_journal, 1_000, False)],
)
def test_service_whose_log_is_not_read_serves_and_says_later_what_is_lost(
    serve, make, requests, some_are_lost
):
    with opened(make) as log:
        settings = {"AUTH_WORKERS": "1", "AUTH_LOG_FORMAT": "json", "AUTH_LOG_LEVEL": "info"}
        with Metered(serve, None, log_to=log.descriptor, **settings) as metered:
            (killed,) = wait_until(metered.workers)
            os.kill(killed, signal.SIGKILL)
            wait_until(lambda: metered.workers() - {killed})
            ask(metered.service, requests)
            assert metered.service.get("/health")[0] == 200
            assert log.lines() == []

            log.read()
            wait_until(lambda: log.requests() + sum(log.lost()) == requests)
            assert len(log.lost()) == some_are_lost
            wait_until(lambda: metered.value("latchkey_log_lines_lost_total") == sum(log.lost()))
            ask(metered.service, 1)
            wait_until(lambda: log.requests() + sum(log.lost()) == requests + 1)
        wait_until(lambda: '"Stopped."' in log.lines()[-1])
    # Whole lines, gunicorn's included.
    events = [json.loads(line)["event"] for line in log.lines()]
    assert sum(event.startswith(f"Worker (pid:{killed}) was sent SIGKILL!") for event in events) == 1
    assert sum(event.startswith("Serving ") for event in events) == 1


def test_delivery_process_whose_log_is_not_read_delivers_is_replaced_and_ends(service, database, parts, full):
    outbox = Outbox(database, parts)
    changes = {"AUTH_SMS_PROVIDER": "console", "log_to": full.descriptor}
    with MailServer() as mail, service(AUTH_SMTP_URL=mail.url(), **changes) as running:
        sms = outbox.sms()
        wait_until(lambda: outbox.outcome(sms) == "sent")
        first_id = outbox.write()
        wait_until(lambda: outbox.outcome(first_id) == "sent")
        (killed,) = running.delivery_processes()
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: not is_running(killed))
        second_id = outbox.write()
        wait_until(lambda: outbox.outcome(second_id) == "sent")
        ask(running, 1_000)
        children = children_of(running.process.pid)
        running.process.terminate()
        assert running.process.wait(60) == 0
    assert [pid for pid in children if is_running(pid)] == []


def test_deliver_command_whose_log_is_not_read_delivers_and_ends(environment, database, parts, full):
    outbox = Outbox(database, parts)
    id = outbox.write()
    with MailServer() as mail:
        process = start_process(
            environment | {"AUTH_SMTP_URL": mail.url()}, "deliver", stderr=full.descriptor
        )
        try:
            wait_until(lambda: outbox.outcome(id) == "sent")
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.communicate()


def test_failed_start_ends_although_its_log_is_not_read(state_dir, full):
    service = Service(state_dir, log_to=full.descriptor, AUTH_WORKERS="many")
    assert service.refuses_to_start()[0] == 1
