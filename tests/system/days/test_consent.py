"""The day on which Alice opens Notes, an application for members of an organization: in none, in one, in two."""

from collections.abc import Iterator

import pytest

from tests.support.browser import choose, fill
from tests.support.day_application import Application
from tests.support.processes import free_port
from tests.support.relying_parties import create_client
from tests.system.days.conftest import AUTHORIZATION, PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]

ALICE = "alice@acme.example"
PLACES = """["Choose an organization", "Notes wants to:", "Allow", "Access ends"]
  .map((part) => document.body.innerText.indexOf(part))"""
# How far down the button is, on a phone of 740 pixels.
_DEPTH = "document.querySelector('[name=action]').getBoundingClientRect().bottom + scrollY"


@pytest.fixture
def notes(site, origin) -> Iterator[Application]:
    with Application(origin, free_port(), "Notes") as application:
        application.scopes = "openid email offline_access organization"
        yield application.use(create_client(site, AUTHORIZATION, **application.registration()))


def test_alice_in_none_founds_one_and_in_two_chooses_each_although_one_asks_for_its_own_sign_in(
    request, phone, notes, company, site, origin, post, database
):
    # In none.
    phone.open(f"{notes.url}/sign-in")
    phone.wait_for("Sign in to Nimbus")
    phone.click("Create an account")
    phone.wait_for("Create your account")
    fill(phone, email=ALICE, password=PASSWORD)
    phone.click("Create account")
    phone.wait_for("Check your inbox")
    phone.type(post.read(ALICE, "Confirm your email address").code)
    phone.wait_for("Notes is for members of an organization, and you aren’t in one.")
    phone.click("New organization")
    phone.wait_for("You’ll be its owner")
    fill(phone, name="Globex")
    phone.click("Create organization")
    phone.wait_for("You’ll use it as a member of Globex.")
    phone.click("Allow")
    phone.wait_for(f"Welcome, {ALICE}")
    assert notes.answers[-1]["organization"]["slug"] == "globex"

    # In two: Acme, which she joins, asks for its own sign-in.
    request.getfixturevalue("connected")
    own = {"requires": {"own_provider": True}}
    assert site.put("/organizations/acme", json=own, headers=AUTHORIZATION).status_code == 200
    body = {"email": ALICE, "role": "billing"}
    invited = site.post("/organizations/acme/invitations", json=body, headers=AUTHORIZATION)
    assert invited.status_code == 201, invited.data
    phone.open(post.read(ALICE, "Invitation to Acme").link)
    phone.wait_for("Join Acme as")
    phone.click("Join")
    phone.wait(lambda: database.count("memberships") == 2)
    phone.open(f"{notes.url}/sign-in")
    phone.wait_for("You’ll use it as a member of Globex.")
    assert "Acme asks you to sign in with your company’s account." in phone.text
    assert phone.run(_DEPTH) < 740
    phone.click("Allow")
    phone.wait_for(f"Welcome, {ALICE}")
    assert notes.answers[-1]["organization"]["slug"] == "globex"
    token = notes.token

    # She comes back for Acme.
    company.hire(ALICE)
    phone.open(f"{notes.url}/sign-in")
    phone.wait_for("You’ll use it as a member of Globex.")
    asks = phone.url
    phone.click("Sign in with your company Acme")
    phone.wait_for("Move to your company’s")
    phone.click(f"Sign in with your company {company.host}")
    company.sign_in(phone, ALICE)
    phone.wait_for("Choose an organization")
    assert phone.url == asks
    places = phone.run(PLACES)
    assert places == sorted(places)
    assert places[0] > 0
    assert phone.run(_DEPTH) < 740
    # Nothing is chosen for her.
    phone.click("Allow")
    assert phone.url == asks
    choose(phone, database.value("SELECT id::text FROM organizations WHERE slug = 'acme'"))
    phone.click("Allow")
    phone.wait_for(f"Welcome, {ALICE}")
    organization = notes.answers[-1]["organization"]
    assert (organization["slug"], organization["role"]) == ("acme", "billing")
    assert notes.refresh()
    # The move has ended her other sessions, and the one at Notes that they opened for Globex.
    notes.token = token
    assert not notes.refresh()
