"""A day of a customer's administrator: from *Single sign-on* to everybody signed in, with the usual mistakes."""

from typing import Any

from tests.support.browser import Browser, fill
from tests.system.days.conftest import PASSWORD, Company

pytest_plugins = ["tests.support.browser_fixtures"]

ADA, BEN = "ada@acme.example", "ben@acme.example"


def test_administrator_connects_the_company_and_an_employee_signs_in(
    page: Browser, origin: str, post: Any, company: Company, nimbus: Any, database: Any
) -> None:
    company.hire(ADA, BEN)
    _found_acme(page, origin, post)
    page.click("Open Single sign\u2011on (SSO)")
    page.wait_for("A DNS record shows us that it’s yours.")
    _verify_the_domain(page, company)
    client = _connect(page, company)
    _test(page, company, client["client_secret"])
    page.click("Turn on Acme")
    page.wait_for("From now on, everyone at acme.example signs in with it.")
    page.click("Turn on")
    page.wait_for("Single sign\u2011on is on.")
    assert "On. Everyone at acme.example signs in with it." in page.text
    assert _primary_buttons(page) == []
    page.forget()
    _sign_in_as_an_employee(page, company, nimbus)
    members = database.all("SELECT u.email, m.role FROM memberships AS m JOIN users AS u ON u.id = m.user_id")
    assert {tuple(each) for each in members} == {(ADA, "owner"), (BEN, "member")}


def _found_acme(page: Browser, origin: str, post: Any) -> None:
    page.open(f"{origin}/sign-up")
    page.wait_for("Create your account")
    fill(page, email=ADA, password=PASSWORD)
    page.click("Create account")
    page.wait_for("Check your inbox")
    page.type(post.read(ADA, "Confirm your email address").code)
    page.wait(lambda: "/sign-up" not in page.url)
    page.open(f"{origin}/account")
    page.wait_for("New organization")
    page.click("New organization")
    page.wait_for("You’ll be its owner")
    fill(page, name="Acme", slug="acme")
    page.click("Create organization")
    page.wait_for("The organization has been created.")


def _verify_the_domain(page: Browser, company: Company) -> None:
    assert _primary_buttons(page) == ["Add domain"]
    fill(page, domain="https://www.acme.example/")
    page.click("Add domain")
    page.wait_for("Not verified yet")
    assert _primary_buttons(page) == ["Check acme.example"]
    name, value = _to_copy(page, "#domains")
    assert name == "_latchkey.acme.example"
    page.click("Check acme.example")
    page.wait_for("There’s no TXT record at _latchkey.acme.example yet.")
    # Her DNS service appends the domain.
    company.publish(f"{name}.acme.example", value)
    page.click("Check acme.example")
    page.wait_for("The record is at _latchkey.acme.example.acme.example. Move it to _latchkey.acme.example.")
    company.names.texts.clear()
    company.publish(name, value)
    page.click("Check acme.example")
    page.wait_for("The domain has been verified.")
    assert "acme.example is verified" in page.text
    assert _primary_buttons(page) == ["Connect identity provider"]


def _connect(page: Browser, company: Company) -> dict[str, Any]:
    page.click("Connect identity provider")
    page.wait_for("Where do your employees sign in?")
    page.click("Another OpenID provider")
    page.wait_for("Copy this redirect URI")
    (redirect_uri,) = _to_copy(page, "main")
    client = company.register(redirect_uri)
    # She copies what her provider's documentation shows, and the secret without its end.
    fill(
        page,
        issuer=f"{company.issuer}/.well-known/openid-configuration",
        client_id=client["client_id"],
        client_secret=client["client_secret"][:-1],
    )
    page.click("Connect")
    page.wait_for("Now test the sign\u2011in.")
    assert _primary_buttons(page) == ["Test sign\u2011in Acme"]
    return client


def _test(page: Browser, company: Company, secret: str) -> None:
    page.click("Test sign\u2011in Acme")
    page.wait_for("Nobody else is affected until you turn it on.")
    assert f"If {company.host} shows an error" in page.text
    page.click("Test sign\u2011in")
    company.sign_in(page, ADA)
    page.wait_for("The client secret is wrong or has expired.")
    page.click("Change Acme")
    page.wait_for("Leave it empty to keep the current one.")
    fill(page, client_secret=secret)
    page.click("Save")
    page.wait_for("The identity provider has been changed.")
    page.click("Test sign\u2011in Acme")
    page.wait_for("Nobody else is affected until you turn it on.")
    page.click("Test sign\u2011in")
    page.wait_for("Test passed. Turn it on for everyone at acme.example.")
    assert _primary_buttons(page) == ["Turn on Acme"]


def _sign_in_as_an_employee(page: Browser, company: Company, nimbus: Any) -> None:
    page.open(nimbus.url)
    page.click("Sign in")
    page.wait_for("Sign in to Nimbus")
    fill(page, email=BEN, password="what Ben types here is not read")
    page.click("Sign in")
    company.sign_in(page, BEN)
    page.wait(lambda: page.url.startswith(f"{nimbus.issuer}/oauth/consent"))
    page.click("Allow")
    page.wait_for(f"Welcome, {BEN}")
    assert page.url.startswith(nimbus.url)


def _to_copy(page: Browser, place: str) -> list[str]:
    """Return what the boxes with *Copy* hold."""
    return page.run(f"[...document.querySelectorAll('{place} .sent code')].map(each => each.textContent)")


def _primary_buttons(page: Browser) -> list[str]:
    return page.run(
        "[...document.querySelectorAll('main :is(button, a.button):not(.other, .add, .text, .link)')]"
        ".map(each => each.textContent.trim())"
    )
