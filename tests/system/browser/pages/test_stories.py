"""Whole stories in a real browser, with a real mail server, from the mail to the last page."""

from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.support.browser import Browser, fill
from tests.support.factors import App, set_up
from tests.support.links import CHALLENGE, VERIFIER
from tests.support.users import DAVE, PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]


@pytest.fixture(scope="module")
def settings(mailing: dict[str, str]) -> dict[str, str]:
    return mailing


@pytest.fixture
def ask(page, origin, application, post):
    """Ask for a mail on a page, as an application's user, and return the mail."""

    def ask(path: str, button: str, subject: str, **fields: str):
        page.open(f"{origin}/{path}?{urlencode({'redirect_to': application, 'code_challenge': CHALLENGE})}")
        fill(page, **fields)
        page.click(button)
        page.wait_for("Check your inbox")
        return post.read(fields["email"], subject)

    return ask


def signed_in(page: Browser, origin: str, person, password: str = PASSWORD) -> None:
    page.open(f"{origin}/sign-in")
    fill(page, email=person.email, password=password)
    page.click("Sign in")
    page.wait_for("Your account")


def signed_in_with_new_passkey(page: Browser, origin: str, person, prepare=lambda: None) -> None:
    """Let a person add a passkey of the browser's authenticator on their account, and sign in with it."""
    signed_in(page, origin, person)
    prepare()
    page.click("Add a passkey")
    page.wait_for("Create a passkey")
    page.click("Create a passkey")
    page.wait_for("The passkey has been added.")


def traded(site, page: Browser, application: str) -> dict:
    """Wait until the browser is back at the application, and trade its code."""
    page.wait(lambda: page.url.startswith(f"{application}?code="))
    code = parse_qs(urlsplit(page.url).query)["code"][0]
    body = {"auth_code": code, "code_verifier": VERIFIER}
    response = site.post("/token?grant_type=pkce", json=body)
    assert response.status_code == 200, response.text
    return response.json


def test_sign_up_by_code_leads_back_to_the_application(page, site, ask, application):
    mail = ask("sign-up", "Create account", "Confirm your email", email=DAVE, password=PASSWORD)
    fill(page, code=mail.wrong_code)
    page.click("Continue")
    page.wait_for("This code is wrong")
    # A typed code submits itself.
    page.run(
        f"(field => {{ field.value = '{mail.code}'; field.dispatchEvent(new Event('input')) }})(document.querySelector('.code'))"
    )
    assert traded(site, page, application)["user"]["email"] == DAVE
    page.open("about:blank")
    page.open(mail.link)
    page.wait_for("Try signing in: your email address may already be confirmed.")


def test_rules_of_a_password_are_ticked_off_and_a_common_one_is_named_when_the_field_is_left(page, origin):
    met_rules = "[...document.querySelectorAll('.met')].map((each) => each.dataset.rule)"
    page.open(f"{origin}/sign-up")
    assert page.run("document.querySelector('.lead').offsetHeight") == 0
    for typed, rules in (("summer", ["lowercase"]), ("-2026", ["length", "lowercase", "numbers", "symbols"])):
        page.run("document.querySelector('[name=password]').focus()")
        page.type(typed)
        assert page.run(met_rules) == rules
    page.press("Tab")
    page.wait_for("are easy to guess, even with numbers and symbols.")
    assert page.run("document.querySelector('[name=password]').matches('[aria-invalid]')")
    page.run("document.querySelector('[name=password]').focus()")
    page.type("-Trombone")
    page.press("Tab")
    # The sentence keeps its place, so that the button does not move under a click.
    is_hidden = "getComputedStyle(document.querySelector('.field .wrong')).visibility === 'hidden'"
    page.wait(lambda: page.run(is_hidden))
    assert len(page.run(met_rules)) == 5


