"""QR codes and other pictures as they reach the screen: whole, with their margin, in every size and scheme."""

import io
from collections.abc import Iterator
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import segno

from tests.support.http_target import HttpTarget
from tests.support.users import register
from tests.system.browser.pages.qr_codes import read
from tests.system.browser.pages.test_stories import signed_in

pytest_plugins = ["tests.support.browser_fixtures"]

BRAND = "Wohnungsgenossenschaft München-Schwabing & Söhne"
SHORT = "ada@example.com"
LONG = "maximiliane.von-der-heidt-oberhausen@customers.a-long-name-of-a-company.example.com"
# The width of the window, the zoom, and dark.
VIEWS = [(375, 1, False), (375, 1, True), (375, 2, True), (320, 1, False), (1280, 1, True), (1280, 2, True)]
_INTO_SIGHT = "document.querySelector('.qr').scrollIntoView({ block: 'center', behavior: 'instant' })"
_URI = "document.querySelector('.hint a[href^=\"otpauth:\"]').getAttribute('href')"


def picture(text: str) -> str:
    """Return an SVG with a size and without a viewBox, as some drawing programs export it."""
    svg = io.BytesIO()
    segno.make(text, micro=False).save(svg, kind="svg", scale=10, light="white", xmldecl=False)
    assert b"viewBox" not in svg.getvalue()
    return svg.getvalue().decode()


@pytest.fixture(scope="module")
def settings(tmp_path_factory) -> dict[str, str]:
    logos = tmp_path_factory.mktemp("logos")
    for name in ("brand", "github"):
        (logos / f"{name}.svg").write_text(picture(name))
    return {
        "AUTH_BRAND_NAME": BRAND,
        "AUTH_BRAND_LOGO": str(logos / "brand.svg"),
        "AUTH_PROVIDER_GITHUB_CLIENT_ID": "logos",
        "AUTH_PROVIDER_GITHUB_CLIENT_SECRET": "a-secret-of-the-logos",
        "AUTH_PROVIDER_GITHUB_LOGO": str(logos / "github.svg"),
    }


@pytest.fixture
def elsewhere() -> Iterator[HttpTarget]:
    """A page of another application."""
    with HttpTarget() as elsewhere:
        elsewhere.headers = {"Content-Type": "text/html"}
        yield elsewhere


@pytest.mark.parametrize("email", [SHORT, LONG], ids=["short address", "long address"])
def test_apps_qr_code_is_scanned_from_the_page_at_every_width_zoom_and_scheme(
    page, here, client, service_role, email
):
    signed_in(page, here, register(client, service_role, email))
    page.open(f"{here}/account/two-step")
    page.click("Set it up")
    page.wait_for("Connect your app")
    uri = page.run(_URI)
    assert parse_qs(urlsplit(uri).query)["issuer"] == [BRAND]
    assert unquote(urlsplit(uri).path) == f"/{BRAND}:{email}"
    for width, zoom, dark in VIEWS:
        page.resize(width, 740, zoom=zoom, dark=dark)
        page.run(_INTO_SIGHT)
        assert [text for text in read(page) if text not in {"brand", "github"}] == [uri], (width, zoom, dark)
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), (width, zoom)


# With the prefix of supabase-js, and inline; with the size of the page, and of the SVG.
@pytest.mark.parametrize(
    "shown",
    [
        "<img width=200 src='data:image/svg+xml;utf-8,{svg}'>",
        "<img style='height: 250px; width: 250px' src='data:image/svg+xml;utf-8,{svg}'>",
        "<img src='data:image/svg+xml;utf-8,{svg}'>",
        "<style>svg {{ height: auto; width: 250px }}</style>{svg}",
        "<style>svg {{ height: 250px; width: 250px }}</style>{svg}",
        "{svg}",
    ],
)
def test_qr_code_of_the_api_is_scanned_from_a_page_of_another_application(
    page, site, alice, elsewhere, shown
):
    response = alice.sign_in(client=site).post("/factors", json={"factor_type": "totp", "issuer": BRAND})
    assert response.status_code == 200, response.text
    totp = response.json["totp"]
    elsewhere.body = (
        f"<!doctype html><body style='background: #000'>{shown.format(svg=totp['qr_code'])}".encode()
    )
    page.open(elsewhere.url)
    assert read(page) == [totp["uri"]]


def test_logos_without_a_viewbox_are_shown_whole(page, here):
    page.open(f"{here}/sign-in")
    # As sharp as it takes to read a logo of 18 pixels.
    page.resize(1600, 4800, zoom=4)
    assert sorted(read(page)) == ["brand", "github"]
