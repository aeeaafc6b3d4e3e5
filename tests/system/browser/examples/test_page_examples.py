"""The applications of examples/website in Chromium, on another origin than the pages that sign their users in."""

import os
import sys
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler
from typing import Any

import pytest

from tests.support.browser import Browser, fill
from tests.support.links import CHALLENGE, SITE
from tests.support.local_server import Handler, LocalServer
from tests.support.pages import Visitor
from tests.support.processes import CHECKOUT, free_port
from tests.support.relying_parties import running, sign_in
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]

EXAMPLES = CHECKOUT / "examples" / "website"
DAVE = "dave@example.com"


class WithoutBackend(Handler, SimpleHTTPRequestHandler):
    """Serves examples/website/javascript, with the URL of the service under test."""

    service = ""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args, directory=str(EXAMPLES / "javascript"))

    def do_GET(self) -> None:
        if self.path != "/app.js":
            return super().do_GET()
        script = (EXAMPLES / "javascript" / "app.js").read_text()
        assert "http://localhost:8000" in script
        script = script.replace("http://localhost:8000", self.service)
        self.reply(200, {"Content-Type": "text/javascript"}, script.encode())


@pytest.fixture(scope="module")
def without_backend() -> Iterator[str]:
    with LocalServer(WithoutBackend) as server:
        yield server.url.replace("127.0.0.1", "localhost")


@pytest.fixture(scope="module")
def backend_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def settings(mailing, without_backend, backend_port) -> dict[str, str]:
    return mailing | {
        "AUTH_SITE_URL": f"http://localhost:{backend_port}",
        "AUTH_REDIRECT_ALLOW_LIST": without_backend,
        # Shorter than the rest of a lifetime at which the applications refresh, so that each visit refreshes.
        "AUTH_ACCESS_TOKEN_LIFETIME": "30",
    }


@pytest.fixture(scope="module")
def with_backend(started, backend_port, tmp_path_factory) -> Iterator[str]:
    url, (_, client) = f"http://localhost:{backend_port}", started
    command = [sys.executable, "-m", "flask", "--app", "app", "run", "--port", str(backend_port)]
    environment = {"PATH": os.environ["PATH"], "LATCHKEY_URL": f"http://127.0.0.1:{client.port}"}
    output = tmp_path_factory.mktemp("example") / "output"
    with running(command, url, output, EXAMPLES / "flask", **environment):
        yield url


@pytest.fixture(params=["with_backend", "without_backend"])
def home(request, page, origin) -> str:
    """The home page of an application, signed out."""
    WithoutBackend.service = origin
    home = request.getfixturevalue(request.param) + "/"
    page.open(home)
    page.run("localStorage.clear()")
    page.open(home)
    return home


@pytest.fixture
def signed_in(page, home, alice) -> Browser:
    page.click("Sign in")
    sign_in(page, alice)
    page.wait_for(f"Signed in as {alice.email}")
    page.wait(lambda: page.url == home)
    return page


def wait_until_signed_out(page: Browser, home: str) -> None:
    page.wait(lambda: page.url == home and "Create an account" in page.text)
    assert "Signed in as" not in page.text


def test_user_stays_signed_in_until_the_sign_out_which_ends_both_sessions(signed_in, home, origin, database):
    before = database.value("SELECT counter FROM sessions WHERE opened_by IS NOT NULL")
    signed_in.open(home)
    signed_in.wait_for("Signed in as")
    assert database.value("SELECT counter FROM sessions WHERE opened_by IS NOT NULL") > before

    signed_in.click("Sign out")
    signed_in.wait_for("asks to sign you out")
    assert database.count("sessions", "opened_by IS NOT NULL AND ended_at IS NULL") == 0
    signed_in.click("Sign out")
    wait_until_signed_out(signed_in, home)
    assert database.count("sessions", "ended_at IS NULL") == 0
    signed_in.open(f"{origin}/account")
    signed_in.wait_for("Forgot password?")


def test_link_opened_in_this_browser_leads_back_signed_in(page, home, post):
    page.click("Create an account")
    page.wait_for("Create your account")
    fill(page, email=DAVE, password=PASSWORD)
    page.click("Create account")
    page.wait_for("Check your inbox")
    page.open(post.read(DAVE, "Confirm your email").link)
    page.click("Continue")
    page.wait_for(f"Signed in as {DAVE}")
    page.wait(lambda: page.url == home)


def test_code_of_another_browser_signs_nobody_in(page, home, without_backend, app, alice):
    """Otherwise an attacker could sign a victim in as the attacker."""
    callback = home if home.startswith(without_backend) else f"{home}callback"
    attacker = Visitor(app).with_session_of(alice)
    for has_begun in (False, True):
        attacker.visit(f"/sign-in?redirect_to={SITE}/health&code_challenge={CHALLENGE}")
        code = attacker.press("sign-in/continue").url.partition("?code=")[2]
        if has_begun:
            page.click("Sign in")
            page.wait_for("Forgot password?")
        assert len(code) > 20
        page.open(f"{callback}?code={code}")
        wait_until_signed_out(page, home)
