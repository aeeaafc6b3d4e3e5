"""deploy/gates, run by nginx, Caddy and Traefik in front of a tool, with Chromium and without."""

import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

import dns.resolver
import httpx
import pytest

from auth.cli.checks import Context, Failure
from auth.core.settings import Settings
from auth.core.tokens import one_time
from auth.openid.gates.checks import CHECKS
from sql import Database, queries
from tests.support.browser import Browser, fill
from tests.support.factors import set_up
from tests.support.gate_proxies import FILE, CaddyGate, GateProxy, NginxGate, Tool, TraefikGate
from tests.support.gates import create
from tests.support.openid import grant
from tests.support.processes import free_port, wait_until
from tests.support.programs import find_program
from tests.support.users import PASSWORD, Person

pytest_plugins = ["tests.support.browser_fixtures"]
KINDS = {"nginx": NginxGate, "caddy": CaddyGate, "traefik": TraefikGate}
NAMES = ("Remote-User", "Remote-Email", "Remote-Name", "Remote-Role", "Remote-Groups")
OPENED = """
    INSERT INTO sessions (user_id, method, grant_id, scopes, auth_time, opened_by)
    VALUES (%(user)s, 'oauth_client', %(grant)s, '{profile}', now(), %(by)s) RETURNING id::text
"""


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {"AUTH_GATE": "true", "AUTH_TRUSTED_PROXIES": "1"}


@pytest.fixture(scope="module")
def served() -> Iterator[Tool]:
    with Tool() as tool:
        yield tool


@pytest.fixture
def tool(served) -> Tool:
    served.requests.clear()
    return served


@pytest.fixture(scope="module", params=KINDS)
def running(request, started, served, tmp_path_factory) -> Iterator[GateProxy]:
    directory, service = tmp_path_factory.mktemp(request.param), f"127.0.0.1:{started[1].port}"
    tools = {"docs": served.address, "grafana": served.address, "localhost": served.address}
    with KINDS[request.param](directory, service, tools) as proxy:
        yield proxy


@pytest.fixture
def proxy(running, site, app, tool) -> GateProxy:
    create(app, running.origins["docs"])
    create(app, running.origins["grafana"], "editor", name="grafana")
    return running


def cookie(app, database, person: Person, proxy: GateProxy, name: str = "docs") -> dict[str, str]:
    """Return the cookie of a browser that is signed in at a gate, without its pages."""
    token, session = one_time.new_token(), person.open_session()
    client = database.value(
        "SELECT id::text FROM oauth_clients WHERE gate_origin = %(origin)s", origin=proxy.origins[name]
    )
    granted = grant(database, person.id, client, ["profile"])
    opened = database.value(OPENED, user=person.id, grant=granted, by=session.id)
    with app.app_context():
        parts = app.extensions["latchkey"]
        hashed = one_time.hash_token(token)
        queries.insert_gate_session(parts.db, token_hash=hashed, session_id=opened, client_id=client)
    return {"Cookie": f"latchkey-gate={token}"}


@pytest.fixture
def signed_in(app, database, alice, proxy) -> dict[str, str]:
    return cookie(app, database, alice, proxy)


def sign_in(page: Browser, person: Person) -> None:
    page.wait(lambda: page.run("!!document.querySelector('[name=password]')"))
    fill(page, email=person.email, password=PASSWORD)
    page.click("Sign in")


# — without a browser —


def test_stranger_gets_401_and_the_tool_nothing(proxy, tool):
    answers = [proxy.ask("docs", path) for path in ("/", "/file", "/.latchkey/gate", "/.latchkey/x", "/gate")]
    # nginx has a place of that name, for itself.
    assert {answer.status_code for answer in answers} <= {401, 404}
    assert proxy.ask("docs", "/", "POST", content=b"x").status_code == 401
    assert tool.requests == []


