"""The request log: one event per request, and never a secret."""

import io
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from auth.api import service
from auth.core.settings import served
from auth.web.context import EXTENSION
from tests.support.answers import A_TIMESTAMP, assert_error
from tests.support.cases import cases
from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.processes import wait_until
from tests.support.raw_http import HOST, exchange
from tests.support.services import HOME, at
from tests.support.users import NEW_PASSWORD, PASSWORD, WRONG_PASSWORD, refresh, session_of, sign_in


@pytest.fixture
def logging_client(make_app, capfd):
    """Return a client, and a function that returns the lines logged since it was last called."""

    def make(**changes):
        client = make_app(**{"AUTH_LOG_LEVEL": "info", **changes}).test_client()
        capfd.readouterr()
        return client, lambda: capfd.readouterr().err.splitlines()

    return make


@pytest.fixture
def events(logging_client):
    """Return a client, and a function that returns the events."""

    def make(**changes):
        client, lines = logging_client(**changes)
        return client, lambda: [json.loads(line) for line in lines()]

    return make


class TestRequestEvent:
    def test_event_has_the_chosen_members_only(self, events):
        client, new_events = events()
        client.get("/settings", headers={"X-Request-Id": "the-id-of-this-request"}, **at(HOME))
        (event,) = new_events()
        assert isinstance(event.pop("milliseconds"), float)
        expected = {"event": "request", "level": "info", "timestamp": A_TIMESTAMP, "ip": HOME}
        expected |= {"request_id": "the-id-of-this-request", "user_id": None, "error_code": None}
        assert event == expected | {"method": "GET", "route": "/settings", "status": 200}

    def test_event_names_the_route_and_not_the_path(self, events, alice, service_role):
        client, new_events = events()
        client.get(f"/admin/users/{alice.id}?x={WRONG_PASSWORD}", headers=service_role)
        client.get(f"/auth/v1/admin/users/{alice.id}", headers=service_role)
        client.get(f"/verify?type=signup&token={WRONG_PASSWORD}")
        route = "/admin/users/<user_id>"
        assert [event["route"] for event in new_events()] == [route, route, "/verify"]

    def test_probes_are_not_logged_but_once_a_minute_while_unhealthy(self, events, monkeypatch):
        monkeypatch.setattr(service._unhealthy, "_logged_at", -math.inf)
        client, new_events = events()
        for path in ("/health", "/health?strict", "/auth/v1/health"):
            assert (client.get(path).status_code, client.head(path).status_code) == (200, 200)
        assert new_events() == []
        monkeypatch.setattr(served, "delivery_fails", [1])
        assert [client.get("/health?strict").status_code for _ in range(5)] == [503] * 5
        assert client.get("/health").json["status"] == "degraded"
        (event,) = new_events()
        assert (event["event"], event["level"]) == ("unhealthy", "warning")
        assert event["reason"].startswith("The delivery process ends again")
        assert client.post("/health").status_code == 405
        assert [(event["event"], event["status"]) for event in new_events()] == [("request", 405)]

    def test_event_names_the_caller(self, events, alice):
        session = alice.sign_in()
        client, new_events = events()
        client.get("/user", headers=session.authorization)
        assert [(event["user_id"], event["status"]) for event in new_events()] == [(alice.id, 200)]

    @cases(
        ("method", "path", "status", "route"),
        [
            ("GET", f"/{WRONG_PASSWORD}", 404, None),
            ("PUT", "/token", 405, None),
            ("GET", "/user", 401, "/user"),
            ("HEAD", "/settings", 200, "/settings"),
        ],
    )
    def test_refused_requests_are_logged(self, events, method, path, status, route):
        client, new_events = events()
        client.open(path, method=method)
        (event,) = new_events()
        assert (event["method"], event["status"], event["route"]) == (method, status, route)

    def test_input_cannot_break_a_line(self, events):
        client, new_events = events()
        forged = '"event": "forged"}'
        client.get(f"/\n%0a%0d{{{forged}", headers={"User-Agent": f'x"}}\\n{{{forged}}}'})
        assert {event["event"] for event in new_events()} == {"request"}

    def test_text_leaves_out_files_of_pages_that_were_found(self, logging_client):
        client, lines = logging_client(AUTH_LOG_FORMAT="text")
        statuses = [client.get(path).status_code for path in ("/static/page.css", "/static/none", "/sign-in")]
        assert statuses == [200, 404, 200]
        assert ["GET /static/" in line for line in lines()] == [True, False]

    def test_text_event_is_one_line_that_cannot_control_the_terminal(self, logging_client, alice, database):
        client, lines = logging_client(AUTH_LOG_FORMAT="text")
        client.get("/a-secret-in-a-path")
        (line,) = lines()
        assert re.search(r"GET - 404 [0-9]+ ms  +ip=127\.0\.0\.1 error_code=not_found ", line)
        session = alice.sign_in().on(client)
        newer = session.refreshed()
        database.run("UPDATE sessions SET refreshed_at = refreshed_at - interval '2 minutes'")
        newer.refresh()
        body, user_agent = {"refresh_token": session.refresh_token}, "Firefox\x9b31m\x85a_line_of_its_own"
        path, headers = "/token?grant_type=refresh_token", {"User-Agent": user_agent}
        assert_error(client.post(path, json=body, headers=headers), 400, "refresh_token_already_used")
        (line,) = [line for line in lines() if "refresh_token_reused" in line]
        assert r"Firefox\x9b31m\x85a_line_of_its_own" in line


