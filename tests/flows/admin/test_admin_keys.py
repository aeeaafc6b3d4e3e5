"""Administrative keys: which operations their scopes open, and when they end."""

import re
from typing import Any, get_args

import pytest

from auth.core.text.labels import label
from auth.web.declarations import Scope, route_of
from tests.source.test_contract import OPERATIONS, views
from tests.support.admin_keys import AdminKey, make_admin_key
from tests.support.answers import NO_ID, assert_error
from tests.support.checked_rows import CheckedCursor
from tests.support.contract import OPENAPI
from tests.support.environment import SERVICE_ROLE_KEY
from tests.support.extensions import EVERY_EXTENSION
from tests.web.test_access_matrix import PUBLIC, USER

SCOPES: tuple[str, ...] = get_args(Scope)
# Administrative operations that admit the service role key alone.
WITHOUT_SCOPE = {"create_provider", "delete_provider", "list_dev_inbox", "get_dev_inbox_message"}
# The guard of routes for members and keys.
SHARED, LACKS_SCOPE = "access_token_or_operator", (403, "insufficient_scope")
ACTS = "SELECT action, actor, actor_id::text, details FROM audit_log WHERE reason IS NULL ORDER BY at, action"
REFUSALS = (
    "SELECT reason, actor, actor_id::text, details, user_id::text FROM audit_log WHERE reason IS NOT NULL"
)


@pytest.fixture
def make(parts):
    return lambda *scopes, **options: make_admin_key(parts, *scopes, **options)


def actor_of(key: AdminKey) -> tuple[str, str, dict[str, str]]:
    """Return the actor of an entry by the key."""
    return "service_role", key.id, {"administrator": "key billing"}


def administrative_views(app) -> dict[str, Any]:
    return {name: view for name, view in views(app).items() if route_of(view).is_administrative}


def test_scopes_of_routes_are_those_of_the_contract_the_code_and_the_page(whole_app):
    scopes = {name: route_of(view).scope for name, view in views(whole_app).items()}
    documented = {name: operation.description.get("x-scope") for name, operation in OPERATIONS.items()}
    del documented["static"]
    assert documented == scopes
    assert set(filter(None, scopes.values())) == set(SCOPES)
    assert {name for name in administrative_views(whole_app) if scopes[name] is None} == WITHOUT_SCOPE
    page = (OPENAPI.parent / "docs" / "api-keys.md").read_text()
    rows = re.findall(r"^\| `([\w:]+)` \| (.+) \| (.+) \|$", page, re.MULTILINE)
    assert {scope: text for scope, _, text in rows} == {scope: label("key_scopes", scope) for scope in SCOPES}
    operations_of_page = {scope: set(operations.split(", ")) for scope, operations, _ in rows}
    expected: dict[str, set[str]] = {scope: set() for scope in SCOPES}
    for name, scope in scopes.items():
        if scope:
            expected[scope].add(f"{OPERATIONS[name].method.upper()} {OPERATIONS[name].path}")
    assert operations_of_page == expected


def test_scope_opens_its_operations_and_no_others(whole_app):
    client, parts = whole_app.test_client(), whole_app.extensions["latchkey"]
    for number, scope in enumerate(SCOPES):
        key = make_admin_key(parts, scope, name=f"key {number}")
        for name, view in administrative_views(whole_app).items():
            operation = OPERATIONS[name]
            url = re.sub(r"\{\w+\}", NO_ID, operation.path)
            body: dict[str, Any] = {} if operation.method == "get" else {"json": {}}
            answer = client.open(url, method=operation.method.upper(), headers=key.headers, **body)
            scope_of_view = route_of(view).scope
            is_refused = answer.status_code == 403 and answer.json["error_code"] == "insufficient_scope"
            # Without AUTH_DEV_INBOX, nobody finds the inbox.
            is_hidden = answer.status_code == 404 and "inbox" in name
            assert (scope, name, is_refused or is_hidden) == (scope, name, scope_of_view != scope)


def test_key_is_sent_like_the_service_role_key(client, make):
    key = make("users:read")
    for headers in (key.headers, {"apikey": key.key}, key.headers | {"apikey": key.key}):
        assert client.get("/admin/users", headers=headers).status_code == 200


def test_token_of_a_user_counts_before_a_key_as_apikey(client, make, alice):
    key, session = make("users:read"), alice.open_session()
    answer = client.get("/admin/users", headers=session.authorization | {"apikey": key.key})
    assert_error(answer, 403, "not_admin")


