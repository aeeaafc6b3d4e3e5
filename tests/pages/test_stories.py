"""Whole stories in a real browser, with a real mail server, from the mail to the last page."""

from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.support.browser import Browser, fill
from tests.support.cast import PASSWORD
from tests.support.factors import App, set_up
from tests.support.links import CHALLENGE, VERIFIER

pytestmark = pytest.mark.browser
pytest_plugins = ["tests.support.browser_fixtures"]

DAVE, NEW_PASSWORD = "dave@example.com", "Fresh-Horse-2"


@pytest.fixture(scope="module")
def settings(mailing: dict[str, str]) -> dict[str, str]:
    return mailing


def signed_in(page: Browser, here: str, person, password: str = PASSWORD) -> None:
    page.open(f"{here}/sign-in")
    fill(page, email=person.email, password=password)
    page.click("Sign in")
    page.wait_for("Your account")


def signed_in_with_new_passkey(page: Browser, here: str, person, prepare=lambda: None) -> None:
    """Let a person add a passkey of the browser's authenticator on their account, and sign in with it."""
    signed_in(page, here, person)
    prepare()
    page.click("Add Passkey")
    page.wait_for("Add a passkey")
    page.click("Create a passkey")
    page.wait_for("One more step")
    page.click("Sign in with a passkey")
    page.wait_for("Your account")


def shown_app(page: Browser) -> App:
    """Return an app with the secret that the page shows."""
    return App("", page.run("document.querySelector('code').textContent").replace(" ", ""))


def traded(site, page: Browser, application: str) -> dict:
    """Wait until the browser is back at the application, and trade its code."""
    page.wait(lambda: page.url.startswith(f"{application}?code="))
    code = parse_qs(urlsplit(page.url).query)["code"][0]
    body = {"auth_code": code, "code_verifier": VERIFIER}
    response = site.post("/token?grant_type=pkce", json=body)
    assert response.status_code == 200, response.text
    return response.json


def sign_up_for(page: Browser, here: str, application: str) -> None:
    """Open the page that an application sends its user to."""
    query = urlencode({"redirect_to": application, "code_challenge": CHALLENGE})
    page.open(f"{here}/sign-up?{query}")


def test_sign_up_by_code_leads_back_to_the_application(page, site, here, post, application):
    sign_up_for(page, here, application)
    fill(page, email=DAVE, password="Ab-1")
    page.click("Create account")
    page.wait_for("too short")
    page.wait(lambda: page.run("document.activeElement.name") == "password")
    fill(page, password=PASSWORD)
    page.click("Create account")
    page.wait_for("Check your inbox")
    sent = post.read(DAVE, "Confirm your email address")
    fill(page, code=sent.wrong_code)
    page.click("Continue")
    page.wait_for("This code is wrong")
    # A typed code submits itself.
    page.run(
        f"(field => {{ field.value = '{sent.code}'; field.dispatchEvent(new Event('input')) }})(document.querySelector('.code'))"
    )
    assert traded(site, page, application)["user"]["email"] == DAVE
    page.open("about:blank")
    page.open(sent.link)
    page.wait_for("Try to sign in: your email address may already be confirmed.")


def test_sign_up_by_link_leads_back_to_the_application(page, site, here, post, application):
    sign_up_for(page, here, application)
    fill(page, email=DAVE, password=PASSWORD)
    page.click("Create account")
    page.wait_for("Check your inbox")
    page.open(post.read(DAVE, "Confirm your email address").link)
    page.click("Continue")
    assert traded(site, page, application)["user"]["email"] == DAVE


def test_forgotten_password_is_replaced_by_the_link(page, here, alice, post):
    page.open(f"{here}/sign-in")
    page.click("Forgot password?")
    page.wait_for("Forgot your password?")
    fill(page, email=alice.email)
    page.click("Send code")
    page.wait_for("Check your inbox")
    link = post.read(alice.email, "Reset your password").link
    page.open(link)
    page.click("Continue")
    page.wait_for("Other devices will be signed out.")
    fill(page, password=PASSWORD)
    page.click("Save password")
    page.wait_for("This is your current password.")
    fill(page, password=NEW_PASSWORD)
    page.click("Save password")
    page.wait_for("Your password is saved.")
    page.open(link)
    page.wait_for("This link no longer works")
    assert alice.try_to_sign_in(NEW_PASSWORD).status_code == 200


