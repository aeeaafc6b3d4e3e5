"""Signing in with a real OpenID provider (django-oauth-toolkit) in a real browser."""

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from tests.support import oidc_provider
from tests.support.browser import fill
from tests.support.links import CHALLENGE
from tests.support.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider
from tests.support.processes import free_port
from tests.system.browser.pages.test_stories import traded

pytest_plugins = ["tests.support.browser_fixtures"]


@pytest.fixture(scope="module")
def host() -> str:
    return "localhost"


@pytest.fixture(scope="module")
def settings(host: str, tmp_path_factory) -> Iterator[dict[str, str]]:
    port = free_port()
    redirect_uri = f"http://{host}:{port}/providers/django/callback"
    with OidcProvider(tmp_path_factory.mktemp("provider"), redirect_uri) as provider:
        yield {
            "PORT": str(port),
            "AUTH_BASE_URL": f"http://{host}:{port}",
            "AUTH_REDIRECT_ALLOW_LIST": f"http://127.0.0.1:{port}/**",
            "AUTH_PROVIDER_DJANGO_ISSUER": provider.issuer,
            "AUTH_PROVIDER_DJANGO_CLIENT_ID": CLIENT_ID,
            "AUTH_PROVIDER_DJANGO_CLIENT_SECRET": CLIENT_SECRET,
        }


def test_provider_signs_in_for_an_application_and_then_for_the_account(page, site, origin):
    application = f"http://127.0.0.1:{site.port}/health"
    query = urlencode({"redirect_to": application, "code_challenge": CHALLENGE})
    page.open(f"{origin}/sign-in?{query}")
    page.click("Continue with django")
    page.wait_for("Username")
    fill(page, username="dave", password=oidc_provider.PASSWORD)
    page.click("Log in")
    page.wait_for("Authorize Latchkey?")
    # Its page asks another host for a style sheet.
    page.complaints()
    page.click_on("document.querySelector('input[value=Authorize]')")
    assert traded(site, page, application)["user"]["email"] == "dave@example.com"
    page.open(f"{origin}/sign-in")
    page.wait_for("Your account")
    assert "dave@example.com" in page.text
    assert "Disconnect django" in " ".join(page.text.split())
