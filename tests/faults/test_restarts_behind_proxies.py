"""The service restarts behind the proxies of deploy/, under load over TLS: no request fails."""

import threading
from collections import Counter
from typing import Any

import httpx
import pytest

from tests.faults.clients import ADMIN
from tests.faults.test_under_load import reload, restart
from tests.support.processes import PATIENT_GUNICORN, wait_until
from tests.support.reverse_proxies import Caddy, Nginx, ReverseProxy
from tests.support.users import PASSWORD, register


class Load:
    """Clients that read and refresh their sessions through a proxy, inside the context."""

    def __init__(self, proxy: ReverseProxy, emails: list[str]) -> None:
        self._proxy = proxy
        self._over = threading.Event()
        self.statuses: Counter[Any] = Counter()
        self._threads = [threading.Thread(target=self._run, args=(email,)) for email in emails]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, email: str) -> None:
        try:
            self._live(email)
        except Exception as error:
            self.statuses[repr(error)] += 1

    def _live(self, email: str) -> None:
        with self._proxy.client() as client:
            tokens: Any = self._ask(client, "password", email=email, password=PASSWORD)
            while tokens and not self._over.is_set():
                for _ in range(5):
                    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
                    self.statuses[client.get("/user", headers=headers).status_code] += 1
                tokens = self._ask(client, "refresh_token", refresh_token=tokens["refresh_token"])

    def _ask(self, client: httpx.Client, grant: str, **body: str) -> Any:
        response = client.post("/token", params={"grant_type": grant}, json=body)
        self.statuses[response.status_code] += 1
        if response.status_code != 200:
            self.statuses[response.text] += 1
            return None
        return response.json()

    def goes_on(self) -> None:
        """Wait for further responses."""
        before = self.statuses.total()
        wait_until(lambda: self.statuses.total() > before + 50 or set(self.statuses) - {200}, 30)
        assert set(self.statuses) == {200}, self.statuses


@pytest.mark.selection
@pytest.mark.parametrize(
    ("kind", "renew", "instances"), [(Nginx, restart, 2), (Nginx, reload, 1), (Caddy, reload, 1)]
)
def test_restart_behind_a_proxy_fails_no_request(deployment, note, scale, tmp_path, kind, renew, instances):
    times = scale(6, 2)
    settings = {"AUTH_TRUSTED_PROXIES": "1", "AUTH_RATE_LIMITS_ENABLED": "false"}
    services = [deployment.service(PATIENT_GUNICORN, **settings) for _ in range(instances)]
    running = [service.__enter__() for service in services]
    try:
        direct = deployment.client(running[0])
        emails = [register(direct, ADMIN, f"user-{number}@example.com").email for number in range(6)]
        upstreams = [f"127.0.0.1:{service.port}" for service in running]
        with kind(tmp_path, *upstreams) as proxy, Load(proxy, emails) as load:
            for number in range(times):
                load.goes_on()
                renew(running[number % instances])
                load.goes_on()
    finally:
        for service in services:
            service.__exit__(None, None, None)
    note(f"{renew.__name__} of {instances} behind {kind.__name__}", times, f"{load.statuses}")
    assert set(load.statuses) == {200}
