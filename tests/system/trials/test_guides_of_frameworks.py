"""The guides for React and Next.js, from an empty folder to a user who is signed in in Chromium, and out again.

Needs Chromium, and Node.js with npm, which installs the packages that a guide names; skipped without them.
"""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.support.browser import Browser, fill
from tests.support.guides import Guide
from tests.support.processes import Service, send, short_directory, wait_until
from tests.support.terminals import Terminal, beside_a_service
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]

REACT = Guide("react.md")
NEXTJS = Guide("nextjs.md")
OLDEST_NODE = (20, 19)
DAVE = "dave@example.com"
# Seconds for the installation of a guide's packages, and until its application answers.
_PATIENCE = 300


@pytest.fixture(scope="module")
def npm_environment() -> dict[str, str]:
    """The variables for npm: those of its user, without questions to the registry that no guide needs."""
    node, npm = shutil.which("node"), shutil.which("npm")
    version = (
        subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
        if node
        else "v0.0"
    )
    if not npm or tuple(map(int, version[1:].split(".")[:2])) < OLDEST_NODE:
        pytest.skip("NOT TESTED: the guides for React and Next.js. They need Node.js 20.19 or later, and npm")
    names = {"HOME", "NODE_EXTRA_CA_CERTS"}
    variables = {
        key: value
        for key, value in os.environ.items()
        if key in names or key.lower().startswith("npm_config_")
    }
    return variables | {
        "npm_config_audit": "false",
        "npm_config_fund": "false",
        "NEXT_TELEMETRY_DISABLED": "1",
    }


class RunningGuide:
    """A guide whose application runs: its address, its folder, its process, and the service with its own folder."""

    def __init__(
        self, application: Terminal, process: subprocess.Popen[str], latchkey: Terminal, service: Service
    ) -> None:
        self.url = application.with_ports("http://localhost:3000/")
        self.application, self.process, self.latchkey = application, process, latchkey
        self._service = service

    def link(self) -> str:
        """Return the link of the message that the service prints."""
        pattern = re.compile(r"^http://localhost:\d+/verify\S+$", re.MULTILINE)
        (link,) = wait_until(lambda: set(pattern.findall(self._service.text())))
        return link


def fill_in(block: str, printed: str) -> str:
    """Replace `<client_id>` and `<client_secret>` by what the command printed."""
    for name, value in re.findall(r"^(client_\w+) +(\S+)$", printed, re.MULTILINE):
        block = block.replace(f"<{name}>", value)
    return block


def answers(url: str, application: subprocess.Popen[str]) -> bool:
    assert application.poll() is None, application.communicate()[0]
    try:
        return httpx.get(url, trust_env=False, timeout=60).status_code < 400
    except httpx.TransportError:
        return False


@pytest.fixture
def play(tab, npm_environment) -> Iterator[Callable[..., RunningGuide]]:
    """Return a function that does the steps of a guide, in the folder of the service and in an empty one."""
    with ExitStack() as stack:

        def play(guide: Guide, **settings: str) -> RunningGuide:
            lines = [each.text for each in guide.blocks if not each.file and each.text.startswith("AUTH_")]
            latchkey, service = stack.enter_context(beside_a_service(lines, **settings))
            # Not in a directory of pytest, which would keep hundreds of megabytes of packages.
            elsewhere = latchkey.at(stack.enter_context(short_directory()))
            application, printed = elsewhere.at("my-app"), ""
            *steps, start = guide.blocks
            for block in steps:
                if block.file:
                    application.write(block.file, fill_in(block.text, printed))
                elif block.text.startswith(".venv/"):
                    printed = latchkey.finish(block.text)
                elif block.text.startswith("mkdir "):
                    elsewhere.finish(block.text, env=npm_environment)
            process = stack.enter_context(application.run(start.text, env=npm_environment))
            # Kill it: on SIGTERM, it would wait for the connections of the browser.
            stack.callback(send, -process.pid, signal.SIGKILL)
            running_guide = RunningGuide(application, process, latchkey, service)
            wait_until(lambda: answers(running_guide.url, process), _PATIENCE)
            return running_guide

        yield play


