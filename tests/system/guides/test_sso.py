"""docs/sso.md, section *On your machine*: an employee's first day, with a second service as the company's provider."""

import re

import pytest

from tests.support.browser import Browser, fill
from tests.support.guides import Guide
from tests.support.processes import Service, wait_until
from tests.support.terminals import Terminal, checkout, make_run
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]

GUIDE = Guide("sso.md")
ALICE, BOB = "alice@acme.example", "bob@acme.example"


@pytest.fixture(scope="module")
def terminal():
    with checkout() as terminal:
        yield terminal


@pytest.fixture(scope="module")
def service(terminal):
    block = GUIDE.block("AUTH_SSO=true\n")
    terminal.write(block.file, block.text)
    with make_run(terminal) as service:
        yield service


@pytest.fixture(scope="module")
def company(terminal, service):
    """The company's service, in the second terminal."""
    script = terminal.with_ports(GUIDE.block("mkdir -p var/company").text)
    environment = {"PORT": terminal.ports["8001"], "AUTH_WORKERS": "1"}
    directory = terminal.directory / "var/company/var"
    directory.mkdir(parents=True)
    with Service(
        directory,
        command=["bash", "-c", script],
        directory=terminal.directory,
        **environment,
    ) as company:
        yield company


def sign_up(page: Browser, service: Service, email: str) -> None:
    page.wait_for("Create your account")
    fill(page, email=email, password=PASSWORD)
    page.click("Create account")
    page.wait_for("Check your inbox")
    page.type(_code(service, email))


def join_company(page: Browser, company: Service, email: str) -> None:
    """Make an account at the company, and let the service know who it is."""
    page.wait(lambda: page.url.startswith(f"http://127.0.0.1:{company.port}/sign-in"))
    page.click("Create an account")
    sign_up(page, company, email)
    page.wait(lambda: "/oauth/consent" in page.url)
    page.click("Allow")


def _code(service: Service, email: str) -> str:
    """Return the code in the mail that the service's terminal shows."""
    (code,) = wait_until(
        lambda: set(re.findall(rf"{re.escape(email)}(?:.|\n)*?\b(\d{{6}})\b", service.text()))
    )
    return code


def _be_the_operator(terminal: Terminal, issuer: str, secret: str) -> None:
    """Run the other commands of the page: add a provider without an organization, and look after Acme's."""
    terminal.write("acme.secret", secret)
    # The page's provider is a customer's, and its domain is Acme's here.
    script = GUIDE.block("latchkey providers add").text
    script = script.replace("https://login.acme.example", issuer).replace("--domain acme.example", "")
    assert re.search(r"^redirect URI: http\S+/callback$", terminal.finish(script), re.MULTILINE)
    refused = terminal.finish(GUIDE.command("providers adopt"), status=3)
    assert refused == "Error: This provider doesn't sign in this address.\n"
    assert ALICE in terminal.finish(GUIDE.command("explain alice@acme.example"))
    assert "provider enabled" in terminal.finish(GUIDE.command("explain --organization acme"))
    assert "organization: " in terminal.finish(GUIDE.command("providers show acme.example"))
    lifted = terminal.finish(GUIDE.command("organizations require acme any-sign-in"))
    assert "requires: nothing\n" in lifted
    kept = terminal.finish(GUIDE.command("providers disable"), input="n\n", status=1)
    assert "Nothing was changed. To go ahead, answer y, or add --yes." in kept
    assert "There is no administrator" in terminal.finish(GUIDE.command("latchkey doctor"), status=3)


def test_employee_of_a_company_has_the_first_day_on_one_machine(
    terminal: Terminal, service: Service, company: Service, page: Browser
) -> None:
    origin, issuer = map(terminal.with_ports, ("http://localhost:8000", "http://127.0.0.1:8001"))
    page.open(f"{origin}/sign-up")
    sign_up(page, service, ALICE)
    page.wait(lambda: "/sign-up" not in page.url)
    page.open(f"{origin}/account")
    page.click("New organization")
    page.wait_for("You’ll be its owner")
    fill(page, name="Acme")
    page.click("Create organization")
    page.wait_for("The organization has been created.")
    output = terminal.finish(GUIDE.block("organizations prove").text)
    assert output == "acme.example: proved by command, which counts only on this machine\n"

    page.click("Open Single sign\u2011on (SSO)")
    page.wait_for("acme.example is verified")
    assert "without a DNS record. It counts only on this computer." in page.text
    page.click("Connect identity provider")
    page.wait_for("Where do your employees sign in?")
    page.click("Another OpenID provider")
    page.wait_for("Copy this redirect URI")
    (uri,) = page.run("[...document.querySelectorAll('main .sent code')].map(each => each.textContent)")
    printed = terminal.finish(GUIDE.block("read -r").text, input=f"{uri}\n")
    (client_id,) = re.findall(r"client_id:? +(\S+)", printed)
    (secret,) = re.findall(r"client_secret:? +(\S+)", printed)
    fill(page, issuer=issuer, client_id=client_id, client_secret=secret)
    page.click("Connect")
    page.wait_for("Now test the sign\u2011in.")
    page.click("Test sign\u2011in Acme")
    page.wait_for("Nobody else is affected until you turn it on.")
    page.click("Test sign\u2011in")
    join_company(page, company, ALICE)
    page.wait_for("Test passed. Turn it on for everyone at acme.example.")
    page.click("Turn on Acme")
    page.wait_for("From now on, everyone at acme.example signs in with it.")
    page.click("Turn on")
    page.wait_for("Single sign\u2011on is on.")

    page.forget()
    page.open(f"{origin}/sign-in")
    page.click("Sign in with your company")
    page.wait_for("Work email")
    fill(page, email=BOB)
    page.click("Continue")
    join_company(page, company, BOB)
    page.wait(lambda: page.url.startswith(f"{origin}/account"))
    page.wait_for("Acme")
    shown = terminal.finish("latchkey organizations show acme")
    assert re.search(rf"^member: \S+  {BOB}  member\b", shown, re.MULTILINE)
    doctor = terminal.finish("latchkey doctor --json", status=3)
    assert '"check": "providers", "status": "ok"' in doctor
    _be_the_operator(terminal, issuer, secret)

    # The same database, at a service that other machines reach.
    service.__exit__()
    service.environment["AUTH_BASE_URL"] = "https://auth.example.com"
    service.start_again()
    problem = (
        rf"The provider 'Acme' of the organization acme cannot sign users in: its issuer {issuer} is this machine, but"
        " AUTH_BASE_URL is https://auth.example.com"
    )
    assert f"{problem}, and what it had opened has ended. Run: latchkey providers delete " in service.log()
    assert f"✗ {problem}. Others like it: 1.\n  Run: latchkey providers delete " in terminal.finish(
        "latchkey doctor", status=3
    )
    assert service.get(f"/authorize?provider=custom:{uri.split('/')[-2]}")[0] == 404
    refused = terminal.finish(GUIDE.block("organizations prove").text, status=3)
    assert "AUTH_BASE_URL is https://auth.example.com, not this machine" in refused