def test_tool_gets_the_user_and_neither_the_cookies_of_the_gate_nor_claims(proxy, tool, signed_in, alice):
    claims = [(f"{name}", "admin") for name in NAMES] + [(name.replace("-", "_"), "admin") for name in NAMES]
    claims += [("REMOTE_USER", "admin"), ("remote-user", "admin"), ("Remote-Anything", "admin")]
    own = signed_in["Cookie"]
    mixed = [("Cookie", f"a=1; {own}; __Host-latchkey-gate-flow=x; b=2")]
    answer = proxy.ask("docs", "/x", headers=[*claims, *mixed])
    assert answer.status_code == 200
    sent = {name: value for name, value in tool.last.items() if name.startswith("remote")}
    assert (sent.pop("remote-user"), sent.pop("remote-email")) == (alice.id, alice.email)
    assert sent.pop("remote-role") == "authenticated"
    # nginx replaces the five alone, which are all that a gate says.
    claimed = sent.pop("remote-anything", None)
    assert (claimed, {*sent.values()} <= {""}) == (None if proxy.program == "caddy" else "admin", True)
    assert [each.strip() for each in tool.last["cookie"].split(";") if each.strip()] == ["a=1", "b=2"]


def test_only_cookie_is_taken_away(proxy, tool, signed_in):
    proxy.ask("docs", "/x", headers=signed_in)
    assert tool.last.get("cookie", "") == ""


@pytest.mark.parametrize(
    "name", ["X-Forwarded-Host", "X_Forwarded_Host", "X-Forwarded-Uri", "X-Forwarded-Method"]
)
def test_forged_forwarded_header_changes_nothing(proxy, tool, signed_in, app, database, alice, name):
    """CVE-2026-30851 of Caddy, and the like."""
    other = proxy.origins["grafana"].removeprefix("http://")
    value = {"X-Forwarded-Uri": "/.latchkey/start", "X-Forwarded-Method": "OPTIONS"}.get(name, other)
    assert proxy.ask("docs", "/x", headers={name: value}).status_code == 401
    assert proxy.ask("docs", "/x", headers=signed_in | {name: value}).status_code == 200
    # A cookie of docs, sent to grafana in the name of docs.
    own = proxy.origins["docs"].removeprefix("http://")
    assert proxy.ask("grafana", "/x", headers=signed_in | {name: own}).status_code == 401
    led = proxy.ask("docs", "/x", headers={name: value, "Accept": "text/html"})
    assert led.headers["Location"] == f"{proxy.origins['docs']}/.latchkey/start?to=/x"


@pytest.mark.parametrize(
    "path",
    [
        "//",
        "//evil.example.com",
        "/x/..%2f..%2f",
        "/x/..;/y",
        "/%2elatchkey/gate",
        "/.latchkey%2fstart",
        "/.latchkey/start/../../x",
        "/.latchkey/start;x",
        "/.latchkey/start/",
        "/.latchkey//start",
        "/.LATCHKEY/start",
        "/x/../.latchkey/gate",
        "/.latchkey/callback%00",
        "/.latchkey/start%3fx",
        "/?/.latchkey/start",
    ],
)
def test_path_trick_reaches_no_tool(proxy, tool, path):
    answer = proxy.ask("docs", path)
    assert (answer.status_code in (302, 308, 400, 401, 404), tool.requests) == (True, [])
    if "Location" in answer.headers:
        location = answer.headers["Location"]
        assert location.startswith((proxy.origins["docs"] + "/", "/", "http://127.0.0.1:")), location


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "PROPFIND", "TRACE"])
def test_method_reaches_no_tool_without_a_session(proxy, tool, method):
    assert (proxy.ask("docs", "/", method).status_code in (401, 405), tool.requests) == (True, [])


def exchange(proxy: GateProxy, head: str, then: str = "") -> bytes:
    """Send the head of a request, and what follows its answer; return all answers."""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=60) as connection:
        connection.sendall(head.encode())
        received = connection.recv(65536) if then else b""
        connection.sendall(then.encode())
        return received + b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("path", ["/x", "/.latchkey/start?to=/", "/.latchkey/gate"])
