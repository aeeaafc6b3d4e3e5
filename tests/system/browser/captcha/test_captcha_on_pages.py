"""Our pages with a captcha, in Chromium."""

import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.browser import fill
from tests.support.processes import free_port
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]
PORT = free_port()
SITE = f"http://localhost:{PORT}"
WIDGET = Path(__file__).parents[2] / "clients/node_modules/altcha/dist/main/altcha.js"


@pytest.fixture(scope="module")
def settings(mailing: dict[str, str]) -> dict[str, str]:
    return mailing | {"AUTH_CAPTCHA": "altcha", "AUTH_SITE_URL": SITE}


def test_sign_up_page_solves_while_the_user_types(page, origin, post, database):
    page.open(f"{origin}/sign-up")
    fill(page, email="dave@example.com", password=PASSWORD)
    page.click("Create account")
    page.wait_for("Check your inbox")
    assert post.read("dave@example.com", "Confirm")
    assert database.count("spent_captchas") == 1


def test_page_without_javascript_says_what_works(page, origin, database):
    page.without_script(True)
    page.open(f"{origin}/sign-up")
    page.wait_for("Turn on JavaScript to create an account")
    fill(page, email="dave@example.com", password=PASSWORD)
    page.click("Create account")
    page.wait_for("We couldn’t check that you’re human. Try again.")
    assert (database.count("users"), database.count("outbox")) == (0, 0)


@pytest.mark.skipif(
    not WIDGET.exists(), reason="NOT TESTED: the widget of ALTCHA. It needs npm: make test-browser"
)
def test_widget_of_altcha_on_another_origin_solves_ours(page, origin, site, tmp_path):
    (tmp_path / "altcha.js").write_text(WIDGET.read_text())
    (tmp_path / "index.html").write_text(
        '<!doctype html><script type="module" src="altcha.js"></script><form>'
        f'<altcha-widget challenge="{origin}/captcha/challenge" auto="onload" name="captcha_token"></altcha-widget>'
    )
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", PORT), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page.open(f"{SITE}/index.html")
        token = page.wait(lambda: page.run("document.querySelector('input[name=captcha_token]')?.value"))
        page.open("about:blank")
        server.shutdown()
    body = {"email": "dave@example.com", "gotrue_meta_security": {"captcha_token": token}}
    assert [site.post("/recover", json=body).status_code for _ in range(2)] == [200, 400]