def test_password_that_lacks_a_rule_is_kept_and_the_rule_is_named(page, origin):
    page.open(f"{origin}/sign-up")
    fill(page, email=DAVE)
    page.run("document.querySelector('[name=password]').focus()")
    page.type("summer")
    page.press("Enter")
    unmet = "[...document.querySelectorAll('.unmet')].map((each) => each.dataset.rule)"
    assert page.run(unmet) == ["length", "uppercase", "numbers", "symbols"]
    field = "document.querySelector('[name=password]')"
    state = f"[{field}.value, {field}.matches(':focus[aria-invalid]'), location.pathname]"
    assert page.run(state) == ["summer", True, "/sign-up"]
    assert page.run("document.querySelectorAll('[aria-busy]').length") == 0
    page.type("-Trombone-9")
    assert page.run(unmet) == []
    page.press("Enter")
    page.wait_for("Check your inbox")


def test_waiting_tab_notices_the_link_in_another_tab_of_its_browser(page, site, application, alice, ask):
    link = ask("sign-in", "Send me a code instead", "Sign in to", email=alice.email).link
    polls = "performance.getEntriesByType('resource').some((each) => each.name.endsWith('/waiting/state'))"
    page.wait(lambda: page.run(polls))
    # Send the requests of another tab, with the same cookies.
    page.run(
        f"""(async () => {{
          const page = await (await fetch({link!r})).text();
          const form = new DOMParser().parseFromString(page, "text/html").querySelector("main form");
          const body = new URLSearchParams(new FormData(form));
          await fetch("/verify", {{ method: "POST", body, redirect: "manual" }});
        }})()"""
    )
    page.wait_for(f"Continue as {alice.email}")
    assert page.complaints() == []
    page.click(f"Continue as {alice.email}")
    assert traded(site, page, application)["user"]["email"] == alice.email


def test_sign_in_and_second_step_work_by_keyboard(page, origin, alice):
    app, _session = set_up(alice.open_session())
    page.open(f"{origin}/sign-in")
    page.type(alice.email)
    page.press("Tab")
    page.type(PASSWORD)
    for button in ("Show", "Sign in"):
        page.press("Tab")
        assert page.run("document.activeElement.innerText") == button
    assert page.run("getComputedStyle(document.activeElement).outlineWidth") == "2px"
    page.press("Enter")
    page.wait_for("One more step")
    page.type(app.wrong_code())
    page.wait_for("That code is wrong.")
    # The field has the focus again.
    page.type(app.code())
    page.wait_for("Your account")


def test_first_app_comes_with_recovery_codes_as_a_file(page, origin, alice, tmp_path):
    signed_in(page, origin, alice)
    page.open(f"{origin}/account/two-step")
    page.click("Set it up")
    page.wait_for("Connect your app")
    app = App("", page.run("document.querySelector('code').textContent").replace(" ", ""))
    page.type(app.wrong_code())
    page.wait_for("That code is wrong.")
    page.type(app.code())
    page.wait_for("Save your recovery codes")
    codes = page.run("[...document.querySelectorAll('.codes li')].map((each) => each.innerText)")
    assert page.run("document.querySelector('[data-copy]').dataset.copy").split() == codes
    page.run(
        "navigator.clipboard.writeText = async (text) => { window.copied = text; }; window.print = () => { window.printed = true; }"
    )
    page.click("Copy")
    page.wait_for("Copied")
    page.click("Print")
    page.wait(lambda: page.run("window.printed"))
    assert page.run("copied.split('\\n')") == codes
    page.download_to(tmp_path)
    page.click("Download")
    file = tmp_path / "recovery-codes.txt"
    head, *lines = page.wait(lambda: file.exists() and file.read_text()).splitlines()
    assert head.startswith("Recovery codes for alice@example.com at ")
    assert (head.endswith(". Each works once."), lines) == (True, ["", *codes])
    page.click("I’ve saved them")
    page.wait_for("10 left")


def test_form_is_sent_once(page, origin):
    page.open(f"{origin}/forgot-password")
    page.run(
        """
        window.refused = [];
        addEventListener("submit", (event) => { refused.push(event.defaultPrevented); event.preventDefault(); });
        document.forms[0].noValidate = true;
        document.forms[0].requestSubmit();
        document.forms[0].requestSubmit();
        """
    )
    assert page.run("refused") == [False, True]
