"""The request log: one event per request, and never a secret."""

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from auth.context import EXTENSION
from tests.conftest import SERVICE_ROLE_KEY
from tests.support.answers import A_TIMESTAMP, A_UUID, assert_error
from tests.support.processes import wait_until
from tests.support.raw_http import HOST, exchange
from tests.support.services import HOME, at
from tests.support.users import PASSWORD, refresh, session_of, sign_in

WRONG = "Wrong-Horse-1"
NEW = "Another-Horse-1"


@pytest.fixture
def events(make_app, capfd):
    """Return a client, and a function that returns the events logged so far."""

    def make(**changes):
        client = make_app(**{"AUTH_LOG_LEVEL": "info", **changes}).test_client()
        capfd.readouterr()
        return client, lambda: [json.loads(line) for line in capfd.readouterr().err.splitlines()]

    return make


class TestRequestEvent:
    def test_event_has_the_chosen_members_only(self, events):
        client, logged = events()
        client.get("/settings", headers={"X-Request-Id": "the-id-of-this-request"}, **at(HOME))
        (event,) = logged()
        assert isinstance(event.pop("milliseconds"), float)
        assert event == {
            "event": "request",
            "level": "info",
            "timestamp": A_TIMESTAMP,
            "request_id": "the-id-of-this-request",
            "method": "GET",
            "route": "/settings",
            "status": 200,
            "ip": HOME,
            "user_id": None,
        }

    def test_event_names_the_route_and_not_the_path(self, events, alice, service_role):
        client, logged = events()
        client.get(f"/admin/users/{alice.id}?x={WRONG}", headers=service_role)
        client.get(f"/auth/v1/admin/users/{alice.id}", headers=service_role)
        client.get(f"/verify?type=signup&token={WRONG}")
        assert [event["route"] for event in logged()] == [
            "/admin/users/<user_id>",
            "/admin/users/<user_id>",
            "/verify",
        ]

    def test_event_names_the_caller(self, events, alice):
        client, logged = events()
        session = alice.sign_in()
        logged()
        client.get("/user", headers=session.authorization)
        assert [(event["user_id"], event["status"]) for event in logged()] == [(alice.id, 200)]

    @pytest.mark.parametrize(
        ("method", "path", "status", "route"),
        [
            ("GET", "/nothing", 404, None),
            ("GET", f"/{WRONG}", 404, None),
            ("PUT", "/token", 405, None),
            ("POST", "/token", 400, "/token"),
            ("GET", "/user", 401, "/user"),
            ("OPTIONS", "/token", 200, "/token"),
            ("HEAD", "/settings", 200, "/settings"),
        ],
    )
    def test_refused_requests_are_logged(self, events, method, path, status, route):
        client, logged = events()
        client.open(path, method=method)
        assert [(event["method"], event["status"], event["route"]) for event in logged()] == [
            (method, status, route)
        ]

    def test_event_has_the_id_of_the_response(self, events):
        client, logged = events()
        sent = ["x", "a\r\nb", "<script>", "a" * 200, '"}{', "a b c d e f g h", ""]
        answers = [client.get("/settings", headers={"X-Request-Id": id.replace("\r\n", "")}) for id in sent]
        assert (
            [event["request_id"] for event in logged()]
            == [answer.headers["X-Request-Id"] for answer in answers]
            == [A_UUID] * len(sent)
        )

    def test_input_cannot_break_a_line(self, events):
        client, logged = events()
        client.open(
            '/\n%0a%0d{"event": "forged"}', method="GET", headers={"User-Agent": 'x"}\\n{"event": "forged"}'}
        )
        assert {event["event"] for event in logged()} == {"request"}

    def test_event_has_level_info(self, events):
        client, logged = events(AUTH_LOG_LEVEL="warning")
        client.get("/settings")
        assert logged() == []

    def test_text_event_is_one_line(self, make_app, capfd):
        client = make_app(AUTH_LOG_LEVEL="info", AUTH_LOG_FORMAT="text").test_client()
        capfd.readouterr()
        client.get("/settings")
        (line,) = capfd.readouterr().err.splitlines()
        assert "request" in line
        assert "/settings" in line

    def test_text_event_cannot_control_the_terminal(self, make_app, alice, capfd):
        client = make_app(AUTH_LOG_LEVEL="info", AUTH_LOG_FORMAT="text").test_client()
        session = alice.sign_in().on(client)
        session.refreshed().refreshed()
        capfd.readouterr()
        body, user_agent = (
            {"refresh_token": session.refresh_token},
            {"User-Agent": "Firefox\x9b31m\x85a_line_of_its_own"},
        )
        assert_error(
            client.post("/token?grant_type=refresh_token", json=body, headers=user_agent),
            400,
            "refresh_token_already_used",
        )
        (line,) = [line for line in capfd.readouterr().err.splitlines() if "refresh_token_reused" in line]
        assert r"Firefox\x9b31m\x85a_line_of_its_own" in line


