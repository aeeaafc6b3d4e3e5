"""Proxies in the field with the output of `latchkey gates create` of 0.5.0: they refuse everyone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pages import Visitor
from tests.support.tool_proxies import PROXIES, Tool, ToolProxy

TEXTS = Path(__file__).parent / "gates_of_0_5_0"
NAMES = {"nginx": "nginx.conf", "caddy": "Caddyfile", "traefik": "traefik.yml"}
HOST = "docs.example.com"
FORGED = {
    f"Remote{dash}{name}": "admin" for dash in ("__", "_") for name in ("User", "Role", "Groups", "Email")
}
REQUESTS = {
    "nothing": {},
    "a forged user": FORGED,
    "a page that is opened": {
        "Accept": "text/html",
        "Sec__Fetch__Mode": "navigate",
        "Sec__Fetch__Site": "none",
    },
    "an old cookie": {"Cookie": "__Host-latchkey-gate=" + "a" * 43 + "; latchkey-gate=" + "a" * 43},
}


@pytest.fixture(scope="module")
def tool() -> Iterator[Tool]:
    with Tool() as tool:
        yield tool


@pytest.fixture(params=PROXIES)
def proxy(request, server, tool, tmp_path) -> Iterator[ToolProxy]:
    text = (TEXTS / NAMES[request.param]).read_text()
    replaced = {"127.0.0.1:8000": f"127.0.0.1:{server.port}", "127.0.0.1:9090": tool.address}
    with PROXIES[request.param](tmp_path, text, HOST, replaced) as proxy:
        yield proxy


def test_proxy_of_a_gate_refuses_every_request(proxy, tool, app, alice):
    visitor = Visitor(app)
    visitor.with_session_of(alice)
    session = "; ".join(f"{each.name}={each.value}" for each in visitor.cookies)
    own = {
        "a session here": {
            "Cookie": session,
            "Authorization": alice.open_session().authorization["Authorization"],
        }
    }
    for name, headers in (REQUESTS | own).items():
        for method in ("GET", "POST", "OPTIONS"):
            for path in ("/", "/file?x=1", "/gate", "/.latchkey/gate"):
                answer = proxy.ask(path, method, **headers)
                assert answer.status_code in (401, 403, 404), (name, method, path, answer.status_code)
                assert "Location" not in answer.headers
    for path in ("/.latchkey/start?to=/", "/.latchkey/callback?code=x&state=x", "/.latchkey/sign-out"):
        assert proxy.ask(path).status_code == 404
    tunnel = f"GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: Upgrade\r\nUpgrade: h2c"
    assert proxy.ask_raw(tunnel).split()[1] in ("401", "403", "404")
    absolute = f"GET http://{proxy.netloc}/ HTTP/1.1\r\nHost: grafana.example.com\r\nRemote-User: admin"
    assert proxy.ask_raw(absolute).split()[1] in ("401", "403", "404")
    assert tool.requests == []