@pytest.mark.parametrize(
    "line", ["GET http://{}{} HTTP/1.1", "GET https://{}{} HTTP/1.1", "GET http://{}{} HTTP/1.0"]
)
def test_request_line_that_names_another_host_opens_no_other_gate(proxy, tool, signed_in, line, path):
    """RFC 9112, section 3.2.2: what the line says replaces Host. nginx chooses the server by it alone."""
    docs, grafana = (urlsplit(proxy.origins[name]).netloc for name in ("docs", "grafana"))
    head = f"Host: {docs}\r\nCookie: {signed_in['Cookie']}\r\nConnection: close\r\n\r\n"
    received = exchange(proxy, f"{line.format(grafana, path)}\r\n{head}")
    assert received.split(maxsplit=2)[1] in (b"302", b"400", b"401", b"404", b"421")
    assert proxy.origins["docs"].encode() not in received
    assert tool.requests == []
    # The same one for its own host.
    assert b" 200 " in exchange(proxy, f"{line.format(docs, '/y')}\r\n{head}")
    assert tool.requests[-1][1].endswith("/y")


@pytest.mark.parametrize(
    "upgrade",
    [
        "Upgrade: h2c",
        "upgrade: H2C",
        "Upgrade: TLS/1.2",
        "Upgrade: anything",
        "Upgrade: h2c, websocket",
        "Upgrade: websocket, h2c",
        "Upgrade: h2c\r\nUpgrade: websocket",
        "Upgrade: websocket\r\nUpgrade: h2c",
    ],
)
def test_tunnel_of_another_protocol_than_websocket_is_not_opened(proxy, tool, signed_in, upgrade):
    head = "GET /x HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\nConnection: Upgrade, HTTP2-Settings\r\n{}\r\n\r\n"
    docs = urlsplit(proxy.origins["docs"]).netloc
    forged = "GET /forged HTTP/1.1\r\nHost: x\r\nRemote-User: admin\r\nConnection: close\r\n\r\n"
    received = exchange(proxy, head.format(docs, signed_in["Cookie"], upgrade), forged)
    assert b" 101 " not in received
    assert [request[1] for request in tool.requests] in (["/x"], [])


def test_header_that_connection_names_reaches_the_tool(proxy, tool, signed_in, alice):
    """RFC 9110, section 7.6.1: a proxy takes what Connection names away, even what the gate said."""
    named = signed_in | {"Connection": ", ".join(NAMES)}
    assert proxy.ask("docs", "/x", headers=named).status_code == 200
    assert (tool.last["remote-user"], tool.last["remote-role"]) == (alice.id, "authenticated")


def test_http_1_0_and_a_wrong_host_reach_no_tool(proxy, tool, signed_in):
    token = signed_in["Cookie"]
    for head in (
        f"GET / HTTP/1.0\r\nCookie: {token}\r\n\r\n",
        f"GET / HTTP/1.0\r\nHost: evil.localhost\r\nCookie: {token}\r\n\r\n",
        f"GET / HTTP/1.1\r\nHost: a.localhost,docs.localhost:{proxy.port}\r\nCookie: {token}\r\nConnection: close\r\n\r\n",
        f"GET / HTTP/1.1\r\nHost: docs.localhost.:{proxy.port}\r\nCookie: {token}\r\nConnection: close\r\n\r\n",
    ):
        assert b"Remote-User" not in exchange(proxy, head)
    assert tool.requests == []


def test_download_has_ranges_and_its_body_is_whole(proxy, signed_in):
    whole = proxy.ask("docs", "/file", headers=signed_in)
    part = proxy.ask("docs", "/file", headers=signed_in | {"Range": "bytes=100-355"})
    assert (whole.status_code, whole.content) == (200, FILE)
    assert (part.status_code, part.content) == (206, FILE[100:356])
    assert part.headers["Content-Range"] == f"bytes 100-355/{len(FILE)}"
    assert proxy.ask("docs", "/file", headers={"Range": "bytes=0-9"}).status_code == 401


def test_posted_body_reaches_the_tool_and_no_body_the_gate(proxy, tool, signed_in):
    body = b"typed=" + b"x" * 500_000
    answer = proxy.ask("docs", "/form", "POST", headers=signed_in, content=body)
    assert (answer.status_code, tool.requests[-1][3]) == (200, body)


def test_gate_of_a_service_that_does_not_answer_is_closed(tmp_path, tool, running):
    service = f"127.0.0.1:{free_port()}"
    with type(running)(tmp_path, service, {"docs": tool.address}) as closed:
        answer = closed.ask("docs", "/", headers={"Cookie": "latchkey-gate=x"})
    assert (answer.status_code in (500, 502, 503), tool.requests) == (True, [])