BODY = {"email": "dave@example.com", "password": PASSWORD, "app_metadata": {"key": "a-value-of-this-test"}}


class TestUnexpectedFailure:
    """A 500 reveals nothing but the request id; the log has the reason, but no secrets."""

    @pytest.fixture
    def fail(self, make_app, database, service_role, capfd) -> Iterator[Callable[..., Any]]:
        """Return a function that violates an unknown constraint, and returns the response and the log."""
        database.run("ALTER TABLE users ADD CONSTRAINT of_this_test CHECK (email <> 'dave@example.com')")

        def fail(log_format: str) -> tuple[Any, str]:
            client = make_app(AUTH_LOG_LEVEL="info", AUTH_LOG_FORMAT=log_format).test_client()
            capfd.readouterr()
            return client.post("/admin/users", json=BODY, headers=service_role), capfd.readouterr().err

        yield fail
        database.run("ALTER TABLE users DROP CONSTRAINT of_this_test")

    @pytest.mark.parametrize("log_format", ["json", "text"])
    def test_response_has_only_the_id_and_the_log_names_the_failure(self, fail, log_format):
        response, text = fail(log_format)
        id = response.headers["X-Request-Id"]
        assert_error(
            response, 500, "unexpected_failure", f"Something went wrong on our side; the request id is {id}"
        )
        for part in ("unexpected_failure", id, "where", "admin_users.py", "CheckViolation", "of_this_test"):
            assert part in text

    @pytest.mark.parametrize("log_format", ["json", "text"])
    def test_log_contains_neither_the_input_nor_the_row(self, fail, log_format):
        _, text = fail(log_format)
        assert [
            secret
            for secret in (PASSWORD, SERVICE_ROLE_KEY, "$2b$", "a-value-of-this-test", "dave@example.com")
            if secret in text
        ] == []


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
        assert_error(sign_in(client, alice.email, WRONG), 401, "invalid_credentials")


def secrets_of(app: Any) -> list[str]:
    """Return all secrets of a deployment."""
    settings = app.extensions[EXTENSION].settings
    return [*settings.secret_key, *settings.service_role_key, json.loads(settings.jwt_keys)["keys"][0]["d"]]


