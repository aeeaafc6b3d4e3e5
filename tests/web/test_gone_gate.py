"""GET /gate, which proxies of 0.5.0 and 0.5.1 still ask: they let in every request that is not refused."""

import pytest
from structlog.testing import capture_logs

from auth.core.logs import ThrottledLog
from auth.web import edge
from tests.support.answers import assert_error
from tests.support.pages import Visitor

METHODS = ["GET", "HEAD", "POST", "DELETE", "OPTIONS", "TRACE", "CONNECT", "X"]
HOST = {"X-Forwarded-Host": "docs.example.com"}
FORGED = {
    f"{prefix}-{name}": "admin" for prefix in ("Remote", "X-Forwarded") for name in ("User", "Role", "Groups")
}
OPENED = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
REQUESTS = {
    "nothing": {},
    "a forged user": HOST | FORGED,
    "a page that is opened": HOST | OPENED | {"Sec-Fetch-Site": "none"},
    "a page of another site": HOST
    | OPENED
    | {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
    "a preflight": HOST | {"Origin": "https://app.example.com", "Access-Control-Request-Method": "GET"},
    "a prefetch": HOST | {"Sec-Purpose": "prefetch"},
    "another method": HOST | {"X-Forwarded-Method": "OPTIONS", "X-Http-Method-Override": "OPTIONS"},
    "an old cookie": HOST | {"Cookie": "__Host-latchkey-gate=" + "a" * 43},
    "two hosts": {"X-Forwarded-Host": "a.example, b.example", "Host": "a.example, b.example"},
    "a long body": HOST | {"Content-Type": "text/plain", "Content-Length": "99999999"},
}
PATHS = ["/gate", "/gate?proxy=nginx", "/auth/v1/gate", "/%67ate"]


@pytest.mark.parametrize("sent", REQUESTS)
@pytest.mark.parametrize("method", METHODS)
def test_gate_refuses_every_request(client, database, method, sent):
    for path in PATHS:
        answer = client.open(path, method=method, headers=REQUESTS[sent])
        assert answer.status_code == 403, path
        assert {"Location", "Set-Cookie", *FORGED}.isdisjoint(answer.headers.keys()), path
    assert database.count("request_counts") + database.count("audit_log") == 0


def test_gate_refuses_users_with_a_good_session_too(client, app, alice, service_role):
    said = "Gates are removed: the administrator has to put oauth2-proxy in front of this tool"
    visitor = Visitor(app)
    visitor.with_session_of(alice)
    cookies = {"Cookie": "; ".join(f"{each.name}={each.value}" for each in visitor.cookies)}
    assert cookies["Cookie"]
    for headers in (cookies, alice.open_session().authorization, service_role):
        answer = client.get("/gate", headers=HOST | headers)
        assert_error(answer, 403, "insufficient_permissions", said)


def test_log_names_the_host_that_a_proxy_still_asks_about(client, monkeypatch):
    monkeypatch.setattr(edge, "_gate_asked", ThrottledLog("gate_asked"))
    with capture_logs() as lines:
        client.get("/gate", headers=HOST)
    (line,) = [each for each in lines if each["event"] == "gate_asked"]
    assert line["host"] == "docs.example.com"
