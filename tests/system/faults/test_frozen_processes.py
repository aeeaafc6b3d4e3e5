"""Processes that are stopped, as a debugger, swapping or a bug would stop them: the master replaces them."""

import os
import signal
import sys
import time

import pytest

from auth.delivery.attempts import LEASE
from tests.support.awake import awake
from tests.support.outbox import Outbox
from tests.support.processes import Service, children_of, is_running, serves, wait_until
from tests.support.smtp_server import MailServer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


def workers(service: Service) -> set[int]:
    return {pid for pid in children_of(service.process.pid) if serves(pid)}


def test_frozen_worker_is_replaced_while_requests_go_on(service):
    with service() as running:
        wait_until(lambda: len(workers(running)) == 2)
        frozen, other = sorted(workers(running))
        started_at, awake_since, longest, requests = time.monotonic(), awake(), 0.0, 0
        os.kill(frozen, signal.SIGSTOP)
        while is_running(frozen) or len(workers(running)) < 2:
            assert awake() - awake_since < 30
            sent_at = awake()
            assert running.get("/health")[0] == 200
            longest, requests = max(longest, awake() - sent_at), requests + 1
            time.sleep(0.05)
        seconds = time.monotonic() - started_at
        assert other in workers(running)
        assert f"WORKER TIMEOUT (pid:{frozen})" in running.log()
    assert (seconds > 9, requests > 50, longest < 5) == (True, True, True)


def test_frozen_delivery_process_is_replaced(service, database, parts):
    outbox = Outbox(database, parts)
    with MailServer() as mail, service(AUTH_SMTP_URL=mail.url()) as running:
        first_id = outbox.write()
        wait_until(lambda: outbox.outcome(first_id) == "sent")
        (frozen,) = running.delivery_processes()
        os.kill(frozen, signal.SIGSTOP)
        second_id = outbox.write()
        # A claim that Postgres has not run yet takes the message for its lease.
        wait_until(lambda: outbox.outcome(second_id) == "sent", LEASE + 30)
        assert not is_running(frozen)
        assert [line for line in running.said() if line.startswith("The delivery process")] == [
            "The delivery process has not responded for 10 s. Killing it.",
            "The delivery process died. Restarting it in 1 s.",
        ]