def test_service_role_key_counts_before_another_key(client, make):
    headers = {"Authorization": f"Bearer {SERVICE_ROLE_KEY}", "apikey": make("audit:read").key}
    assert client.get("/admin/users", headers=headers).status_code == 200


def test_lack_of_a_scope_is_named_and_recorded_with_the_key(client, make, alice, database):
    key = make("users:read", "audit:read")
    answer = client.delete(f"/admin/users/{alice.id}", headers=key.headers, json={})
    assert_error(answer, 403, "insufficient_scope", details="scope: must have users:write")
    assert database.count("users") == 1
    row = database.one(REFUSALS)
    assert (row.reason, *row[1:4]) == ("insufficient_scope", *actor_of(key))


def test_refusal_of_a_key_is_recorded_at_routes_of_members_too(make_app, database):
    app = make_app(AUTH_ORGANIZATIONS="users", AUTH_SSO="true")
    key, client = make_admin_key(app.extensions["latchkey"], "users:read"), app.test_client()
    shared = {name: view for name, view in views(app).items() if route_of(view).guard == SHARED}
    assert len(shared) > 10
    for name in shared:
        operation = OPERATIONS[name]
        url = re.sub(r"\{\w+\}", NO_ID, operation.path)
        body: dict[str, Any] = {} if operation.method == "get" else {"json": {}}
        for credential, (status, reason) in ((key.key, LACKS_SCOPE), ("lka_wrong", (401, "bad_jwt"))):
            database.run("TRUNCATE audit_log")
            headers = {"Authorization": f"Bearer {credential}"}
            answer = client.open(url, method=operation.method.upper(), headers=headers, **body)
            assert (answer.status_code, answer.json["error_code"]) == (status, reason)
            (row,) = database.all(f"{REFUSALS} AND action = 'admin_refused'")
            assert row.reason == reason
            assert reason == "bad_jwt" or (*row[1:4],) == actor_of(key)


class TestEnd:
    def test_unknown_mistyped_ended_and_expired_keys_are_refused(self, client, make, database):
        key, other = make("users:read", lifetime=60), make("users:read", name="other")
        swapped = key.key[:36] + other.key[36:]
        mistyped = key.key[:-7] + ("A" if key.key[-7] != "A" else "B") + key.key[-6:]
        for credential in (
            mistyped,
            swapped,
            key.key + "x",
            key.key.replace("lka_", "lk_"),
            "lka_",
            "lka_" + "0" * 65,
        ):
            answer = client.get("/admin/users", headers={"Authorization": f"Bearer {credential}"})
            assert (answer.status_code, answer.json["error_code"]) == (401, "bad_jwt")
        assert client.get("/admin/users", headers=key.headers).status_code == 200
        database.run("UPDATE admin_keys SET expires_at = now() WHERE name = 'billing'")
        assert_error(client.get("/admin/users", headers=key.headers), 401, "bad_jwt")
        row = database.one(f"{REFUSALS} AND actor_id IS NOT NULL")
        assert (row.reason, *row[1:4]) == ("bad_jwt", *actor_of(key))
        database.run("DELETE FROM admin_keys WHERE name = 'other'")
        assert_error(client.get("/admin/users", headers=other.headers), 401, "bad_jwt")

    def test_key_that_ends_while_its_act_waits_changes_nothing(self, client, make, alice, database):
        key = make("users:write")
        before = database.everything("users", "sessions", "audit_log")
        with database.locked("users", alice.id) as lock:
            future = lock.start(
                lambda: client.put(
                    f"/admin/users/{alice.id}", json={"app_metadata": {"plan": "pro"}}, headers=key.headers
                )
            )
            database.run("DELETE FROM admin_keys")
        assert_error(future.result(), 401, "bad_jwt")
        assert database.everything("users", "sessions", "audit_log") == before

    def test_first_use_on_a_day_is_kept_and_moves_the_key_to_the_new_secret(
        self, client, make, database, parts
    ):
        key = make("users:read")
        assert database.value("SELECT last_used_on FROM admin_keys") is None
        old = parts.api_keys._keys
        try:
            parts.api_keys._keys = (b"a new secret's derived key......", *old)
            client.get("/admin/users", headers=key.headers)
            row = database.one("SELECT last_used_on = CURRENT_DATE AS today, key_mac FROM admin_keys")
            assert row.today
            assert bytes(row.key_mac) == parts.api_keys.macs(key.key)[0]
        finally:
            parts.api_keys._keys = old


