"""A tour of all pages and their states, in parts, for the clients of tests/support/page_clients.py."""

import re
from urllib.parse import urlencode

from auth.extensions.openid.memberships import OF_USERS
from tests.support import factors, passkeys, security_keys
from tests.support.api_keys import insert_key
from tests.support.authenticator import Authenticator
from tests.support.devices import make_television
from tests.support.fake_provider import FakeProvider
from tests.support.links import CHALLENGE, path
from tests.support.openid import allow, authorize_path, insert_client, insert_public_client
from tests.support.page_clients import PageClient
from tests.support.tables import Rows
from tests.support.users import PASSWORD

ALICE, BOB, DAVE = "alice@example.com", "bob@example.com", "dave@example.com"
PHONE = "+491701234567"
# The weak password follows the rules that the page ticks off, and is refused.
WEAK, WRONG, NEW = "Passw0rd-1", "Wrong-Horse-1", "Fresh-Horse-2"
# Further settings of every service of the tour, besides its addresses and Google.
SETTINGS = {
    "AUTH_BRAND_NAME": "Acme",
    "AUTH_PASSKEY_OFFER": "button",
    "AUTH_TERMS_URL": "https://acme.example/terms",
    "AUTH_PRIVACY_URL": "https://acme.example/privacy",
    "AUTH_SUPPORT_URL": "mailto:help@acme.example",
    "AUTH_API_KEYS": "true",
    "AUTH_ORGANIZATIONS": "users",
    "AUTH_SSO": "true",
    "AUTH_DEV_INBOX": "true",
    "AUTH_PROVIDER_GITHUB_CLIENT_ID": "walks",
    "AUTH_PROVIDER_GITHUB_CLIENT_SECRET": "a-secret-of-the-walks",
    "AUTH_PROVIDER_OKTA_CLIENT_ID": "walks",
    "AUTH_PROVIDER_OKTA_CLIENT_SECRET": "a-secret-of-the-walks",
    "AUTH_PROVIDER_OKTA_ISSUER": "https://okta.example.com",
    "AUTH_PROVIDER_OKTA_TITLE": "Okta",
}

_MORE_SESSIONS = """
INSERT INTO sessions (user_id, method, user_agent, ip, refreshed_at)
SELECT id, 'password', (ARRAY['Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Version/18.0 Safari/604.1',
    'Mozilla/5.0 (X11; Linux x86_64) Chrome/120.0 Safari/537', 'curl/8.0'])[1 + n %% 3],
  ('192.0.2.' || n)::inet, now() - n * interval '1 hour'
FROM users, generate_series(1, 6) AS n
"""


def google() -> FakeProvider:
    """Return a provider where Alice is signed in."""
    provider = FakeProvider("google")
    provider.person = {"sub": "alice-at-google", "email": "alice@gmail.example", "email_verified": True}
    return provider


def signing_in(page_client: PageClient) -> None:
    page_client.person()
    with_application = (
        f"/sign-in?{urlencode({'redirect_to': page_client.application, 'code_challenge': CHALLENGE})}"
    )
    page_client.visit(with_application)
    page_client.shows("sign-in", "Sign in to Acme")
    page_client.press("sign-in", email="alice", password="x")
    page_client.shows("sign-in, malformed", "Enter an email address")
    page_client.press("sign-in", email=ALICE, password=WRONG)
    page_client.shows("sign-in, wrong", "match. Try again or reset")
    page_client.sign_in()
    page_client.rows.run("DELETE FROM sessions")
    page_client.visit("/account")
    page_client.shows("sign-in, expired", "Your session has ended.")
    page_client.press("sign-in/passkey")
    page_client.shows("sign-in by passkey", "Turn on JavaScript to use passkeys.")
    page_client.press("sign-in/passkey/verify", credential="{}")
    page_client.shows("sign-in by passkey, failed", "That passkey or security key didn’t work.")
    page_client.visit("/sign-in")
    page_client.press("sign-in/code", email=ALICE)
    page_client.shows("sign-in by code", "Check your inbox")
    message = page_client.outbox.last(ALICE)
    page_client.press("sign-in/verify", code=message.wrong_code)
    page_client.shows("sign-in by code, wrong", "This code is wrong")
    page_client.press("sign-in/verify", code=message.code)
    page_client.shows("account, new", "Your account")
    page_client.visit(with_application)
    page_client.shows("continue", "Continue as alice@example.com")
    page_client.press("sign-in/continue")
    page_client.visit(with_application)
    page_client.press("sign-out")
    page_client.shows("sign-in, other account", "Sign in to Acme")
    page_client.rows.run("UPDATE users SET banned_until = 'infinity'")
    page_client.press("sign-in", email=ALICE, password=PASSWORD)
    page_client.shows("sign-in, banned", "This account is blocked.")
    page_client.visit("/sign-in/company")
    page_client.shows("sign-in with a company", "We’ll take you to your company’s")
    page_client.press("sign-in/company", email="alice@acme.exmaple")
    page_client.shows("sign-in with a company, unknown", "No company has connected acme.exmaple here.")


def signing_up(page_client: PageClient) -> None:
    page_client.visit("/sign-up")
    page_client.shows("sign-up", "Create your account")
    page_client.press("sign-up", email=DAVE, password=WEAK)
    page_client.shows("sign-up, weak", "This password is too common.")
    page_client.press("sign-up", email=DAVE, password=PASSWORD)
    page_client.shows("sign-up, code", "Check your inbox")
    page_client.press("sign-up/verify", code=page_client.outbox.last(DAVE).wrong_code)
    page_client.shows("sign-up, wrong code", "This code is wrong")
    page_client.press("sign-up/code")
    page_client.visit("/sign-in")
    page_client.press("sign-in", email=DAVE, password=PASSWORD)
    page_client.shows("sign-in, unconfirmed", "Confirm your email address first")
    page_client.press("sign-up/verify", code=page_client.outbox.last(DAVE).code)
    page_client.shows("account, after the sign-up", "Your account")
    page_client.press("sign-out")
    page_client.shows("signed out", "You’re signed out")


