"""An operator's bad night: Acme's provider misbehaves. The operator begins with an entry of the audit log, and turns the
provider off, on the phone by the console and on the server by a command.
"""

import subprocess

import pytest

from tests.support.browser import Browser, fill
from tests.support.commands import start_process
from tests.support.factors import App, set_up
from tests.support.users import PASSWORD
from tests.system.days.test_employee import arrive, by_company, open_application

pytest_plugins = ["tests.support.browser_fixtures"]

ZOE = "zoe@acme.example"
NAMED = "“Acme Login” (Acme)"
ENDS = "Ends 1 session, 1 session of applications and 0 API keys."


@pytest.fixture
def codes(site, carol, database) -> App:
    """The authenticator app of Carol, the operator."""
    session = carol.sign_in(client=site)
    database.run("UPDATE sessions SET code_given_at = now()")
    return set_up(session)[0]


def open_log(tab: Browser, origin: str, carol, codes: App) -> None:
    """Sign in on the console, and open the audit log."""
    tab.open(f"{origin}/console/audit")
    fill(tab, email=carol.email, password=PASSWORD)
    tab.click("Sign in")
    tab.wait_for("One more step")
    fill(tab, code=codes.code())
    tab.click("Continue")
    tab.wait_for("Audit log")


def test_operator_starts_from_an_entry_and_turns_the_provider_off_and_later_again_by_a_command(
    page, phone, started, nimbus, company, connected, origin, carol, codes, database
):
    company.hire(ZOE)
    open_application(page, nimbus)
    by_company(page, company, ZOE)
    company.sign_in(page, ZOE)
    arrive(page, nimbus, connected["organization"])
    assert nimbus.refresh()

    # The operator, woken up, reads what happened, and who did it.
    open_log(phone, origin, carol, codes)
    assert f"Signed in with {NAMED}" in phone.text
    assert "sso:" not in phone.text
    assert "anonymous" not in phone.text
    phone.click(NAMED)
    phone.wait_for("Whose it is")
    for part in (company.host, "acme.example", "the service role key", "Sessions of applications"):
        assert part in phone.text
    assert phone.run("document.documentElement.scrollWidth <= innerWidth")

    # What turning it off ends stands there before the press.
    phone.run("document.querySelector('.menu').open = true")
    phone.click("Disable")
    phone.wait_for(f"Disables 1 provider, {NAMED}.")
    assert ENDS in phone.text
    assert "Members stay members" in phone.text
    assert nimbus.refresh()
    database.run("UPDATE factors SET last_step = NULL")
    fill(phone, factor_code=codes.code(1))
    phone.click("Disable")
    phone.wait_for("Provider disabled.")
    assert "All that it had opened has ended." in phone.text
    assert not nimbus.refresh()
    before = nimbus.token

    # Zoe calls: her page says why.
    phone.click_on("document.querySelector('main a[href*=\"provider=sso\"]')")
    phone.wait_for(ZOE)
    phone.click(ZOE)
    phone.wait_for("Identities")
    assert f"The provider {NAMED} is disabled by an operator." in phone.text
    page.forget()
    open_application(page, nimbus)
    by_company(page, company, ZOE)
    page.wait(lambda: "acme.example" in page.text and page.url.startswith(origin))

    # In the morning Acme has repaired its provider; at noon it misbehaves again, and the operator is on the server.
    def latchkey(*arguments: str, answer: str = "") -> str:
        process = start_process(started[0].environment, *arguments, stdin=subprocess.PIPE)
        stdout, stderr = process.communicate(answer, timeout=300)
        assert process.returncode == 0, stderr
        return stdout + stderr

    assert "Provider enabled." in latchkey("providers", "enable", "acme.example", "--yes")
    nimbus.token = before
    assert not nimbus.refresh()
    page.forget()
    open_application(page, nimbus)
    page.click("Sign in with your company")
    fill(page, email=ZOE)
    page.click("Continue")
    page.wait(lambda: page.url.startswith(f"{company.issuer}/sign-in"))
    fill(page, email=ZOE, password="Correct-Horse-Battery-1")
    page.click("Sign in")
    page.wait_for(f"member at {connected['organization']}")
    assert nimbus.refresh()
    log = latchkey("explain", "--organization", "acme")
    assert f"signed in with {NAMED}" in latchkey("explain", ZOE)
    assert f"provider disabled: {NAMED}, by administrator {carol.email}" in log
    shown = latchkey("providers", "show", "acme.example")
    assert "organization: Acme (acme," in shown
    assert "turned off:" in shown
    assert carol.email in shown
    said = latchkey("providers", "disable", "acme.example", answer="y\n")
    assert ENDS in said
    assert "Disable it? [y/N]:" in said
    assert "All that it had opened has ended." in said
    assert not nimbus.refresh()
    phone.open(f"{origin}/console/providers/{connected['provider']}")
    phone.wait_for("All that it had opened has ended.")
    assert "a command" in phone.text
