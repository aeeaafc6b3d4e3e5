"""Ways through all pages and their states, for any walker of tests/support/walkers.py."""

import re
from urllib.parse import urlencode

from tests.support import factors, passkeys, security_keys
from tests.support.authenticator import Authenticator
from tests.support.cast import PASSWORD
from tests.support.fake_provider import FakeProvider
from tests.support.links import CHALLENGE, path
from tests.support.walkers import Walker

ALICE, DAVE = "alice@example.com", "dave@example.com"
PHONE = "+491701234567"
WEAK, WRONG, NEW = "Ab-1", "Wrong-Horse-1", "Fresh-Horse-2"
# What every service of a walker needs, in addition to its addresses and Google.
SETTINGS = {
    "AUTH_BRAND_NAME": "Acme",
    "AUTH_DEV_INBOX": "true",
    "AUTH_PROVIDER_GITHUB_CLIENT_ID": "walks",
    "AUTH_PROVIDER_GITHUB_CLIENT_SECRET": "a-secret-of-the-walks",
}


def google() -> FakeProvider:
    """Return a provider where Alice is signed in."""
    provider = FakeProvider("google")
    provider.person = {"sub": "alice-at-google", "email": "alice@gmail.example", "email_verified": True}
    return provider


def signing_in(walker: Walker) -> None:
    walker.person()
    with_application = (
        f"/sign-in?{urlencode({'redirect_to': walker.application, 'code_challenge': CHALLENGE})}"
    )
    walker.visit(with_application)
    walker.shows("sign-in", "Sign in to Acme")
    walker.press("sign-in", email="alice", password="x")
    walker.shows("sign-in, malformed", "Enter an email address")
    walker.press("sign-in", email=ALICE, password=WRONG)
    walker.shows("sign-in, wrong", "match. Try again or reset")
    walker.visit("/sign-in?error_code=session_expired")
    walker.shows("sign-in, expired", "Your session has ended.")
    walker.press("sign-in/passkey")
    walker.shows("sign-in by passkey", "Passkeys need JavaScript.")
    walker.press("sign-in/passkey/verify", credential="{}")
    walker.shows("sign-in by passkey, failed", "That passkey or security key did not work.")
    walker.visit("/sign-in")
    walker.press("sign-in/code", email=ALICE)
    walker.shows("sign-in by code", "Check your inbox")
    sent = walker.outbox.last(ALICE)
    walker.press("sign-in/verify", code=sent.wrong_code)
    walker.shows("sign-in by code, wrong", "This code is wrong")
    walker.press("sign-in/verify", code=sent.code)
    walker.shows("account, new", "Your account")
    walker.visit(with_application)
    walker.shows("continue", "Continue as alice@example.com")
    walker.press("sign-in/continue")
    walker.visit(with_application)
    walker.press("sign-out")
    walker.shows("sign-in, other account", "Sign in to Acme")
    walker.rows.run("UPDATE users SET banned_until = 'infinity'")
    walker.press("sign-in", email=ALICE, password=PASSWORD)
    walker.shows("sign-in, banned", "This account is blocked.")


def signing_up(walker: Walker) -> None:
    walker.visit("/sign-up")
    walker.shows("sign-up", "Create your account")
    walker.press("sign-up", email=DAVE, password=WEAK)
    walker.shows("sign-up, weak", "Your password is too short.")
    walker.press("sign-up", email=DAVE, password=PASSWORD)
    walker.shows("sign-up, code", "Check your inbox")
    walker.press("sign-up/verify", code=walker.outbox.last(DAVE).wrong_code)
    walker.shows("sign-up, wrong code", "This code is wrong")
    walker.press("sign-up/code")
    walker.visit("/sign-in")
    walker.press("sign-in", email=DAVE, password=PASSWORD)
    walker.shows("sign-in, unconfirmed", "Confirm your email address first")
    walker.press("sign-up/verify", code=walker.outbox.last(DAVE).code)
    walker.shows("account, after the sign-up", "Your account")
    walker.press("sign-out")
    walker.shows("signed out", "You are signed out")


def forgetting(walker: Walker) -> None:
    walker.person()
    walker.visit("/forgot-password")
    walker.shows("forgot-password", "Forgot your password?")
    walker.press("forgot-password", email=ALICE)
    walker.shows("forgot-password, code", "Check your inbox")
    sent = walker.outbox.last(ALICE)
    walker.press("forgot-password/verify", code=sent.wrong_code)
    walker.shows("forgot-password, wrong code", "This code is wrong")
    walker.press("forgot-password/verify", code=sent.code)
    walker.shows("new-password", "Choose a new password")
    walker.press("new-password", password=WEAK)
    walker.shows("new-password, weak", "Your password is too short.")
    walker.press("new-password", password=NEW)
    walker.shows("account, new password", "Your password is saved.")