def sign_up(page: Browser, app: RunningGuide) -> None:
    """Sign Dave up in the React app."""
    page.open(app.url)
    page.wait_for("Forgot your password?")
    fill(page, email=DAVE, password=PASSWORD)
    page.click("Sign up")
    page.wait_for(f"We sent a mail to {DAVE}.")
    page.open(app.link())
    page.click("Continue")
    page.wait_for(f"Signed in as {DAVE}")


def test_user_of_the_react_app_signs_up_stays_signed_in_and_signs_out(page, play):
    # The client refreshes such a short-lived token at each visit.
    app = play(REACT, AUTH_ACCESS_TOKEN_LIFETIME="60")
    sign_up(page, app)

    stored_session = "Object.entries(localStorage).find(([key]) => key.endsWith('auth-token'))?.[1]"
    before = page.run(stored_session)
    page.open(app.url)
    page.wait_for(f"Signed in as {DAVE}")
    page.wait(lambda: page.run(stored_session) not in (None, before))

    page.click("Sign out")
    page.wait_for("Forgot your password?")
    page.wait(lambda: page.run(stored_session) is None)
    fill(page, email=DAVE, password="Wrong-Horse-1")
    page.click("Sign in")
    page.wait_for("Invalid login credentials")
    fill(page, password=PASSWORD)
    page.click("Sign in")
    page.wait_for(f"Signed in as {DAVE}")


def test_react_app_shows_the_organization_of_its_url_and_asks_for_what_it_requires(page, play):
    react = Guide("react.md")
    organizations = Guide("organizations.md")
    app = play(react, AUTH_ORGANIZATIONS="admins")
    text = react.block("function App()").text
    text = text.replace(
        "function App()", organizations.block("function Organizations").text + "\nfunction App()"
    )
    line = "<p>Signed in as {session.user.email}</p>"
    app.application.write("src/App.jsx", text.replace(line, f"{line}<Organizations session={{session}} />"))
    sign_up(page, app)
    for command in ("create Acme", "create Globex", f"add acme {DAVE} --role billing", f"add globex {DAVE}"):
        app.latchkey.finish(f".venv/bin/latchkey organizations {command}")
    page.open(f"{app.url}acme")
    page.wait_for("Acme: you are billing.")
    page.click("Globex")
    page.wait_for("Globex: you are member.")
    app.latchkey.finish(".venv/bin/latchkey organizations require globex aal2")
    page.open(f"{app.url}globex")
    page.wait_for("Globex asks for another sign-in.")


def test_user_of_the_nextjs_app_sees_the_protected_page_until_the_session_ends_or_the_sign_out(
    page, play, npm_environment
):
    app = play(NEXTJS, AUTH_ACCESS_TOKEN_LIFETIME="30")
    page.open(app.url)
    page.wait_for("Create an account")
    page.click("Create an account")
    page.wait_for("Create your account")
    fill(page, email=DAVE, password=PASSWORD)
    page.click("Create account")
    page.wait_for("Check your inbox")
    page.open(app.link())
    page.click("Continue")
    page.wait_for("my-app")
    page.click("Allow")
    page.wait_for(f"Signed in as {DAVE}")
    assert page.url == app.url

    page.open(app.url)
    page.wait_for(f"Signed in as {DAVE}")
    assert "authjs.session-token" in page.cookies(app.url)
    assert "session-token" not in page.run("document.cookie")

    # The session of the app is as short-lived; Latchkey's session opens another one without a question.
    wait_until(lambda: page.run("fetch('/api/auth/session').then((answer) => answer.json())") is None)
    page.open(app.url)
    page.wait_for(f"Signed in as {DAVE}")

    page.click("Sign out")
    page.wait_for("asks to sign you out")
    page.click("Sign out")
    # The page of the app leads to Latchkey again.
    page.wait_for("Forgot password?")
    assert "authjs.session-token" not in page.cookies(app.url)
    page.open(app.url)
    page.wait_for("Forgot password?")

    # As in production.
    page.open("about:blank")
    send(-app.process.pid, signal.SIGKILL)
    app.application.finish(NEXTJS.command("next build"), env=npm_environment)
    port = {"PORT": app.application.ports["3000"]}
    with app.application.run(NEXTJS.command("next start"), env=npm_environment | port) as process:
        wait_until(lambda: answers(app.url, process), _PATIENCE)
        page.open(app.url)
        page.wait_for("Forgot password?")
