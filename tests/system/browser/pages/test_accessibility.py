"""All pages in all their states in Chromium: accessible, at home on any screen, and within their CSP.

The fixture `page` collects complaints on the console.
"""

import os
import re
from collections.abc import Iterator
from functools import partial

import pytest

from tests.support.browser import Browser
from tests.support.deliverers import deliver_due
from tests.support.http_target import HttpTarget
from tests.support.openid import authorize_path, insert_client
from tests.support.page_clients import ChromiumPageClient
from tests.support.page_tour import ALICE, SETTINGS, TOUR, google
from tests.support.pictures import Pictures

pytest_plugins = ["tests.support.browser_fixtures"]

# The language with the longest words.
LONGEST = "de"
# A phone at night and a desktop by day; a fault in one shows in the others too.
SCREENS = ((320, 640, True), (1280, 900, False))
# Controls that the keyboard does not reach, or that show no ring when it does.
_WITHOUT_RING = """[...document.querySelectorAll("a, button, input, select, summary")].filter((each) => {
  if (each.disabled || each.type === "hidden" || each.ariaHidden === "true" || !each.checkVisibility()) return false;
  each.focus();
  return document.activeElement !== each || each.tabIndex || getComputedStyle(each).outlineStyle === "none";
}).map((each) => each.outerHTML)"""
# Buttons with a word that is broken because it does not fit on a line.
_BROKEN_BUTTONS = """[...document.querySelectorAll("button, .button")].filter((each) => {
  const words = document.createTreeWalker(each, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (words.nextNode()) for (const { index, 0: word } of words.currentNode.data.matchAll(/[\\w\u00c0-\u024f]+/g)) {
    range.setStart(words.currentNode, index);
    range.setEnd(words.currentNode, index + word.length);
    if (range.getClientRects().length > 1) return true;
  }
}).map((each) => each.innerText)"""
# Drawings with a part outside their box, which is cut off. Half a pixel of a stroke may be.
CUT_OFF = """[...document.querySelectorAll("svg")].filter((svg) => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("path, rect, circle, line, polyline, text")].some((each) => {
    const part = each.getBoundingClientRect();
    return part.left < box.left - 1 || part.top < box.top - 1 || part.right > box.right + 1 || part.bottom > box.bottom + 1;
  });
}).map((svg) => svg.outerHTML.slice(0, 200))"""

# Sections beside a column that is empty.
_NARROW_SECTIONS = """[...document.querySelectorAll("main.wide section")]
  .filter((each) => innerWidth >= 900 && each.offsetWidth < 400).map((each) => each.id)"""

# The positions of the heading and the field.
_POSITIONS = """[...document.querySelectorAll("h1, input:not([type=hidden])")]
  .map((each) => [each.innerText, each.getBoundingClientRect().top])"""


@pytest.fixture(scope="module")
def host() -> str:
    return "localhost"


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, str]]:
    with google() as provider:
        yield SETTINGS | provider.settings("google")


@pytest.fixture
def page_client(page, origin, started, site, service_role, outbox, database, make_app) -> ChromiumPageClient:
    deliver = partial(deliver_due, make_app(**SETTINGS).extensions["latchkey"])
    client = ChromiumPageClient(page, origin, site, service_role, outbox, database, deliver)
    (client.inbox,) = re.findall(rf"^Messages: {origin}(/\S+)$", started[0].text(), re.MULTILINE)
    return client


def problems(page: Browser) -> list[str]:
    """Return the violations that axe-core finds on a page, which has loaded it."""
    return page.run(
        "axe.run({resultTypes: ['violations']}).then((found) => found.violations.map((each) =>"
        " `${each.id}: ${each.nodes.map((node) => node.html).join(' ')}`))"
    )


def assert_accessible(page: Browser, name: str) -> None:
    for width, height, dark in SCREENS:
        page.resize(width, height, dark=dark)
        assert problems(page) == [], (name, width)
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), (name, width)
        assert page.run(CUT_OFF) == [], (name, width)
        assert page.run(_NARROW_SECTIONS) == [], name
    page.run("window.focused = document.activeElement")
    page.press("Tab")
    assert page.run(_WITHOUT_RING) == [], name
    page.run("document.activeElement.blur(); focused.focus()")


@pytest.mark.parametrize("part", TOUR, ids=lambda part: part.__name__)
def test_pages_are_accessible_and_fit_the_screen(page_client, page, part, axe):
    pictures = Pictures(page) if "PICTURES" in os.environ else None

    def check(name: str) -> None:
        if pictures:
            pictures.take(name)
        assert_accessible(page, name)

    page_client.check = check
    part(page_client)
    if pictures:
        pictures.save()