def forgetting(page_client: PageClient) -> None:
    page_client.person()
    page_client.visit("/sign-in")
    page_client.press("sign-in/address", email=ALICE)
    page_client.shows("forgot-password", "Forgot your password?")
    page_client.press("forgot-password")
    page_client.shows("forgot-password, code", "Check your inbox")
    message = page_client.outbox.last(ALICE)
    page_client.press("forgot-password/verify", code=message.wrong_code)
    page_client.shows("forgot-password, wrong code", "This code is wrong")
    page_client.press("forgot-password/verify", code=message.code)
    page_client.shows("new-password", "Choose a new password")
    page_client.press("new-password", password=WEAK)
    page_client.shows("new-password, weak", "This password is too common.")
    page_client.press("new-password", password=NEW)
    page_client.shows("account, new password", "Your password has been saved.")


def by_phone(page_client: PageClient) -> None:
    page_client.visit("/sign-up")
    page_client.press("sign-up", email=PHONE, password=PASSWORD)
    page_client.shows("sign-up by phone, code", "Check your phone")
    message = page_client.outbox.last(PHONE)
    page_client.press("sign-up/verify", code=message.wrong_code)
    page_client.shows("sign-up by phone, wrong code", "This code is wrong")
    page_client.press("sign-up/verify", code=message.code)
    page_client.forget()
    page_client.visit("/sign-in")
    page_client.press("sign-in", email=PHONE, password=WRONG)
    page_client.shows("sign-in by phone, wrong", "That phone number and password")
    page_client.press("sign-in/code", email=PHONE)
    page_client.shows("sign-in by phone, code", "It expires in ten minutes.")


def links(page_client: PageClient) -> None:
    page_client.client.post("/signup", json={"email": DAVE, "password": PASSWORD})
    link = path("signup", page_client.outbox.last(DAVE).token)
    page_client.visit(link)
    page_client.shows("link of a sign-up", "Confirm your email address")
    page_client.press("verify", action="decline")
    page_client.shows("declined", "was deleted")
    page_client.visit(link)
    page_client.shows("dead link", "This link no longer works")
    page_client.visit("/verify?token=abc&amp;type=recovery")
    page_client.shows("damaged link", "This link is incomplete")
    for kind in ("magiclink", "recovery", "invite", "email_change", "undo"):
        page_client.visit(path(kind, "x" * 43))
        page_client.shows(f"dead link, {kind}", "There are three possible reasons")
    page_client.visit(path("magiclink", "x" * 42))
    page_client.shows("incomplete link", "Copy all of it from the message")
    alice = page_client.person()
    for kind, url in (("magiclink", "/magiclink"), ("recovery", "/recover")):
        page_client.client.post(url, json={"email": ALICE})
        page_client.visit(path(kind, page_client.outbox.last(ALICE, kind).token))
        page_client.shows(f"link, {kind}", "Continue to sign in")
    page_client.client.post("/admin/invite", json={"email": DAVE}, headers=page_client.service_role)
    page_client.visit(path("invite", page_client.outbox.last(DAVE, "invite").token))
    page_client.shows("link of an invitation", "Accept your invitation")
    page_client.press("verify")
    page_client.shows("join", "Welcome to Acme")
    page_client.press("join", password=WEAK)
    page_client.shows("join, weak", "This password is too common.")
    page_client.press("join", password=NEW)
    page_client.shows("account, after the invitation", "Your password has been saved.")
    page_client.forget()
    session = alice.sign_in(client=page_client.client)
    app, session = factors.set_up(session)
    session.put("/user", json={"email": "new@example.com"})
    page_client.visit(path("email_change", page_client.outbox.last("new@example.com").token))
    page_client.shows("link of an email change", "Confirm your new email address")
    page_client.press("verify")
    page_client.shows("welcome, after a link", "Acme")
    page_client.rows.run("UPDATE factors SET verified_at = now() - interval '8 days', last_step = NULL")
    passkeys.register_response(session, Authenticator(), origin=page_client.origin)
    allow(page_client.rows, alice.id, insert_public_client(page_client.rows))
    insert_key(page_client.rows, alice.id)
    page_client.visit(path("undo", page_client.outbox.last(ALICE, "email_changed").token))
    page_client.shows("link of a notice", "This will be removed.")
    page_client.press("verify")
    page_client.shows("link of a notice, factor", "Use an authenticator app, security key or passkey")
    page_client.press("verify", factor_code=app.wrong_code())
    page_client.shows("link of a notice, wrong code", "That code is wrong or already used.")
    page_client.press("verify", factor_code=app.code())
    page_client.shows("undone", "Your account is secure")
    page_client.press("forgot-password")
    page_client.shows("undone, code", "Enter it to choose a new password.")


