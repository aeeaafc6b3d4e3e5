"""docs/openid.md: applications that sign in here, from the command that creates a client to its secrets' end.

Its proxies are played by tests/system/interop/test_tools_without_a_login.py. Needs Chromium, and for the page of
consent Node.js with the packages of tests/system/clients.
"""

import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.support.browser import Browser, fill
from tests.support.day_application import Application
from tests.support.guides import Guide
from tests.support.openid import authorize_path
from tests.support.processes import CHECKOUT
from tests.support.relying_parties import allow
from tests.support.terminals import Terminal, checkout, make_run
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]

GUIDE = Guide("openid.md")
ALICE = {"email": "alice@example.com", "password": PASSWORD}
CLIENTS = CHECKOUT / "tests" / "system" / "clients"
REDIRECT_URI = "https://app.example.com/callback"
AUTHORIZATION_ID = re.compile(r"[?&]authorization_id=([^&]+)")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with checkout() as terminal:
        yield terminal


def as_administrator(terminal: Terminal, path: str, body: object) -> httpx.Response:
    key = (terminal.directory / "var" / "service_role_key").read_text().strip()
    url = f"http://localhost:{terminal.port}{path}"
    return httpx.post(url, json=body, headers={"apikey": key}, timeout=60)


def printed(output: str) -> dict[str, str]:
    """Return what a command printed of a client."""
    return dict(re.findall(r"^(\w+) +(\S.*)$", output, re.MULTILINE))


def sign_in(page: Browser, application: Application) -> None:
    page.open(f"{application.url}/sign-in")
    page.wait_for("Forgot password?")
    fill(page, **ALICE)
    page.click("Sign in")


def test_application_signs_users_in_and_keeps_doing_so_while_its_secret_is_replaced(page, terminal):
    with ExitStack() as stack:
        stack.enter_context(make_run(terminal))
        assert as_administrator(terminal, "/admin/users", ALICE | {"email_confirm": True}).status_code == 200
        made = printed(terminal.finish(GUIDE.block("clients create notes").text))
        notes = Application(f"http://localhost:{terminal.port}", int(terminal.ports["3001"]), "notes")
        stack.enter_context(notes.use(made))
        sign_in(page, notes)
        allow(page, "notes")
        page.wait_for("Welcome, alice@example.com")

        # The application has the former secret until it has got the new one.
        rotate = GUIDE.command("--overlap").replace("CLIENT_ID", made["client_id"])
        (secret,) = re.findall(r"^[\w-]{40,}$", terminal.finish(rotate), re.MULTILINE)
        assert notes.refresh()
        end = GUIDE.command("end-old-secret").replace("CLIENT_ID", made["client_id"])
        terminal.finish(end)
        notes.use(made | {"client_secret": secret})
        page.open(f"{notes.url}/sign-in")
        page.wait_for("Welcome, alice@example.com")

        # It is told of ended sessions.
        update = GUIDE.block("--backchannel-logout-uri http").text.replace("CLIENT_ID", made["client_id"])
        uri = printed(terminal.finish(update))["backchannel_logout_uri"]
        assert uri == terminal.with_ports("http://localhost:3001/callback?logout=backchannel")
        assert "alice@example.com" in terminal.finish(f"{GUIDE.command('latchkey explain')} {ALICE['email']}")


def test_command_prints_the_settings_of_an_application(terminal):
    with make_run(terminal):
        command, first_setting, _ = GUIDE.block("--for grafana").text.splitlines()
        assert terminal.finish(command.removeprefix("$ ")).splitlines()[0] == first_setting
        command = GUIDE.command("NAME REDIRECT_URI").replace("NAME", "wiki").replace("APPLICATION", "authjs")
        uri = "https://wiki.example.com/api/auth/callback/latchkey"
        assert "clientSecret: " in terminal.finish(command.replace("REDIRECT_URI", uri))


def test_tool_without_a_login_gets_its_settings_in_a_file_that_only_its_owner_reads(terminal):
    with make_run(terminal):
        terminal.finish(GUIDE.block("> prometheus.env").text)
    path = terminal.directory / "prometheus.env"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    names = {line.split("=")[0] for line in path.read_text().splitlines() if line.startswith("OAUTH2")}
    assert {"OAUTH2_PROXY_CLIENT_SECRET", "OAUTH2_PROXY_COOKIE_SECRET", "OAUTH2_PROXY_UPSTREAMS"} <= names


def test_television_gets_codes(terminal):
    with make_run(terminal):
        client_id = printed(terminal.finish(GUIDE.block("--device").text))["client_id"]
        url = f"http://localhost:{terminal.port}/oauth/device_authorization"
        codes = httpx.post(url, data={"client_id": client_id})
        assert codes.status_code == 200, codes.text
        assert re.fullmatch(r"\w{4}-\w{4}", codes.json()["user_code"])


def test_page_of_consent_of_ones_own_approves_a_request_and_sends_on_a_user_who_has_decided(terminal):
    node = shutil.which("node")
    if not node or not (CLIENTS / "node_modules").is_dir():
        pytest.skip("NOT TESTED: a page of consent of one's own. It needs Node.js and npm: make test-clients")
    script = f"""
        import {{ createClient }} from "@supabase/supabase-js";
        globalThis.WebSocket ??= class {{}}; // which the client demands before Node.js 22
        const supabase = createClient(process.env.URL, "anon");
        const {{ error }} = await supabase.auth.signInWithPassword({json.dumps(ALICE)});
        if (error) throw error;
        const id = process.env.ID, location = {{ assign: console.log }};
        {GUIDE.block("getAuthorizationDetails").text}
    """
    with make_run(terminal, AUTH_OAUTH_CONSENT_URL="http://localhost:3000/consent"):
        url = f"http://localhost:{terminal.port}"
        assert as_administrator(terminal, "/admin/users", ALICE | {"email_confirm": True}).status_code == 200
        client = {"client_name": "Wiki", "redirect_uris": [REDIRECT_URI]}
        made = as_administrator(terminal, "/admin/oauth/clients", client).json()

        def decide() -> str:
            """Return where the page sends a user who begins to sign in at the application."""
            path = authorize_path(made["client_id"], redirect_uri=REDIRECT_URI)
            (id,) = AUTHORIZATION_ID.findall(httpx.get(f"{url}{path}").headers["Location"])
            command = [node, "--input-type=module", "--eval", script]
            environment = os.environ | {"URL": url, "ID": id}
            result = subprocess.run(
                command, cwd=CLIENTS, env=environment, capture_output=True, text=True, check=False
            )
            assert result.returncode == 0, result.stderr
            return result.stdout

        assert decide() == ""
        # The user has decided, and the page sends the browser on.
        assert decide().startswith(f"{url}/oauth/continue?authorization_id=")