def test_page_that_leads_to_an_application_is_accessible_and_fits_the_screen(page_client, page, axe):
    page_client.person()
    page_client.sign_in()
    with HttpTarget() as application:
        # The browser stays on the page.
        application.status, application.body = 204, b""
        uri = f"{application.url}/{'callback' * 9}"
        client_id = insert_client(page_client.rows, uri)
        page_client.visit(authorize_path(client_id, redirect_uri=uri))
        page.click("Allow")
        page.wait(application.reached.is_set)
        page.speak(LONGEST)
        page_client.visit(authorize_path(client_id, redirect_uri=uri))
        page.wait(lambda: page.run("!!document.querySelector('[http-equiv=refresh]')"))
        assert_accessible(page, "leads to an application")
        page.resize(375, 740)
        assert page.run(_BROKEN_BUTTONS) == []
        application.reached.clear()
        page.click(page.run("document.querySelector('.button').innerText"))
        assert application.reached.wait(30)


@pytest.mark.parametrize("color", ["#2f5bd7", "#ffff00", "#000000"])
def test_links_have_a_contrast_of_four_and_a_half_with_any_brand_color(page, origin, color):
    page.open(f"{origin}/sign-in")
    page.run(f"document.documentElement.style.setProperty('--accent', '{color}')")
    # The luminance of the darkest background of the light scheme, and of the lightest of the dark one.
    for dark, background in ((False, 0.878), (True, 0.0168)):
        page.resize(1280, 900, dark=dark)
        link = page.run("getComputedStyle(document.querySelector('aside a')).color")
        _xyz, _x, luminance, _z = link.rstrip(")").split()
        darker, lighter = sorted((float(luminance), background))
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, link


def test_nothing_moves_above_the_error_of_a_code(page_client, page):
    page_client.person()
    page.speak(LONGEST)
    page_client.visit("/sign-in")
    page_client.press("sign-in/code", email=ALICE)
    page.run("window.scrollTo(0, 0)")
    before = {}
    for width in (375, 1280):
        page.resize(width, 1000)
        before[width] = page.run(_POSITIONS)
    page_client.press("sign-in/verify", code=page_client.outbox.last(ALICE).wrong_code)
    assert page.run("!!document.querySelector('[aria-invalid]')")
    page.run("window.scrollTo(0, 0)")
    for width, places in before.items():
        page.resize(width, 1000)
        assert page.run(_POSITIONS) == places, width


def test_wide_logo_stands_alone_and_a_long_name_has_two_lines(page, origin):
    page.open(f"{origin}/sign-in")
    page.resize(375, 740)
    page.run(
        "document.querySelector('.brand > :last-child').innerText = 'The Company of Forty Characters, Limited'"
    )
    for width, is_shown in ((32, True), (64, True), (66, False)):
        page.run(f"document.querySelector('.brand > :first-child').style.width = '{width}px'")
        name, brand = page.run(
            "['.brand > :last-child', '.brand'].map((each) =>"
            " { const box = document.querySelector(each).getBoundingClientRect(); return [box.top, box.bottom]; })"
        )
        assert (name[1] <= brand[1]) is is_shown, width
        assert not is_shown or name[1] - name[0] == 40


@pytest.mark.parametrize("part", TOUR, ids=lambda part: part.__name__)
def test_pages_work_without_javascript_and_fit_a_phone_with_the_longest_words(page_client, page, part):
    def check(name: str) -> None:
        # Wait, because the page may still be loading.
        page.wait(lambda: page.run("document.documentElement.scrollWidth <= innerWidth"))
        # Developers read English.
        is_for_users = not name.startswith("inbox")
        assert page.run("document.documentElement.lang") == (LONGEST if is_for_users else "en"), name
        page.run("document.querySelectorAll('button[hidden]').forEach((each) => { each.hidden = false; })")
        assert page.run(_BROKEN_BUTTONS) == [], name

    page.speak(LONGEST)
    page.resize(375, 740)
    page.without_script()
    page_client.language, page_client.check = LONGEST, check
    part(page_client)


@pytest.mark.parametrize("path", ["docs", "docs/settings", "docs?q=passkey"])
def test_docs_are_accessible_and_fit_the_screen(page, origin, axe, path):
    """One operation of each section, and a few schemas: axe-core takes long for all."""
    page.open(f"{origin}/{path}")
    page.run("document.querySelectorAll('section article:nth-of-type(n+3)').forEach((each) => each.remove())")
    page.run("document.querySelector('article .other')?.click()")
    for width, height, dark in SCREENS:
        page.resize(width, height, dark=dark)
        assert problems(page) == [], width
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), width