def elsewhere(page_client: PageClient) -> None:
    """Links that another browser has asked for, and the pages of that browser."""
    page_client.person()

    def change_link(change: str = "browser_hash = 'another'") -> None:
        page_client.rows.run(f"UPDATE one_time_tokens SET {change}")

    page_client.visit("/sign-in")
    page_client.press("sign-in/code", email=ALICE)
    waits = page_client.link_to("sign-in/code?")
    page_client.visit(waits)
    page_client.shows("sign-in by code, waiting", "The link hasn’t been opened yet.")
    change_link("spent_at = now()")
    page_client.visit(waits)
    page_client.shows("sign-in by code, used elsewhere", "This link was used in another browser")
    page_client.visit("/forgot-password")
    page_client.press("forgot-password", email=ALICE)
    waits = page_client.link_to("forgot-password/code?")
    change_link("spent_at = now()")
    page_client.visit(waits)
    page_client.shows("forgot-password, used elsewhere", "If you chose a new password there")
    change_link("browser_hash = 'another', spent_at = NULL")
    page_client.visit(path("recovery", page_client.outbox.last(ALICE, "recovery").token))
    page_client.shows("link of another browser", "not in this browser")
    page_client.press("verify")
    page_client.shows("new-password, by a link of another browser", "Choose a new password")
    page_client.forget()
    page_client.visit("/sign-up")
    page_client.press("sign-up", email=DAVE, password=PASSWORD)
    waits = page_client.link_to("sign-up/code?")
    change_link("spent_at = now()")
    page_client.visit(waits)
    page_client.shows("sign-up, used elsewhere", "Your email address is confirmed.")
    change_link("browser_hash = 'another', spent_at = NULL")
    page_client.visit(path("signup", page_client.outbox.last(DAVE).token))
    page_client.shows("link of a sign-up in another browser", "enter this code there")
    page_client.press("verify")
    page_client.shows("signed in, by a link of another browser", "You’re signed in")
    page_client.client.post("/magiclink", json={"email": ALICE, "code_challenge": CHALLENGE})
    change_link("user_agent = 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Version/18.0 Safari/604.1'")
    page_client.visit(path("magiclink", page_client.outbox.last(ALICE, "magiclink").token))
    page_client.shows("link of an application in another browser", "I requested it in this browser")
    page_client.press("verify")
    page_client.shows(
        "signed in, by a link of another browser's application", "signed in as alice@example.com."
    )


def account(page_client: PageClient) -> None:
    alice = page_client.person()
    alice.sign_in(client=page_client.client)
    page_client.sign_in()
    page_client.visit("/account/name")
    page_client.shows("name", "Your name")
    page_client.press("account/name", name="n" * 81)
    page_client.shows("name, too long", "Use 1 to 80 visible characters.")
    page_client.press("account/name", name="Alice Liddell")
    page_client.visit("/account/email")
    page_client.shows("email", "New email address")
    page_client.press("account/email", email="a")
    page_client.shows("email, malformed", "Enter an email address")
    page_client.press("account/email", email="new@example.com")
    page_client.shows("email, code", "Check your inbox")
    message = page_client.outbox.last("new@example.com")
    page_client.press("account/email/verify", code=message.wrong_code)
    page_client.shows("email, wrong code", "This code is wrong")
    page_client.visit(page_client.link_to("account/email/code?"))
    page_client.shows("email, waiting", "The link hasn’t been opened yet.")
    page_client.visit("/account")
    page_client.shows("account, waiting for an email", "new@example.com not confirmed yet")
    page_client.visit("/account/phone")
    page_client.shows("phone", "New phone number")
    page_client.press("account/phone", phone="12")
    page_client.shows("phone, malformed", "Enter a phone number")
    page_client.press("account/phone", phone=PHONE)
    page_client.shows("phone, code", "Check your phone")
    page_client.press("account/phone/verify", code=page_client.outbox.last(PHONE).code)
    page_client.shows("account, with a phone", "Your phone number has been changed.")
    page_client.visit("/account/email")
    page_client.press("account/email", email="new@example.com")
    page_client.press("account/email/verify", code=page_client.outbox.last("new@example.com").code)
    page_client.shows("account, with another email", "Your email address has been changed.")
    page_client.press("account/connect", provider="google")
    page_client.shows("link identity", "Connect Google to your account")
    page_client.visit("/account/connect?provider=google")
    page_client.shows("link identity, after a proof", "Connect Google to your account")
    page_client.press("link-identity")
    page_client.shows("account, connected", "The account has been connected.")
    page_client.remove("identity", "no longer be able to sign in with Google")
    page_client.shows("account, disconnected", "The account has been disconnected.")
    scopes = ["openid", "profile", "email", "phone", "groups", "roles", "offline_access"]
    allow(page_client.rows, alice.id, insert_public_client(page_client.rows), scopes=scopes)
    page_client.visit("/account/changes")
    page_client.shows("changes, with an application", "Grafana")
    page_client.visit("/account")
    page_client.shows("account, with an application", "Connected applications")
    page_client.remove("application", "Grafana will no longer have access")
    page_client.shows("account, application removed", "The application has been removed.")
    page_client.visit("/account/api-keys")
    page_client.shows("API key", "Create an API key")
    page_client.press("account/api-keys", name="Nightly report", scopes="a a")
    page_client.shows("API key, scopes refused", "at most 20 different words")
    page_client.press("account/api-keys", name="Nightly report", scopes="reports.read")
    page_client.shows("API key, made", "Save your API key")
    page_client.visit("/account")
    page_client.shows("account, with an API key", "Nightly report")
    page_client.remove("api_key", "Programs that use it will stop working.")
    page_client.shows("account, API key removed", "The API key has been removed.")
    page_client.visit("/link-identity?flow=" + "x" * 43)
    page_client.shows("link identity, dead", "This link no longer works")