def test_log_names_the_key_in_its_acts(client, make, alice, database):
    key = make("users:write")
    database.run("DELETE FROM audit_log")
    answer = client.put(f"/admin/users/{alice.id}", json={"user_metadata": {"a": 1}}, headers=key.headers)
    assert answer.status_code == 200
    row = database.one(ACTS)
    assert (row.action, *row[1:]) == ("user_changed", *actor_of(key))


def test_timeline_and_log_name_the_key(client, make, service_role, alice):
    key = make("sessions:end", name="support desk")
    assert client.post(f"/admin/users/{alice.id}/logout", headers=key.headers).status_code == 200
    answer = client.get(f"/admin/users/{alice.id}/timeline", headers=service_role)
    assert (
        "signed out everywhere, by the key “support desk”, from 127.0.0.1" in answer.json["data"][0]["text"]
    )
    assert client.delete(f"/admin/users/{alice.id}", headers=key.headers, json={}).status_code == 403
    entries = client.get("/admin/audit?action=admin_refused", headers=service_role).json["data"]
    assert [(each["actor_id"], each["details"]) for each in entries] == [
        (key.id, {"administrator": "key support desk"})
    ]


def test_key_is_stored_as_a_mac(make, database):
    key = make("users:read")
    rows = str(database.everything("admin_keys", "audit_log"))
    assert key.key[-33:] not in rows
    assert key.key.startswith(f"lka_{key.id.replace('-', '')}")


class TestStatements:
    """Other requests run the statements that they would run without such keys."""

    @pytest.fixture
    def statements(self, monkeypatch) -> list[str]:
        """The names of the statements that run, in their order."""
        names, execute = list[str](), CheckedCursor.execute

        def record(cursor, query, vars=None):
            execute(cursor, query, vars)
            names.extend(name.decode() for name in re.findall(rb"\bEXECUTE (\w+)", cursor.query or b""))

        monkeypatch.setattr(CheckedCursor, "execute", record)
        return names

    @pytest.fixture
    def client(self, make_app):
        return make_app(**EVERY_EXTENSION).test_client()

    def test_public_route_runs_the_same_with_a_key(self, client, make, statements, database):
        key = make("users:read", "users:write")
        for route in PUBLIC:
            route.ask(client)  # fills caches
            runs = []
            for headers in ({}, key.headers, {"apikey": key.key}):
                database.run("DELETE FROM users; DELETE FROM failure_counts")
                statements.clear()
                route.ask(client, headers=headers)
                runs.append(list(statements))
            assert runs == [runs[0]] * 3, route
            assert not {"use_admin_key", "select_admin_key"} & set(runs[0])

    def test_route_of_users_looks_up_no_key(self, client, make, statements):
        key = make("users:read")
        statements.clear()
        for route in USER:
            assert route.ask(client, headers=key.headers).status_code in (400, 401), route
        assert "use_admin_key" not in statements

    def test_acts_of_the_service_role_key_and_of_administrators_ask_for_no_key(
        self, client, service_role, statements, alice, carol
    ):
        user_path = f"/admin/users/{alice.id}"
        link = {"type": "magiclink", "email": alice.email}
        statements.clear()
        for method, path, body in (
            ("PUT", user_path, {"password": "Another-Horse-1", "role": "admin"}),
            ("POST", "/admin/generate_link", link),
            ("POST", "/invite", {"email": "dave@example.com"}),
            ("DELETE", user_path, {}),
        ):
            answer = client.open(path, method=method, json=body, headers=service_role)
            assert answer.status_code == 200, answer.text
        body = {"email": "erin@example.com"}
        session = carol.open_session(client)
        assert session.post("/admin/users", json=body).status_code == 200
        assert "write_token" in " ".join(statements)
        assert [name for name in statements if "admin_key" in name] == []

    def test_request_of_a_key_costs_one_statement_more(self, client, make, service_role, statements, alice):
        key = make("users:read")
        path = f"/admin/users/{alice.id}"
        runs = []
        for headers in (service_role, key.headers):
            client.get(path, headers=headers)
            statements.clear()
            client.get(path, headers=headers)
            runs.append(list(statements))
        assert runs[1] == ["use_admin_key", *runs[0]]