def by_phone(walker: Walker) -> None:
    walker.visit("/sign-up")
    walker.press("sign-up", email=PHONE, password=PASSWORD)
    walker.shows("sign-up by phone, code", "Check your phone")
    sent = walker.outbox.last(PHONE)
    walker.press("sign-up/verify", code=sent.wrong_code)
    walker.shows("sign-up by phone, wrong code", "This code is wrong")
    walker.press("sign-up/verify", code=sent.code)
    walker.forget()
    walker.visit("/sign-in")
    walker.press("sign-in", email=PHONE, password=WRONG)
    walker.shows("sign-in by phone, wrong", "That phone number and password")
    walker.press("sign-in/code", email=PHONE)
    walker.shows("sign-in by phone, code", "It works for ten minutes.")


def links(walker: Walker) -> None:
    walker.client.post("/signup", json={"email": DAVE, "password": PASSWORD})
    link = path("signup", walker.outbox.last(DAVE).token)
    walker.visit(link)
    walker.shows("link of a sign-up", "Confirm your email address")
    walker.press("verify", action="decline")
    walker.shows("declined", "was deleted")
    walker.visit(link)
    walker.shows("dead link", "This link no longer works")
    alice = walker.person()
    for kind, url in (("magiclink", "/magiclink"), ("recovery", "/recover")):
        walker.client.post(url, json={"email": ALICE})
        walker.visit(path(kind, walker.outbox.last(ALICE, kind).token))
        walker.shows(f"link, {kind}", "Continue to sign in")
    walker.client.post("/admin/invite", json={"email": DAVE}, headers=walker.service_role)
    walker.visit(path("invite", walker.outbox.last(DAVE, "invite").token))
    walker.shows("link of an invitation", "Accept the invitation")
    session = alice.sign_in(client=walker.client)
    app, session = factors.set_up(session)
    session.put("/user", json={"email": "new@example.com"})
    walker.visit(path("email_change", walker.outbox.last("new@example.com").token))
    walker.shows("link of an email change", "Confirm your new email address")
    walker.press("verify")
    walker.shows("welcome, after a link", "Acme")
    walker.visit(path("undo", walker.outbox.last(ALICE, "email_changed").token))
    walker.shows("link that undoes", "Undo the change")
    walker.press("verify", factor_code=app.wrong_code())
    walker.shows("link that undoes, wrong code", "That code is wrong or was used before.")
    walker.press("verify", factor_code=app.code())
    walker.shows("undone", "The change has been undone")
    walker.press("forgot-password")
    walker.shows("undone, code", "Enter it to choose a new password.")


def elsewhere(walker: Walker) -> None:
    """Links that another browser has asked for, and the pages of that browser."""
    walker.person()

    def leave(column: str = "browser_hash = 'another'") -> None:
        walker.rows.run(f"UPDATE one_time_tokens SET {column}")

    walker.visit("/sign-in")
    walker.press("sign-in/code", email=ALICE)
    walker.press("waiting")
    walker.shows("sign-in by code, waiting", "The link has not been opened yet.")
    leave("spent_at = now()")
    walker.press("waiting")
    walker.shows("sign-in by code, used elsewhere", "This link was used in another browser.")
    walker.visit("/forgot-password")
    walker.press("forgot-password", email=ALICE)
    leave()
    walker.visit(path("recovery", walker.outbox.last(ALICE, "recovery").token))
    walker.shows("link of another browser", "not in this browser")
    walker.press("verify")
    walker.shows("new-password, by a link of another browser", "Choose a new password")
    walker.forget()
    walker.visit("/sign-up")
    walker.press("sign-up", email=DAVE, password=PASSWORD)
    leave()
    walker.visit(path("signup", walker.outbox.last(DAVE).token))
    walker.shows("link of a sign-up in another browser", "Then return to the window where you signed up.")
    walker.press("verify")
    walker.shows("confirmed for another browser", "Your email address is confirmed")
    walker.client.post("/magiclink", json={"email": ALICE, "code_challenge": CHALLENGE})
    leave("user_agent = 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Version/18.0 Safari/604.1'")
    walker.visit(path("magiclink", walker.outbox.last(ALICE, "magiclink").token))
    walker.shows("link of an application in another browser", "I asked for it in this browser")
    walker.press("verify")
    walker.shows("account, by a link of another browser", "You are signed in here.")