BODY = {"email": "dave@example.com", "password": PASSWORD, "app_metadata": {"key": "a-value-of-this-test"}}


@pytest.fixture
def unknown_constraint(database):
    """A constraint that `BODY` violates."""
    database.run("ALTER TABLE users ADD CONSTRAINT of_this_test CHECK (email <> 'dave@example.com')")
    yield
    database.run("ALTER TABLE users DROP CONSTRAINT of_this_test")


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_response_to_a_failure_has_only_the_id_and_the_log_the_reason_without_secrets(
    logging_client, service_role, unknown_constraint, log_format
):
    client, lines = logging_client(AUTH_LOG_FORMAT=log_format)
    response = client.post("/admin/users", json=BODY, headers=service_role)
    text, id = "".join(lines()), response.headers["X-Request-Id"]
    sentence = f"Something went wrong on our side; the request ID is {id}"
    assert_error(response, 500, "unexpected_failure", sentence)
    reason = ("unexpected_failure", id, "where", "admin/users.py", "CheckViolation", "of_this_test")
    assert [part for part in reason if part not in text] == []
    secrets = (PASSWORD, SERVICE_ROLE_KEY, "$2b$", "a-value-of-this-test", "dave@example.com")
    assert [secret for secret in secrets if secret in text] == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_requests_are_served_when_the_log_cannot_be_written(make_app, alice, monkeypatch):
    with (
        io.TextIOWrapper(open("/dev/full", "wb", buffering=0), write_through=True) as full,
        monkeypatch.context() as patch,
    ):
        patch.setattr(sys, "stderr", full)
        client = make_app(AUTH_LOG_LEVEL="info").test_client()
        assert client.get("/settings").status_code == 200
        assert sign_in(client, alice.email).status_code == 200
        assert_error(sign_in(client, alice.email, WRONG_PASSWORD), 401, "invalid_credentials")


def secrets_of(app: Any) -> list[str]:
    """Return all secrets of a deployment."""
    settings = app.extensions[EXTENSION].settings
    return [*settings.secret_key, *settings.service_role_key, json.loads(settings.jwt_keys)["keys"][0]["d"]]


