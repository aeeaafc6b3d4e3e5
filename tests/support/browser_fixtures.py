"""Fixtures of the tests in a browser, which load this module as a plugin."""

from collections.abc import Iterator

import pytest

from tests.support.browser import Browser, opened
from tests.support.inbox import Post
from tests.support.processes import CHECKOUT, PATIENT_GUNICORN, Service, free_port
from tests.support.server import ServerClient
from tests.support.smtp_server import MailServer

AXE = CHECKOUT / "tests/system/clients/node_modules/axe-core/axe.min.js"


@pytest.fixture(scope="session")
def tab(tmp_path_factory) -> Iterator[Browser]:
    """A tab of Chromium. Tests are skipped without it."""
    with opened(tmp_path_factory.mktemp("chromium")) as tab:
        yield tab


@pytest.fixture(scope="session")
def second_tab(tmp_path_factory) -> Iterator[Browser]:
    """A tab of another browser, which shares no cookies with the first."""
    with opened(tmp_path_factory.mktemp("chromium")) as tab:
        yield tab


@pytest.fixture
def phone(second_tab) -> Iterator[Browser]:
    """Chromium on a phone, which speaks English."""
    second_tab.start_anew()
    second_tab.be_on_a_phone()
    yield second_tab
    second_tab.open("about:blank")
    assert [each for each in second_tab.complaints() if "status of 4" not in each] == []


@pytest.fixture(scope="module")
def host() -> str:
    """The host in the service's URLs. A module with passkeys needs a name, not an address."""
    return "127.0.0.1"


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    """A module's changes of the settings of its service."""
    return {}


@pytest.fixture(scope="module")
def mail_server() -> Iterator[MailServer]:
    """A mail server for modules whose settings name it."""
    with MailServer() as server:
        yield server


@pytest.fixture(scope="module")
def mailing(mail_server: MailServer) -> dict[str, str]:
    """The settings of a service that sends its mails to `mail_server`."""
    return {"AUTH_SMTP_URL": mail_server.url(), "AUTH_DELIVER": "true"}


@pytest.fixture
def post(mail_server: MailServer) -> Post:
    return Post(mail_server)


@pytest.fixture(scope="module")
def gunicorn() -> list[str]:
    """The command that runs a module's service."""
    return PATIENT_GUNICORN


@pytest.fixture(scope="module")
def started(
    tab, serve, host: str, settings: dict[str, str], gunicorn: list[str]
) -> Iterator[tuple[Service, ServerClient]]:
    """The service at an address that the browser can open; its other name is another origin."""
    port = free_port()
    changes = {
        "PORT": str(port),
        "AUTH_BASE_URL": f"http://{host}:{port}",
        "AUTH_REDIRECT_ALLOW_LIST": f"http://localhost:{port}/**,http://127.0.0.1:{port}/**",
        "AUTH_WORKERS": "1",
        "AUTH_BRAND_NAME": "Acme",
    }
    with serve(gunicorn, **changes | settings) as started:
        yield started


@pytest.fixture
def site(started, database, app) -> ServerClient:
    return started[1]


@pytest.fixture
def origin(site, host: str) -> str:
    """The origin of the service."""
    return f"http://{host}:{site.port}"


@pytest.fixture
def application(site) -> str:
    """The URL at which an application on another origin receives its code: an empty page."""
    return f"http://localhost:{site.port}/health"


@pytest.fixture
def page(tab, origin, request) -> Iterator[Browser]:
    """A browser that speaks English. Pages cause no console errors but those of refused forms."""
    tab.start_anew()
    tab.resize(360, 740)
    yield tab
    complaints = tab.complaints()
    # Requests of this page would reach the tables of the next test.
    tab.open("about:blank")
    accepted = ["status of 4", "Autofocus processing"]
    if "party" in request.fixturenames:
        # The browser may ask for an icon while the application stops, or once it has stopped.
        accepted += ["ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET"]
    assert [each for each in complaints if not any(text in each for text in accepted)] == []


@pytest.fixture
def axe(page) -> Iterator[None]:
    """axe-core, on each page that the test opens. `npm ci` in tests/system/clients installs it."""
    if not AXE.exists():
        pytest.skip("NOT TESTED: accessibility. It needs axe-core: npm ci in tests/system/clients")
    with page.on_each_page(AXE.read_text()):
        yield


@pytest.fixture
def authenticator(page) -> Iterator[str]:
    """Chromium's own authenticator, empty."""
    added = page.add_authenticator()
    yield added
    page.remove_authenticator(added)
