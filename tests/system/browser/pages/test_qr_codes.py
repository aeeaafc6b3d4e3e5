"""QR codes as they reach the screen: whole, with their margin, in every size and scheme."""

from collections.abc import Iterator
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tests.support.http_target import HttpTarget
from tests.support.users import register
from tests.system.browser.pages.qr_codes import read
from tests.system.browser.pages.test_stories import signed_in

pytest_plugins = ["tests.support.browser_fixtures"]

BRAND = "Wohnungsgenossenschaft München-Schwabing & Söhne"
LONG = "maximiliane.von-der-heidt-oberhausen@customers.a-long-name-of-a-company.example.com"
# The width of the window, the zoom, and dark.
VIEWS = [(320, 1, False), (375, 2, True), (1280, 1, True)]
_INTO_SIGHT = "document.querySelector('.qr').scrollIntoView({ block: 'center', behavior: 'instant' })"
_URI = "document.querySelector('.hint a[href^=\"otpauth:\"]').getAttribute('href')"


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {"AUTH_BRAND_NAME": BRAND}


@pytest.fixture
def elsewhere() -> Iterator[HttpTarget]:
    """A page of another application."""
    with HttpTarget() as elsewhere:
        elsewhere.headers = {"Content-Type": "text/html"}
        yield elsewhere


def test_apps_qr_code_is_scanned_from_the_page_at_every_width_zoom_and_scheme(
    page, origin, client, service_role
):
    signed_in(page, origin, register(client, service_role, LONG))
    page.open(f"{origin}/account/two-step")
    page.click("Set it up")
    page.wait_for("Connect your app")
    uri = page.run(_URI)
    assert parse_qs(urlsplit(uri).query)["issuer"] == [BRAND]
    assert unquote(urlsplit(uri).path) == f"/{BRAND}:{LONG}"
    for width, zoom, dark in VIEWS:
        page.resize(width, 740, zoom=zoom, dark=dark)
        page.run(_INTO_SIGHT)
        assert read(page) == [uri], (width, zoom, dark)
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), (width, zoom)


# As an image with the prefix of supabase-js, and inline, with a width of the page or of the SVG.
@pytest.mark.parametrize(
    "markup",
    [
        "<img width=200 src='data:image/svg+xml;utf-8,{svg}'>",
        "<style>svg {{ height: auto; width: 250px }}</style>{svg}",
        "{svg}",
    ],
)
def test_qr_code_of_the_api_is_scanned_from_a_page_of_another_application(
    page, site, alice, elsewhere, markup
):
    response = alice.sign_in(client=site).post("/factors", json={"factor_type": "totp", "issuer": BRAND})
    assert response.status_code == 200, response.text
    totp = response.json["totp"]
    elsewhere.body = (
        f"<!doctype html><body style='background: #000'>{markup.format(svg=totp['qr_code'])}".encode()
    )
    page.open(elsewhere.url)
    assert read(page) == [totp["uri"]]
