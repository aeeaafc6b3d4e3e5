"""Prometheus behind nginx, Caddy and Traefik with oauth2-proxy, as docs/openid.md says, with a tool that records."""

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import pytest

from tests.support.browser import Browser
from tests.support.commands import run_command
from tests.support.guides import Guide
from tests.support.processes import PATIENT_GUNICORN, free_port, wait_until
from tests.support.relying_parties import allow, running, sign_in
from tests.support.tool_proxies import PROXIES, Tool, ToolProxy

pytest_plugins = ["tests.support.browser_fixtures"]
DIRECTORY = Path(__file__).parent / "oauth2_proxy"
TOKEN_LIFETIME = 8  # seconds
HOST = "prometheus.example.com"
GUIDE = Guide("openid.md")
BLOCKS = {
    "sh": GUIDE.block("> prometheus.env").text,
    "nginx": GUIDE.block("large_client_header_buffers").text,
    "caddyfile": GUIDE.block("request_header -Upgrade").text,
    "yaml": GUIDE.block("customRequestHeaders").text,
}
# Some tools take `_` for `-`. Names have `__` for `-` here.
FORGED = {
    f"X{first}Forwarded{second}{name}": "admin"
    for first, second in product(("__", "_"), repeat=2)
    for name in ("User", "Email", "Groups")
}
USER = ("x-forwarded-user", "x-forwarded-email", "x-forwarded-groups")


@pytest.fixture(scope="module")
def gunicorn() -> list[str]:
    return PATIENT_GUNICORN


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {"AUTH_RATE_LIMITS_ENABLED": "true"}


@pytest.fixture(scope="module")
def tool() -> Iterator[Tool]:
    with Tool() as tool:
        yield tool


class ProtectedTool(NamedTuple):
    """A tool behind oauth2-proxy behind a proxy. `url` is that of the proxy."""

    proxy: ToolProxy
    tool: Tool
    url: str
    log: Path


@pytest.fixture(params=PROXIES)
def protected(request, site, origin, make_app, database, tool, tmp_path) -> Iterator[ProtectedTool]:
    if not shutil.which("go"):
        pytest.skip("NOT TESTED: oauth2-proxy, which needs go")
    build = ["go", "build", "-o", "target/oauth2-proxy", "github.com/oauth2-proxy/oauth2-proxy/v7"]
    subprocess.run(build, cwd=DIRECTORY, check=True)
    port, text = free_port(), BLOCKS[PROXIES[request.param].kind]
    replaced = {HOST: "localhost", "127.0.0.1:4180": f"127.0.0.1:{port}"}
    proxy = PROXIES[request.param](tmp_path, text, "localhost", replaced)
    url = f"http://{proxy.netloc}"
    command = ["create", "prometheus", f"{url}/oauth2/callback", "--role", "staff", "--for", "oauth2-proxy"]
    made = run_command(make_app(AUTH_BASE_URL=origin), "clients", *command)
    assert made.exit_code == 0, made.output
    own = BLOCKS["sh"].partition("END\n")[2].partition("END\n")[0]
    own = own.replace("$(openssl rand -hex 16)", "0123456789abcdef" * 2).replace(
        "127.0.0.1:9090", tool.address
    )
    lines = made.output + own.replace("127.0.0.1:4180", f"127.0.0.1:{port}")
    assert "OAUTH2_PROXY_COOKIE_REFRESH=1m\n" in lines
    # Without TLS, and with tokens that expire within a test.
    database.run("UPDATE oauth_clients SET token_lifetime = %(seconds)s", seconds=TOKEN_LIFETIME)
    lines += "OAUTH2_PROXY_COOKIE_SECURE=false\nOAUTH2_PROXY_COOKIE_REFRESH=1s\nOAUTH2_PROXY_SKIP_PROVIDER_BUTTON=true\n"
    lines += f"OAUTH2_PROXY_WHITELIST_DOMAINS={urlsplit(origin).netloc}\n"
    pairs = [shlex.split(line)[0] for line in lines.splitlines() if line and not line.startswith("#")]
    environment = dict(pair.split("=", 1) for pair in pairs) | {"PATH": os.environ["PATH"]}
    tool.requests.clear()
    log = tmp_path / "oauth2-proxy.log"
    with running(["target/oauth2-proxy"], f"http://127.0.0.1:{port}", log, DIRECTORY, **environment), proxy:
        yield ProtectedTool(proxy, tool, url, log)


@pytest.fixture
def put(site, service_role, alice):
    """Return a function that sets what administrators write about Alice."""

    def put(**changes):
        response = site.put(f"/admin/users/{alice.id}", json=changes, headers=service_role)
        assert response.status_code == 200, response.text

    return put


@pytest.fixture
def staff(put) -> None:
    put(app_metadata={"roles": ["staff"], "groups": ["editors", "ops"]})


