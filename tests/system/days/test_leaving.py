"""The day on which people leave Acme: what ends at three applications, what stays, and what the company can still do."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from tests.support.browser import Browser, fill, open_menu
from tests.support.day_application import Application
from tests.support.processes import free_port
from tests.support.relying_parties import create_client
from tests.system.days.conftest import AUTHORIZATION, PASSWORD, Company

pytest_plugins = ["tests.support.browser_fixtures"]

BOB, CAROL, DORA, ERIN = (f"{name}@acme.example" for name in ("bob", "carol", "dora", "erin"))
OWN_PASSWORD = "Own-Horse-Of-Bob-7"


class Applications(NamedTuple):
    """Notes asks for one organization, Mail for all, and Wiki for none."""

    notes: Application
    mail: Application
    wiki: Application

    def open(self, page: Browser, email: str) -> tuple[dict[str, Any], ...]:
        """Open each in a browser that is signed in, and return the tokens that they get."""
        for application in self:
            page.open(f"{application.url}/sign-in")
            page.wait(lambda: "/oauth/consent?" in page.url or f"Welcome, {email}" in page.text)
            if "/oauth/consent?" in page.url:
                page.click("Allow")
            page.wait_for(f"Welcome, {email}")
        return tuple(application.token for application in self)

    def refresh(self, tokens: tuple[dict[str, Any], ...]) -> dict[str, bool]:
        """Use these refresh tokens, and return which applications still have access."""
        results = {}
        for application, token in zip(self, tokens, strict=True):
            application.token = token
            results[application.name] = application.refresh()
        return results


@pytest.fixture
def applications(site, origin) -> Iterator[Applications]:
    scopes = {"Notes": "organization", "Mail": "organizations", "Wiki": ""}
    with ExitStack() as stack:
        made = []
        for name, scope in scopes.items():
            application = Application(origin, free_port(), name)
            application.scopes = f"openid email offline_access {scope}".strip()
            application.use(create_client(site, AUTHORIZATION, **application.registration()))
            made.append(stack.enter_context(application))
        yield Applications(*made)


def sign_in_with_company(page: Browser, company: Company, origin: str, email: str) -> None:
    """Sign in here with the company, where the person is not signed in yet."""
    page.open(f"{origin}/sign-in")
    page.wait_for("Sign in to Nimbus")
    page.click("Sign in with your company")
    fill(page, email=email)
    page.click("Continue")
    page.wait(lambda: page.url.startswith(f"{company.issuer}/sign-in"))
    fill(page, email=email, password=PASSWORD)
    page.click("Sign in")


def use_own_way(page: Browser, email: str) -> None:
    """Go past the company on the sign-in page."""
    page.wait_for("Sign in to Nimbus")
    fill(page, email=email)
    page.click("Send me a code instead")
    page.wait_for("acme.example signs in with its company")
    page.click("Use a password or a code instead")
    page.wait_for("Sign in to Nimbus")
    fill(page, email=email)


def become_owner(page: Browser, company: Company, origin: str, site: Any, email: str, database: Any) -> None:
    """Sign in for the first time; then the operator makes this person the owner."""
    company.hire(email)
    sign_in_with_company(page, company, origin, email)
    page.wait_for("Allow")
    page.click("Allow")
    page.wait_for("Your account")
    id = database.value("SELECT id::text FROM users WHERE email = %(email)s", email=email)
    path = f"/organizations/acme/members/{id}"
    assert site.put(path, json={"role": "owner"}, headers=AUTHORIZATION).status_code == 200


def remove(page: Browser, origin: str, email: str, *sentences: str) -> None:
    """Remove a member, as the owner, after the page has said what ends and what stays."""
    page.open(f"{origin}/account")
    page.click("Open Acme")
    page.wait_for("Members")
    open_menu(page, email)
    page.click(f"Remove {email}")
    page.wait_for("Their account stays.")
    for sentence in (
        "Applications that they use as a member of Acme lose access.",
        "Other applications and devices stay signed in.",
        *sentences,
    ):
        assert sentence in page.text
    page.click("Remove")
    page.wait_for("The member has been removed.")


def test_bob_who_had_moved_keeps_his_account_and_the_company_cannot_open_it_any_more(
    request, page, phone, company, origin, site, post, database, applications
):
    # Bob has an account before Acme is a customer, and moves on the first morning.
    page.open(f"{applications.wiki.url}/sign-in")
    page.wait_for("Sign in to Nimbus")
    page.click("Create an account")
    page.wait_for("Create your account")
    fill(page, email=BOB, password=OWN_PASSWORD)
    page.click("Create account")
    page.wait_for("Check your inbox")
    page.type(post.read(BOB, "Confirm your email address").code)
    page.wait(lambda: "/oauth/consent?" in page.url)
    page.click("Allow")
    page.wait_for(f"Welcome, {BOB}")
    request.getfixturevalue("connected")
    company.hire(BOB)
    page.forget()
    page.open(f"{applications.wiki.url}/sign-in")
    page.wait_for("Sign in to Nimbus")
    fill(page, email=BOB, password=OWN_PASSWORD)
    page.click("Sign in")
    company.sign_in(page, BOB)
    page.wait_for("You already have an account for bob@acme.example.")
    fill(page, password=OWN_PASSWORD)
    page.click("Sign in")
    page.wait_for("Move to your company’s")
    page.click(f"Sign in with your company {company.host}")
    page.wait_for(f"Welcome, {BOB}")
    by_company = applications.open(page, BOB)
    assert applications.mail.answers[-1]["organizations"]
    # His phone knows his own password.
    phone.open(f"{applications.wiki.url}/sign-in")
    use_own_way(phone, BOB)
    fill(phone, password=OWN_PASSWORD)
    phone.click("Sign in")
    phone.wait_for(f"Welcome, {BOB}")
    by_password = applications.open(phone, BOB)

    # He leaves, and Dora removes him.
    phone.forget()
    become_owner(phone, company, origin, site, DORA, database)
    remove(phone, origin, BOB, "The organization’s sign\u2011in will no longer open their account.")
    assert applications.refresh(by_company) == {"Notes": False, "Mail": False, "Wiki": False}
    assert applications.refresh(by_password) == {"Notes": False, "Mail": True, "Wiki": True}
    letter = post.read(BOB, "A way to sign in was removed from your account").text
    for sentence in (
        "its sign-in no longer opens your account.",
        "Sessions that it opened have ended, and applications that you used as a member have lost access.",
        "Everything else stays signed in.",
    ):
        assert sentence in letter

    # His laptop, which the company had signed in.
    page.open(f"{origin}/account")
    page.wait_for("Sign in to Nimbus")
    page.forget()
    sign_in_with_company(page, company, origin, BOB)
    page.wait_for("You already have an account for bob@acme.example.")
    page.open(f"{applications.wiki.url}/sign-in")
    use_own_way(page, BOB)
    fill(page, password=OWN_PASSWORD)
    page.click("Sign in")
    page.wait_for(f"Welcome, {BOB}")
    page.open(f"{origin}/account")
    page.wait_for("You aren’t a member of an organization.")
    assert "It can still open this account." not in page.text
    page.open(f"{applications.notes.url}/sign-in")
    page.wait_for("Notes is for members of an organization, and you aren’t in one.")


def test_carol_whose_account_the_company_made_reads_that_it_still_opens_it_and_disconnects_it(
    page, phone, company, connected, origin, site, post, database, applications
):
    company.hire(CAROL)
    page.open(f"{origin}/sign-in")
    page.click("Sign in with your company")
    fill(page, email=CAROL)
    page.click("Continue")
    company.sign_in(page, CAROL)
    page.wait_for("Your account")
    tokens = applications.open(page, CAROL)

    become_owner(phone, company, origin, site, ERIN, database)
    remove(phone, origin, CAROL, "can still open their account and makes them a member again")
    assert applications.refresh(tokens) == {"Notes": False, "Mail": True, "Wiki": True}
    letter = post.read(CAROL, "You’re no longer a member of Acme").text
    for sentence in (
        "Applications that you used as a member have lost access",
        "The organization’s sign-in can still open it, which makes you a member again.",
        "You can disconnect the organization’s sign-in on your account page after signing in another way.",
    ):
        assert sentence in letter

    # The company's session goes on, but cannot disconnect the company.
    page.open(f"{origin}/account")
    page.wait_for("It can still open this account.")
    assert "To disconnect it, sign in another way first" in page.text
    page.click("Sign out")
    page.wait_for("You’re signed out")
    page.open(f"{origin}/sign-in")
    use_own_way(page, CAROL)
    page.click("Send me a code instead")
    page.wait_for("Check your inbox")
    page.type(post.read(CAROL, "Sign in to Nimbus").code)
    page.wait_for("It can still open this account.")
    page.click("Disconnect Acme Login")
    page.wait_for("It will no longer be able to open this account")
    page.click("Remove")
    page.wait_for("The account has been disconnected.")
    assert "It can still open this account." not in page.text
    assert applications.refresh(tokens) == {"Notes": False, "Mail": False, "Wiki": False}
    page.forget()
    sign_in_with_company(page, company, origin, CAROL)
    page.wait_for("You already have an account for carol@acme.example.")
    assert database.count("memberships") == 1
