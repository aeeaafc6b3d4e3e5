"""Stories that fail in every way that they can before they end well.

The database is away, a limit is reached, the user is banned, or a code, link, challenge or proof is wrong, expired
or used: each page says what to do next, and that works.
"""

from contextlib import suppress

import pytest

from tests.pages.test_stories import DAVE, NEW_PASSWORD, shown_app, signed_in, signed_in_with_new_passkey
from tests.support.browser import Browser, BrowserError, fill
from tests.support.cast import PASSWORD
from tests.support.factors import set_up
from tests.support.links import later, path
from tests.support.trouble import ENDED, TROUBLED, Step

pytestmark = pytest.mark.browser
pytest_plugins = ["tests.support.browser_fixtures"]

WRONG = "This code is wrong or no longer works. Try again, or send another code."
TOO_LATE = "That took too long. Please try again."


@pytest.fixture(scope="module")
def host() -> str:
    return "localhost"


@pytest.fixture(scope="module")
def settings(forwarder) -> dict[str, str]:
    return TROUBLED | {"DATABASE_URL": forwarder.database_url}


def submitting(page: Browser, button: str, **fields: str) -> Step:
    """Return the step that fills in the form of the page and clicks on its button."""

    def step() -> None:
        fill(page, **fields)
        page.click(button)

    return step


def sent_again(page: Browser, outbox, email: str) -> Step:
    """Ask for another code, and return the step that enters it."""
    before = len(outbox.sent(email))
    page.click("Send another code")
    page.wait(lambda: len(outbox.sent(email)) > before)
    page.wait_for("We sent a code to")
    return submitting(page, "Continue", code=outbox.last(email).code)


def code_entered_at_last(page, trouble, outbox, database, email: str) -> None:
    """Enter the mailed code, which fails in all ways, and then a new one."""
    page.wait_for("Check your inbox")
    sent = outbox.last(email)
    submitting(page, "Continue", code=sent.wrong_code)()
    page.wait_for(WRONG)
    enter = submitting(page, "Continue", code=sent.code)
    trouble.all(enter)
    later(database, hours=2)
    enter()
    page.wait_for(WRONG)
    sent_again(page, outbox, email)()


def test_sign_up(page, here, trouble, outbox, database):
    page.open(f"{here}/sign-up")
    sign_up = submitting(page, "Create account", email=DAVE, password=PASSWORD)
    trouble.without_database(sign_up)
    sign_up()
    code_entered_at_last(page, trouble, outbox, database, DAVE)
    page.wait_for("Your account")


def test_forgotten_password(page, here, trouble, outbox, database, alice):
    page.open(f"{here}/forgot-password")
    ask = submitting(page, "Send code", email=alice.email)
    trouble.without_database(ask)
    ask()
    code_entered_at_last(page, trouble, outbox, database, alice.email)
    page.wait_for("Choose a new password")
    submitting(page, "Save password", password=PASSWORD)()
    page.wait_for("This is your current password.")
    save = submitting(page, "Save password", password=NEW_PASSWORD)
    trouble.over_limit(save)
    trouble.without_database(save, "Continue", "Your account")
    page.open(f"{here}/new-password")
    save()
    page.wait_for("Your password is saved.")


def test_invitation(page, site, here, trouble, outbox, database, service_role):
    site.post("/admin/invite", json={"email": DAVE}, headers=service_role)
    link = here + path("invite", outbox.last(DAVE).token)

    def open_link() -> None:
        page.open("about:blank")
        page.open(link)

    trouble.without_database(open_link, "Try again", "Accept the invitation to Acme")
    trouble.over_limit(open_link, "Try again", "Accept the invitation to Acme")
    trouble.without_database(lambda: page.click("Continue"), "Continue", "Sign in to Acme")
    open_link()
    trouble.banned(lambda: page.click("Continue"))
    database.run("UPDATE one_time_tokens SET expires_at = now()")
    open_link()
    page.wait_for("If not, ask for another invitation.")
    database.run("DELETE FROM request_counts")
    site.post("/admin/invite", json={"email": DAVE}, headers=service_role)
    link = here + path("invite", outbox.last(DAVE).token)
    open_link()
    page.click("Continue")
    page.wait_for("Choose a new password")
    open_link()
    page.wait_for("If you have already accepted the invitation, sign in.")


def test_second_step(page, site, here, trouble, database, alice):
    app, session = set_up(alice.open_session())
    recovery = session.post("/recovery_codes", json={}).json["codes"][0]

    def sign_in() -> None:
        fill(page, email=alice.email, password=PASSWORD)
        page.click("Sign in")

    page.open(f"{here}/sign-in")
    trouble.without_database(sign_in)
    trouble.banned(sign_in)
    sign_in()
    page.wait_for("One more step")
    submitting(page, "Continue", code=app.wrong_code())()
    page.wait_for("That code is wrong. Wait for the next one, and try again.")

    def enter(code: str = "") -> None:
        submitting(page, "Continue", code=code or app.code())()

    trouble.without_database(enter, "Continue", "One more step")
    trouble.over_limit(enter)
    trouble.banned_meanwhile(enter, alice)
    sign_in()
    page.wait_for("One more step")
    database.run("UPDATE sessions SET ended_at = now(), end_reason = 'logout'")
    enter()
    page.wait_for(ENDED)
    sign_in()
    page.wait_for("One more step")
    code = app.code()
    enter(code)
    page.wait_for("Your account")
    page.click("Sign out")
    page.wait_for("You are signed out")
    page.click("Sign in again")
    page.wait_for("Sign in to Acme")
    sign_in()
    page.wait_for("One more step")
    enter(code)
    page.wait_for("That code is wrong.")

    def enter_recovery(code: str = recovery) -> None:
        fill(page, recovery_code=code)
        page.run("document.querySelector('[name=recovery_code]').form.requestSubmit()")

    enter_recovery("x")
    page.wait_for("That recovery code is wrong or has been used. Try another one.")
    trouble.over_limit(enter_recovery)
    trouble.without_database(enter_recovery, "Continue", "One more step")
    trouble.banned_meanwhile(enter_recovery, alice)
    sign_in()
    page.wait_for("One more step")
    enter_recovery()
    page.wait_for("Your account")


