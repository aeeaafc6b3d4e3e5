"""Pages of other sites in a real browser: frames, and forms posted from a sandbox, where Origin is null."""

import html
from urllib.parse import quote

import pytest

from tests.support.browser import Browser, fill
from tests.support.processes import wait_until
from tests.support.users import PASSWORD

pytestmark = pytest.mark.browser
pytest_plugins = ["tests.support.browser_fixtures"]


def open_framed(page: Browser, framed: str) -> None:
    """Open a page without an origin that shows another one in a sandboxed frame."""
    sandbox = "allow-forms allow-scripts allow-top-navigation"
    frame = f'<iframe sandbox="{sandbox}" srcdoc="{html.escape(framed)}"></iframe>'
    page.open(f"data:text/html,{quote(frame)}")


def form(target: str, **fields: str) -> str:
    inputs = "".join(f'<input name="{name}" value="{value}">' for name, value in fields.items())
    return f'<form method="post" action="{target}" target="_top">{inputs}</form><script>document.forms[0].submit()</script>'


def test_pages_are_not_shown_in_frames(page, here):
    for where in ("/", "/sign-in", "/verify?token=x&type=signup"):
        # Even on a page of the same origin, where the console reports it.
        page.open(f"{here}/health")
        page.run(f"document.body.append(Object.assign(document.createElement('iframe'), {{src: '{where}'}}))")
        wait_until(lambda: any("frame-ancestors 'none'" in complaint for complaint in page.complaints()), 30)


def test_form_of_a_sandbox_does_not_sign_in(page, here, alice, database):
    open_framed(page, form(f"{here}/sign-in", email=alice.email, password=PASSWORD))
    page.wait_for("This form was open too long")
    assert database.count("sessions") == 0
    # It is the form to sign in, without the values of the other site, and works.
    assert page.run("document.querySelector('[name=email]').value") == ""
    fill(page, email=alice.email, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("Your account")
    # Nor does it act for the user who is signed in.
    open_framed(page, form(f"{here}/sign-out", scope="global"))
    page.wait_for("Your account")
    assert database.count("sessions", "ended_at IS NULL") == 1
