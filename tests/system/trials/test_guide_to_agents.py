"""docs/agents.md: an MCP server with its agent, from an empty folder to a refused agent.

Needs Chromium, and a package index, from which `pip` installs FastMCP.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.browser import Browser, fill
from tests.support.documents import CALLBACK, DOCUMENT, HOST, URL
from tests.support.guides import Guide
from tests.support.http_target import HttpTarget
from tests.support.openid import authorize_path
from tests.support.processes import CHECKOUT, Service, short_directory, wait_until
from tests.support.relying_parties import allow, running
from tests.support.smtp_server import Certificate
from tests.support.terminals import Terminal, checkout, make_run
from tests.support.users import PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]

GUIDE = Guide("agents.md")
ALICE = "alice@example.com"


@pytest.fixture
def agent_host(tmp_path) -> Iterator[dict[str, str]]:
    """The settings of a service that finds the host of an agent here, whose document names another client."""
    certificate = Certificate(tmp_path, HOST)
    with HttpTarget(certificate) as target:
        target.headers = {"Content-Type": "application/json"}
        target.body = json.dumps(DOCUMENT | {"client_id": f"{URL}/other"}).encode()
        yield {
            "GUNICORN_CMD_ARGS": "--config tests/support/documents.conf.py",
            "PYTHONPATH": str(CHECKOUT),
            "DOCUMENTS_PORT": str(urlsplit(target.url).port),
            "SSL_CERT_FILE": str(certificate.path),
        }


def sign_up(service: Service) -> str:
    """Sign Alice up, as on the quick start, and return her id."""
    url = f"http://localhost:{service.port}"
    signed_up = httpx.post(f"{url}/signup", json={"email": ALICE, "password": PASSWORD})
    assert signed_up.status_code == 201, signed_up.text
    (link,) = wait_until(
        lambda: set(re.findall(r"^http://localhost:\d+/verify\S+$", service.text(), re.MULTILINE))
    )
    assert httpx.get(link).status_code == 303
    id: str = signed_up.json()["id"]
    return id


def play_agent(page: Browser, terminal: Terminal, directory: Path) -> str:
    """Install FastMCP, run server and client, agree in the browser, and return what the client prints."""
    terminal.directory.mkdir()
    terminal.finish(f"{sys.executable} -m venv .venv")
    path = {"PATH": f"{terminal.directory}/.venv/bin:{os.environ['PATH']}"}
    index = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    terminal.finish(GUIDE.command("pip install"), env=path | index)
    for block in (GUIDE.block("mcp.run("), GUIDE.block("call_tool(")):
        terminal.write(block.file, block.text)
    url = terminal.with_ports("http://localhost:9000")
    server = ["bash", "-c", f"exec {GUIDE.command('server.py')}"]
    home = {"HOME": str(terminal.directory)}
    with (
        running(server, url, directory / "server", terminal.directory, **path, **home),
        # It prints the address instead of opening a browser.
        terminal.run(GUIDE.command("client.py"), env=path | {"BROWSER": "echo %s"}) as client,
    ):
        assert client.stdout
        address = next(line for line in client.stdout if line.startswith("http"))
        page.open(address.strip())
        page.wait_for("Forgot password?")
        fill(page, email=ALICE, password=PASSWORD)
        page.click("Sign in")
        allow(page, "FastMCP Client")
        assert client.stdin
        return client.communicate(timeout=60)[0]


def test_developer_gives_an_agent_access_and_refuses_others(page, agent_host, tmp_path):
    *settings, run = GUIDE.block("AUTH_OAUTH_DYNAMIC_REGISTRATION").text.splitlines()
    assert run == "make run"
    with checkout() as terminal, short_directory() as elsewhere:
        terminal.finish("\n".join(settings))
        with make_run(terminal, **agent_host) as service:
            id = sign_up(service)
            assert play_agent(page, terminal.at(elsewhere / "agent"), tmp_path).splitlines()[-1] == id

            # Another agent's document is not its own: it is refused, and the command says why.
            page.open(f"http://localhost:{service.port}{authorize_path(URL, redirect_uri=CALLBACK)}")
            page.wait_for("This application isn’t registered with us.")
            explanation = terminal.finish(GUIDE.command("latchkey explain"))
            assert GUIDE.block("application access denied").text.strip() in explanation
            clients = terminal.finish(GUIDE.command("latchkey clients list"))
            (client_id,) = re.findall(r"^(\S+) .*FastMCP Client$", clients, re.MULTILINE)
            block = GUIDE.command("--block").replace("CLIENT_ID", client_id)
            assert re.search(r"^is_blocked +true$", terminal.finish(block), re.MULTILINE)
