"""Days with passkeys: Alice gets one, and removes it on her phone; Emma, an employee, signs in again for Acme, whose
owner limits how long a sign-in counts.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browser import Browser, choose, fill
from tests.support.day_application import Application
from tests.support.inbox import Post
from tests.support.processes import free_port
from tests.support.relying_parties import create_client
from tests.system.browser.pages.test_owner_stories import press_until
from tests.system.browser.pages.test_passkey_offer_stories import MANAGER
from tests.system.days.conftest import AUTHORIZATION, PASSWORD
from tests.system.days.test_employee import open_application

pytest_plugins = ["tests.support.browser_fixtures"]

ALICE, EMMA, OLIVIA = "alice@example.com", "emma@acme.example", "olivia@acme.example"
NIGHT = """
UPDATE sessions SET created_at = created_at - interval '13 hours', auth_time = auth_time - interval '13 hours',
       reauthenticated_at = reauthenticated_at - interval '13 hours',
       factor_proved_at = factor_proved_at - interval '13 hours'
"""
ASKS = "Acme asks you to sign in again."


@pytest.fixture(scope="module")
def host() -> str:
    return "localhost"


@pytest.fixture(scope="module")
def settings(settings: dict[str, str]) -> dict[str, str]:
    return settings | {"AUTH_PASSKEY_OFFER": "auto"}


@pytest.fixture
def laptop(page) -> Iterator[str]:
    """The authenticator of the laptop: a password manager that is on the phone, too."""
    page.resize(1280, 900)
    added = page.add_authenticator(is_synced=True)
    yield added
    page.remove_authenticator(added)


@pytest.fixture
def handset(phone) -> Iterator[str]:
    """The authenticator of the phone."""
    added = phone.add_authenticator(is_synced=True)
    yield added
    phone.remove_authenticator(added)


@pytest.fixture
def notes(site, origin) -> Iterator[Application]:
    """An application for members of one organization."""
    with Application(origin, free_port(), "Notes") as application:
        application.scopes = "openid email offline_access organization"
        yield application.use(create_client(site, AUTHORIZATION, **application.registration()))


def register(site: Any, *emails: str) -> list[str]:
    """Give people accounts with a password, and return their ids."""
    ids = []
    for email in emails:
        body = {"email": email, "password": PASSWORD, "email_confirm": True}
        response = site.post("/admin/users", json=body, headers=AUTHORIZATION)
        assert response.status_code == 200, response.data
        ids.append(response.json["id"])
    return ids


def type_password(tab: Browser, origin: str, email: str) -> None:
    tab.open(f"{origin}/sign-in")
    tab.wait_for("Sign in to Nimbus")
    fill(tab, email=email, password=PASSWORD)
    tab.click("Sign in")


def by_passkey(tab: Browser, origin: str) -> None:
    """Open the account in a browser that is not signed in, whose email field offers the passkey."""
    tab.open(f"{origin}/sign-in")
    tab.wait_for("Your account")


def memberships(application: Application) -> dict[str, Any]:
    """Return the memberships in the application's access token."""
    payload = application.token["access_token"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(f"{payload}==="))
    return claims.get("organizations") or claims.get("organization") or {}