def removing(page_client: PageClient) -> None:
    page_client.person()
    page_client.sign_in()
    page_client.visit("/account/changes")
    page_client.shows("changes, none", "Nothing was added")
    page_client.visit("/account/email")
    page_client.remove("email", "no longer be able to sign in with alice@example.com")
    page_client.shows("email, the last way", "This is your last way to sign in.")
    _add_phone(page_client)
    page_client.visit("/account/phone")
    page_client.shows("phone, to remove", "New phone number")
    page_client.remove("phone", "We’ll also sign out your other devices.")
    page_client.shows("account, phone removed", "Your phone number has been removed.")
    _add_phone(page_client)
    page_client.visit("/account/changes")
    page_client.shows("changes", "in the last seven days")
    page_client.remove("change", "We’ll also sign out your other devices.")
    page_client.shows("changes, removed", "signed out")
    _add_phone(page_client)
    page_client.visit("/account/email")
    page_client.remove("email", "We’ll also sign out your other devices.")
    page_client.shows("account, email removed", "Your email address has been removed.")
    page_client.visit("/account/email")
    page_client.shows("email, to add", "New email address")


def _add_phone(page_client: PageClient) -> None:
    page_client.visit("/account/phone")
    page_client.press("account/phone", phone=PHONE)
    page_client.press("account/phone/verify", code=page_client.outbox.last(PHONE).code)


def deleting(page_client: PageClient) -> None:
    alice = page_client.person()
    laptop = alice.sign_in(client=page_client.client)
    alice.sign_in(client=page_client.client)
    page_client.sign_in()
    page_client.press("account/sessions/end", id=laptop.id)
    page_client.shows("account, device ended", "The device has been signed out.")
    page_client.press("account/sessions/end-others")
    page_client.shows("account, devices ended", "All other devices have been signed out.")
    page_client.rows.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
    page_client.visit("/account/delete")
    page_client.shows("confirm", "before sensitive changes")
    page_client.press("account/confirm", current_password=WRONG)
    page_client.shows("confirm, wrong", "That isn’t your password.")
    page_client.press("account/confirm/code")
    page_client.shows("confirm, code", "We sent a code to a…@example.com.")
    message = page_client.outbox.last(ALICE, "reauthentication")
    page_client.press("account/confirm", nonce=message.wrong_code)
    page_client.shows("confirm, wrong code", "This code is wrong")
    page_client.press("account/confirm", nonce=message.code)
    page_client.shows("delete", "Delete your account?")
    page_client.press("account/delete")
    page_client.shows("delete, not confirmed", "Select the checkbox to confirm.")
    page_client.press("account/delete", confirmed="yes")
    page_client.shows("deleted", "Your account has been deleted")


def two_step(page_client: PageClient) -> None:
    person = page_client.person()
    page_client.sign_in(is_offered=True)
    page_client.shows("offer of a passkey", "Sign in faster next time")
    page_client.press("account/passkeys/offer/decline")
    passkeys.make_unasked(person.sign_in(client=page_client.client), origin=page_client.origin)
    page_client.visit("/account")
    page_client.shows("account, passkey not used yet", "not used yet")
    page_client.rows.run("DELETE FROM factors")
    page_client.visit("/account/two-step")
    page_client.shows("two-step", "When you sign in, you’ll also enter a code")
    page_client.press("account/two-step")
    page_client.shows("two-step, secret", "Connect your app")
    key = re.search(r"(?:[A-Z2-7]{4} ){7}[A-Z2-7]{4}", page_client.text)
    assert key
    app = factors.App("", key[0].replace(" ", ""))
    page_client.press("account/two-step/verify", code=app.wrong_code())
    page_client.shows("two-step, wrong code", "That code is wrong.")
    page_client.press("preferences", language=page_client.language)
    page_client.shows("two-step, without the secret", "Enter the code that your authenticator app shows.")
    page_client.press("account/two-step/verify", code=app.code())
    page_client.shows("recovery codes", "Save your recovery codes")
    page_client.visit("/account/recovery-codes")
    page_client.shows("recovery codes, to replace", "Your old codes will stop working.")
    page_client.rows.run("DELETE FROM recovery_codes")
    page_client.visit("/account/recovery-codes")
    page_client.shows("recovery codes, the first ones", "Create recovery codes?")
    page_client.press("account/recovery-codes")
    page_client.visit("/account/two-step")
    page_client.shows("two-step, another app", "Your recovery codes stay the same.")
    page_client.visit("/account")
    page_client.visit(page_client.link_to("account/rename"))
    page_client.shows("rename", "Choose a name")
    page_client.press("account/rename", name="Alice’s phone")
    page_client.shows("account, app renamed", "The new name has been saved.")
    page_client.visit("/account")
    page_client.visit(page_client.link_to("account/passkeys/new"))
    page_client.shows("new passkey", "Add a passkey")
    page_client.visit("/account")
    page_client.remove("factor", "Two-step verification will be off")
    page_client.shows("account, app removed", "The app has been removed.")


