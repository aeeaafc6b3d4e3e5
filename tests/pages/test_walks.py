"""All pages in all their states, by HTTP: every form works without JavaScript, and the HTML is valid.

html-validate, which has the rules of the W3C's checker, is installed by `npm ci` in tests/clients.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from auth.core.settings import served
from auth.web.html.page import LANGUAGES
from tests.support.contract import page_routes
from tests.support.deliverers import deliver_due
from tests.support.fake_provider import FakeProvider
from tests.support.page_clients import HttpPageClient
from tests.support.page_tour import NEW, SETTINGS, TOUR, google
from tests.support.user_agent import Page
from tests.support.users import PASSWORD

CLIENTS = Path(__file__).parents[1] / "clients"
# The script sends the responses of an authenticator, and asks whether a link is used or a password common; a
# download and a redirect are not pages.
APART = {
    *(("post", "/waiting/state"), ("post", "/account/email/waiting/state")),
    *(("post", "/account/passkeys"), ("post", "/second-step/key"), ("post", "/new-password/common")),
    *(("get", "/account/data"), ("get", "/.well-known/change-password")),
}

# The only forms that are answered by a page instead of a redirect, but for those that lead to another website by the
# page LEAVING. Refused forms show their page again.
LEAVING = '<meta http-equiv="refresh"'
ANSWERED_BY_A_PAGE = {
    "/account/api-keys": "shows a secret once",
    "/account/recovery-codes": "shows secrets once",
    "/account/two-step/verify": "shows recovery codes once",
    "/sign-in/passkey": "shows a challenge, which works once",
    "/account/passkeys/new": "shows a challenge, which works once",
}


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


def tour_all(page_client: HttpPageClient, database) -> None:
    for part in TOUR:
        database.empty()
        page_client.forget()
        part(page_client)


def check_headers(name: str, page: Page) -> None:
    """Check that the page runs only our files, cannot be framed, and does not leak its URL."""
    policy = page.headers["Content-Security-Policy"]
    for directive in ("default-src 'none'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert directive in policy, name
    assert "unsafe" not in policy, name
    assert page.headers["Referrer-Policy"] == "no-referrer", name
    assert page.headers["Cache-Control"] == "no-store", name
    assert PASSWORD not in page.text, name


def check_way_out(name: str, page: Page) -> None:
    """Check that a page of the account, if it shows a form, has a way to sign out."""
    targets = {form.action.rpartition("../")[2] for form in page.forms} - {"preferences"}
    if targets and urlsplit(page.url).path.startswith(("/account", "/new-password", "/join")):
        assert "sign-out" in targets, name


def test_every_form_works_without_javascript(page_client, database, app):
    def check(name: str) -> None:
        check_headers(name, page_client.visitor.page)
        check_way_out(name, page_client.visitor.page)

    page_client.check = check
    tour_all(page_client, database)
    secrets = (PASSWORD, NEW, "form_token", "access_token=")
    assert not [url for _, url, _ in page_client.visitor.requests if any(secret in url for secret in secrets)]
    answers = page_client.visitor.answers
    shown = {
        path
        for method, path, status, text in answers
        if (method, status) == ("POST", 200) and LEAVING not in text
    }
    # The page of a link belongs to the API, and is shown without the pages too.
    assert shown - {"/verify"} == ANSWERED_BY_A_PAGE.keys()
    visited = {(method.lower(), urlsplit(url).path) for method, url, _headers in page_client.visitor.requests}
    routes = {(method, path) for method, path, _view in page_routes(app) if not path.startswith("/brand")}
    assert routes - visited - APART == set()


@pytest.mark.browser
@pytest.mark.parametrize("language", LANGUAGES)
def test_html_is_valid(page_client, database, language):
    if not (CLIENTS / "node_modules" / "html-validate").is_dir():
        pytest.skip("NOT TESTED: the HTML of the pages. It needs Node.js and npm: make test-browser")
    pages: dict[str, str] = {}
    page_client.check = lambda name: pages.update({name: page_client.visitor.page.text})
    page_client.speak(language)
    tour_all(page_client, database)
    for path in ("/docs", "/docs/settings", "/docs?q=passkey"):
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
