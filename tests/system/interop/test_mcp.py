"""MCP clients by other hands, unmodified, at a server of FastMCP that accepts our access tokens. They register
themselves, or have a metadata document.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.support.browser import choose
from tests.support.contract import OPENAPI
from tests.support.documents import DOCUMENT, HOST, URL
from tests.support.factors import set_up
from tests.support.http_target import HttpTarget
from tests.support.processes import GUNICORN, free_port, wait_until
from tests.support.relying_parties import allow, running, sign_in
from tests.support.smtp_server import Certificate

pytest_plugins = ["tests.support.browser_fixtures"]

PROGRAMS = Path(__file__).parent / "mcp"
NODE_MODULES = PROGRAMS / "node_modules"
GUIDE = (OPENAPI.parent / "docs" / "agents.md").read_text()
# The checks of the conformance suite's scenarios for authorization servers.
CONFORMANCE_CHECKS = [
    "authorization-server-metadata",
    "authorization-server-metadata-cimd",
    "authorization-code-grant",
]
# The commands of the clients, before their arguments. The first word is the name of a fixture.
CLIENTS = {
    "FastMCP": ("python", PROGRAMS / "client.py"),
    "JavaScript SDK": ("node", PROGRAMS / "client.mjs"),
}


@pytest.fixture(scope="module")
def gunicorn() -> list[str]:
    return [sys.executable, *GUNICORN, "--config", "tests/support/documents.conf.py"]


@pytest.fixture(scope="module")
def documents(tmp_path_factory) -> Iterator[tuple[HttpTarget, Path]]:
    """The server of the document, and its certificate."""
    certificate = Certificate(tmp_path_factory.mktemp("documents"), HOST)
    with HttpTarget(certificate) as target:
        target.headers = {"Content-Type": "application/json"}
        document = DOCUMENT | {"redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"]}
        target.body = json.dumps(document).encode()
        yield target, certificate.path


@pytest.fixture(scope="module")
def settings(documents) -> dict[str, str]:
    """The settings of the guide. The issuer has a path, as at Supabase, so its metadata is also at another URL (RFC
    8414, section 3.1).
    """
    port = free_port()
    target, certificate = documents
    return {
        "PORT": str(port),
        "AUTH_BASE_URL": f"http://127.0.0.1:{port}",
        "AUTH_JWT_ISSUER": f"http://127.0.0.1:{port}/auth/v1",
        "DOCUMENTS_PORT": str(urlsplit(target.url).port),
        "SSL_CERT_FILE": str(certificate),
        "AUTH_ORGANIZATIONS": "users",
        **dict(re.findall(r"^echo \"?(AUTH_\w+)='?([^'\" ]+)", GUIDE, re.MULTILINE)),
    }


@pytest.fixture(scope="session")
def python(make_python) -> str:
    """A Python with FastMCP."""
    return str(make_python(PROGRAMS / "requirements.txt") / "python")


@pytest.fixture(scope="session")
def node(python) -> str:
    """A Node.js that is new enough for all packages."""
    if not NODE_MODULES.is_dir():
        pytest.skip("NOT TESTED: the packages of MCP for JavaScript. They need npm: make test-interop")
    return str(Path(python).parent / "node")


@pytest.fixture
def servers(python, settings, origin, tmp_path) -> Iterator[list[str]]:
    """The URLs of two running MCP servers."""
    urls = [f"http://localhost:{free_port()}" for _ in range(2)]
    with ExitStack() as stack:
        for number, url in enumerate(urls):
            command = [python, str(PROGRAMS / "server.py"), settings["AUTH_JWT_ISSUER"], url]
            output = tmp_path / f"server {number}"
            stack.enter_context(running(command, url, output, tmp_path, HOME=str(tmp_path)))
        yield [f"{url}/mcp" for url in urls]


class Agent:
    """A running client, which prints a line for each step."""

    def __init__(self, command: list[str], directory: Path) -> None:
        self._output, self._errors = directory / "output", directory / "errors"
        environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "BROWSER": "echo %s"}
        with self._output.open("w") as out, self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=out, stderr=errors, text=True
            )
        assert self._process.stdin
        self._input = self._process.stdin

    def line(self, number: int, beginning: str = "") -> str:
        """Wait for the line of this number among the lines of its output with a beginning, and return it."""

        def printed() -> list[str]:
            has_ended = self._process.poll() is not None
            lines = self._output.read_text().split("\n")[:-1]
            matching = [line for line in lines if line.startswith(beginning)][number:]
            assert matching or not has_ended, (lines, self._errors.read_text())
            return matching

        return wait_until(printed)[0]

    def request(self, number: int) -> dict[str, list[str]]:
        """Wait for a URL of its output, and return the parameters."""
        return parse_qs(urlsplit(self.line(number)).query)

    def go_on(self) -> None:
        self._input.write("\n")
        self._input.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._input.close()


@pytest.mark.parametrize("document", [None, URL], ids=["registration", "document"])
@pytest.mark.parametrize("name", CLIENTS)
def test_user_gives_a_client_access_to_one_server_until_it_is_withdrawn(
    page, servers, alice, name, document, documents, request, tmp_path
):
    program, script = CLIENTS[name]
    command = [request.getfixturevalue(program), str(script), servers[0], str(free_port())]
    app, session = set_up(alice.open_session())
    documents[0].requests.clear()
    with Agent([*command, *filter(None, [document])], tmp_path) as agent:
        request_of_client = agent.request(0)
        assert request_of_client["resource"] == [servers[0]]
        page.open(agent.line(0))
        sign_in(page, alice, app)
        allow(page, HOST if document else "Reader")
        first_state, second_state = json.loads(agent.line(1))
        assert first_state["token"] != second_state["token"]
        for state in (first_state, second_state):
            claims = state["claims"]
            assert (claims["sub"], claims["aud"]) == (alice.id, servers[0])
            assert (claims["client_id"], claims["acr"]) == (request_of_client["client_id"][0], "aal2")
        header = {
            "Authorization": f"Bearer {second_state['token']}",
            "Accept": "application/json, text/event-stream",
        }
        for server, status in zip(servers, (400, 401), strict=True):
            # The first server accepts the token, and refuses the body, which is not MCP.
            assert httpx.post(server, headers=header, json={}).status_code == status
        (grant,) = session.get("/user/oauth/grants").json
        assert session.delete(f"/user/oauth/grants?client_id={grant['client']['id']}").status_code == 204
        agent.go_on()
        # The client cannot refresh, and asks the user again.
        assert agent.request(2)["resource"] == request_of_client["resource"]
    fetched_paths = [each.path for each in documents[0].requests]
    assert (request_of_client["client_id"] == [URL], fetched_paths) == (
        (True, ["/oauth/client.json"]) if document else (False, [])
    )


def test_client_takes_the_scope_from_the_metadata_of_its_server_and_the_user_chooses_an_organization(
    page, python, settings, alice, site, service_role, tmp_path
):
    ids = {}
    for slug in ("acme", "beta"):
        body = {"name": slug.title(), "slug": slug, "owner": alice.id}
        ids[slug] = site.post("/organizations", json=body, headers=service_role).json["id"]
    url = f"http://localhost:{free_port()}"
    server = [python, str(PROGRAMS / "server.py"), settings["AUTH_JWT_ISSUER"], url, "organization"]
    client = [python, str(PROGRAMS / "client.py"), f"{url}/mcp", str(free_port()), "any"]
    with (
        running(server, url, tmp_path / "server", tmp_path, HOME=str(tmp_path)),
        Agent(client, tmp_path) as agent,
    ):
        assert "organization" in agent.request(0)["scope"][0].split()
        page.open(agent.line(0))
        sign_in(page, alice)
        page.wait_for("Choose an organization")
        choose(page, ids["beta"])
        allow(page, "Reader")
        for state in json.loads(agent.line(1)):
            organization = {"id": ids["beta"], "slug": "beta", "role": "owner"}
            assert state["claims"]["organization"] == organization


def test_conformance_suite_of_mcp_finds_no_failure(page, origin, node, settings, alice, tmp_path):
    suite, results = NODE_MODULES / "@modelcontextprotocol/conformance/dist/index.js", tmp_path / "results"
    command = [node, str(suite), "authorization", "--url", settings["AUTH_JWT_ISSUER"], "--client-id", URL]
    command += ["--port", str(free_port()), "--resource", "http://localhost/mcp"]
    command += ["--output-dir", str(results)]
    with Agent(command, tmp_path) as running_suite:
        page.open(running_suite.line(0, "http"))
        sign_in(page, alice)
        allow(page, HOST)
        assert running_suite.line(0, "Total: ").endswith(" 0 failed")
    checks = [check for file in results.glob("*/checks.json") for check in json.loads(file.read_text())]
    assert {check["id"]: check["status"] for check in checks} == dict.fromkeys(
        CONFORMANCE_CHECKS, "SUCCESS"
    ), checks