def second_step(page_client: PageClient) -> None:
    """Every kind of second factor, which the API has set up before the browser signs in."""
    app, session = factors.set_up(page_client.person().sign_in(client=page_client.client), "Phone")
    recovery = session.post("/factors/recovery-codes", json={}).json["codes"]
    response = passkeys.register_response(session, Authenticator(), origin=page_client.origin)
    assert response.status_code == 200, response.text
    page_client.sign_in()
    page_client.shows("second step", "One more step")
    page_client.press("second-step", code=app.wrong_code())
    page_client.shows("second step, wrong code", "That code is wrong.")
    page_client.press("second-step/recovery", recovery_code="x")
    page_client.shows("second step, wrong recovery code", "That recovery code is wrong")
    page_client.press("second-step/passkey", credential="{}")
    page_client.shows("second step, passkey failed", "That passkey or security key didn’t work.")
    page_client.rows.run(_MORE_SESSIONS)
    page_client.press("second-step/recovery", recovery_code=recovery[0])
    page_client.shows("account, with everything", "Passkey")
    page_client.rows.run(
        "UPDATE sessions SET created_at = created_at - interval '20 minutes',"
        " reauthenticated_at = NULL, factor_proved_at = NULL"
    )
    page_client.visit("/account/email")
    page_client.shows("confirm, with factors", "Confirm it")
    page_client.press("second-step/passkey", credential="{}")
    page_client.shows("confirm, factor failed", "That passkey or security key didn’t work.")
    page_client.visit("/account/email")
    page_client.press("second-step/recovery", recovery_code=recovery[1])
    page_client.visit("/account")
    page_client.remove("passkey", "delete it there, too.")
    page_client.shows("account, passkey removed", "The passkey has been removed.")
    page_client.rows.run("UPDATE sessions SET factor_proved_at = now()")
    factors.raised(session, factors.enrol(session, "Tablet"), -1)
    security_keys.enrol(session)
    page_client.sign_in()
    page_client.shows("second step, several apps", "one of your authenticator apps")
    page_client.rows.run("UPDATE factors SET last_step = NULL")
    page_client.press("second-step", code=app.code())


def skipped_step(page_client: PageClient) -> None:
    session = page_client.person().sign_in(client=page_client.client)
    response = passkeys.register_response(session, Authenticator(), origin=page_client.origin)
    assert response.status_code == 200, response.text
    page_client.visit(
        f"/sign-in?{urlencode({'redirect_to': page_client.application, 'code_challenge': CHALLENGE})}"
    )
    page_client.press("sign-in", email=ALICE, password=PASSWORD)
    page_client.shows("second step, passkey alone", "Not now")
    page_client.press("second-step/skip")
    page_client.visit("/account/confirm")
    page_client.shows("confirm, with a passkey", "Sign in with a passkey")
    page_client.press("account/confirm/passkey", credential="{}")
    page_client.shows("confirm, passkey failed", "That passkey or security key didn’t work.")


def consenting(page_client: PageClient) -> None:
    """An application asks for everything."""
    page_client.person()
    client_id = insert_client(page_client.rows, page_client.application, name="Grafana", is_dynamic=True)
    parameters = {"redirect_uri": page_client.application, "scope": " ".join(OF_USERS), "login_hint": ALICE}
    page_client.visit(authorize_path(client_id, **parameters))
    page_client.shows("sign-in, for an application", "Sign in to Acme")
    page_client.press("sign-in", password=PASSWORD)
    page_client.shows("consent", "Grafana wants to:")
    document = {"metadata_url": "https://agent.example/client.json", "is_dynamic": True}
    agent_id = insert_client(page_client.rows, page_client.application, name="Agent", **document)
    page_client.visit(authorize_path(agent_id, **parameters))
    page_client.shows("consent, by a document", "agent.example wants to:")
    page_client.visit(authorize_path(client_id, **parameters, prompt="login"))
    page_client.shows("confirm, for an application", "Grafana asks you to sign in again.")
    page_client.visit(authorize_path(client_id, **parameters))
    page_client.press("sign-out")
    page_client.press("sign-in", email=ALICE, password=PASSWORD)
    page_client.rows.run("UPDATE oauth_clients SET is_blocked = true")
    page_client.press("oauth/consent")
    page_client.shows("consent, blocked", "Your account doesn’t have access.")
    page_client.rows.run("UPDATE oauth_clients SET is_blocked = false, allowed_roles = '{editor}'")
    page_client.press("oauth/consent")
    page_client.visit(authorize_path(client_id, **parameters))
    page_client.shows("consent, refused", "Your role doesn’t include access to")
    page_client.press("oauth/consent")
    page_client.visit(authorize_path(client_id, **parameters, prompt="none login"))
    page_client.shows("invalid request", "isn’t set up correctly")
    page_client.visit("/oauth/consent?authorization_id=" + "x" * 43)
    page_client.shows("consent, expired", "This request has expired")
    page_client.rows.run("UPDATE oauth_clients SET allowed_roles = '{}'")
    page_client.visit(authorize_path(client_id, **parameters))
    page_client.press("oauth/consent", action="approve")


def connecting(page_client: PageClient) -> None:
    """A television asks three times, and is allowed, denied and refused."""
    page_client.person()
    television = make_television(page_client.rows)

    def enter() -> None:
        form = {"client_id": television.id, "scope": "openid email"}
        codes = page_client.client.post("/oauth/device_authorization", json=form).json
        page_client.visit(f"/device?user_code={codes['user_code']}")

    enter()
    page_client.press("sign-in", email=ALICE, password=PASSWORD)
    page_client.shows("device", "Enter the code shown on your device.")
    page_client.press("device", user_code="BCDF-GHJK")
    page_client.shows("device, wrong code", "This code is wrong or has expired.")
    enter()
    page_client.press("device")
    page_client.shows("device, consent", "Only continue if you started this on a device in front of you.")
    page_client.press("device/consent", action="approve")
    page_client.shows("device, allowed", "Your device is connected")
    enter()
    page_client.rows.run("UPDATE oauth_requests SET ip = '198.51.100.7'")
    page_client.press("device")
    page_client.shows("device, another network", "which isn’t the network you’re using.")
    page_client.press("device/consent", action="deny")
    page_client.shows("device, denied", "Nothing was allowed.")


