"""The dialect of the Supabase clients, which the path or the header X-Supabase-Api-Version selects."""

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.source.test_contract import OPERATIONS, SCHEMES, guard_of, views
from tests.support.answers import (
    A_REFRESH_TOKEN,
    A_TIMESTAMP,
    A_UUID,
    AN_ACCESS_TOKEN,
    ANYTHING,
    DIALECT,
    assert_error,
    assert_ok,
    identity,
    user,
)
from tests.support.cases import cases
from tests.support.contract import resolved
from tests.support.links import DIGITS, PHONE
from tests.support.pages import Visitor
from tests.support.users import PASSWORD, register

SETTINGS = ("external", "mailer_autoconfirm", "phone_autoconfirm", "sms_provider", "saml_enabled")
HEALTH = ("name", "description")
MESSAGES = {"/recover", "/resend", "/otp", "/reauthenticate"}


def in_dialect(**members: Any) -> dict[str, Any]:
    """Return an expected user object of the dialect."""
    expected = user("alice@example.com", **members)
    expected["identities"] = [dialect_identity(each, expected) for each in expected["identities"]]
    return without_null(expected | {"phone": members.get("phone") or ""})


def without_null(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def send(client: Any, prefix: str, operation: Any, names: dict[str, str], headers: dict[str, str]) -> Any:
    """Make a request to an operation from the examples of openapi.yaml."""
    item = resolved(operation.description)
    parameters = [each for each in item.get("parameters", []) if each["in"] == "query"]
    query = {each["name"]: example_of(each) for each in parameters if each.get("required")}
    options: dict[str, Any] = {"query_string": query, "headers": headers}
    contents = item.get("requestBody", {}).get("content", {})
    if "application/json" in contents:
        options["json"] = example_of(contents["application/json"])
    elif contents:
        options["data"] = example_of(next(iter(contents.values())))
    elif operation.method == "post":
        options["json"] = {}
    path = re.sub(r"{(\w+)}", lambda match: names[match[1]], operation.path)
    return client.open(prefix + path, method=operation.method.upper(), **options)


def example_of(description: dict[str, Any]) -> Any:
    if "example" in description:
        return description["example"]
    examples = list(description.get("examples", {}).values())
    return examples[0]["value"] if examples else description["schema"]["enum"][0]


def shape(response: Any) -> Any:
    """Return status, headers and body of a response, without values that differ each time."""
    text = response.get_data(as_text=True)
    text = re.sub(r"[\w-]+\.[\w-]{20,}\.[\w-]+|[\w-]{36,}|\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)", "…", text)
    text = re.sub(r'"(qr_code|secret|uri|challenge)": ?"(?:[^"\\]|\\.)*"', r'"\1": "…"', text)
    text = re.sub(r'("user": ?\{[^}]*"id": ?)"[\w-]{22}"', r'\1"…"', text)
    text = re.sub(r'"(email_otp|expires_at|milliseconds)": ?"?\d+"?', r'"\1": "…"', text)
    varying = {"Content-Length", "X-Request-Id", "Location", "Set-Cookie", "X-RateLimit-Reset", "ETag"}
    headers = {
        (name, re.sub(r"[\w-]{36}", "…", value.replace("/auth/v1", "")))
        for name, value in response.headers
        if name not in varying
    }
    return response.status_code, headers, json.loads(text) if response.is_json else text


@pytest.mark.parametrize("name", OPERATIONS)
def test_dialect_changes_only_what_is_documented(name, whole_app, make_app, database, service_role):
    """Each operation responds the same in the dialect and without it, except for the forms listed here."""
    # The dialect uses the site instead of a target that is not allowed.
    client = make_app(AUTH_REDIRECT_ALLOW_LIST="https://app.example.com/**").test_client()
    schemes = SCHEMES[guard_of(views(whole_app).get(name, views(whole_app)["health"]))]

    def answer(prefix, headers):
        database.empty()
        alice = register(client, service_role, "alice@example.com", role="admin").open_session()
        names = dict.fromkeys(re.findall(r"{(\w+)}", OPERATIONS[name].path), alice.user["id"])
        credentials = service_role if "service_role_key" in schemes else alice.authorization
        return shape(
            send(client, prefix, OPERATIONS[name], names, headers | (credentials if schemes else {}))
        )

    plain = answer("", {})
    is_translated = plain[0] < 300 and isinstance(plain[2], dict)
    status = 200 if name == "signup" else plain[0]
    expected = (status, plain[1], dialect_body(OPERATIONS[name], plain[2]) if is_translated else plain[2])
    for prefix, headers in (("", DIALECT), ("/auth/v1", {}), ("/auth/v1", DIALECT)):
        is_dated = bool(headers) and status >= 400
        assert answer(prefix, headers) == (dated_error(expected) if is_dated else expected)


def dated_error(plain: Any) -> Any:
    """Return an error in the form that has a text as its code, which the version in the header asks for."""
    status, headers, body = plain
    if not isinstance(body, dict):
        return plain
    if "error_code" in body:
        body = body | {"code": body["error_code"], "message": body["msg"]}
    return status, headers | {*DIALECT.items()}, body


def dialect_body(operation: Any, body: Any) -> Any:
    """Return the form that the dialect gives to a body."""
    if operation.path in MESSAGES:
        return {"message_id": "…"} if operation.path == "/otp" else {}
    if operation.path == "/admin/users" and operation.method == "get":
        return {"users": [dialect_user(each) for each in body["data"]], "aud": "authenticated"}
    if operation.path == "/admin/oauth/clients" and operation.method == "get":
        return {"clients": body["clients"], "aud": "authenticated"}
    if operation.path == "/admin/audit":
        return [ANYTHING for _ in body["data"]]
    if operation.path in ("/settings", "/health"):
        return body | dict.fromkeys(SETTINGS if operation.path == "/settings" else HEALTH, ANYTHING)
    if operation.path in ("/invite", "/admin/invite"):
        body = body["user"]
    if "user" in body:
        body = body | {"user": dialect_user(body["user"])}
    if "action_link" in body:
        link = body["action_link"].replace("%3A", ":").replace("%2F", "/")
        body = body | {"action_link": link}
    return dialect_user(body) if "identities" in body else body


def dialect_user(user: dict[str, Any]) -> dict[str, Any]:
    user = user | {"email": user["email"] or "", "phone": (user["phone"] or "").lstrip("+")}
    user["identities"] = [dialect_identity(each, user) for each in user["identities"]]
    return without_null(user)


def dialect_identity(identity: dict[str, Any], owner: dict[str, Any]) -> dict[str, Any]:
    data = identity["identity_data"]
    if "phone" in data:
        data = data | {"phone": data["phone"].lstrip("+")}
    flags = {f"{name}_verified": False for name in ("email", "phone")}
    if f"{identity['provider']}_verified" in flags:
        flags[f"{identity['provider']}_verified"] = bool(owner[f"{identity['provider']}_confirmed_at"])
    signed_in = identity["last_sign_in_at"] or identity["created_at"]
    return without_null(identity | {"identity_data": flags | data, "last_sign_in_at": signed_in})


class TestUserObjects:
    def test_token_response_and_user_have_empty_strings_and_no_other_nulls(self, client, alice):
        body = {"email": alice.email, "password": PASSWORD}
        expected = {"access_token": AN_ACCESS_TOKEN, "token_type": "bearer", "expires_in": 3600}
        expected |= {"expires_at": ANYTHING, "refresh_token": A_REFRESH_TOKEN}
        expected |= {"user": in_dialect(last_sign_in_at=A_TIMESTAMP)}
        response = client.post("/token?grant_type=password", json=body, headers=DIALECT)
        assert_ok(response, expected)
        headers = {"Authorization": f"Bearer {response.json['access_token']}"} | DIALECT
        assert_ok(client.get("/user", headers=headers), expected["user"])

    def test_empty_addresses_of_a_change_are_ignored(self, client, alice):
        headers = alice.sign_in().authorization | DIALECT
        body = {"email": "", "phone": None, "data": {"name": "Alice"}}
        expected = in_dialect(last_sign_in_at=A_TIMESTAMP, user_metadata={"name": "Alice"})
        assert_ok(client.put("/user", json=body, headers=headers), expected)


class TestForms:
    """The forms that the clients for Go, Kotlin and Rust send and read."""

    def test_empty_members_of_body_and_query_are_absent(self, client, outbox, service_role):
        email, empty = "dave@example.com", {"phone": "", "redirect_to": "", "new_email": ""}
        data = {"name": "", "nested": {"nothing": ""}}
        body = {"email": email, "password": PASSWORD, "data": data, **empty}
        assert client.post("/auth/v1/signup", json=body).json["user_metadata"] == data
        body = {"type": "signup", "email": email, "token": outbox.last(email).code, **empty}
        assert client.post("/auth/v1/verify", json=body).status_code == 200
        response = client.get("/auth/v1/admin/users?email=&role=&filter=dave", headers=service_role)
        assert [user["email"] for user in response.json["users"]] == [email]
        refused = client.post("/auth/v1/token?grant_type=password", json={"email": email, "password": ""})
        assert_error(refused, 400, "validation_failed", details="password: is required")

    def test_null_of_an_administrator_removes_no_address_and_lifts_no_ban(
        self, client, alice, service_role, database
    ):
        database.run("UPDATE users SET banned_until = 'infinity'")
        body = {"email": None, "phone": None, "ban_duration": None, "role": None}
        response = client.put(f"/auth/v1/admin/users/{alice.id}", json=body, headers=service_role)
        assert (response.status_code, response.json["email"]) == (200, alice.email)
        assert database.value("SELECT isfinite(banned_until) FROM users") is False

    def test_filter_searches_users(self, client, alice, bob, service_role):
        response = client.get("/auth/v1/admin/users?filter=bob", headers=service_role)
        assert [user["email"] for user in response.json["users"]] == [bob.email]
        refused = client.get("/admin/users?filter=bob", headers=service_role)
        assert_error(
            refused, 400, "validation_failed", details="filter: is not a parameter of this list; use q"
        )

    @cases("path", ["/auth/v1/settings/", "/auth/v1/health/"])
    def test_one_slash_at_the_end_of_a_path_is_ignored(self, client, path):
        assert client.get(path).status_code == 200
        assert client.get(path.removeprefix("/auth/v1"), headers=DIALECT).status_code == 200
        assert_error(client.get(f"{path}/"), 404, "not_found")
        hint = "Path not found. Leave out the last slash: "
        bare = path.removeprefix("/auth/v1")
        assert_error(client.get(bare), 404, "not_found", hint + bare.removesuffix("/"))

    def test_settings_name_each_provider(self, client):
        settings = client.get("/auth/v1/settings").json
        external = settings["external"]
        assert (external["email"], external["anonymous_users"], external["google"]) == (True, False, False)
        others = {
            "mailer_autoconfirm": False,
            "phone_autoconfirm": False,
            "saml_enabled": False,
            "sms_provider": "",
        }
        assert {name: settings[name] for name in SETTINGS[1:]} == others

    def test_audit_log_is_a_list_of_entries(self, client, alice, service_role):
        alice.sign_in()
        entry = client.get("/auth/v1/admin/audit", headers=service_role).json[0]
        assert set(entry) == {"id", "payload", "created_at", "ip_address"}
        assert (entry["payload"]["action"], entry["ip_address"]) == ("signed_in", "127.0.0.1")

    def test_page_below_the_prefix_is_not_in_the_dialect(self, make_app, mailbox, alice):
        """A form of a service whose base URL has the prefix asks for a link to the service's own page."""
        base_url = "http://localhost/auth/v1"
        app = make_app(AUTH_BASE_URL=base_url, AUTH_SITE_URL="https://app.example.com")
        visitor = Visitor(app, "http://localhost")
        visitor.visit("/auth/v1/forgot-password")
        visitor.submit(email=alice.email)
        query = parse_qs(urlsplit(mailbox.link_for(alice.email)).query)
        assert query["redirect_to"] == [f"{base_url}/new-password?then=site"]


class TestPhones:
    def test_user_may_have_only_a_phone_whose_digits_sign_in(self, client, service_role, database):
        body = {"phone": DIGITS, "password": PASSWORD, "phone_confirm": True}
        creation = client.post("/admin/users", json=body, headers=service_role | DIALECT)
        linked = identity("phone", PHONE) | {"identity_data": {"sub": A_UUID, "phone": PHONE}}
        expected = in_dialect(phone=DIGITS, phone_confirmed_at=A_TIMESTAMP, identities=[linked])
        expected |= {"email": "", "app_metadata": {"provider": "phone", "providers": ["phone"]}}
        del expected["email_confirmed_at"]
        assert_ok(creation, expected)
        assert database.value("SELECT phone FROM users") == PHONE
        response = client.post("/token?grant_type=password", json=body, headers=DIALECT)
        assert (response.status_code, response.json["user"]["phone"]) == (200, DIGITS)

    @cases("phone", ["0170123456", "123456", "1" * 16, "\uff11" * 8, "12345678\n", 12345678])
    def test_other_numbers_and_digits_without_the_header_are_refused(self, client, phone):
        assert client.post("/otp", json={"phone": phone}, headers=DIALECT).status_code == 400
        assert_error(client.post("/otp", json={"phone": DIGITS}), 400, "validation_failed", details=ANYTHING)


def test_page_has_at_most_a_thousand_users(client, service_role, database):
    rows = "SELECT n || '@example.com', 'administrator' FROM generate_series(1, 1001) AS numbers (n)"
    database.run(f"INSERT INTO users (email, made_by) {rows}")
    response = client.get("/admin/users?per_page=5000", headers=service_role | DIALECT)
    assert len(response.json["users"]) == 1000