def test_no_secret_is_logged_at_level_debug(
    running_service, server, app, alice, carol, service_role, outbox, database
):
    """Sends every secret where it belongs, and where it does not."""
    service, offset = running_service, running_service.written()
    secrets = [PASSWORD, WRONG_PASSWORD, NEW_PASSWORD, *secrets_of(app)]

    def keep(response: Any) -> Any:
        body = response.json if response.mimetype == "application/json" else {}
        names = ("access_token", "refresh_token", "hashed_token", "email_otp", "action_link")
        secrets.extend(body[name] for name in names if body.get(name))
        location = response.headers.get("Location", "")
        secrets.extend(re.findall(r"(?:access_token|refresh_token|(?<!error_)code)=([^&#]+)", location))
        return response

    def keep_sent(recipient: str) -> Any:
        message = outbox.last(recipient)
        secrets.extend(secret for secret in (message.token, message.code) if secret)
        return message

    def post(path: str, headers: Any = None, **body: Any) -> Any:
        return keep(server.post(path, json=body, headers=headers))

    # Sign-ups and log-ins.
    post("/signup", email="dave@example.com", password=PASSWORD)
    message = keep_sent("dave@example.com")
    keep(server.get(f"/verify?type=signup&token={message.token}x"))
    keep(server.get(f"/verify?type=signup&token={message.token}"))
    keep(sign_in(server, "dave@example.com", WRONG_PASSWORD))
    dave = session_of(server, keep(sign_in(server, "dave@example.com")))
    post("/login-admin", email=carol.email, password=PASSWORD)
    post("/login-admin", email=alice.email, password=PASSWORD)
    second = session_of(server, keep(dave.refresh()))
    database.run("UPDATE sessions SET refreshed_at = refreshed_at - interval '2 minutes'")
    third = session_of(server, keep(second.refresh()))
    assert_error(keep(refresh(server, dave.refresh_token)), 400, "refresh_token_already_used")
    keep(third.get("/user"))
    keep(refresh(server, third.refresh_token[:-1] + "x"))
    # Links and codes.
    post("/recover", email=alice.email)
    message = keep_sent(alice.email)
    for code in (message.wrong_code, message.code):
        post("/verify", type="recovery", email=alice.email, token=code)
    keep(server.get(f"/verify?type=recovery&token={message.token}"))
    # Changes by users and administrators.
    session = session_of(server, keep(sign_in(server, alice.email)))
    change = {"password": NEW_PASSWORD, "nonce": "123456", "current_password": WRONG_PASSWORD}
    keep(session.put("/user", json=change))
    keep(session.get("/reauthenticate"))
    keep_sent(alice.email)
    keep(server.put(f"/admin/users/{alice.id}", json={"password": PASSWORD}, headers=service_role))
    post("/admin/generate_link", service_role, type="recovery", email=alice.email, password=NEW_PASSWORD)
    secret = session.access_token
    post("/introspect", service_role, token=secret)
    # Secrets in the wrong places.
    headers = {"Authorization": f"Basic {SERVICE_ROLE_KEY}", "Cookie": f"token={secret}"}
    headers |= {"X-Request-Id": SERVICE_ROLE_KEY + "!"}
    for path in (
        *(f"/{secret}", f"/user?access_token={secret}", f"/admin/users/{secret}", f"/sessions/{secret}"),
        *(f"/token?grant_type={WRONG_PASSWORD}", f"/x/{SERVICE_ROLE_KEY}"),
    ):
        server.get(path, headers=headers)
    for content in (f'{{"password": "{WRONG_PASSWORD}"', f'{{"password": ["{WRONG_PASSWORD}"]}}'):
        server.post("/login-admin", content=content, headers={"Content-Type": "application/json"})
    server.post("/login-admin", content=f"password={WRONG_PASSWORD}", headers={"Content-Type": "text/plain"})
    start = "POST /token HTTP/1.1\r\n" + HOST.decode()
    for message in (
        f"GET /verify?token={secret} HTTP/1.1\r\nAuthorization: Bearer {secret}\x00\r\n\r\n",
        f"{start}Authorization: Bearer {SERVICE_ROLE_KEY}\r\n",
        f"{start}Content-Length: 500\r\n\r\n{{'password': '{WRONG_PASSWORD}'",
        f"{SERVICE_ROLE_KEY} {secret} HTTP/1.1\r\n\r\n",
    ):
        exchange(service.port, message.encode())
    # Refusals by the database, late answers and outages.
    with database.locked("users", alice.id) as lock:
        future = lock.start(lambda: sign_in(server, alice.email, PASSWORD))
        database.cancel_waiting()
        assert future.result().status_code == 503
    post("/admin/users", service_role, email=alice.email, password=PASSWORD)
    server.put("/user", json={"data": {"x": WRONG_PASSWORD * 1000}}, headers=session.authorization)

    server.get("/settings", headers={"X-Request-Id": "the-last-request"})
    text = wait_until(lambda: log if "the-last-request" in (log := service.text()[offset:]) else "")
    rows = database.all("SELECT password_hash FROM users WHERE password_hash IS NOT NULL")
    secrets.extend(row.password_hash for row in rows)
    assert len(set(secrets)) > 20
    digits = [secret for secret in secrets if secret.isdigit()]
    logged_secrets = [secret for secret in secrets if secret not in digits and secret in text]
    assert [line for line in text.splitlines() if any(secret in line for secret in logged_secrets)] == []
    assert [code for code in digits if re.search(rf"(?<![\d.]){code}(?!\d)", text)] == []
    assert not re.search(r"eyJ[\w-]{8,}\.|\$2b\$", text)
