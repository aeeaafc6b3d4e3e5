"""Errors for clients that send X-Supabase-Api-Version with a date since 2024-01-01: `code` is the error_code."""

import base64
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.answers import ANYTHING, DIALECT, NO_ID, assert_error
from tests.support.cases import cases
from tests.support.client_errors import HEADER, READERS, VERSION, Read
from tests.support.factors import enrol
from tests.support.openid import make_client
from tests.support.server import served
from tests.support.users import PASSWORD, WRONG_PASSWORD, Person, Session, register

HOOK = {"AUTH_HOOK_BEFORE_USER_CREATED_SECRETS": "whsec_" + base64.b64encode(bytes(32)).decode()}
HOOK_REFUSES = {"error": {"http_code": 418, "message": "Members of the club only"}}
NEW = {"email": "dave@example.com", "password": PASSWORD}
WEAK = {"email": "dave@example.com", "password": "Shrtq-1"}
AS_JSON = {"Content-Type": "application/json"}


@dataclass
class Caller:
    """An application that calls the service with the headers of one client."""

    server: Any
    headers: dict[str, str]
    # Makes users and sessions without requests.
    local_client: Any
    database: Any
    service_role: dict[str, str]

    def person(self) -> Person:
        return register(self.local_client, self.service_role, f"{uuid.uuid4()}@example.com")

    def send(
        self, method: str, path: str, body: Any = None, session: Session | None = None, **options: Any
    ) -> Any:
        headers = self.headers | (session.authorization if session else {}) | options.pop("headers", {})
        content = options if method == "GET" or options else {"json": {} if body is None else body}
        return self.server.open(f"/auth/v1{path}", method, headers=headers, **content)

    def token(self, grant: str, **body: Any) -> Any:
        return self.send("POST", f"/token?grant_type={grant}", body)


def ended_session(caller: Caller) -> Session:
    session = caller.person().open_session()
    assert caller.send("POST", "/logout", session=session).status_code == 200
    return session


def refresh_with_a_used_token(caller: Caller) -> Any:
    """Refresh twice, and again with the first token more than a minute later."""
    first = caller.person().open_session().refresh_token
    second = caller.token("refresh_token", refresh_token=first).json["refresh_token"]
    caller.database.run("UPDATE sessions SET refreshed_at = refreshed_at - interval '2 minutes'")
    assert caller.token("refresh_token", refresh_token=second).status_code == 200
    return caller.token("refresh_token", refresh_token=first)


def request_of_a_banned_user(caller: Caller) -> Any:
    session = caller.person().open_session()
    caller.database.run(
        "UPDATE users SET banned_until = now() + interval '1 day' WHERE id = %(id)s", id=session.user["id"]
    )
    return caller.send("GET", "/user", session=session)


def wrong_code_of_a_factor(caller: Caller) -> Any:
    session = caller.person().open_session()
    app = enrol(session)
    challenge = caller.send("POST", f"/factors/{app.id}/challenge", session=session).json["id"]
    body = {"challenge_id": challenge, "code": app.wrong_code()}
    return caller.send("POST", f"/factors/{app.id}/verify", body, session)


def as_user(caller: Caller, method: str, path: str, body: Any = None) -> Any:
    return caller.send(method, path, body, caller.person().open_session())