def account(walker: Walker) -> None:
    alice = walker.person()
    alice.sign_in(client=walker.client)
    walker.sign_in()
    walker.visit("/account/name")
    walker.shows("name", "Your name")
    walker.press("account/name", name="n" * 81)
    walker.shows("name, too long", "A name has at most 80 characters.")
    walker.press("account/name", name="Alice Liddell")
    walker.visit("/account/email")
    walker.shows("email", "New email address")
    walker.press("account/email", email="a")
    walker.shows("email, malformed", "Enter an email address")
    walker.press("account/email", email="new@example.com")
    walker.shows("email, code", "Check your inbox")
    sent = walker.outbox.last("new@example.com")
    walker.press("account/email/verify", code=sent.wrong_code)
    walker.shows("email, wrong code", "This code is wrong")
    walker.press("account/email/waiting")
    walker.shows("email, waiting", "The link has not been opened yet.")
    walker.visit("/account")
    walker.shows("account, waiting for an email", "waiting for new@example.com")
    walker.visit("/account/phone")
    walker.shows("phone", "New phone number")
    walker.press("account/phone", phone="12")
    walker.shows("phone, malformed", "Enter a phone number")
    walker.press("account/phone", phone=PHONE)
    walker.shows("phone, code", "Check your phone")
    walker.press("account/phone/verify", code=walker.outbox.last(PHONE).code)
    walker.shows("account, with a phone", "Your phone number is changed.")
    walker.visit("/account/email")
    walker.press("account/email", email="new@example.com")
    walker.press("account/email/verify", code=walker.outbox.last("new@example.com").code)
    walker.shows("account, with another email", "Your email address is changed.")
    walker.press("account/connect", provider="google")
    walker.shows("link identity", "Link Google to your account")
    walker.press("link-identity")
    walker.shows("account, connected", "The account is connected.")
    walker.press("account/disconnect")
    walker.shows("account, disconnected", "The account is disconnected.")
    walker.visit("/link-identity?flow=" + "x" * 43)
    walker.shows("link identity, dead", "This link no longer works")


def removing(walker: Walker) -> None:
    walker.person()
    walker.sign_in()
    walker.visit("/account/changes")
    walker.shows("changes, none", "Nothing was added")
    walker.visit("/account/email")
    walker.press("account/email/remove")
    walker.shows("email, the last way", "This is your last way to sign in.")
    _add_phone(walker)
    walker.visit("/account/phone")
    walker.shows("phone, to remove", "New phone number")
    walker.press("account/phone/remove")
    walker.shows("account, phone removed", "Your phone number is removed.")
    _add_phone(walker)
    walker.visit("/account/changes")
    walker.shows("changes", "in the last seven days")
    walker.press("account/changes")
    walker.shows("changes, removed", "signed out")
    _add_phone(walker)
    walker.visit("/account/email")
    walker.press("account/email/remove")
    walker.shows("account, email removed", "Your email address is removed.")
    walker.visit("/account/email")
    walker.shows("email, to add", "New email address")


def _add_phone(walker: Walker) -> None:
    walker.visit("/account/phone")
    walker.press("account/phone", phone=PHONE)
    walker.press("account/phone/verify", code=walker.outbox.last(PHONE).code)


def deleting(walker: Walker) -> None:
    alice = walker.person()
    laptop = alice.sign_in(client=walker.client)
    alice.sign_in(client=walker.client)
    walker.sign_in()
    walker.press("account/sessions/end", id=laptop.id)
    walker.shows("account, device ended", "The device is signed out.")
    walker.press("account/sessions/end-others")
    walker.shows("account, devices ended", "All other devices are signed out.")
    walker.rows.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
    walker.visit("/account/delete")
    walker.shows("confirm", "you signed in a while ago")
    walker.press("account/confirm", current_password=WRONG)
    walker.shows("confirm, wrong", "That is not your password.")
    walker.press("account/confirm/code")
    walker.shows("confirm, code", "We sent a code to a…@example.com.")
    sent = walker.outbox.last(ALICE, "reauthentication")
    walker.press("account/confirm", nonce=sent.wrong_code)
    walker.shows("confirm, wrong code", "This code is wrong")
    walker.press("account/confirm", nonce=sent.code)
    walker.shows("delete", "Delete your account?")
    walker.press("account/delete")
    walker.shows("delete, not confirmed", "Tick the box to confirm.")
    walker.press("account/delete", confirmed="yes")
    walker.shows("deleted", "Your account is deleted")


def two_step(walker: Walker) -> None:
    walker.person()
    walker.sign_in()
    walker.visit("/account/two-step")
    walker.shows("two-step", "Signing in then also takes a code")
    walker.press("account/two-step")
    walker.shows("two-step, secret", "Connect your app")
    key = re.search(r"(?:[A-Z2-7]{4} ){7}[A-Z2-7]{4}", walker.text)
    assert key
    app = factors.App("", key[0].replace(" ", ""))
    walker.press("account/two-step/verify", code=app.wrong_code())
    walker.shows("two-step, wrong code", "That code is wrong.")
    walker.press("account/two-step/verify", code=app.code())
    walker.shows("recovery codes", "Keep these recovery codes")
    walker.visit("/account")
    walker.press("account/recovery-codes")
    walker.visit("/account")
    walker.press("account/passkeys/new")
    walker.shows("new passkey", "Add a passkey")
    walker.visit("/account")
    walker.press("account/two-step/remove")
    walker.shows("account, app removed", "The app is removed.")


