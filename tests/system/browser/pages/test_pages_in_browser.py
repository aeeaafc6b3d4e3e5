"""The pages in a real browser: CSP, forms, redirects and the script, from the message to the last page.

Needs Chromium (Debian and Ubuntu: `apt-get install chromium`); skipped without it.
"""

import json
from urllib.parse import urlsplit

import pytest

from tests.support.cases import cases
from tests.support.links import path
from tests.support.processes import wait_until
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]
DAVE = {"email": "dave@example.com", "password": PASSWORD}
LONG_ADDRESS = "alexandra.konstantinopoulou-vandenberghe+newsletter@mail.department.example-university.org"


@pytest.fixture
def link(site, outbox, origin) -> str:
    site.post("/signup", json=DAVE)
    return origin + path("signup", outbox.last().token)


@pytest.fixture
def use(page):
    def use(link, text="You’re signed in."):
        page.open(link)
        page.click("Continue")
        page.wait_for(text)

    return use


def test_button_confirms_a_sign_up_once(page, origin, link, use, database):
    confirmed = "SELECT email_confirmed_at FROM users"
    page.open(link)
    assert database.value(confirmed) is None
    use(link.replace("/verify", "/auth/v1/verify"))
    assert page.url == f"{origin}/"
    assert database.value(confirmed) is not None
    assert page.run("document.title") == "You’re signed in."
    # The history does not lead back to the tokens either.
    page.go(-1)
    page.wait(lambda: "/verify" in page.url)
    page.go(1)
    page.wait(lambda: page.url == f"{origin}/")
    page.open(link)
    assert "This link no longer works" in page.text


def test_second_click_during_a_slow_response_is_harmless(page, link, database):
    # The browser cancels the first request, which spent the link, and shows the result of the second.
    page.open(link)
    with database.locked("users", database.value("SELECT id FROM users")):
        button = page.click("Continue")
        wait_until(database.waiting)
        page.hit(button)
    page.wait_for("You’re signed in.")


def test_browser_blocks_a_form_to_other_origins(page, site, link):
    page.open(link)
    page.run(f"document.forms[0].action = 'http://localhost:{site.port}/verify'")
    page.click("Continue")
    (complaint,) = wait_until(page.complaints, 30)
    assert "violates" in complaint
    assert "form-action" in complaint
    assert urlsplit(page.url).hostname == "127.0.0.1"


UNKNOWN_ERROR = "Something went wrong. Please try again."
NO_OUTCOME = "Your authentication service is ready."


@cases(
    ("fragment", "sentence"),
    [
        ("access_token=x&type=signup", "You’re signed in."),
        ("error=access_denied&error_code=otp_expired", "This link no longer works."),
        ("error=x&error_code=signed_in_not&error_description=Call+%2B1+555+0100", UNKNOWN_ERROR),
        ("error=x&error_code=%22%5D%3Cimg src=x onerror=alert(1)%3E", UNKNOWN_ERROR),
        ("message=Call+555&type=email_change", "Your new email address is confirmed."),
        ("message=Call+555&type=nonsense", NO_OUTCOME),
    ],
)
def test_outcome_of_a_link_is_shown_in_fixed_sentences(page, origin, fragment, sentence):
    page.open("about:blank")
    page.open(f"{origin}/#{fragment}")
    page.wait(lambda: page.url == f"{origin}/")
    page.wait_for(sentence)
    assert "555" not in page.text


def test_page_with_a_long_address_fits_a_phone_and_has_large_buttons(page, site, origin, outbox):
    site.post("/signup", json=DAVE | {"email": LONG_ADDRESS})
    page.resize(320, 720)
    page.open(origin + path("signup", outbox.last().token))
    parts = "[...document.querySelectorAll('main, main *')]"
    assert page.run(f"{parts}.every((part) => part.scrollWidth <= part.clientWidth || !part.clientWidth)")
    heights = (
        "[...document.querySelectorAll('main button')].map((each) => each.getBoundingClientRect().height)"
    )
    assert min(page.run(heights)) >= 44


def test_docs_try_a_request_with_the_token_of_the_one_before(page, origin, alice):
    def send(operation: str, **fields: str) -> str:
        article = f"document.getElementById('{operation}')"
        page.run(f"{article}.querySelector('.other').click()")
        for name, value in fields.items():
            page.run(f"{article}.querySelector('[name={name}]').value = {json.dumps(value)}")
        page.run(f"{article}.querySelector('.try button').click()")
        answer = f"{article}.querySelector('[role=status]').textContent"
        return page.wait(lambda: (status := page.run(answer)).startswith("Status") and status)

    page.open(f"{origin}/docs/api")
    body = json.dumps({"email": alice.email, "password": PASSWORD})
    assert send("token", body=body).startswith("Status 200")
    assert alice.email in send("get_user")
    assert send("guide", target="/nowhere").startswith("Status 404")
