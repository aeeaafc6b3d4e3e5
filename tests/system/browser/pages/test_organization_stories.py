"""Organizations in a real browser on a phone's screen, from the founder to a member's second step."""

import pytest

from tests.support.browser import fill
from tests.support.factors import App
from tests.support.users import DAVE
from tests.system.browser.pages.test_stories import signed_in

pytest_plugins = ["tests.support.browser_fixtures"]


@pytest.fixture(scope="module")
def settings(mailing: dict[str, str]) -> dict[str, str]:
    return {**mailing, "AUTH_ORGANIZATIONS": "users", "AUTH_DISABLE_SIGNUP": "true"}


def found(page, origin, person):
    """Sign a person in, and found Initech."""
    signed_in(page, origin, person)
    page.click("New organization")
    page.wait_for("You’ll be its owner")
    fill(page, name="Initech", slug="initech")
    page.click("Create organization")
    page.wait_for("The organization has been created.")


def test_founder_invites_a_person_who_joins_with_a_new_account_although_sign_up_is_closed(
    page, origin, post, alice, database
):
    found(page, origin, alice)
    page.click("Invite")
    page.wait_for("Invite people to Initech")
    fill(page, emails=DAVE)
    page.click("Send invitations")
    page.wait_for("The invitation has been sent.")
    invitation = post.read(DAVE, "Invitation to Initech").link
    assert invitation == f"{origin}/organizations/initech/join"
    page.forget()
    page.open(invitation)
    page.wait_for("Sign in to Acme")
    fill(page, email=DAVE)
    page.click("Send me a code instead")
    page.wait_for("Check your inbox")
    fill(page, code=post.read(DAVE, "Sign in to Acme").code)
    page.click("Continue")
    page.wait_for("Join Initech as member?")
    page.click("Join")
    page.wait_for("You’re now a member of Initech")
    page.click("Open Initech")
    page.wait_for("Leave")
    assert "alice@example.com" not in page.text
    assert database.count("memberships", "added_by = 'invitation' AND role = 'member'") == 1


def test_organization_that_requires_a_second_step_asks_its_member_for_it(page, origin, alice, bob, database):
    found(page, origin, alice)
    database.run(
        "INSERT INTO memberships (user_id, organization_id, role, added_by)"
        " SELECT %(id)s, id, 'member', 'administrator' FROM organizations",
        id=bob.id,
    )
    # The owner sets one up first.
    page.reload()
    page.wait_for("Members 2")
    page.click("Require Two-step verification")
    page.wait_for("You need a second step yourself before you can require it of others.")
    page.click("Set up a second step")
    set_up_app(page)
    page.wait_for("1 of 2 members doesn’t have a second step yet.")
    page.click("Require")
    page.wait_for("Two-step verification is now required for all members.")
    page.forget()
    signed_in(page, origin, bob)
    assert "Initech asks for a second step." in page.text
    page.click("Complete the second step Initech")
    set_up_app(page)
    page.wait_for("Required for all members.")
    page.open(f"{origin}/account")
    page.wait_for("Open")
    assert "asks for a second step" not in page.text


def set_up_app(page):
    """Set up an authenticator app, and continue to the page that asked for it."""
    page.wait_for("Set it up")
    page.click("Set it up")
    page.wait_for("Connect your app")
    secret = page.run("document.querySelector('code').textContent").replace(" ", "")
    fill(page, code=App("", secret).code())
    page.click("Turn on")
    page.wait_for("Save your recovery codes")
    page.click("I’ve saved them")
