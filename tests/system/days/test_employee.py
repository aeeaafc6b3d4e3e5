"""An employee's day: Acme has connected its provider, and Zoe and Bob open the application with it."""

import pytest

from tests.support.browser import Browser, fill
from tests.system.days.conftest import PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]

BOB = "bob@acme.example"
OWN_PASSWORD = "Own-Horse-Of-Bob-7"


def open_application(page: Browser, nimbus) -> None:
    """Open the application in a browser that it does not know."""
    nimbus.token = {}
    page.open(nimbus.url)
    page.click("Sign in")
    page.wait_for("Sign in to Nimbus")


def press_company(page: Browser, company) -> None:
    """Press the button that names the host of the company's provider."""
    page.click(f"Sign in with your company {company.host}")


def arrive(page: Browser, nimbus, organization: str) -> None:
    """Allow the application the account, and be a member in it."""
    page.wait(lambda: "/oauth/consent?" in page.url)
    page.click("Allow")
    page.wait_for(f"member at {organization}")
    assert page.url.startswith(nimbus.url)


def by_company(page: Browser, company, email: str) -> None:
    page.click("Sign in with your company")
    # With a typing error first.
    fill(page, email=email.replace("example", "exmaple"))
    page.click("Continue")
    page.wait_for("No company has connected acme.exmaple here.")
    fill(page, email=email)
    page.click("Continue")


def by_sign_up(page: Browser, company, email: str) -> None:
    page.click("Create an account")
    page.wait_for("Create your account")
    fill(page, email=email, password=PASSWORD)
    page.click("Create account")
    page.wait_for("acme.example signs in with its company")
    press_company(page, company)


def by_code(page: Browser, company, email: str) -> None:
    fill(page, email=email)
    page.click("Send me a code instead")
    page.wait_for("acme.example signs in with its company")
    press_company(page, company)


@pytest.mark.parametrize(
    ("door", "device"),
    [(by_company, "page"), (by_company, "phone"), (by_sign_up, "phone"), (by_code, "page")],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_zoe_without_an_account_is_a_member_in_the_application(
    request, door, device, nimbus, company, connected, database, mail_server
):
    tab, email = request.getfixturevalue(device), f"zoe.{door.__name__}.{device}@acme.example"
    company.hire(email)
    open_application(tab, nimbus)
    door(tab, company, email)
    company.sign_in(tab, email)
    arrive(tab, nimbus, connected["organization"])
    assert f"Welcome, {email}" in tab.text
    users = database.all("SELECT email, password_hash FROM users")
    assert users == [(email, None)]
    subjects = {mail["Subject"] for mail in mail_server.mails if mail["To"] == email}
    assert subjects <= {"An application was connected to your account"}
    tab.open("about:blank")


def test_bob_who_had_an_account_moves_once_and_signs_in_with_the_company_alone_the_next_morning(
    request, page, nimbus, company, origin, post, database
):
    # Before Acme is a customer.
    open_application(page, nimbus)
    page.click("Create an account")
    page.wait_for("Create your account")
    fill(page, email=BOB, password=OWN_PASSWORD)
    page.click("Create account")
    page.wait_for("Check your inbox")
    page.type(post.read(BOB, "Confirm your email address").code)
    page.wait(lambda: "/oauth/consent?" in page.url)
    page.click("Allow")
    page.wait_for(f"Welcome, {BOB}")
    subject = nimbus.answers[-1]["sub"]
    assert "organizations" not in nimbus.answers[-1]

    # Acme connects, and Bob signs in as ever.
    organization = request.getfixturevalue("connected")["organization"]
    company.hire(BOB)
    page.forget()
    open_application(page, nimbus)
    fill(page, email=BOB, password=OWN_PASSWORD)
    page.click("Sign in")
    company.sign_in(page, BOB)
    page.wait_for("You already have an account for bob@acme.example.")
    assert "to continue to Nimbus" not in page.text
    fill(page, password=OWN_PASSWORD)
    page.click("Sign in")
    page.wait_for("Move to your company’s")
    press_company(page, company)
    # He is signed in there, and has allowed Nimbus there and here.
    page.wait_for(f"member at {organization}")
    assert nimbus.answers[-1]["sub"] == subject
    assert page.url.startswith(nimbus.url)
    post.read(BOB, "A new way to sign in was added")

    # The next morning.
    page.forget()
    open_application(page, nimbus)
    page.click("Sign in with your company")
    fill(page, email=BOB)
    page.click("Continue")
    page.wait(lambda: page.url.startswith(f"{company.issuer}/sign-in"))
    fill(page, email=BOB, password=PASSWORD)
    page.click("Sign in")
    page.wait_for(f"member at {organization}")
    assert nimbus.answers[-1]["sub"] == subject
    assert database.count("users") == 1
    page.open(f"{origin}/account")
    page.wait_for("Your account")
    assert "Move" not in page.text
