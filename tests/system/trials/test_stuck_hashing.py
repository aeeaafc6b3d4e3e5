"""GET /health reports a worker whose hashing hangs, and the worker serves everything else."""

import json
import sys
import time
from contextlib import ExitStack

from auth.core.passwords.threads import THREADS
from tests.support.answers import unhealthy
from tests.support.metered import Metered
from tests.support.processes import wait_until
from tests.support.raw_http import HOST, connect
from tests.support.users import sign_in

HANGING_GUNICORN = [sys.executable, "-m", "gunicorn", "wsgi:app", "--config", "tests/support/hanging.conf.py"]
BODY = json.dumps({"email": "alice@example.com", "password": "Hanging-Horse-1"}).encode()
HEADERS = HOST + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)
LOG_IN = b"POST /token?grant_type=password HTTP/1.1\r\n" + HEADERS + BODY
STUCK = "No password hash has finished for 20 seconds; restart the service"


def test_health_is_degraded_with_the_reason_while_hashing_hangs_and_others_are_served(
    serve, alice, bob, carol
):
    with Metered(serve, command=HANGING_GUNICORN, AUTH_WORKERS="1") as metered, ExitStack() as stack:
        client, session = metered.client, carol.sign_in()
        started_at = time.monotonic()
        for _ in range(THREADS + 1):  # the last one waits for a thread
            stack.enter_context(connect(metered.service.port, LOG_IN))
        time.sleep(10)
        status = client.get("/health").json["status"]
        assert status == "healthy" or time.monotonic() - started_at > 20  # unless the machine stopped
        wait_until(lambda: client.get("/health").json["status"] == "degraded", 20)
        assert time.monotonic() - started_at > 20
        assert client.get("/health").json["msg"] == STUCK
        strict = client.get("/health?strict")
        assert (strict.status_code, strict.json) == (503, unhealthy(STUCK))
        wait_until(lambda: metered.value("latchkey_hash_stuck") == 1, 5)
        assert client.get("/user", headers=session.authorization).status_code == 200
        assert sign_in(client, "bob@example.com").status_code == 503
        time.sleep(15)  # the requests of the threads have ended; the threads are still stuck
        assert client.get("/health").json["msg"] == STUCK
