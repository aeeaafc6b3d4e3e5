"""The key of GET /dev/inbox in two workers."""

import re
import signal

import pytest

from auth.core.settings import served
from tests.flows.dev_inbox.test_dev_inbox import INBOX_KEY
from tests.support.processes import children_of, wait_until


@pytest.fixture
def app(make_app, monkeypatch):
    monkeypatch.setattr(served, "inbox_key", INBOX_KEY)
    return make_app(AUTH_DEV_INBOX="true")


@pytest.fixture
def client(app):
    """A browser that has opened the inbox."""
    client = app.test_client()
    client.set_cookie("latchkey_inbox", INBOX_KEY)
    return client


def test_workers_share_the_printed_key_even_after_a_reload(serve):
    with serve(AUTH_DEV_INBOX="true", AUTH_WORKERS="2") as (service, client):
        (path,) = re.findall(r"^Messages: http://localhost:8000(/\S+)$", service.text(), re.MULTILINE)
        assert {client.get(path).status_code for _ in range(20)} == {200}
        workers = set(children_of(service.process.pid))
        service.process.send_signal(signal.SIGHUP)
        wait_until(lambda: workers.isdisjoint(children_of(service.process.pid)))
        service.wait_until_healthy()
        assert {client.get(path).status_code for _ in range(20)} == {200}
        assert service.text().count(path) == 2
        assert client.get("/dev/inbox").status_code == 401