def test_first_app(page, here, trouble, alice):
    signed_in(page, here, alice)

    def begin() -> None:
        page.open(f"{here}/account/two-step")
        page.click("Set it up")
        page.wait_for("Connect your app")

    page.open(f"{here}/account/two-step")
    trouble.without_database(lambda: page.click("Set it up"), "Continue", "Your account")
    begin()
    app = shown_app(page)
    submitting(page, "Switch on", code=app.wrong_code())()
    page.wait_for("That code is wrong.")
    trouble.over_limit(submitting(page, "Switch on", code=app.code()))
    page.click("Start again")
    page.wait_for("Scan this code")
    app = shown_app(page)
    trouble.banned_meanwhile(submitting(page, "Switch on", code=app.code()), alice)
    signed_in(page, here, alice)
    begin()
    submitting(page, "Switch on", code=shown_app(page).code())()
    page.wait_for("Keep these recovery codes")


def test_another_device(page, here, trouble, alice):
    alice.open_session()
    signed_in(page, here, alice)
    page.open(f"{here}/account/name")
    submitting(page, "Save", name="Alice")()
    page.wait_for("Your name is saved.")

    def end() -> None:
        page.run("document.querySelector('#devices [name=id] ~ button').click()")

    trouble.without_database(end, "Continue", "Your account")
    trouble.over_limit(end, "Continue", "Your account")
    trouble.banned_meanwhile(end, alice)
    laptop = alice.open_session()
    signed_in(page, here, alice)
    assert laptop.get("/user").status_code == 200
    page.click("Sign out everywhere else")
    page.wait_for("All other devices are signed out.")
    assert laptop.get("/user").status_code == 401


def test_deleting_the_account(page, here, trouble, database, alice):
    signed_in(page, here, alice)
    page.open(f"{here}/account/delete")
    page.run("document.querySelector('main form').noValidate = true")
    page.click("Delete account")
    page.wait_for("Tick the box to confirm.")

    def delete() -> None:
        page.run("document.querySelector('[name=confirmed]').checked = true")
        page.click("Delete account")

    trouble.over_limit(delete)
    trouble.without_database(delete, "Continue", "Your account")
    page.open(f"{here}/account/delete")
    database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
    delete()
    page.wait_for("you signed in a while ago")
    submitting(page, "Continue", current_password="Wrong-Horse-1")()
    page.wait_for("That is not your password. Try again, or have a code sent.")
    submitting(page, "Continue", current_password=PASSWORD)()
    page.wait_for("Delete your account?")
    trouble.banned_meanwhile(delete, alice)
    signed_in(page, here, alice)
    page.open(f"{here}/account/delete")
    delete()
    page.wait_for("Your account is deleted")


def test_passkey(page, here, trouble, database, authenticator, alice):
    signed_in(page, here, alice)

    def add() -> None:
        page.click("Add Passkey")

    trouble.without_database(add, "Continue", "Your account")
    add()
    page.wait_for("Add a passkey")
    database.run("UPDATE factor_challenges SET expires_at = now()")
    page.click("Create a passkey")
    page.wait_for(TOO_LATE)
    # The device has kept the passkey, and would offer it.
    page.clear(authenticator)
    page.click("Continue")
    page.wait_for("Your account")
    trouble.over_limit(add, "Continue", "Your account")
    trouble.banned_meanwhile(add, alice)
    signed_in_with_new_passkey(page, here, alice)
    page.forget()

    def use() -> None:
        page.touch(authenticator, agrees=True)
        # The field of the email may have sent it already.
        with suppress(BrowserError):
            page.click("Sign in with a passkey")

    page.touch(authenticator, agrees=False)
    page.open(f"{here}/sign-in")
    trouble.without_database(lambda: page.click("Sign in with a passkey"))
    page.open(f"{here}/sign-in")
    page.wait(lambda: page.run("document.querySelector('[name=challenge_id]').value"))
    trouble.over_limit(lambda: page.click("Sign in with a passkey"))
    trouble.banned(use)
    page.touch(authenticator, agrees=False)
    page.forget()
    page.open(f"{here}/sign-in")
    fill(page, email=alice.email, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("One more step")
    database.run("UPDATE factor_challenges SET expires_at = now()")
    use()
    page.wait_for(TOO_LATE)
    trouble.over_limit(use)
    use()
    page.wait_for("Your account")
