"""Fixtures of the tour of all pages by HTTP, for tests that load this module as a plugin."""

from collections.abc import Iterator
from functools import partial

import pytest

from auth.core.settings import served
from tests.support.deliverers import deliver_due
from tests.support.fake_provider import FakeProvider
from tests.support.page_clients import HttpPageClient
from tests.support.page_tour import SETTINGS, google


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with google() as provider:
        yield provider


@pytest.fixture
def page_client(make_app, service_role, outbox, database, provider, monkeypatch) -> HttpPageClient:
    monkeypatch.setattr(served, "inbox_key", "the-key-of-the-inbox")
    app = make_app(
        AUTH_REDIRECT_ALLOW_LIST="https://app.example.com/**", **SETTINGS, **provider.settings("google")
    )
    deliver = partial(deliver_due, app.extensions["latchkey"])
    client = HttpPageClient(app, app.test_client(), service_role, outbox, database, deliver)
    client.inbox = f"/dev/inbox?key={served.inbox_key}"
    return client