# Requests that the service refuses, by the error_code and the case.
REFUSED: dict[str, Callable[[Caller], Any]] = {
    "invalid_credentials": lambda c: c.token("password", email=c.person().email, password=WRONG_PASSWORD),
    "email_not_confirmed": lambda c: [c.send("POST", "/signup", NEW), c.token("password", **NEW)][-1],
    "weak_password, sign-up": lambda c: c.send("POST", "/signup", WEAK),
    "weak_password, change": lambda c: as_user(c, "PUT", "/user", {"password": WEAK["password"]}),
    "weak_password, administrator": lambda c: c.send("POST", "/admin/users", WEAK, headers=c.service_role),
    "refresh_token_not_found, never ours": lambda c: c.token("refresh_token", refresh_token="x" * 56),
    "refresh_token_not_found, session ended": lambda c: c.token(
        "refresh_token", refresh_token=ended_session(c).refresh_token
    ),
    "refresh_token_already_used": refresh_with_a_used_token,
    "session_not_found": lambda c: c.send("GET", "/user", session=ended_session(c)),
    "user_banned": request_of_a_banned_user,
    "otp_expired": lambda c: c.send(
        "POST", "/verify", {"type": "email", "email": NEW["email"], "token": "000000"}
    ),
    "flow_state_not_found": lambda c: c.token("pkce", auth_code=NO_ID, code_verifier="x" * 43),
    "provider_disabled": lambda c: c.token("id_token", provider="google", id_token=_id_token()),
    "anonymous_provider_disabled": lambda c: c.send("POST", "/signup", {"data": {}}),
    "saml_provider_disabled": lambda c: c.send("POST", "/sso", {"domain": "example.com"}),
    "mfa_verification_failed": wrong_code_of_a_factor,
    "mfa_factor_not_found": lambda c: as_user(c, "DELETE", f"/factors/{NO_ID}"),
    "mfa_phone_enroll_not_enabled": lambda c: as_user(
        c, "POST", "/factors", {"factor_type": "phone", "phone": "491701234567"}
    ),
    "oauth_authorization_not_found": lambda c: as_user(c, "GET", f"/oauth/authorizations/{NO_ID}"),
    "bad_jwt, application": lambda c: as_user(c, "GET", "/oauth/userinfo"),
    "email_exists": lambda c: c.send(
        "POST", "/admin/users", NEW | {"email": c.person().email}, headers=c.service_role
    ),
    "user_not_found": lambda c: c.send("GET", f"/admin/users/{NO_ID}", headers=c.service_role),
    "not_admin": lambda c: as_user(c, "GET", "/admin/users"),
    "no_authorization": lambda c: c.send("GET", "/user"),
    "bad_jwt": lambda c: c.send("GET", "/user", headers={"Authorization": "Bearer x.y.z"}),
    "validation_failed, member": lambda c: c.send("POST", "/signup", NEW | {"email": "nobody"}),
    "validation_failed, Host": lambda c: c.send("GET", "/settings", headers={"Host": "a b"}),
    "bad_json": lambda c: c.send("POST", "/signup", content=b"{", headers=AS_JSON),
    "unsupported_media_type": lambda c: c.send("POST", "/signup", content=b"x"),
    "request_entity_too_large": lambda c: c.send("POST", "/signup", content=b" " * 70_000, headers=AS_JSON),
    "not_found": lambda c: c.send("GET", "/nothing"),
    "method_not_allowed": lambda c: c.send("PUT", "/token"),
    "origin_not_allowed": lambda c: c.send("GET", "/user", headers={"Origin": "https://evil.example"}),
}


def _id_token() -> str:
    parts = ({"alg": "RS256", "kid": "x"}, {"iss": "https://issuer.example", "sub": "x"})
    coded = [base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts]
    return ".".join([*coded, "x"])


@pytest.fixture
def calls(server, client, database, service_role) -> Any:
    """Callers of gunicorn, or of an application in this process: one for each version that the clients send."""

    @contextmanager
    def at(app: Any = None) -> Iterator[list[Caller]]:
        headers_of_clients = [
            dict(pairs) for pairs in {tuple(reader.headers.items()) for reader in READERS.values()}
        ]
        if app is None:
            yield [Caller(server, headers, client, database, service_role) for headers in headers_of_clients]
            return
        with served(app) as own_server:
            yield [
                Caller(own_server, headers, client, database, service_role) for headers in headers_of_clients
            ]

    return at


def assert_read(caller: Caller, response: Any, code: str) -> None:
    """Assert what each client that sends the headers of the caller reads of a response."""
    for name, reader in READERS.items():
        if reader.headers != caller.headers:
            continue
        expected = Read("error", code)
        if response.status_code in reader.tries_again:
            expected = Read("try again")
        elif code == "weak_password":
            expected = Read("weak password", code, ("length",))
        elif code in reader.ended:
            expected = Read("session ended", code)
        read = reader.read(response.status_code, response.headers, response.json)
        assert read == expected, name
    dated = VERSION if caller.headers else None
    assert response.headers.get(HEADER) == dated
    assert response.json["error_code"] == code
    assert response.json["code"] == (code if dated else response.status_code)
    assert response.json.get("message") == (response.json["msg"] if dated else None)


@cases("refusal", list(REFUSED))
def test_each_client_reads_code_reasons_and_ended_session_of_each_refusal(calls, refusal):
    with calls() as callers:
        for caller in callers:
            caller.database.run("DELETE FROM users")
            assert_read(caller, REFUSED[refusal](caller), refusal.partition(",")[0])


def test_each_client_reads_a_limit(calls, make_app):
    limited = make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_LOGIN="1 per hour")
    with calls(limited) as callers:
        for caller in callers:
            for _ in range(2):
                response = caller.token("password", email="x@example.com", password=WRONG_PASSWORD)
            assert (response.status_code, "Retry-After" in response.headers) == (429, True)
            assert_read(caller, response, "over_request_rate_limit")


def test_each_client_reads_that_the_user_exists(calls, make_app):
    with calls(make_app(AUTH_AUTOCONFIRM="true")) as callers:
        for caller in callers:
            caller.send("POST", "/signup", NEW)
            assert_read(caller, caller.send("POST", "/signup", NEW), "user_already_exists")


