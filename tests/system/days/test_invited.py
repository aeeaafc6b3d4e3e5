"""The day of Eve, whom Acme invites to Nimbus, and who has an account with her private address there."""

from tests.support.browser import fill
from tests.system.days.conftest import AUTHORIZATION, PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]

EVE, EVE_AT_HOME = "eve@acme.example", "eve@home.example"
HAS_ENDED = "It may have ended, or gone to another address."


def invite(site, slug, name, email=EVE, role="member"):
    """Let the operator invite an address, and return the id of the invitation."""
    site.post("/organizations", json={"name": name, "slug": slug}, headers=AUTHORIZATION)
    body = {"email": email, "role": role}
    response = site.post(f"/organizations/{slug}/invitations", json=body, headers=AUTHORIZATION)
    assert response.status_code == 201, response.data
    return response.json["id"]


def allow(page, nimbus, email):
    """Sign in at the application, in a browser that is signed in at the service."""
    page.open(f"{nimbus.url}/sign-in")
    page.wait_for("Allow")
    page.click("Allow")
    page.wait_for(f"Welcome, {email}")


def sign_up_at_home(page, nimbus, post):
    page.open(nimbus.url)
    page.click("Sign in")
    page.wait_for("to continue to Nimbus")
    page.click("Create an account")
    page.wait_for("Create your account")
    fill(page, email=EVE_AT_HOME, password=PASSWORD)
    page.click("Create account")
    page.wait_for("Check your inbox")
    fill(page, code=post.read(EVE_AT_HOME, "Confirm").code)
    page.click("Continue")
    page.wait_for("Allow")
    page.click("Allow")
    page.wait_for(f"Welcome, {EVE_AT_HOME}")


def sign_in_with_code(page, post):
    page.wait_for("to see your invitation")
    assert "Acme" not in page.text
    fill(page, email=EVE)
    page.click("Send me a code instead")
    page.wait_for("You’ll see your invitation next.")
    fill(page, code=post.read(EVE, "Sign in to Nimbus").code)
    page.click("Continue")


def assert_ends_at_the_application(page, nimbus):
    page.click("Continue to Nimbus")
    page.wait(lambda: page.url.startswith(nimbus.url))


def test_day_of_a_person_who_is_invited(page, origin, site, nimbus, post, database):
    # In the morning she has an account of her own.
    sign_up_at_home(page, nimbus, post)

    # Acme invites her at work, and her browser is still signed in with the private account.
    invite(site, "acme", "Acme")
    first_link = post.read(EVE, "Invitation to Acme").link
    page.open(first_link)
    page.wait_for(f"There’s no invitation for {EVE_AT_HOME} here. {HAS_ENDED}")
    assert "Acme" not in page.text
    page.click("Use another account")
    sign_in_with_code(page, post)
    page.wait_for("Join Acme as member?")

    # Before she answers, Acme invites her again, with another role. Both mails lead to the same question.
    post.clear()
    invite(site, "acme", "Acme", role="admin")
    second_link = post.read(EVE, "Invitation to Acme").link
    for link in (first_link, second_link):
        page.open(link)
        page.wait_for("Join Acme as admin?")
    page.click("Join")
    page.wait_for("You’re now a member of Acme")
    page.reload()
    page.wait_for("You’re now a member of Acme")
    assert_ends_at_the_application(page, nimbus)
    allow(page, nimbus, EVE)
    assert list(nimbus.answers[-1]["organizations"].values()) == ["admin"]

    # She opens the old mail again: nothing is asked, and nothing changes.
    page.open(first_link)
    page.wait_for("You’re already a member of Acme")
    assert "Join" not in page.text
    page.click("Open Acme")
    page.wait_for(EVE)
    page.open(first_link)
    page.wait_for("You’re already a member of Acme")
    assert_ends_at_the_application(page, nimbus)
    page.wait_for(f"Welcome, {EVE}")

    # An owner who invites her once more is told what to do instead.
    body = {"email": EVE, "role": "member"}
    refused = site.post("/organizations/acme/invitations", json=body, headers=AUTHORIZATION)
    assert (refused.status_code, refused.json["error_code"]) == (409, "already_member")

    # In the afternoon invitations end that she has not answered. Each link says the same as one of nobody.
    page.open(f"{origin}/organizations/nowhere/join")
    page.wait_for(f"There’s no invitation for {EVE} here. {HAS_ENDED}")
    nothing = page.text
    withdrawn = invite(site, "globex", "Globex")
    invite(site, "initech", "Initech")
    invite(site, "hooli", "Hooli")
    invite(site, "umbrella", "Umbrella", "carol@umbrella.example")
    mails = [post.read(EVE, f"Invitation to {name}").link for name in ("Globex", "Initech", "Hooli")]
    mails.append(post.read("carol@umbrella.example", "Invitation to Umbrella").link)
    path = f"/organizations/globex/invitations/{withdrawn}"
    assert site.delete(path, headers=AUTHORIZATION).status_code == 204
    database.run(
        "UPDATE organization_invitations SET expires_at = now() WHERE organization_id ="
        " (SELECT id FROM organizations WHERE slug = 'initech')"
    )
    assert site.delete("/organizations/hooli", json={}, headers=AUTHORIZATION).status_code == 204
    for link in mails:
        page.open(link)
        page.wait_for(f"There’s no invitation for {EVE} here. {HAS_ENDED}")
        assert page.text == nothing, link
    assert_ends_at_the_application(page, nimbus)

    # One goes while she looks at it, and the last one she declines.
    last = invite(site, "globex", "Globex")
    page.open(mails[0])
    page.wait_for("Join Globex as member?")
    path = f"/organizations/globex/invitations/{last}"
    assert site.delete(path, headers=AUTHORIZATION).status_code == 204
    page.click("Join")
    page.wait_for(f"There’s no invitation for {EVE} here. {HAS_ENDED}")
    invite(site, "globex", "Globex")
    page.open(mails[0])
    page.wait_for("Join Globex as member?")
    page.click("Decline")
    page.wait_for("Invitation declined")
    assert_ends_at_the_application(page, nimbus)
    page.wait_for(f"Welcome, {EVE}")
    assert database.all(
        "SELECT o.slug, m.role, u.email FROM memberships AS m JOIN organizations AS o ON o.id = m.organization_id"
        " JOIN users AS u ON u.id = m.user_id"
    ) == [("acme", "admin", EVE)]