def logging_out(page_client: PageClient) -> None:
    page_client.person()
    page_client.sign_in()
    page_client.visit("/oauth/logout")
    page_client.shows("log-out for an application", "Sign out?")
    page_client.press("oauth/logout/confirm")
    page_client.shows("logged out for an application", "You’re signed out")
    page_client.sign_in()
    page_client.visit(f"/sign-out?{urlencode({'redirect_to': page_client.application})}")
    page_client.shows("sign-out", "asks to sign you out of Acme in this browser.")


def organizations(page_client: PageClient) -> None:
    """Alice founds an organization, Bob joins it, and it requires a second step."""
    path, alice, bob = "/account/organizations/initech", page_client.person(), page_client.person(BOB)
    page_client.sign_in()
    page_client.shows("account, no organization", "You aren’t a member of an organization.")
    parameters = {"redirect_uri": page_client.application, "scope": "openid organization organizations"}
    client_id = insert_client(page_client.rows, page_client.application, name="Grafana")
    page_client.visit(authorize_path(client_id, **parameters))
    page_client.shows("consent, no organization", "or create an organization.")
    page_client.rows.run("UPDATE users SET email_proved = false")
    page_client.visit(authorize_path(client_id, **parameters))
    page_client.shows("consent, no organization and none to found", "or use another account.")
    page_client.rows.run("UPDATE users SET email_proved = true")
    page_client.visit(authorize_path(client_id, **parameters | {"scope": "openid organization:hooli"}))
    page_client.shows("consent, another organization", "an organization that you aren’t in.")
    page_client.visit("/account/organizations/new")
    page_client.shows("new organization", "You’ll be its owner, and can invite others.")
    page_client.press("account/organizations/new", name="Initech", slug="Not a short name")
    page_client.shows("new organization, malformed", "Use lowercase letters, digits and hyphens.")
    page_client.press("account/organizations/new", name="Initech", slug="initech")
    page_client.shows("organization, new", "The organization has been created.")
    page_client.visit(f"{path}/name")
    page_client.shows("name of an organization", "Name of the organization")
    page_client.press("name", name="Initech Inc.")
    page_client.shows("organization, renamed", "Initech Inc.")
    page_client.visit(authorize_path(client_id, **parameters))
    page_client.shows("consent, for the organization", "You’ll use it as a member of")
    alice.sign_in(client=page_client.client).post("/organizations", json={"name": "Hooli", "slug": "hooli"})
    page_client.visit(authorize_path(client_id, **parameters))
    page_client.shows("consent, for which organization", "Choose an organization")
    page_client.rows.run("UPDATE organizations SET level = 'aal2' WHERE slug = 'hooli'")
    page_client.visit(authorize_path(client_id, **parameters))
    page_client.shows("consent, another one below", "Hooli asks for a second step.")
    page_client.visit(authorize_path(client_id, **parameters | {"scope": "openid organization:hooli"}))
    page_client.shows("consent, one more step", "One more step to use Grafana")
    page_client.rows.run("DELETE FROM organizations WHERE slug = 'hooli'")
    page_client.visit(f"{path}/sign-in")
    page_client.shows("single sign-on, without a domain", "A DNS record shows us")
    page_client.press("sign-in/domains", domain="gmail.com")
    page_client.shows("sign-in of an organization, malformed domain", "Use a domain of your own")
    page_client.press("sign-in/domains", domain="initech.example")
    page_client.shows("sign-in of an organization", "Not verified yet")
    page_client.press("sign-in/domains/initech.example")
    page_client.shows("single sign-on, without the record", "_latchkey.initech.example")
    page_client.visit(f"{path}/sign-in/new")
    page_client.shows("where employees sign in", "Another OpenID provider")
    for product in ("okta", "google", "keycloak", "other", "entra"):
        page_client.visit(f"{path}/sign-in/new/{product}")
        page_client.shows(f"connect {product}", "Copy this redirect URI")
    page_client.press(
        "sign-in/new/entra", issuer="ftp://x", client_id="x", client_secret="x", domains="initech.example"
    )
    page_client.shows("connect a provider, no URL", "We can’t use this issuer.")
    page_client.press("sign-in/new/entra", issuer="https://login.initech.example", domains="gmail.com")
    page_client.shows("connect a provider, no domain", "Use domains you’ve verified")
    page_client.visit(f"{path}/sign-in/requirement")
    page_client.shows("require the own sign-in, without a provider", "An identity provider must be on")
    page_client.rows.run(
        "UPDATE organization_domains SET proved_at = now(), checked_at = now();"
        " INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret, enabled,"
        " disabled_at, organization_id) SELECT id, 'custom:initech', 'Initech', 'https://login.initech.example',"
        " 'x', 'x', false, to_timestamp(0), id FROM organizations"
    )
    page_client.visit(f"{path}/sign-in")
    page_client.shows("sign-in of an organization, connected", "Test it: nobody else is affected.")
    id = page_client.rows.value("SELECT id::text FROM identity_providers")
    page_client.visit(f"{path}/sign-in/providers/{id}/change")
    page_client.shows("change a provider", "Leave it empty to keep the current one.")
    page_client.visit(f"{path}/sign-in/providers/{id}/test")
    page_client.shows("test a provider", "If login.initech.example shows an error")
    page_client.visit(f"{path}/sign-in/providers/{id}/on")
    page_client.press(f"sign-in/providers/{id}/on")
    page_client.shows("turn a provider on, untested", "then turn it on in the same browser.")
    page_client.rows.run("UPDATE identity_providers SET tried_at = now()")
    page_client.visit(f"{path}/sign-in")
    page_client.shows("single sign-on, tested elsewhere", "Test passed, but not in this session.")
    page_client.rows.run("UPDATE identity_providers SET is_on = true")
    page_client.visit(f"{path}/sign-in")
    page_client.shows("sign-in of an organization, on", "Turn off")
    page_client.rows.run(
        "INSERT INTO identity_provider_domains SELECT 'initech.example', id FROM identity_providers"
    )
    page_client.visit(f"{path}/sign-in/requirement")
    page_client.shows("require the own sign-in, of others", "Only an owner who signs in with")
    page_client.rows.run("UPDATE identity_provider_domains SET domain = 'example.com'")
    page_client.visit(f"{path}/sign-in/requirement")
    page_client.shows("require the own sign-in, in another session", "you’d lock yourself out")
    page_client.visit(f"{path}/sign-in/requirement/members")
    page_client.shows("members in another session", "Members who don’t sign in this way yet")
    page_client.rows.run("UPDATE organizations SET needs_own_provider = true")
    page_client.visit(path)
    page_client.shows("organization, asked for its sign-in", "You don’t have access to Initech Inc. yet")
    page_client.rows.run(
        "UPDATE organizations SET needs_own_provider = false; DELETE FROM identity_provider_domains"
    )
    page_client.visit(f"{path}/sign-in/providers/{id}/test")
    page_client.shows("test a provider, on", "Nothing changes for anyone else.")
    for act in ("off", "delete"):
        page_client.visit(f"{path}/sign-in/providers/{id}/{act}")
        page_client.shows(f"{act} a provider", "API keys created in those sessions")
    page_client.rows.run("UPDATE identity_providers SET is_on = false, is_blocked = true")
    page_client.visit(f"{path}/sign-in")
    page_client.shows("sign-in of an organization, blocked", "Turned off by the operator of this service")
    page_client.rows.run("DELETE FROM identity_providers")
    page_client.visit(f"{path}/sign-in")
    page_client.visit(f"{path}/sign-in/domains/initech.example/remove")
    page_client.shows("give a domain up", "can no longer sign in with your identity provider")
    page_client.press("sign-in/domains/initech.example/remove")
    page_client.shows("sign-in of an organization, domain removed", "Add domain")
    page_client.visit(f"{path}/leave")
    page_client.press("leave")
    page_client.shows("leave, last owner", "An organization needs an owner.")
    page_client.visit(f"{path}/invite")
    page_client.shows("invite", "Invite people to Initech Inc.")
    page_client.press("invite", emails=DAVE, role="member")
    page_client.shows("organization, invited", "The invitation has been sent.")
    page_client.press("again")
    page_client.shows("organization, invited again", "The invitation is valid for seven more days.")
    page_client.visit(f"{path}/history")
    page_client.shows("history of an organization", "History of Initech Inc.")
    page_client.visit(f"{path}/history?days=7")
    page_client.shows("history of the last week", "Last 7 days")
    page_client.visit(f"{path}?q=nobody")
    page_client.shows("organization, nobody found", "No member matches")
    page_client.visit(f"{path}?q=alice")
    page_client.shows("organization, somebody found", "1 result")
    page_client.visit(f"{path}/invite")
    page_client.press("invite", emails=f"dave@ {BOB}", role="member")
    page_client.shows("invite, malformed", "dave@ isn’t an email address.")
    page_client.press("invite", emails=f"{BOB} {ALICE}", role="", other_role="Billing!")
    page_client.shows("invite, no word for a role", "Use up to 32 lowercase letters")
    page_client.press("invite", emails=f"carol@example.com {ALICE}", role="", other_role="billing")
    page_client.shows("invite, one of two", "This invitation wasn’t sent:")
    page_client.rows.run("DELETE FROM organization_invitations WHERE email = 'carol@example.com'")
    page_client.visit(f"{path}/invite")
    page_client.press("invite", emails=ALICE, role="member")
    page_client.shows("invite, a member", "This person is already a member.")
    page_client.visit(path)
    page_client.press("withdraw")
    page_client.shows("organization, withdrawn", "No open invitations.")
    page_client.visit(f"{path}/invite")
    page_client.press("invite", emails=BOB, role="admin")
    page_client.sign_in(BOB)
    page_client.shows("account, invited", "You’re invited as admin.")
    page_client.visit(authorize_path(client_id, **parameters))
    page_client.shows("consent, invited", "View the invitation from")
    page_client.visit("/organizations/initech/join")
    page_client.shows("join an organization", "Its owners and admins will see your name and email address")
    page_client.press("organizations/initech/join", action="deny")
    page_client.shows("invitation, declined", "ask for a new invitation")
    _without_an_invitation(page_client)
    page_client.sign_in()
    page_client.visit(f"{path}/invite")
    page_client.press("invite", emails=BOB, role="admin")
    page_client.forget()
    page_client.visit("/organizations/initech/join")
    page_client.shows("sign-in, before an invitation", "to see your invitation")
    page_client.press("sign-in/code", email=BOB)
    page_client.shows("code, before an invitation", "You’ll see your invitation next.")
    page_client.sign_in(BOB)
    page_client.visit("/organizations/initech/join")
    page_client.press("organizations/initech/join", action="approve")
    page_client.shows("joined an organization", "You’re now a member of")
    page_client.visit("/organizations/initech/join")
    page_client.shows("invitation, of a member", "You’re already a member of")
    page_client.visit(path)
    page_client.shows("organization, of an admin", "Members")
    page_client.sign_in()
    page_client.visit(f"{path}/requirement")
    page_client.shows("require a second step, without one", "You need a second step yourself")
    page_client.rows.run("UPDATE organizations SET level = 'aal2'")
    page_client.visit(path)
    page_client.shows("organization, asked for a second step", "asks for a second step.")
    page_client.rows.run("UPDATE organizations SET level = 'aal1'")
    app, _ = factors.set_up(alice.sign_in(client=page_client.client))
    page_client.rows.run("UPDATE factors SET last_step = NULL")
    page_client.sign_in()
    page_client.press("second-step", code=app.code())
    page_client.visit(f"{path}/members/{bob.id}")
    page_client.shows("role", "Role of bob@example.com")
    page_client.press(f"members/{bob.id}", role="member")
    page_client.shows("organization, role changed", "The role has been saved.")
    page_client.visit(f"{path}/members/{bob.id}/remove")
    page_client.shows("remove a member", "Their account stays.")
    page_client.visit(f"{path}/requirement")
    page_client.shows("require a second step", "1 of 2 members doesn’t have a second step yet.")
    page_client.visit(f"{path}/requirement/members")
    page_client.shows("members without a second step", "bob@example.com")
    page_client.visit(f"{path}/requirement/age")
    page_client.shows("age of sign-ins", "As long as the session lasts")
    page_client.press("requirement/age", max_age="43200")
    page_client.shows("organization, age of sign-ins", "counts for 12 hours.")
    moment = "UPDATE sessions SET created_at = {moment}, reauthenticated_at = {moment}"
    page_client.rows.run(moment.format(moment="now() - interval '2 hours'"))
    page_client.visit(f"{path}/requirement/age")
    page_client.shows("age of sign-ins, own too old", "too old for some of these choices.")
    page_client.rows.run("UPDATE organizations SET max_age = '1 hour'")
    page_client.visit(path)
    page_client.shows("organization, asked to sign in again", "limits how long a sign\u2011in counts.")
    page_client.rows.run(f"UPDATE organizations SET max_age = NULL; {moment.format(moment='now()')}")
    page_client.visit(f"{path}/requirement")
    page_client.press("requirement")
    page_client.shows("organization, requirement", "now required for all members.")
    page_client.visit(f"{path}/requirement")
    page_client.shows("lift the requirement", "They get access to Initech Inc. again at once.")
    page_client.sign_in(BOB)
    page_client.shows("account, asked for a second step", "Initech Inc. asks for a second step.")
    page_client.visit(f"{path}/leave")
    page_client.shows("leave an organization", "To come back, you need an invitation.")
    page_client.press("leave")
    page_client.shows("account, left an organization", "You’ve left the organization.")
    page_client.rows.run(
        "UPDATE factors SET last_step = NULL;"
        " INSERT INTO memberships (user_id, organization_id, role, added_by)"
        " SELECT u.id, o.id, 'member', 'administrator' FROM users AS u, organizations AS o"
        " WHERE u.email = 'bob@example.com'"
    )
    page_client.sign_in()
    page_client.press("second-step", code=app.code())
    page_client.visit(f"{path}/members/{bob.id}/remove")
    page_client.press("remove")
    page_client.shows("organization, member removed", "The member has been removed.")
    page_client.visit(f"{path}/invite")
    page_client.press("invite", emails=DAVE, role="member")
    page_client.visit(f"{path}/end")
    page_client.shows("delete an organization", "1 open invitation ends.")
    page_client.press("end", confirmation="Initech")
    page_client.shows("delete an organization, another name", "This isn’t the organization’s name.")
    page_client.press("end", confirmation="initech inc.")
    page_client.shows("account, organization deleted", "The organization has been deleted.")