def test_alice_has_a_password_today_and_a_passkey_tomorrow_and_removes_it_on_her_phone(
    page, phone, laptop, handset, nimbus, site, origin, post: Post, database
):
    register(site, ALICE)
    open_application(page, nimbus)
    fill(page, email=ALICE, password=PASSWORD)
    page.click("Sign in")
    # The only question.
    page.wait(lambda: "/oauth/consent?" in page.url)
    page.click("Allow")
    page.wait_for(f"Welcome, {ALICE}")

    # At her next sign-in, by keyboard alone.
    page.forget()
    open_application(page, nimbus)
    fill(page, email=ALICE, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("Sign in faster next time")
    assert "A passkey lets you sign in with your fingerprint, face or PIN" in page.text
    assert press_until(page, "Create a passkey") <= 3
    page.press("Enter")
    page.wait_for(f"Welcome, {ALICE}")
    post.read(ALICE, "A passkey was added to your account")

    # Tomorrow, the sign-in takes no password, and asks nothing.
    page.forget()
    nimbus.token = {}
    page.open(f"{nimbus.url}/sign-in")
    page.wait_for(f"Welcome, {ALICE}")

    # Her password manager has it on the phone.
    (passkey,) = page.kept_credentials(laptop)
    phone.keep_credential(handset, passkey)
    by_passkey(phone, origin)
    phone.click("Remove Passkey")
    phone.wait_for("Remove “Passkey”?")
    assert "If your device still offers it afterwards, delete it there, too." in phone.text
    assert "We’ll also sign out your other devices." not in phone.text
    phone.click("Remove")
    phone.wait_for("The passkey has been removed.")
    phone.wait(lambda: phone.kept_credentials(handset) == [])
    post.read(ALICE, "A passkey was removed from your account")

    # The laptop, on which the application is still signed in, offers it once more.
    assert nimbus.refresh()
    page.forget()
    page.open(f"{origin}/sign-in")
    page.wait_for("That passkey no longer works here. Choose another way.")
    page.wait(lambda: page.kept_credentials(laptop) == [])
    fill(page, email=ALICE, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("Sign in faster next time")
    page.click("Not now")
    page.wait_for("Your account")
    page.click("Sign out")
    page.wait_for("You’re signed out")
    type_password(page, origin, ALICE)
    page.wait_for("Your account")
    assert database.count("factors") == 0


def test_browser_of_alice_makes_one_by_itself_and_her_phone_uses_it_first(
    page, phone, laptop, handset, site, origin, post: Post, database
):
    register(site, ALICE)
    with page.on_each_page(MANAGER):
        type_password(page, origin, ALICE)
        page.wait_for("not used yet")
        assert "The passkey has been added." in page.text
    letter = post.read(ALICE, "Your browser made a passkey for your account").text
    assert "If you don’t, it’s removed after 30 days." in letter

    # The next day. Another notice of the kind would wait for ten minutes.
    database.run("UPDATE outbox SET finished_at = finished_at - interval '1 day'")
    (passkey,) = page.kept_credentials(laptop)
    phone.keep_credential(handset, passkey)
    by_passkey(phone, origin)
    assert "not used yet" not in phone.text
    letter = post.read(ALICE, "A new passkey was used to sign in to your account").text
    assert "Sensitive changes now require it." in letter
    # The laptop is still signed in, and its account page asks for what is a factor now.
    page.open(f"{origin}/account")
    page.wait_for("One more step")
    page.click("Sign in with a passkey")
    page.wait_for("Your account")
    assert "not used yet" not in page.text
    assert page.kept_credentials(laptop) != []
    assert database.count("sessions", "ended_at IS NOT NULL") == 0


def limit_sign_ins(page: Browser, origin: str) -> None:
    """Have the last 12 hours count, as Olivia."""
    type_password(page, origin, OLIVIA)
    page.wait_for("Sign in faster next time")
    page.click("Not now")
    page.wait_for("Your account")
    page.click("Open Acme")
    page.wait_for("A sign\u2011in counts as long as the session lasts.")
    page.click("Change Sign\u2011in frequency")
    page.wait_for("How long does a sign\u2011in count at Acme?")
    assert f"Their account page says: “{ASKS}” A button there leads to the sign\u2011in." in page.text
    assert "would have to sign in again now" not in page.text
    choose(page, "43200")
    page.click("Save")
    page.wait_for("The sign\u2011in frequency has been changed.")
    assert "A sign\u2011in counts for 12 hours." in page.text


def test_emma_meets_the_age_of_her_sign_in_the_next_morning_and_comes_back_by_her_passkey(
    page, phone, laptop, handset, nimbus, notes, site, origin, database
):
    emma, olivia = register(site, EMMA, OLIVIA)
    organization = {"name": "Acme", "slug": "acme"}
    acme = site.post("/organizations", json=organization, headers=AUTHORIZATION).json["id"]
    for id, role in ((olivia, "owner"), (emma, "member")):
        path = f"/organizations/acme/members/{id}"
        assert site.put(path, json={"role": role}, headers=AUTHORIZATION).status_code == 200

    # Emma's phone gets its passkey, and she uses two applications.
    type_password(phone, origin, EMMA)
    phone.wait_for("Sign in faster next time")
    phone.click("Create a passkey")
    phone.wait_for("The passkey has been added.")
    for application in (nimbus, notes):
        phone.open(f"{application.url}/sign-in")
        phone.wait(lambda: "/oauth/consent?" in phone.url)
        phone.click("Allow")
        phone.wait_for(f"Welcome, {EMMA}")
    assert memberships(nimbus) == {acme: "member"}
    assert memberships(notes)["slug"] == "acme"

    limit_sign_ins(page, origin)
    assert nimbus.refresh()
    assert memberships(nimbus) == {acme: "member"}

    # The next morning.
    database.run(NIGHT)
    assert nimbus.refresh()
    assert memberships(nimbus) == {}
    assert not notes.refresh()
    bookmark = f"{origin}/account/organizations/acme"
    phone.open(bookmark)
    phone.wait_for("Sign in again to open Acme")
    assert "You’re still signed in everywhere else." in phone.text
    phone.click("Sign in again")
    phone.wait_for("Confirm it’s you")
    assert ASKS in phone.text
    phone.click("Sign in with a passkey")
    phone.wait_for("A sign\u2011in counts for 12 hours.")
    assert phone.url == bookmark
    # What the applications have is as old as before, until Emma opens them.
    assert nimbus.refresh()
    assert memberships(nimbus) == {}
    for application in (nimbus, notes):
        application.token = {}
        phone.open(f"{application.url}/sign-in")
        phone.wait_for(f"Welcome, {EMMA}")
    assert memberships(nimbus) == {acme: "member"}
    assert memberships(notes)["slug"] == "acme"
    assert notes.refresh()

    # The morning after, the application is where she meets it.
    database.run(NIGHT)
    phone.open(f"{notes.url}/sign-in")
    phone.wait_for(ASKS)
    phone.click("Sign in again Acme")
    phone.wait_for("Confirm it’s you")
    phone.click("Sign in with a passkey")
    phone.wait_for(f"Welcome, {EMMA}")
    assert memberships(notes)["slug"] == "acme"

    # The owner, whose own sign-in is as old, lifts the limit after her password.
    page.open(f"{origin}/account")
    page.wait_for(ASKS)
    page.click("Sign in again Acme")
    page.wait_for("Confirm it’s you")
    assert ASKS in page.text
    fill(page, current_password=PASSWORD)
    page.click("Continue")
    page.wait_for("A sign\u2011in counts for 12 hours.")
    page.click("Change Sign\u2011in frequency")
    choose(page, "0")
    page.click("Save")
    page.wait_for("A sign\u2011in counts as long as the session lasts.")
    page.click("History")
    page.wait_for("stopped limiting how long a sign\u2011in counts.")
    assert f"{OLIVIA} limited how long a sign\u2011in counts to 12 hours." in page.text
    assert database.count("sessions", "ended_at IS NOT NULL") == 0
