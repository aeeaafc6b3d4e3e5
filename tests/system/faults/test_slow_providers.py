"""OAuth providers that respond slowly or never: a sign-in ends in time, and does not delay other sign-ins."""

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from tests.support.awake import awake
from tests.support.fake_provider import Answer, FakeProvider, PlainProvider
from tests.support.oauth import assert_failed, assert_turned_back
from tests.support.processes import free_port, wait_until

pytest_plugins = ["tests.support.oauth_fixtures"]
# The seconds that a sign-in may spend on all requests to its provider, and the slack for a busy machine.
DEADLINE = 10
SLACK = 5
# The number of clients that sign in with the same slow provider at once.
FLOOD = 24
# Connections to these addresses are neither accepted nor refused, as behind a firewall that drops packets.
DEAD_ADDRESSES = ("127.0.0.1", "127.0.0.2")


@contextmanager
def dead_port() -> Iterator[int]:
    """Yield a port of `DEAD_ADDRESSES` whose backlog is full."""
    with ExitStack() as stack:
        port = free_port()
        for address in DEAD_ADDRESSES:
            stack.enter_context(socket.create_server((address, port), backlog=0))
            for _ in range(4):
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex((address, port))
        yield port


@pytest.fixture
def dead_host(monkeypatch) -> str:
    """A host name that resolves to `DEAD_ADDRESSES`."""
    name = "unreachable.localhost"
    resolve = socket.getaddrinfo

    def answer(host: Any, *arguments: Any, **options: Any) -> list[Any]:
        hosts = DEAD_ADDRESSES if host == name else (host,)
        return [entry for each in hosts for entry in resolve(each, *arguments, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    return name


@pytest.fixture
def slow_providers() -> Iterator[dict[str, FakeProvider]]:
    """Providers by name, each slow at one step of a sign-in."""
    providers: dict[str, FakeProvider] = {}
    with ExitStack() as stack:
        for name, path, behaviour in (
            ("discoveryhang", FakeProvider.DISCOVERY, "hang"),
            ("tokendrip", "/token", "drip"),
            ("keysdripbody", "/jwks", "drip body"),
        ):
            provider = providers[name] = stack.enter_context(FakeProvider(name))
            provider.instead[path] = Answer(behaviour=behaviour)
        userinfo = providers["userinfo"] = stack.enter_context(PlainProvider("userinfo"))
        userinfo.instead["/user"] = Answer(behaviour="drip body")
        # All other steps respond at once: all requests of a sign-in share one deadline.
        slow_userinfo = providers["last"] = stack.enter_context(FakeProvider("last"))
        slow_userinfo.instead["/userinfo"] = Answer(behaviour="hang")
        for provider in providers.values():
            provider.person = {"sub": "alice-there"}
        yield providers


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    started_at = awake()
    result = call(*arguments)
    return result, awake() - started_at


def status_of(client: Any, path: str) -> int:
    """Request a path, and return the status of the response; 0 without one."""
    try:
        return client.get(path).status_code
    except httpx.TransportError:
        return 0


def test_slow_provider_delays_only_its_own_sign_ins_and_those_end_in_time(
    make_service, slow_providers, dead_host, google, serve
):
    settings = {
        name: value for provider in slow_providers.values() for name, value in provider.settings().items()
    }
    google.person = {"sub": "alice-at-google", "email": "alice@example.com", "email_verified": True}
    flooded = slow_providers["discoveryhang"]
    with (
        dead_port() as port,
        ThreadPoolExecutor(64) as threads,
        serve(AUTH_WORKERS="1", **settings, **google.settings()) as (_, gunicorn),
    ):
        settings |= {
            "AUTH_PROVIDER_UNREACHABLE_ISSUER": f"http://{dead_host}:{port}",
            "AUTH_PROVIDER_UNREACHABLE_CLIENT_ID": "x",
        }
        service = make_service(**settings)
        service.client.get("/settings")  # load openapi.yaml before measuring
        requests_before = len(flooded.requests)
        slow = {
            name: threads.submit(timed, service.sign_in, name) for name in [*slow_providers, "unreachable"]
        }
        flood = [
            threads.submit(timed, status_of, gunicorn, "/authorize?provider=discoveryhang")
            for _ in range(FLOOD)
        ]
        wait_until(lambda: len(flooded.requests) >= requests_before + 2)

        for page, seconds in [timed(service.sign_in, "google") for _ in range(3)]:
            assert "access_token" in page.url
            assert seconds < SLACK
        status, seconds = timed(status_of, gunicorn, "/authorize?provider=google")
        assert (status, seconds < SLACK) == (302, True), f"{status} after {seconds:.1f} s"

        for name, future in slow.items():
            page, seconds = future.result()
            assert seconds < DEADLINE + SLACK, name
            if name.startswith(("discovery", "unreachable")):
                assert_turned_back(page)
            else:
                assert_failed(page, "bad_oauth_callback", "server_error")
        assert all(future.result()[1] < DEADLINE + SLACK for future in flood)