def test_each_client_reads_that_a_session_is_too_old(calls, make_app):
    with calls(make_app(AUTH_SESSION_TIMEBOX="3600")) as callers:
        for caller in callers:
            session = caller.person().open_session()
            caller.database.run("UPDATE sessions SET created_at = created_at - interval '2 hours'")
            assert_read(caller, caller.send("GET", "/user", session=session), "session_expired")
            response = caller.token("refresh_token", refresh_token=session.refresh_token)
            assert_read(caller, response, "session_expired")


def test_each_client_reads_the_refusal_and_the_failure_of_a_hook(calls, make_app, target):
    target.answer = lambda _request: HOOK_REFUSES
    with calls(make_app(AUTH_HOOK_BEFORE_USER_CREATED=target.url, **HOOK)) as callers:
        for caller in callers:
            response = caller.send("POST", "/signup", NEW)
            assert (response.status_code, response.json["msg"]) == (418, "Members of the club only")
            assert_read(caller, response, "hook_refused")
    target.answer = lambda _request: "nonsense"
    with calls(make_app(AUTH_HOOK_BEFORE_USER_CREATED=target.url, **HOOK)) as callers:
        for caller in callers:
            assert_read(caller, caller.send("POST", "/signup", NEW), "hook_failed")


def test_each_client_reads_that_something_of_ours_is_broken_or_away(calls, make_app, database):
    with calls() as callers:
        database.run("ALTER TABLE users RENAME TO elsewhere")
        try:
            for caller in callers:
                response = caller.send("GET", "/admin/users", headers=caller.service_role)
                assert_read(caller, response, "unexpected_failure")
        finally:
            database.run("ALTER TABLE elsewhere RENAME TO users")
    with calls(make_app(fresh=True, DATABASE_URL="postgresql://127.0.0.1:1/none")) as callers:
        for caller in callers:
            assert_read(caller, caller.token("password", **NEW), "service_unavailable")
            assert_read(caller, caller.send("GET", "/health"), "service_unavailable")


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke", "/introspect"])
def test_errors_of_oauth_keep_the_members_of_the_rfc(client, database, path):
    """RFC 6749, section 5.2."""
    basic = make_client(database).basic
    body = {"grant_type": "authorization_code"}
    plain = client.post(path, data=body, headers=basic)
    dated = client.post(path, data=body, headers=basic | DIALECT)
    assert (plain.status_code, dated.status_code) == (400, 400)
    envelope = {"code", "msg", "message", "error_code"}
    members = {name: value for name, value in plain.json.items() if name not in envelope}
    assert members.keys() - {"details"} == {"error", "error_description"}
    assert {name: value for name, value in dated.json.items() if name not in envelope} == members
    assert dated.json.get("code") == plain.json.get("error_code")


@cases("version", [VERSION, "2024-01-02", "2026-11-29", "9999-12-31"])
def test_later_version_is_answered_with_the_newest_form_and_its_date(client, version):
    response = client.get("/user", headers={HEADER: version})
    assert (response.json["code"], response.headers[HEADER]) == ("no_authorization", VERSION)


@cases(
    "version",
    [
        *("", "2023-12-31", "0001-01-01", "1", "latest", "2024-1-1", "20240101", "2024-W01-1", "2024-02-30"),
        *("2024-13-01", "2024-01-01T00:00:00Z", f"{VERSION},{VERSION}", f"{VERSION}x", "2024-01-0²"),
    ],
)
@cases("prefix", ["", "/auth/v1"])
def test_older_or_unreadable_version_is_answered_as_none(client, prefix, version):
    response = client.get(f"{prefix}/user", headers={HEADER: version})
    assert_error(response, 401, "no_authorization", details=ANYTHING)
    assert HEADER not in response.headers


def test_page_of_an_allowed_origin_may_send_and_read_the_version(make_app):
    origin = {"Origin": "https://app.example.com"}
    client = make_app(AUTH_CORS_ORIGINS=origin["Origin"]).test_client()
    preflight = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": HEADER.lower()}
    preflight_response = client.options("/auth/v1/user", headers=origin | preflight)
    assert HEADER.lower() in preflight_response.headers["Access-Control-Allow-Headers"]
    response = client.get("/auth/v1/user", headers=origin | DIALECT)
    assert response.headers[HEADER] == VERSION
    assert HEADER in response.headers["Access-Control-Expose-Headers"].split(", ")


def test_answers_without_an_error_have_no_version(client, session):
    for answer in (
        client.get("/auth/v1/settings", headers=DIALECT),
        client.get("/auth/v1/user", headers=session.authorization | DIALECT),
    ):
        assert (answer.status_code, HEADER in answer.headers) == (200, False)


def test_fragment_of_a_redirect_is_the_same_with_the_version(client):
    link = "/verify?token=x&type=signup&redirect_to=https://app.example.com/welcome"
    plain, dated = (client.get(link, headers=headers) for headers in ({}, DIALECT))
    assert (plain.status_code, plain.headers.get("Location")) == (
        dated.status_code,
        dated.headers.get("Location"),
    )
    assert HEADER not in dated.headers
