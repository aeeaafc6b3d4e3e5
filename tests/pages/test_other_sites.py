"""Pages of other sites in a real browser: frames, and forms posted from a sandbox, where Origin is null."""

import html
from urllib.parse import quote

import pytest

from tests.pages.test_stories import signed_in
from tests.support.browser import Browser
from tests.support.cast import PASSWORD
from tests.support.processes import wait_until

pytestmark = pytest.mark.browser
pytest_plugins = ["tests.support.browser_fixtures"]


def open_framed(page: Browser, framed: str, sandbox: str) -> None:
    """Open a page without an origin that shows another one in a sandboxed frame."""
    frame = f'<iframe sandbox="{sandbox}" srcdoc="{html.escape(framed)}"></iframe>'
    page.open(f"data:text/html,{quote(frame)}")


def form(target: str, where: str, **fields: str) -> str:
    inputs = "".join(f'<input name="{name}" value="{value}">' for name, value in fields.items())
    return f'<form method="post" action="{target}" target="{where}">{inputs}</form><script>document.forms[0].submit()</script>'


def test_pages_are_not_shown_in_frames(page, here):
    for where in ("/", "/sign-in", "/verify?token=x&type=signup"):
        # Even on a page of the same origin, where the console reports it.
        page.open(f"{here}/health")
        page.run(f"document.body.append(Object.assign(document.createElement('iframe'), {{src: '{where}'}}))")
        wait_until(lambda: any("frame-ancestors 'none'" in complaint for complaint in page.complaints()), 30)


def test_form_of_a_sandbox_does_not_sign_in(page, here, alice, database):
    sign_in = form(f"{here}/sign-in", "_top", email=alice.email, password=PASSWORD)
    open_framed(page, sign_in, "allow-forms allow-scripts allow-top-navigation")
    page.wait_for("This form was open for too long")
    assert database.count("sessions") == 0
    # It is the form to sign in, without the values of the other site, and works.
    assert page.run("document.querySelector('[name=email]').value") == ""
    for name, value in (("email", alice.email), ("password", PASSWORD)):
        page.run(f"document.querySelector('[name={name}]').value = '{value}'")
    page.click("Sign in")
    page.wait_for("Your account")


def test_form_of_a_sandbox_does_not_act_for_the_signed_in_user(page, here, alice, database):
    signed_in(page, here, alice)
    open_framed(
        page,
        form(f"{here}/sign-out", "_top", scope="global"),
        "allow-forms allow-scripts allow-top-navigation",
    )
    page.wait_for("Your account")
    assert database.count("sessions", "ended_at IS NULL") == 1
