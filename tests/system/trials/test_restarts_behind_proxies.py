"""The service restarts behind the proxies of deploy/, under load over TLS: no request fails."""

from collections import Counter
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from tests.support.processes import PATIENT_GUNICORN, wait_until
from tests.support.reverse_proxies import Caddy, Nginx
from tests.support.server import repeated
from tests.support.users import PASSWORD, register
from tests.system.faults.clients import ADMIN
from tests.system.trials.test_under_load import reload, restart


class Visitor:
    """A client that signs in through a proxy, and reads and refreshes its session with each call."""

    def __init__(self, client: httpx.Client, email: str, statuses: Counter[Any]) -> None:
        self._client, self._statuses = client, statuses
        self._next = ("password", {"email": email, "password": PASSWORD})

    def __call__(self) -> None:
        grant, body = self._next
        try:
            tokens = self._note(self._client.post("/token", params={"grant_type": grant}, json=body)).json()
            for _ in range(5):
                headers = {"Authorization": f"Bearer {tokens['access_token']}"}
                self._note(self._client.get("/user", headers=headers))
            self._next = ("refresh_token", {"refresh_token": tokens["refresh_token"]})
        except Exception as error:
            self._statuses[repr(error)] += 1

    def _note(self, response: httpx.Response) -> httpx.Response:
        self._statuses[response.status_code if response.is_success else response.text] += 1
        return response


def wait_for_responses(statuses: Counter[Any]) -> None:
    """Wait for further responses, and assert that all are 200."""
    before = statuses.total()
    wait_until(lambda: statuses.total() > before + 50 or set(statuses) - {200}, 30)
    assert set(statuses) == {200}, statuses


@pytest.mark.parametrize(
    ("kind", "renew", "instances"), [(Nginx, restart, 2), (Nginx, reload, 1), (Caddy, reload, 1)]
)
def test_restart_behind_a_proxy_fails_no_request(deployment, tmp_path, kind, renew, instances):
    statuses = Counter[Any]()
    settings = {"AUTH_TRUSTED_PROXIES": "1", "AUTH_RATE_LIMITS_ENABLED": "false"}
    with ExitStack() as stack:
        services = [deployment.service(PATIENT_GUNICORN, **settings) for _ in range(instances)]
        running = [stack.enter_context(service) for service in services]
        direct = deployment.client(running[0])
        emails = [register(direct, ADMIN, f"user-{number}@example.com").email for number in range(6)]
        upstreams = [f"127.0.0.1:{service.port}" for service in running]
        proxy = stack.enter_context(kind(tmp_path, *upstreams))
        visitors = [Visitor(stack.enter_context(proxy.client()), email, statuses) for email in emails]
        with repeated(*visitors):
            for number in range(2):
                wait_for_responses(statuses)
                renew(running[number % instances])
                wait_for_responses(statuses)
    assert set(statuses) == {200}