def _without_an_invitation(page_client: PageClient) -> None:
    """Show what a page says to accounts without an invitation, to each what it lacks."""
    address = "email = 'bob@example.com'"
    for columns, sentence in (
        ("email_proved = true", "There’s no invitation for"),
        ("email_proved = false", "Sign in with a code to confirm it."),
        ("email = NULL, email_confirmed_at = NULL, phone = '15555550100'", "this account doesn’t have one"),
    ):
        page_client.rows.run(f"UPDATE users SET {columns} WHERE {address}")
        page_client.visit("/organizations/nowhere/join")
        page_client.shows(f"no invitation, {columns.partition(' =')[0]}", sentence)
    page_client.rows.run(
        "UPDATE users SET email = 'bob@example.com', email_proved = true, email_confirmed_at = now(), phone = NULL"
        " WHERE phone = '15555550100'"
    )


def others(page_client: PageClient) -> None:
    page_client.visit("/")
    page_client.shows("welcome", "Latchkey is running")
    page_client.visit("/nowhere")
    page_client.shows("not found", "Page not found")
    page_client.visit("/sign-in")
    page_client.press("sign-in", form_token="0" * 64, email=ALICE, password=PASSWORD)
    page_client.shows("sign-in, old form", "You signed in or out in another window")
    page_client.press("preferences", language=page_client.language)
    page_client.visit(page_client.inbox)
    page_client.shows("inbox, empty", "No messages yet.")
    page_client.client.post("/signup", json={"email": DAVE, "password": PASSWORD})
    page_client.client.post(
        "/signup", json={"email": f"{'d' * 64}@{'example' * 9}.com", "password": PASSWORD}
    )
    page_client.client.post("/signup", json={"phone": PHONE, "password": PASSWORD})
    page_client.deliver()
    page_client.visit(page_client.inbox)
    page_client.shows("inbox", DAVE)


TOUR = (
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
    consenting,
    connecting,
    logging_out,
    organizations,
    others,
)


def tour_all(page_client: PageClient, database: Rows) -> None:
    for part in TOUR:
        database.empty()
        page_client.forget()
        part(page_client)
