"""The HTML of the pages is valid, by html-validate."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from auth.core.settings import served
from auth.web.html.page import LANGUAGES
from tests.pages.test_walks import tour_all
from tests.support.deliverers import deliver_due
from tests.support.fake_provider import FakeProvider
from tests.support.page_clients import HttpPageClient
from tests.support.page_tour import SETTINGS, google

CLIENTS = Path(__file__).parents[2] / "clients"


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


@pytest.mark.parametrize("language", LANGUAGES)
def test_html_is_valid(page_client, database, language):
    if not (CLIENTS / "node_modules" / "html-validate").is_dir():
        pytest.skip("NOT TESTED: the HTML of the pages. It needs Node.js and npm: make test-browser")
    pages: dict[str, str] = {}
    page_client.check = lambda name: pages.update({name: page_client.visitor.page.text})
    page_client.speak(language)
    tour_all(page_client, database)
    for path in ("/docs/api", "/docs/settings", "/docs?q=passkey"):
        page_client.visit(path)
        page_client.check(path)
    node = shutil.which("node")
    assert node
    found = subprocess.run(
        [node, "validate.mjs"],
        cwd=CLIENTS,
        input=json.dumps(pages),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(found.stdout) == []
