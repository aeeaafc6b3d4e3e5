"""createBrowserClient of @supabase/ssr in a browser, unmodified, on another origin than the service.

Needs Chromium, and the packages of package.json, which `make test-browser` installs; skipped without them.
"""

from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.support.browser import Browser
from tests.support.links import path
from tests.support.local_server import Handler, LocalServer
from tests.support.users import PASSWORD

HERE = Path(__file__).parents[2] / "clients"
pytest_plugins = ["tests.support.browser_fixtures"]
pytestmark = [
    pytest.mark.skipif(
        not (HERE / "node_modules").is_dir(),
        reason="NOT TESTED: createBrowserClient. It needs Node.js and npm, then: make test-browser",
    ),
]
# Modules as a bundler would resolve them.
IMPORTS = """<script type="importmap">{"imports": {
  "@supabase/ssr": "/node_modules/@supabase/ssr/dist/module/index.js",
  "@supabase/supabase-js": "/supabase-js.js",
  "cookie": "/cookie.js"
}}</script>"""
PAGE = f"""<!doctype html>
<title>An application</title>
<link rel="icon" href="data:,">
<script src="/node_modules/@supabase/supabase-js/dist/umd/supabase.js"></script>
{IMPORTS}
<script type="module">
import {{ createBrowserClient }} from "@supabase/ssr";
globalThis.auth = createBrowserClient(`http://127.0.0.1:${{location.pathname.slice(1)}}`, "an-anon-key").auth;
</script>"""


class Application(Handler, SimpleHTTPRequestHandler):
    """Serves a page at any path, which is the port of the service, and the packages of this directory."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args, directory=str(HERE))

    def do_GET(self) -> None:
        if self.path == "/supabase-js.js":
            return self._send("text/javascript", "export const { createClient } = supabase;")
        if self.path == "/cookie.js":
            commonjs = (HERE / "node_modules/cookie/dist/index.js").read_text()
            exports = "export const { parse, serialize } = exports;"
            return self._send("text/javascript", f"const exports = {{}};\n{commonjs}\n{exports}")
        if not self.path.startswith("/node_modules/"):
            return self._send("text/html", PAGE)
        if not self.path.endswith(".js"):
            is_package = (HERE / self.path[1:]).is_dir()
            self.path += "/index.js" if is_package else ".js"
            if is_package:
                return self.reply(302, {"Location": self.path})
        return super().do_GET()

    def _send(self, mimetype: str, body: str) -> None:
        self.reply(200, {"Content-Type": mimetype}, body.encode())


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with LocalServer(Application) as server:
        yield server.url.replace("127.0.0.1", "localhost")


@pytest.fixture(scope="module")
def settings(origin) -> dict[str, str]:
    return {"AUTH_REDIRECT_ALLOW_LIST": f"{origin}/**"}


@pytest.fixture
def application(page, site, origin) -> str:
    """The URL of the page, which is open."""
    url = f"{origin}/{site.port}"
    page.open(url)
    return url


def signed_in_as(page: Browser) -> str | None:
    return page.run("auth.getUser().then(({ data }) => data.user?.email)")


def session_cookies(page: Browser) -> list[str]:
    names = page.run("document.cookie.split('; ').map((pair) => pair.split('=')[0])")
    return [name for name in names if "auth-token" in name]


def test_session_lives_in_cookies_until_the_sign_out(page, application, alice, database):
    page.run(f"auth.signInWithPassword({{ email: '{alice.email}', password: '{PASSWORD}' }})")
    assert session_cookies(page)
    page.open(application)
    assert signed_in_as(page) == alice.email
    assert page.run("auth.refreshSession().then(({ error }) => error)") is None
    page.run("auth.signOut()")
    assert session_cookies(page) == []
    assert database.count("sessions", "ended_at IS NULL") == 0


def test_mailed_link_returns_with_a_code_that_only_this_browser_can_redeem(
    page, here, application, alice, outbox
):
    options = "{ emailRedirectTo: location.href }"
    page.run(f"auth.signInWithOtp({{ email: '{alice.email}', options: {options} }})")
    sent = outbox.last(alice.email)
    query = urlencode({"redirect_to": sent.variables["redirect_to"]})
    page.open(f"{here}{path('magiclink', sent.token)}&{query}")
    page.click("Continue")
    page.wait(lambda: page.url.startswith(application) and page.run("Boolean(globalThis.auth)"))
    assert signed_in_as(page) == alice.email
    assert "code=" not in page.url