def test_refused_user_gets_the_page_and_a_program_the_envelope(proxy, tool, signed_in, database):
    database.run("UPDATE oauth_clients SET is_blocked = true")
    program = proxy.ask("docs", "/", headers=signed_in)
    browser = proxy.ask("docs", "/", headers=signed_in | {"Accept": "text/html"})
    assert (program.status_code, program.json()["error_code"]) == (403, "insufficient_permissions")
    assert (browser.status_code, "You can’t use docs.localhost" in browser.text) == (403, True)
    assert tool.requests == []


# — with Chromium —


def test_first_visit_leads_by_the_sign_in_to_the_deep_link(page, proxy, alice):
    page.open(f"{proxy.origins['docs']}/guides/a%20b?page=2&x=/y#part")
    sign_in(page, alice)
    page.wait_for(f"GET /guides/a%20b?page=2&x=/y for {alice.id}")


def test_second_step_is_asked_for_on_the_way(page, proxy, alice, here):
    authenticator, _ = set_up(alice.open_session())
    page.open(f"{proxy.origins['docs']}/deep")
    sign_in(page, alice)
    page.wait(lambda: "/second-step" in page.url)
    fill(page, code=authenticator.code())
    page.click("Continue")
    page.wait_for(f"GET /deep for {alice.id}")


def test_two_gates_with_one_sign_in_and_different_roles(page, proxy, alice, client, service_role):
    page.open(proxy.origins["docs"])
    sign_in(page, alice)
    page.wait_for(f"GET / for {alice.id}")
    page.open(proxy.origins["grafana"])
    page.wait_for("You can’t use grafana")
    client.put(f"/admin/users/{alice.id}", json={"role": "editor"}, headers=service_role)
    page.open(proxy.origins["grafana"])
    page.wait_for(f"GET / for {alice.id}")
    client.put(f"/admin/users/{alice.id}", json={"role": "guest"}, headers=service_role)
    page.reload()
    page.wait_for("You can’t use grafana")


def test_page_with_forty_assets_and_a_websocket(page, proxy, alice):
    page.open(f"{proxy.origins['docs']}/many")
    sign_in(page, alice)
    page.wait_for(f"GET /many for {alice.id}")
    page.wait(lambda: page.run("self.n") == 40)
    assert page.run("fetch('/file', {headers: {Range: 'bytes=0-9'}}).then((r) => r.status)") == 206
    if proxy.program == "traefik":
        return  # whose file lets no tunnel through
    echoed = page.run(
        """new Promise((done) => {
          const socket = new WebSocket(`ws://${location.host}/socket`);
          socket.onopen = () => socket.send("hello");
          socket.onmessage = (event) => done(event.data);
          socket.onerror = () => done("refused");
        })"""
    )
    assert echoed == "hello"


def test_form_after_the_end_of_the_session_leads_by_the_sign_in_to_its_page(
    page, proxy, alice, database, tool
):
    page.open(proxy.origins["docs"])
    sign_in(page, alice)
    page.wait_for(f"GET / for {alice.id}")
    page.click("Send")
    page.wait_for(f"POST /form typed=text for {alice.id}")
    page.go(-1)
    page.wait_for(f"GET / for {alice.id}")
    database.run("UPDATE sessions SET ended_at = now(), end_reason = 'logout'")
    assert page.run("fetch('/x').then((r) => r.status)") == 401
    tool.requests.clear()
    page.click("Send")
    sign_in(page, alice)
    page.wait_for(f"GET /form for {alice.id}")
    assert [request[0] for request in tool.requests] == ["GET"]


def test_sign_out_here_asks_about_there_and_there_ends_here(page, proxy, alice, here):
    page.open(proxy.origins["docs"])
    sign_in(page, alice)
    page.wait_for(f"GET / for {alice.id}")
    page.click("Sign out")
    page.wait(lambda: page.url.startswith(f"{here}/oauth/logout"))
    page.open(proxy.origins["docs"])
    page.wait_for(f"GET / for {alice.id}")
    page.open(f"{here}/sign-out")
    page.click("Sign out")
    page.wait(lambda: "Sign out" not in page.text)
    page.open(proxy.origins["docs"])
    page.wait(lambda: page.url.startswith(f"{here}/sign-in"))