def test_no_secret_is_logged_at_level_debug(
    running_service, server, app, alice, carol, service_role, outbox, database
):
    """Sends every secret where it belongs, and where it does not."""
    service, logged = running_service, len(running_service.text())
    secrets = [PASSWORD, WRONG, NEW, *secrets_of(app)]

    def keep(response: Any) -> Any:
        body = response.json if response.mimetype == "application/json" else {}
        secrets.extend(
            body[name]
            for name in ("access_token", "refresh_token", "hashed_token", "email_otp", "action_link")
            if body.get(name)
        )
        secrets.extend(
            re.findall(r"(?:access_token|refresh_token|code)=([^&#]+)", response.headers.get("Location", ""))
        )
        return response

    def keep_sent(to: str) -> Any:
        sent = outbox.last(to)
        secrets.extend(secret for secret in (sent.token, sent.code) if secret)
        return sent

    # Sign-ups and log-ins.
    keep(server.post("/signup", json={"email": "dave@example.com", "password": PASSWORD}))
    sent = keep_sent("dave@example.com")
    keep(server.get(f"/verify?type=signup&token={sent.token}x"))
    keep(server.get(f"/verify?type=signup&token={sent.token}"))
    keep(sign_in(server, "dave@example.com", WRONG))
    dave = session_of(server, keep(sign_in(server, "dave@example.com")))
    keep(server.post("/login-admin", json={"email": carol.email, "password": PASSWORD}))
    keep(server.post("/login-admin", json={"email": alice.email, "password": PASSWORD}))
    second = session_of(server, keep(dave.refresh()))
    third = session_of(server, keep(second.refresh()))
    assert_error(keep(refresh(server, dave.refresh_token)), 400, "refresh_token_already_used")
    keep(third.get("/user"))
    keep(refresh(server, third.refresh_token[:-1] + "x"))
    # Links and codes.
    for path, body in (("/magiclink", {"email": alice.email}), ("/recover", {"email": alice.email})):
        server.post(path, json=body)
        sent = keep_sent(alice.email)
        kind = "magiclink" if path == "/magiclink" else "recovery"
        keep(server.post("/verify", json={"type": kind, "email": alice.email, "token": sent.wrong_code}))
        keep(server.post("/verify", json={"type": kind, "email": alice.email, "token": sent.code}))
        keep(server.get(f"/verify?type={kind}&token={sent.token}"))
    # Changes by users and administrators.
    session = session_of(server, keep(sign_in(server, alice.email)))
    keep(session.put("/user", json={"password": NEW, "nonce": "123456", "current_password": WRONG}))
    keep(session.get("/reauthenticate"))
    keep_sent(alice.email)
    keep(server.put(f"/admin/users/{alice.id}", json={"password": PASSWORD}, headers=service_role))
    keep(
        server.post(
            "/admin/generate_link",
            json={"type": "recovery", "email": alice.email, "password": NEW},
            headers=service_role,
        )
    )
    keep(server.post("/admin/invite", json={"email": "erin@example.com"}, headers=service_role))
    keep_sent("erin@example.com")
    keep(server.post("/introspect", json={"token": session.access_token}, headers=service_role))
    keep(
        server.post(
            "/introspect", data={"token": session.refresh_token}, headers={"apikey": SERVICE_ROLE_KEY}
        )
    )
    # Secrets in the wrong places.
    secret = session.access_token
    for path in (
        f"/{secret}",
        f"/user?access_token={secret}",
        f"/admin/users/{secret}",
        f"/sessions/{secret}",
        f"/token?grant_type={WRONG}",
        f"/x/{SERVICE_ROLE_KEY}",
    ):
        server.get(
            path,
            headers={
                "Authorization": f"Basic {SERVICE_ROLE_KEY}",
                "Cookie": f"token={secret}",
                "X-Request-Id": SERVICE_ROLE_KEY + "!",
            },
        )
    for content in (
        f'{{"password": "{WRONG}"',
        f'["{WRONG}"]',
        f'{{"email": "{WRONG}", "password": ["{WRONG}"]}}',
        f'{{"password": "{WRONG}\\u0000"}}',
    ):
        server.post("/login-admin", content=content, headers={"Content-Type": "application/json"})
    server.post("/login-admin", content=f"password={WRONG}", headers={"Content-Type": "text/plain"})
    exchange(
        service.port,
        f"GET /verify?token={secret} HTTP/1.1\r\nAuthorization: Bearer {secret}\x00\r\n\r\n".encode(),
    )
    exchange(
        service.port,
        b"POST /token HTTP/1.1\r\n" + HOST + f"Authorization: Bearer {SERVICE_ROLE_KEY}\r\n".encode(),
    )
    exchange(
        service.port,
        b"POST /token HTTP/1.1\r\n" + HOST + f"Content-Length: 500\r\n\r\n{{'password': '{WRONG}'".encode(),
    )
    exchange(service.port, f"{SERVICE_ROLE_KEY} {secret} HTTP/1.1\r\n\r\n".encode())
    # Refusals by the database, late answers and outages.
    with database.locked("users", alice.id) as lock:
        late = lock.start(lambda: sign_in(server, alice.email, PASSWORD))
        waiting = "datname = current_database() AND wait_event_type = 'Lock'"
        database.run(f"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE {waiting}")
        assert late.result().status_code == 503
    server.post("/admin/users", json={"email": alice.email, "password": PASSWORD}, headers=service_role)
    server.put("/user", json={"data": {"x": WRONG * 1000}}, headers=session.authorization)

    server.get("/settings", headers={"X-Request-Id": "the-last-request"})
    text = wait_until(lambda: log if "the-last-request" in (log := service.text()[logged:]) else "")
    secrets.extend(
        row.password_hash
        for row in database.all("SELECT password_hash FROM users WHERE password_hash IS NOT NULL")
    )
    assert len(set(secrets)) > 30
    digits = [secret for secret in secrets if secret.isdigit()]
    found = [secret for secret in secrets if secret not in digits and secret in text]
    assert [line for line in text.splitlines() if any(secret in line for secret in found)] == []
    assert [code for code in digits if re.search(rf"(?<![\d.]){code}(?!\d)", text)] == []
    assert not re.search(r"eyJ[\w-]{8,}\.|\$2b\$", text)