@pytest.fixture
def signed_in(page, protected, alice, staff) -> str:
    """The cookies of a browser that is signed in at the tool."""
    enter(page, protected, alice)
    page.wait_for("The tool")
    protected.tool.requests.clear()
    return page.cookie_header(protected.url)


def enter(page: Browser, protected: ProtectedTool, person) -> None:
    page.open(f"{protected.url}/graph?g0.expr=up")
    sign_in(page, person)
    allow(page, "prometheus")


def wait_for_consent(page: Browser) -> None:
    """Wait for the page, and not for the name alone, which the page to sign in shows too."""
    page.wait(lambda: page.url.partition("?")[0].endswith("/oauth/consent") and "prometheus" in page.text)


def is_out(page: Browser, protected: ProtectedTool) -> bool:
    """Whether the tool does not show anything to the browser."""
    page.open(f"{protected.url}/")
    return "The tool" not in page.text


def test_only_the_user_reaches_the_tool_whatever_a_request_claims(page, protected, alice, signed_in):
    raw_heads = {
        "tunnel": f"GET /x HTTP/1.1\r\nHost: {protected.proxy.netloc}\r\nConnection: Upgrade\r\nUpgrade: h2c",
        "other host": f"GET {protected.url}/x HTTP/1.1\r\nHost: grafana.example.com",
        "other server": f"GET http://grafana.example.com/x HTTP/1.1\r\nHost: {protected.proxy.netloc}",
        "connection": f"GET /x HTTP/1.1\r\nHost: {protected.proxy.netloc}\r\nConnection: X-Forwarded-User, Cookie",
    }
    other_forged = {
        "X__Forwarded__Uri": "/oauth2/auth",
        "X__Forwarded__Host": "x",
        "X__Auth__Request__Redirect": "/x",
    }
    # Requests of strangers do not reach the tool.
    assert protected.proxy.ask("/x", **FORGED, **other_forged).status_code in (302, 403)
    assert protected.proxy.ask("/x", "POST", **FORGED).status_code in (302, 403)
    for name, head in raw_heads.items():
        # Caddy answers for a host that it does not have, by an empty page.
        assert protected.proxy.ask_raw(f"{head}\r\nX-Forwarded-User: admin").split()[1] != "101", name
    assert protected.tool.requests == []
    # Forged headers of the signed-in user do not reach the tool.
    assert protected.proxy.ask("/x", Cookie=signed_in, **FORGED, **other_forged).status_code == 200
    for name in ("tunnel", "other host", "connection"):
        status = protected.proxy.ask_raw(
            f"{raw_heads[name]}\r\nCookie: {signed_in}\r\nX-Forwarded-User: admin"
        ).split()[1]
        assert status != "101", name
    assert protected.tool.requests
    for path, headers in protected.tool.requests:
        assert path == "/x"
        assert tuple(headers.get(name) for name in USER) == (alice.id, alice.email, "editors,ops")
        assert {"admin"}.isdisjoint(headers.values())
        assert "upgrade" not in headers


def test_user_without_the_role_and_one_without_a_proved_email_are_refused(
    page, protected, alice, put, database
):
    page.open(f"{protected.url}/")
    sign_in(page, alice)
    wait_for_consent(page)
    assert is_out(page, protected)
    put(app_metadata={"roles": ["staff"]})
    database.run("UPDATE users SET email_proved = false")
    page.open(f"{protected.url}/")
    wait_for_consent(page)
    page.click("Allow")
    page.wait(lambda: page.url.startswith(protected.url))
    assert "The tool" not in page.text
    assert "isn't verified" in protected.log.read_text()
    assert protected.tool.requests == []


def test_lost_access_counts_when_the_id_token_expires(page, protected, put, signed_in):
    assert protected.proxy.ask("/x", Cookie=signed_in).status_code == 200
    put(app_metadata={"roles": []})
    page.wait(lambda: is_out(page, protected))
    page.wait(lambda: protected.proxy.ask("/x", Cookie=signed_in).status_code != 200)


def test_page_with_40_assets_at_once_after_the_token_expired_gets_them_all(protected, signed_in):
    expired_at = time.monotonic() + TOKEN_LIFETIME + 1
    wait_until(lambda: time.monotonic() > expired_at)
    with ThreadPoolExecutor(40) as threads:
        answers = list(
            threads.map(lambda n: protected.proxy.ask(f"/asset/{n}", Cookie=signed_in).status_code, range(40))
        )
    assert answers == [200] * 40


def test_sign_out_ends_the_sessions_at_the_tool_and_at_the_service(page, protected, origin, signed_in):
    page.open(f"{protected.url}/oauth2/sign_out?rd={quote(f'{origin}/oauth/logout', safe='')}")
    page.click("Sign out")
    page.wait_for("signed out")
    page.open(f"{protected.url}/")
    page.wait(lambda: page.run("!!document.querySelector('[name=password]')"))
    assert protected.tool.requests == []
