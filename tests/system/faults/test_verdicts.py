"""Passwords are checked while something fails: guesses get no more verdicts, and no owner is locked out."""

import contextlib
import os
import signal
from collections import Counter
from typing import Any

import httpx
import pytest

from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.processes import Service, children_of, wait_until
from tests.support.server import at_once
from tests.support.users import PASSWORD, Person, register, sign_in
from tests.system.faults.deployment import Deployment

LIMITS: dict[str, Any] = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_LOGIN": "10000 per minute"}
TRIES = 10


def workers_of(service: Service) -> set[int]:
    return set(children_of(service.process.pid)) - set(service.delivery_processes())


def status(alice: Person, password: str) -> int | None:
    """Try to sign in, and return the status, or None if the worker died before it answered."""
    with contextlib.suppress(httpx.TransportError):
        return alice.try_to_sign_in(password).status_code
    return None


def user_of(deployment: Deployment, service: Service) -> Person:
    return register(deployment.client(service), {"apikey": SERVICE_ROLE_KEY}, "alice@example.com")


def test_hundred_guesses_get_ten_verdicts_while_a_worker_is_killed(deployment):
    with deployment.service(**LIMITS) as service:
        alice, rows = user_of(deployment, service), deployment.rows()

        def guess(number: int) -> int | None:
            if number == 50:
                wait_until(lambda: rows.count("failure_counts") > 0)
                os.kill(min(workers_of(service)), signal.SIGKILL)
            return status(alice, "Wrong-Horse-1")

        for _ in range(2):
            statuses = Counter(at_once(100, guess))
            assert statuses[401] <= TRIES
            assert statuses[200] == 0
            # Some requests died with the worker: use up the tries that they left.
            wait_until(lambda: status(alice, "Wrong-Horse-1") == 429)
            assert {status(alice, PASSWORD) for _ in range(3)} == {429}
            rows.run("DELETE FROM failure_counts")
            wait_until(lambda: len(workers_of(service)) == 2)
        assert sign_in(deployment.client(service), "alice@example.com").status_code == 200


@pytest.mark.root
def test_full_disk_locks_out_nobody_who_enters_the_right_password(small_disk):
    ballast = small_disk / "ballast"
    with (
        Deployment(small_disk, max_wal_size="48MB", min_wal_size="32MB") as deployment,
        deployment.service(**LIMITS) as service,
    ):
        alice = user_of(deployment, service)
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"0" * 4096)
        statuses = at_once(2 * TRIES, lambda _: status(alice, PASSWORD))
        ballast.unlink()
        assert set(statuses) <= {200, 503}
        if deployment.postgres.has_ended():
            deployment.postgres.stop()
            deployment.postgres.start()
        wait_until(lambda: status(alice, PASSWORD) == 200)
        assert deployment.rows().count("failure_counts", "count > 0") == 0