def test_back_button_after_the_sign_in_leads_to_the_tool(page, proxy, alice):
    page.open(f"{proxy.origins['docs']}/one")
    sign_in(page, alice)
    page.wait_for(f"GET /one for {alice.id}")
    page.open(f"{proxy.origins['docs']}/two")
    page.go(-1)
    page.wait_for(f"GET /one for {alice.id}")


def test_two_tabs_that_open_at_once_both_get_there(page, proxy, alice):
    page.open(f"{proxy.origins['docs']}/one")
    page.wait(lambda: page.run("!!document.querySelector('[name=password]')"))
    # What the second tab does, with the same cookies, while the first shows the sign-in.
    first = page.url
    page.open(f"{proxy.origins['docs']}/two")
    sign_in(page, alice)
    page.wait_for(f"GET /two for {alice.id}")
    page.open(first)
    page.wait_for(f"GET /one for {alice.id}")


def test_prometheus_shows_its_own_pages_behind_the_gate(page, tmp_path, site, app, alice, running):
    program = find_program("prometheus", "prometheus", "PROMETHEUS BEHIND A GATE IS NOT TESTED")
    port = free_port()
    (tmp_path / "prometheus.yml").write_text("global: {}\n")
    command = [program, f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
    command += [f"--web.listen-address=127.0.0.1:{port}"]
    null = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=null, stderr=null)
    try:
        wait_until(lambda: _is_ready(port))
        tools = {"prometheus": f"127.0.0.1:{port}"}
        with type(running)(tmp_path, f"127.0.0.1:{site.port}", tools) as proxy:
            create(app, proxy.origins["prometheus"], name="prometheus")
            assert proxy.ask("prometheus", "/api/v1/status/buildinfo").status_code == 401
            page.open(f"{proxy.origins['prometheus']}/graph?g0.expr=up&g0.tab=1")
            sign_in(page, alice)
            # What its script asks for has come. Debian's package has the classic pages.
            page.wait_for("Load time")
            assert page.url.endswith("/graph?g0.expr=up&g0.tab=1")
            status = page.run("fetch('/api/v1/status/buildinfo').then((r) => r.json())")
            assert status["status"] == "success"
            page.open("about:blank")
    finally:
        process.terminate()
        process.wait(60)
    # Of its own pages, and of what they asked for when the proxy ended.
    page.complaints()


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/-/ready", timeout=20).status_code == 200
    except httpx.TransportError:
        return False


def test_doctor_sees_that_forged_headers_do_not_get_through(running, app, parts, site, database, tool):
    create(app, running.origins["docs"])
    # Not every machine resolves the names of browsers.
    database.run("UPDATE oauth_clients SET gate_origin = %(it)s", it=running.origins["localhost"])
    settings = replace(parts.settings, gate=True, base_url=f"http://127.0.0.1:{site.port}")
    assert look(settings, parts.db) is None
    assert tool.requests == []


def test_doctor_says_which_tool_is_open_until_a_proxy_is_in_front_of_it(proxy, parts, site, database, tool):
    settings = replace(parts.settings, gate=True, base_url=f"http://127.0.0.1:{site.port}")
    database.run("DELETE FROM oauth_clients WHERE name = 'grafana'")
    database.run("UPDATE oauth_clients SET gate_origin = %(open)s", open=tool.url)
    found = look(settings, parts.db)
    assert found is not None
    assert found.sentence == (
        f"{tool.url} answers 200 to a stranger with forged headers, instead of leading to the sign-in: the tool may be"
        " open."
    )
    assert found.setting == "Compare the proxy with what latchkey gates create prints: docs/gate.md"
    # The host leads to the proxy, as printed.
    database.run("UPDATE oauth_clients SET gate_origin = %(it)s", it=proxy.origins["localhost"])
    assert look(settings, parts.db) is None


def look(settings: Settings, db: Database) -> Failure | None:
    return CHECKS[0].look(
        Context(settings, db, dns.resolver.Resolver(configure=False), time.monotonic() + 60)
    )
