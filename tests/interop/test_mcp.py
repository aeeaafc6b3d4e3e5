"""MCP clients by other hands, unmodified, at a server of FastMCP that accepts our access tokens."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.support.factors import set_up
from tests.support.processes import free_port, wait_until
from tests.support.relying_parties import allow, running, sign_in

pytestmark = pytest.mark.interop
pytest_plugins = ["tests.support.browser_fixtures"]

HERE = Path(__file__).parent / "mcp"
NODE = shutil.which("node") if (HERE / "node_modules").is_dir() else None


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    """The issuer has a path, as at Supabase: its metadata are elsewhere too (RFC 8414, section 3.1)."""
    port = free_port()
    return {
        "PORT": str(port),
        "AUTH_BASE_URL": f"http://127.0.0.1:{port}",
        "AUTH_JWT_ISSUER": f"http://127.0.0.1:{port}/auth/v1",
        "AUTH_OAUTH_DYNAMIC_REGISTRATION": "true",
    }


@pytest.fixture(scope="session")
def python(make_python) -> str:
    """A Python with FastMCP."""
    return str(make_python(HERE / "requirements.txt") / "python")


@pytest.fixture
def servers(python, settings, here, tmp_path) -> Iterator[list[str]]:
    """The URLs of two running MCP servers."""
    urls = [f"http://localhost:{free_port()}" for _ in range(2)]
    with ExitStack() as stack:
        for number, url in enumerate(urls):
            command = [python, str(HERE / "server.py"), settings["AUTH_JWT_ISSUER"], url]
            output = tmp_path / f"server {number}"
            stack.enter_context(running(command, url, output, tmp_path, HOME=str(tmp_path)))
        yield [f"{url}/mcp" for url in urls]


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_user_gives_a_client_access_to_one_server_until_it_is_withdrawn(
    page, servers, alice, language, request, tmp_path
):
    if language == "javascript" and not NODE:
        pytest.skip("NOT TESTED: the MCP client of JavaScript. It needs Node.js and npm: make test-interop")
    command = {
        "python": [request.getfixturevalue("python"), str(HERE / "client.py"), servers[0]],
        "javascript": [str(NODE), str(HERE / "client.mjs"), servers[0], str(free_port())],
    }[language]
    output = tmp_path / "output"
    app, session = set_up(alice.open_session())
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "BROWSER": "echo %s"}
    with output.open("w") as out, (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=out, stderr=errors, text=True
        )
    assert process.stdin

    def line(number: int) -> str:
        """Wait for a line of the client's output."""

        def printed() -> list[str]:
            lines = output.read_text().split("\n")[:-1][number:]
            assert lines or process.poll() is None, (tmp_path / "errors").read_text()
            return lines

        return wait_until(printed)[0]

    try:
        asked = parse_qs(urlsplit(line(0)).query)
        assert asked["resource"] == [servers[0]]
        page.open(line(0))
        sign_in(page, alice, app)
        allow(page, "Reader")
        first, second = json.loads(line(1))
        assert first["token"] != second["token"]
        for seen in (first, second):
            claims = seen["claims"]
            assert (claims["sub"], claims["aud"]) == (alice.id, servers[0])
            assert (claims["client_id"], claims["acr"]) == (asked["client_id"][0], "aal2")
        header = {
            "Authorization": f"Bearer {second['token']}",
            "Accept": "application/json, text/event-stream",
        }
        for server, status in zip(servers, (400, 401), strict=True):
            # The first reads the body, which is none of MCP.
            assert httpx.post(server, headers=header, json={}).status_code == status
        assert session.delete(f"/user/oauth/grants?client_id={asked['client_id'][0]}").status_code == 204
        process.stdin.write("\n")
        process.stdin.flush()
        # It can't refresh, and asks the user again.
        again = parse_qs(urlsplit(line(2)).query)
        assert again["resource"] == asked["resource"]
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
