"""Pages of other sites in a real browser: frames, and forms posted from a sandbox, where Origin is null."""

import html
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.support.browser import Browser, fill
from tests.support.local_server import Handler, LocalServer
from tests.support.openid import authorize_path, insert_public_client
from tests.support.processes import wait_until
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]

# A page that loads resources with limits, and shows how many failed.
LOADS = """
new Promise((done) => {
  const paths = ["oauth/authorize", "oauth/continue", "oauth/logout", "verify", "link-identity", "callback"];
  let left = 60;
  const add = (name, attributes) => document.body.append(
    Object.assign(document.createElement(name), attributes));
  for (let number = 0; number < left; number++) {
    const src = `HERE/${paths[number % paths.length]}?client_id=${number}`;
    add("img", {src, onerror: () => --document.body.dataset.left || done(true)});
    add("link", {rel: "prefetch", href: src});
    add("iframe", {src});
  }
  document.body.dataset.left = left;
  add("script", {type: "speculationrules", text: JSON.stringify(
    {prefetch: [{source: "list", urls: paths.map((path) => `HERE/${path}?speculates`), eagerness: "immediate"}]})});
  fetch("HERE/passkeys/authentication/options", {method: "POST", mode: "no-cors", body: "{}"});
})
"""
SIGN_IN_OPTIONS = """
fetch("/passkeys/authentication/options",
  {method: "POST", headers: {"Content-Type": "application/json"}, body: "{}"}).then((answer) => answer.status)
"""


@pytest.fixture(scope="module")
def settings():
    return {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_SITE_URL": "https://app.example.com"}


class _EmptyPage(Handler):
    def do_GET(self) -> None:
        self.reply(200, {"Content-Type": "text/html"})


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    """An empty page of another site, without a policy."""
    with LocalServer(_EmptyPage) as server:
        yield server.url.replace("127.0.0.1", "localhost")


def open_framed(page: Browser, text: str) -> None:
    """Open a page without an origin that shows another one in a sandboxed frame."""
    sandbox = "allow-forms allow-scripts allow-top-navigation"
    frame = f'<iframe sandbox="{sandbox}" srcdoc="{html.escape(text)}"></iframe>'
    page.open(f"data:text/html,{quote(frame)}")


def form(target: str, **fields: str) -> str:
    inputs = "".join(f'<input name="{name}" value="{value}">' for name, value in fields.items())
    return f'<form method="post" action="{target}" target="_top">{inputs}</form><script>document.forms[0].submit()</script>'


def test_pages_are_not_shown_in_frames(page, origin, elsewhere):
    for path in ("/", "/sign-in", "/verify?token=x&type=signup"):
        page.open(elsewhere)
        page.run(
            f"document.body.append(Object.assign(document.createElement('iframe'), {{src: '{origin}{path}'}}))"
        )
        wait_until(lambda: any("frame-ancestors 'none'" in complaint for complaint in page.complaints()), 30)


@pytest.fixture
def client_id(database, site):
    return insert_public_client(database)


def test_images_and_prefetches_of_another_site_do_not_use_up_the_limits_of_the_network(
    page, origin, elsewhere, client_id, database
):
    page.open(elsewhere)
    assert page.run(LOADS.replace("HERE", origin))
    assert page.complaints()
    assert database.count("request_counts") == 0
    page.open(f"{origin}/sign-in")
    assert page.run(SIGN_IN_OPTIONS) == 200
    # A link of the other site opens the authorization request as the top window.
    page.open(elsewhere)
    url = f"{origin}{authorize_path(client_id)}"
    page.run(
        f"document.body.append(Object.assign(document.createElement('a'), {{href: '{url}', textContent: 'Open'}}))"
    )
    page.click("Open")
    page.wait_for("Sign in")
    # The prefetches fail when the browser gets to them.
    page.complaints()


def test_frame_of_an_application_asks_whether_its_user_is_signed_in(page, origin, elsewhere, database, site):
    callback = f"{elsewhere}/callback"
    client_id = insert_public_client(database, callback)
    page.open(elsewhere)
    url = f"{origin}{authorize_path(client_id, redirect_uri=callback, prompt='none')}"
    page.run(f"document.body.append(Object.assign(document.createElement('iframe'), {{src: '{url}'}}))")
    # frame-ancestors counts for what the frame shows, not for a redirect.
    wait_until(lambda: page.run("frames[0].location.href").startswith(f"{callback}?error=login_required"), 30)


def test_form_of_a_sandbox_does_not_sign_in(page, origin, alice, database):
    open_framed(page, form(f"{origin}/sign-in", email=alice.email, password=PASSWORD))
    page.wait_for("This request came from another website")
    assert (database.count("sessions"), database.count("request_counts")) == (0, 0)
    page.open(f"{origin}/sign-in")
    fill(page, email=alice.email, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("Your account")
    # It does not act for the user who is signed in, either.
    open_framed(page, form(f"{origin}/sign-out", scope="global"))
    page.wait_for("This request came from another website")
    assert database.count("sessions", "ended_at IS NULL") == 1
