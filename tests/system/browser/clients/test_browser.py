"""supabase-js in a browser, unmodified: examples/supabase_js, on another origin than the service.

Needs Chromium, and the packages of package.json, which `make test-browser` installs; skipped without them.
"""

import json
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Browser, fill
from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.local_server import Handler, LocalServer
from tests.support.processes import CHECKOUT, PATIENT_GUNICORN, free_port, wait_until
from tests.support.tables import Rows
from tests.support.users import DAVE, PASSWORD

CLIENTS = Path(__file__).parents[2] / "clients"
EXAMPLE = CHECKOUT / "examples" / "supabase_js"
pytest_plugins = ["tests.support.browser_fixtures"]
pytestmark = [
    pytest.mark.skipif(
        not (CLIENTS / "node_modules").is_dir(),
        reason="NOT TESTED: supabase-js in a browser. It needs Node.js and npm, then: make test-browser",
    ),
]


class Application(Handler, SimpleHTTPRequestHandler):
    """Serves the example, with the packages of tests/system/clients and the URL of the service under test."""

    service = ""
    flow = "pkce"

    def translate_path(self, path: str) -> str:
        base = CLIENTS if path.startswith("/node_modules/") else EXAMPLE
        return str(base / path.partition("?")[0].lstrip("/"))

    def do_GET(self) -> None:
        if self.path != "/app.js":
            return super().do_GET()
        script = (EXAMPLE / "app.js").read_text()
        for text, replacement in (("http://localhost:8000", self.service), ('"pkce"', f'"{self.flow}"')):
            assert text in script
            script = script.replace(text, replacement)
        self.reply(200, {"Content-Type": "text/javascript", "Cache-Control": "no-store"}, script.encode())


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    """The origin of the example, which is another site than that of the service."""
    with LocalServer(Application) as server:
        yield server.url.replace("127.0.0.1", "localhost")


@pytest.fixture(scope="module")
def service(tab, serve, origin) -> Iterator[Any]:
    port = free_port()
    Application.service = f"http://127.0.0.1:{port}"
    changes = {
        "PORT": str(port),
        "AUTH_BASE_URL": Application.service,
        "AUTH_REDIRECT_ALLOW_LIST": f"{origin}/**",
        "AUTH_WORKERS": "1",
        "AUTH_DEV_INBOX": "true",
        "AUTH_DELIVER": "true",
    }
    with serve(PATIENT_GUNICORN, **changes) as (service, _):
        yield service


@pytest.fixture
def page(request, tab, service, app, origin) -> Iterator[Browser]:
    """The example, signed out. Pages must not cause errors on the console."""
    Application.flow = getattr(request, "param", "pkce")
    tab.start_anew()
    tab.open(f"{origin}/index.html")
    tab.run("localStorage.clear()")
    tab.open(f"{origin}/index.html")
    tab.complaints()
    yield tab
    assert tab.complaints() == []


@pytest.fixture
def follow(page, service) -> Callable[..., None]:
    """Open the link of the newest mail, and press its button."""

    def follow() -> None:
        messages = wait_until(lambda: json.loads(service.get("/dev/inbox", apikey=SERVICE_ROLE_KEY)[1]))
        page.open(messages[0]["link"])
        page.click("Continue")

    return follow


def sign_out(page: Browser, database: Rows) -> None:
    page.click("Sign out")
    page.wait_for("Send me a link")
    # The page does not wait for the response.
    wait_until(lambda: database.count("sessions", "ended_at IS NULL") == 0)


def test_sign_up_with_pkce_survives_a_reload_and_a_refresh_until_the_sign_out(page, follow, origin, database):
    fill(page, email=DAVE, password=PASSWORD)
    page.click("Sign up")
    page.wait_for(f"We sent a mail to {DAVE}.")

    follow()
    page.wait_for(f"Signed in as {DAVE}")
    page.wait(lambda: page.url == f"{origin}/index.html")

    page.open(page.url)
    page.wait_for(f"Signed in as {DAVE}")
    before, after = page.run(
        """(async () => {
          const { data: { session } } = await auth.getSession();
          const { data: { session: refreshed } } = await auth.refreshSession();
          return [session.refresh_token, refreshed.refresh_token];
        })()"""
    )
    assert before != after

    sign_out(page, database)
    assert page.run("Object.keys(localStorage).filter((key) => key.endsWith('auth-token')).length") == 0


@pytest.mark.parametrize("page", ["pkce", "implicit"], indirect=True)
def test_magic_link_signs_in(page, follow, alice, origin):
    fill(page, email=alice.email)
    page.click("Send me a link")
    page.wait_for(f"We sent a mail to {alice.email}.")
    follow()
    page.wait_for(f"Signed in as {alice.email}")
    page.wait(lambda: page.url.rstrip("#") == f"{origin}/index.html")
    # The client verifies the token with the browser's own cryptography.
    assert page.run("auth.getClaims().then(({ data }) => data.claims.sub)") == alice.id


def test_link_of_a_mail_that_a_phone_opens_signs_the_phone_in_alone(page, phone, alice, service, database):
    fill(page, email=alice.email)
    page.click("Send me a link")
    page.wait_for(f"We sent a mail to {alice.email}.")
    (message,) = wait_until(lambda: json.loads(service.get("/dev/inbox", apikey=SERVICE_ROLE_KEY)[1]))
    phone.open(message["link"])
    phone.wait_for("with Chrome on Linux from 127.0.0.1, but not in this browser.")
    phone.click("Continue here")
    phone.wait_for("You’re signed in")
    params = json.dumps({"email": alice.email, "token": message["code"], "type": "email"})
    assert page.run(f"auth.verifyOtp({params}).then(({{ error }}) => error.code)") == "otp_expired"
    assert (database.count("authorization_codes"), database.count("sessions")) == (0, 1)
    assert [text for text in page.complaints() if "status of 403" not in text] == []
