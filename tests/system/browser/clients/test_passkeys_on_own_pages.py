"""A passkey that the browser makes by itself on an application's own page, after a sign-in by supabase-js.

Needs what test_browser.py needs.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browser import Browser, fill
from tests.support.guides import Guide
from tests.support.local_server import LocalServer
from tests.support.processes import PATIENT_GUNICORN, free_port
from tests.support.users import PASSWORD
from tests.system.browser.clients.test_browser import CLIENTS, Application
from tests.system.browser.pages.test_passkey_offer_stories import MANAGER

pytest_plugins = ["tests.support.browser_fixtures"]
pytestmark = [
    pytest.mark.skipif(
        not (CLIENTS / "node_modules").is_dir(),
        reason="NOT TESTED: passkeys on own pages. They need Node.js and npm, then: make test-browser",
    ),
]
# The code of docs/factors.md, after `json` as that page has it.
MAKE = """(async () => {{
  const {{ data }} = await auth.getSession();
  const headers = {{ "Content-Type": "application/json", Authorization: `Bearer ${{data.session.access_token}}` }};
  const abort = new AbortController();
  {json}
  {make}
}})()""".format(
    json=Guide("factors.md").block('"/passkeys/authentication/options"').text.splitlines()[0],
    make=Guide("factors.md").block("conditionalCreate").text,
)
STATUSES = "auth.passkey.list().then(({ data }) => data.map(({ status }) => status))"


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    """The origin of the application's pages, whose host is the domain of the passkeys."""
    with LocalServer(Application) as server:
        yield server.url.replace("127.0.0.1", "localhost")


@pytest.fixture(scope="module")
def service(tab, serve, origin) -> Iterator[Any]:
    port = free_port()
    Application.service = f"http://localhost:{port}"
    changes = {
        "PORT": str(port),
        "AUTH_BASE_URL": Application.service,
        "AUTH_WEBAUTHN_ORIGINS": origin,
        "AUTH_WORKERS": "1",
    }
    with serve(PATIENT_GUNICORN, **changes) as (service, _):
        yield service


@pytest.fixture
def page(tab, service, app, origin, alice) -> Iterator[Browser]:
    """The application's page, on which Alice has signed in with her password."""
    Application.flow = "pkce"
    tab.start_anew()
    tab.open(f"{origin}/index.html")
    tab.run("localStorage.clear()")
    yield tab
    assert [text for text in tab.complaints() if "status of 4" not in text] == []
    tab.open("about:blank")


def sign_in(page: Browser, origin: str, email: str) -> None:
    page.open(f"{origin}/index.html")
    fill(page, email=email, password=PASSWORD)
    page.click("Sign in")
    page.wait_for(f"Signed in as {email}")


def make(page: Browser, service: Any) -> None:
    page.run(MAKE.replace("fetch(path,", f'fetch("http://localhost:{service.port}" + path,'))


def test_browser_makes_a_passkey_after_the_password_and_its_first_use_makes_it_a_factor(
    page, origin, service, alice, authenticator, database
):
    with page.on_each_page(MANAGER):
        sign_in(page, origin, alice.email)
        make(page, service)
        assert page.run(STATUSES) == ["unverified"]
        assert len(page.kept_credentials(authenticator)) == 1
        assert (
            page.run("auth.mfa.getAuthenticatorAssuranceLevel().then(({ data }) => data.currentLevel)")
            == "aal1"
        )
        page.click("Sign out")
        page.wait_for("Send me a link")
        page.run("auth.signInWithPasskey().then(() => null)")
        page.wait_for(f"Signed in as {alice.email}")
        assert page.run(STATUSES) == ["verified"]
        assert (
            page.run("auth.mfa.getAuthenticatorAssuranceLevel().then(({ data }) => data.currentLevel)")
            == "aal2"
        )
    assert database.count("factors", "verified_at IS NOT NULL") == 1


def test_browser_without_a_password_manager_makes_nothing_and_the_page_goes_on(
    page, origin, service, alice, authenticator, database
):
    sign_in(page, origin, alice.email)
    page.run("PublicKeyCredential.getClientCapabilities = async () => ({ conditionalCreate: false })")
    make(page, service)
    assert page.kept_credentials(authenticator) == []
    assert database.count("factor_challenges") == 0