def second_step(walker: Walker) -> None:
    """Every kind of second factor, which the API has set up before the browser signs in."""
    app, session = factors.set_up(walker.person().sign_in(client=walker.client), "Phone")
    recovery = session.post("/recovery_codes", json={}).json["codes"]
    response = passkeys.register_response(session, Authenticator(), origin=walker.here)
    assert response.status_code == 200, response.text
    walker.sign_in()
    walker.shows("second step", "One more step")
    walker.press("second-step", code=app.wrong_code())
    walker.shows("second step, wrong code", "That code is wrong.")
    walker.press("second-step/recovery", recovery_code="x")
    walker.shows("second step, wrong recovery code", "That recovery code is wrong")
    walker.press("second-step/passkey", credential="{}")
    walker.shows("second step, passkey failed", "That passkey or security key did not work.")
    walker.press("second-step/recovery", recovery_code=recovery[0])
    walker.shows("account, with everything", "Passkey")
    walker.rows.run(
        "UPDATE sessions SET created_at = created_at - interval '20 minutes',"
        " reauthenticated_at = NULL, factor_proved_at = NULL"
    )
    walker.visit("/account/email")
    walker.shows("confirm, with factors", "Confirm that it")
    walker.press("second-step/passkey", credential="{}")
    walker.shows("confirm, factor failed", "That passkey or security key did not work.")
    walker.visit("/account/confirm?by=older")
    walker.shows("confirm, with a passkey", "Sign in with a passkey")
    walker.press("account/confirm/passkey", credential="{}")
    walker.shows("confirm, passkey failed", "That passkey or security key did not work.")
    walker.visit("/account/email")
    walker.press("second-step/recovery", recovery_code=recovery[1])
    walker.visit("/account")
    walker.press("account/passkeys/remove")
    walker.shows("account, passkey removed", "The passkey is removed.")
    walker.rows.run("UPDATE sessions SET factor_proved_at = now()")
    factors.raised(session, factors.enrol(session, "Tablet"), -1)
    security_keys.enrol(session)
    walker.sign_in()
    walker.shows("second step, several apps", "Tablet")


def skipped_step(walker: Walker) -> None:
    session = walker.person().sign_in(client=walker.client)
    response = passkeys.register_response(session, Authenticator(), origin=walker.here)
    assert response.status_code == 200, response.text
    walker.visit(f"/sign-in?{urlencode({'redirect_to': walker.application, 'code_challenge': CHALLENGE})}")
    walker.press("sign-in", email=ALICE, password=PASSWORD)
    walker.shows("second step, passkey alone", "Not now")
    walker.press("second-step/skip")


def taking_back(walker: Walker) -> None:
    """Someone has added the first address of a user of a provider."""
    walker.person()
    walker.sign_in()
    walker.rows.run("UPDATE users SET created_at = created_at - interval '1 month'")
    walker.rows.run(
        "INSERT INTO identities (user_id, provider, subject, identity_data, created_at)"
        " SELECT id, 'google', 'alice', '{\"sub\": \"alice\"}', created_at FROM users"
    )
    walker.visit("/account")
    walker.shows("account, with a notice", "so we could not tell you")
    walker.visit("/account/changes")
    walker.shows("changes, to undo", "Undo all of it")
    walker.press("account/changes/undo")
    walker.shows("confirm, by a provider", "the account that you had before these changes")


def others(walker: Walker) -> None:
    walker.visit("/")
    walker.shows("welcome", "Latchkey is running")
    walker.visit("/nowhere")
    walker.shows("not found", "Page not found")
    walker.visit("/sign-in")
    walker.press("sign-in", form_token="0" * 64, email=ALICE, password=PASSWORD)
    walker.shows("sign-in, old form", "This form was open for too long")
    walker.press("preferences", language=walker.language)
    walker.visit("/dev/inbox")
    walker.shows("inbox, empty", "Nothing has been sent yet.")
    walker.client.post("/signup", json={"email": DAVE, "password": PASSWORD})
    walker.client.post("/signup", json={"email": f"{'d' * 64}@{'example' * 9}.com", "password": PASSWORD})
    walker.client.post("/signup", json={"phone": PHONE, "password": PASSWORD})
    walker.deliver()
    walker.visit("/dev/inbox")
    walker.shows("inbox", DAVE)


WALKS = (
    signing_in,
    signing_up,
    forgetting,
    by_phone,
    links,
    elsewhere,
    account,
    removing,
    deleting,
    two_step,
    second_step,
    skipped_step,
    taking_back,
    others,
)
