"""Passwords are checked while servers accept connections and never answer: a request that waits for the network holds
no place in the hashing queue.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from auth.core.passwords import hashing, leaked_ranges
from auth.core.providers import client as providers
from auth.extensions.captcha import siteverify
from auth.web.context import EXTENSION
from tests.support.customers import Customers, SsoService
from tests.support.fake_provider import Answer
from tests.support.http_target import HttpTarget
from tests.support.oauth import SITE
from tests.support.pages import Visitor
from tests.support.processes import wait_until
from tests.support.range_api import RangeStub
from tests.support.users import PASSWORD, WRONG_PASSWORD, sign_in

# Requests that wait for a silent server: more than hash at once.
WAITING = hashing._ADMITTED + 2
LONG = 120.0  # seconds, in the place of the few that the service waits


@dataclass
class Silence:
    """An application that asks silent servers."""

    app: Any
    # Sends a request for which the application asks a silent server, and returns the status.
    ask: Callable[[int], int]
    # The requests to each server, and how many to each one will wait.
    requests: list[list[Any]]
    most: int
    close_servers: Callable[[], None]
    # The status of the requests once the servers have closed their connections.
    status: int


def sign_up(app: Any, number: int) -> int:
    body = {"email": f"new{number}@example.com", "password": PASSWORD}
    proof = {"gotrue_meta_security": {"captcha_token": "a-token"}}
    return app.test_client().post("/signup", json=body | proof).status_code


@pytest.fixture
def customers(make_app, service_role, monkeypatch) -> Iterator[Silence]:
    """Customers' providers, to which the sign-in page leads for an address of their domains."""
    monkeypatch.setattr(providers, "_DEADLINE", LONG)
    monkeypatch.setattr(providers, "_PATIENCE", LONG)
    with Customers() as customers:
        service = SsoService(make_app(AUTH_SSO="true"), service_role)
        for customer in customers.all:
            service.add(customer)
            customer.provider.reset()
            customer.provider.instead[customer.provider.DISCOVERY] = Answer(behaviour="hang")
        domains = [customer.domain for customer in customers.all]
        browsers = [service.browser() for _ in range(WAITING)]
        for browser in browsers:
            browser.visit(f"{SITE}/sign-in")

        def ask(number: int) -> int:
            email = f"user{number}@{domains[number % len(domains)]}"
            return browsers[number].press("sign-in", email=email, password=PASSWORD).status

        def close_servers() -> None:
            for customer in customers.all:
                customer.provider.over.set()

        # One sign-in of each provider fetches its document, and the others wait for it.
        requests = [customer.provider.requests for customer in customers.all]
        yield Silence(service.app, ask, requests, 1, close_servers, 200)


@pytest.fixture
def captcha(make_app, monkeypatch) -> Iterator[Silence]:
    monkeypatch.setattr(siteverify, "_TIMEOUT", LONG)
    with HttpTarget() as target:
        target.behaviour = "hang"
        app = make_app(AUTH_CAPTCHA=f"{target.url}/siteverify", AUTH_CAPTCHA_SECRET="their-secret")
        yield Silence(
            app, lambda number: sign_up(app, number), [target.requests], WAITING, target.over.set, 503
        )


@pytest.fixture
def leaked(make_app, monkeypatch) -> Iterator[Silence]:
    """The list of leaked passwords."""
    monkeypatch.setattr(leaked_ranges, "_TIMEOUT", LONG)
    with RangeStub({}) as stub:
        stub.behaviour = "hang"
        app = make_app(AUTH_PASSWORD_LEAKED=stub.mirror)
        yield Silence(app, lambda number: sign_up(app, number), [stub.requests], WAITING, stub.over.set, 201)


@pytest.fixture(params=["customers", "captcha", "leaked"])
def silence(request) -> Silence:
    return request.getfixturevalue(request.param)


def test_passwords_are_checked_at_the_page_and_the_api_while_a_server_is_silent(silence, alice, monkeypatch):
    app = silence.app
    # Requests that wait for the server do not count as waiting to hash, either.
    monkeypatch.setattr(hashing, "LONGEST_QUEUE", WAITING)
    visitor, client = Visitor(app), app.test_client()
    visitor.visit("/sign-in")
    with ThreadPoolExecutor(WAITING) as threads:
        waiting = [threads.submit(silence.ask, number) for number in range(WAITING)]
        try:
            wait_until(lambda: all(len(requests) == silence.most for requests in silence.requests))
            answers = [sign_in(client, alice.email, password) for password in (PASSWORD, WRONG_PASSWORD)]
            page = visitor.submit(email=alice.email, password=PASSWORD)
            finished = [each for each in waiting if each.done()]
        finally:
            silence.close_servers()
    assert [answer.status_code for answer in answers] == [200, 401]
    assert (page.status, page.url) == (200, f"{SITE}/account")
    assert finished == []
    assert {each.result() for each in waiting} == {silence.status}
    assert app.extensions[EXTENSION].passwords.queue_length == 0