def test_invitation_leads_to_a_password(page, site, service_role, post):
    site.post("/admin/invite", json={"email": DAVE}, headers=service_role)
    page.open(post.read(DAVE, "You have been invited to Acme").link)
    page.click("Continue")
    page.wait_for("Other devices will be signed out.")
    fill(page, password=NEW_PASSWORD)
    page.click("Save password")
    page.wait_for("Your password is saved.")


def test_another_session_is_ended_and_the_account_deleted(page, site, here, alice, database):
    laptop = alice.sign_in(client=site)
    signed_in(page, here, alice)
    page.click("Sign out everywhere else")
    page.wait_for("All other devices are signed out.")
    assert laptop.get("/user").status_code == 401
    page.open(f"{here}/account/delete")
    page.click("Delete account")
    # The browser itself insists on the tick.
    page.wait(lambda: page.run("document.activeElement.name") == "confirmed")
    page.run("document.activeElement.click()")
    page.click("Delete account")
    page.wait_for("Your account is deleted")
    assert database.count("users") == 0


def test_second_step_and_pages_work_without_javascript(page, site, here, alice):
    app, _session = set_up(alice.sign_in(client=site))
    page.without_script()
    page.open(f"{here}/sign-in")
    fill(page, email=alice.email, password="Wrong-Horse-1")
    page.click("Sign in")
    page.wait_for("match")
    fill(page, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("One more step")
    fill(page, code=app.wrong_code())
    page.click("Continue")
    page.wait_for("That code is wrong.")
    fill(page, code=app.code())
    page.click("Continue")
    page.wait_for("Your account")
    page.click("Sign out")
    page.wait_for("You are signed out")


def test_sign_in_and_second_step_work_by_keyboard(page, here, alice):
    app, _session = set_up(alice.open_session())
    page.open(f"{here}/sign-in")
    page.type(alice.email)
    page.press("Tab")
    page.type(PASSWORD)
    page.press("Tab")
    assert page.run("document.activeElement.innerText") == "Show"
    page.press("Tab")
    assert page.run("document.activeElement.innerText") == "Forgot password?"
    page.press("Tab")
    assert page.run("document.activeElement.innerText") == "Sign in"
    assert page.run("getComputedStyle(document.activeElement).outlineWidth") == "2px"
    page.press("Enter")
    page.wait_for("One more step")
    page.type(app.wrong_code())
    page.wait_for("That code is wrong.")
    # The field has the focus again.
    page.type(app.code())
    page.wait_for("Your account")


def test_first_app_comes_with_recovery_codes_as_a_file(page, here, alice, tmp_path):
    signed_in(page, here, alice)
    page.open(f"{here}/account/two-step")
    page.click("Set it up")
    page.wait_for("Connect your app")
    app = shown_app(page)
    page.type(app.wrong_code())
    page.wait_for("That code is wrong.")
    page.type(app.code())
    page.wait_for("Keep these recovery codes")
    codes = page.run("[...document.querySelectorAll('.codes li')].map((each) => each.innerText)")
    page.download_to(tmp_path)
    page.click("Download")
    file = tmp_path / "recovery-codes.txt"
    assert page.wait(lambda: file.exists() and file.read_text()).split() == codes
    page.click("I have saved them")
    page.wait_for("10 left")
    assert "Authenticator app Added just now" in " ".join(page.text.split())


def test_language_and_theme_are_remembered(page, here):
    page.open(f"{here}/sign-in")
    page.run("document.querySelector('footer summary').click()")
    page.click("Deutsch")
    page.wait_for("Anmelden")
    page.run("document.querySelectorAll('footer summary')[1].click()")
    page.click("Dunkel")
    page.wait(lambda: page.run("document.documentElement.dataset.theme") == "dark")
    page.open(f"{here}/sign-up")
    assert page.run("document.documentElement.lang") == "de"
    page.run("document.querySelectorAll('footer summary')[1].click()")
    page.click("System")
    page.wait(lambda: page.run("document.documentElement.dataset.theme") is None)
    page.run("document.querySelector('footer summary').click()")
    page.click("English")
    page.wait_for("Create your account")


def test_form_is_sent_once(page, here):
    page.open(f"{here}/forgot-password")
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
