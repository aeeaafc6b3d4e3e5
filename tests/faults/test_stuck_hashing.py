"""A worker whose hashing hangs is noticed, says so, and is replaced, while all other requests are served."""

import json
import sys
import time

import pytest

from tests.support.answers import unhealthy
from tests.support.metered import Metered
from tests.support.processes import wait_until
from tests.support.raw_http import HOST, connect
from tests.support.server import repeated, until_served
from tests.support.users import sign_in

IN_CI = pytest.mark.selection

HANGING_GUNICORN = [sys.executable, "-m", "gunicorn", "wsgi:app", "--config", "tests/support/hanging.conf.py"]
UNHEALTHY = unhealthy("Password hashing is stuck; this process is being replaced")
REASON = (
    "a password hash of scheme latchkey1 takes longer than 20 s: this worker stops, and another replaces it"
)
NOTICED = 25  # seconds


# A loop is endless once it has had four seconds of CPU time, which takes a while on busy cores.
@pytest.mark.parametrize(
    ("hang", "seconds", "count"),
    [
        pytest.param("Deadlock", NOTICED, 1, marks=IN_CI),
        ("Polling", NOTICED, 2),
        pytest.param("Loop", 90, 2, marks=IN_CI),
    ],
)
def test_worker_with_a_hanging_hash_is_replaced_while_others_are_served(
    serve, alice, bob, carol, hang, seconds, count
):
    body = json.dumps({"email": "alice@example.com", "password": f"Hang-{hang}-1"}).encode()
    request = b"POST /token?grant_type=password HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    with Metered(serve, command=HANGING_GUNICORN, AUTH_WORKERS=str(count)) as metered:
        wait_until(lambda: metered.value("latchkey_workers") == count)
        client, log, before = metered.client, metered.service.log, metered.workers()
        assert metered.value("latchkey_hash_stuck") == 0
        session = carol.sign_in()

        with (
            repeated(
                lambda: client.get("/user", headers=session.authorization).status_code,
                lambda: until_served(lambda: sign_in(client, "bob@example.com")).status_code,
                lambda: client.get("/health"),
            ) as (users, sign_ins, health),
            connect(
                metered.service.port, request + b"Content-Length: %d\r\n\r\n" % len(body) + body
            ) as stuck,
        ):
            began = time.monotonic()
            wait_until(lambda: "hashing_stuck" in log(), seconds)
            assert time.monotonic() - began > 19
            wait_until(lambda: len(metered.workers() & before) == count - 1, 5)
            wait_until(lambda: len(metered.workers()) == count)
            assert stuck.recv(1) == b""

        assert set(users) == {200}
        assert set(sign_ins) == {200}
        unhealthy = [answer for answer in health if answer.status_code != 200]
        assert unhealthy or count > 1  # another worker may have answered each request
        for answer in unhealthy:
            assert (answer.status_code, answer.headers["Retry-After"], answer.json) == (503, "2", UNHEALTHY)
        (event,) = [json.loads(line) for line in log().splitlines() if "hashing_stuck" in line]
        assert (event["level"], event["reason"]) == ("error", REASON)
        assert metered.value("latchkey_hash_stuck") == 1
        assert "Traceback" not in log()
