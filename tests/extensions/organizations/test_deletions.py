"""The nine places that delete users: the last owner of others is refused, or cannot be among them."""

import ast
import json
import re

import pytest

from auth.delivery import janitor
from auth.web.context import EXTENSION
from tests.support.admin_keys import make_admin_key
from tests.support.answers import assert_error
from tests.support.armed_console import act_at as act_at
from tests.support.armed_console import armed as armed
from tests.support.armed_console import codes as codes
from tests.support.commands import run_command
from tests.support.pages import Visitor, words
from tests.support.processes import CHECKOUT
from tests.support.users import PASSWORD

# What each place does with the last owner of others.
CALLERS = {
    "changes.py delete_caller": "refused",
    "users.py delete_user": "refused, but for the service role key and commands, which leave the others an organization",
    "administrators.py _appoint": "a command, like these; deletes only a user with an unproved address",
    "targets.py make_way": "cannot own",
    "declining.py decline_sign_up": "cannot own",
    "spending.py _take_new_address": "cannot own",
    "addresses.sql make_way": "cannot own",
    "janitor.sql delete_anonymous_users": "cannot own",
    "janitor.sql delete_unused_users": "cannot own",
}
DAVE = "dave@example.com"


def callers():
    """Yield each function that deletes users by a statement, and each statement that deletes others."""
    for path in (CHECKOUT / "auth").rglob("*.py"):
        if "queries.delete_user(" in (text := path.read_text()):
            for function in ast.parse(text).body:
                if isinstance(function, ast.FunctionDef) and "queries.delete_user(" in ast.unparse(function):
                    yield f"{path.name} {function.name}"
    for path in (CHECKOUT / "sql").glob("*.sql"):
        for statement in re.split(r"^-- name: ", path.read_text(), flags=re.MULTILINE):
            if "DELETE FROM users" in statement and not statement.startswith("delete_user("):
                yield f"{path.name} {statement.partition('(')[0]}"


def test_every_deletion_of_users_is_in_the_table():
    assert sorted(callers()) == sorted(CALLERS)


@pytest.fixture
def app(make_app):
    return make_app(AUTH_ORGANIZATIONS="users", AUTH_CONSOLE="true")


@pytest.fixture
def client(app):
    return app.test_client()


@pytest.fixture
def with_member(acme, join, bob):
    join(bob, acme)
    return acme


def test_last_owner_cannot_delete_the_account(owner, with_member, alice, client, database):
    assert_error(owner.delete("/user", json={}), 409, "last_owner")
    visitor = Visitor(client.application).with_session_of(alice)
    visitor.visit("/account/delete")
    visitor.press("account/delete", confirmed="yes")
    assert visitor.page.status == 409
    assert database.count("users") == 2


def test_administrator_and_key_with_a_scope_cannot_delete_the_last_owner(
    owner, with_member, parts, client, act_at, database
):
    id = owner.user["id"]
    key = make_admin_key(parts, "users:write")
    assert_error(client.delete(f"/admin/users/{id}", headers=key.headers), 409, "last_owner")
    assert "keeps an owner" in words(act_at("/console/users", f"{id}/delete"))
    assert database.count("memberships") == 2
    assert database.count("users", "id = %(id)s", id=id) == 1


@pytest.mark.parametrize("door", ["api", "command", "create-admin"])
def test_operator_may_leave_members_without_an_owner(
    owner, with_member, client, service_role, database, door
):
    id, email = owner.user["id"], owner.user["email"]
    if door == "api":
        assert client.delete(f"/admin/users/{id}", headers=service_role).status_code == 200
    elif door == "command":
        assert run_command(client.application, "users", "delete", id, "--yes").exit_code == 0
    else:
        database.run("UPDATE users SET email_proved = false WHERE id = %(id)s", id=id)
        assert run_command(client.application, "create-admin", email, input=PASSWORD).exit_code == 0
    assert database.count("users", "id = %(id)s", id=id) == 0
    assert database.all("SELECT role FROM memberships") == [("member",)]
    assert database.count("organizations", "ended_at IS NULL") == 1
    rows = database.all("SELECT user_id FROM audit_log WHERE action = 'membership_removed'")
    assert rows == [(id,)]


@pytest.fixture
def unproved_owner(with_member, owner, client, service_role, database):
    """The id of the only owner, whose address only an administrator has confirmed."""
    user_id = client.post("/admin/users", json={"email": DAVE}, headers=service_role).json["id"]
    path = f"{with_member}/members"
    assert client.put(f"{path}/{user_id}", json={"role": "owner"}, headers=service_role).status_code == 200
    assert owner.delete(f"{path}/{owner.user['id']}").status_code == 204
    database.run(
        "UPDATE users SET created_at = created_at - interval '90 days' WHERE id = %(id)s", id=user_id
    )
    return user_id


@pytest.mark.parametrize("door", ["create", "import", "change", "sign-up", "janitor"])
def test_owner_gives_way_to_nobody(
    unproved_owner, owner, client, service_role, outbox, parts, database, tmp_path, door
):
    if door == "create":
        response = client.post(
            "/admin/users", json={"email": DAVE, "email_confirm": True}, headers=service_role
        )
        assert_error(response, 409, "email_exists")
    elif door == "import":
        (tmp_path / "users.jsonl").write_text(json.dumps({"email": DAVE, "email_confirmed": True}))
        run_command(client.application, "users", "import", str(tmp_path / "users.jsonl"))
    elif door == "change":
        assert_error(owner.put("/user", json={"email": DAVE}), 409, "email_exists")
    elif door == "sign-up":
        client.post("/signup", json={"email": DAVE, "password": PASSWORD})
        # There is no link that could be declined.
        assert outbox.last(to=DAVE).token is None
    else:
        janitor.clean(parts.db)
    assert database.count("users", "id = %(id)s", id=unproved_owner) == 1
    assert database.count("memberships", "role = 'owner' AND user_id = %(id)s", id=unproved_owner) == 1


@pytest.mark.parametrize("made_by", ["signup", "message", "anonymous"])
def test_user_whom_others_may_delete_is_nobodys_owner(acme, bob, client, service_role, database, made_by):
    """The user signed up, and gives way, is declined or replaced, or was never used, or was abandoned."""
    database.run(
        "UPDATE users SET made_by = %(made_by)s, email_proved = false, email_confirmed_at = NULL WHERE id = %(id)s",
        made_by=made_by,
        id=bob.id,
    )
    response = client.put(f"{acme}/members/{bob.id}", json={"role": "owner"}, headers=service_role)
    assert_error(response, 403, "email_not_confirmed")
    response = client.post("/organizations", json={"name": "Other", "owner": bob.id}, headers=service_role)
    assert_error(response, 403, "email_not_confirmed")
    assert database.count("memberships", "user_id = %(id)s", id=bob.id) == 0


def test_user_who_gives_way_once_the_address_is_unconfirmed_is_nobodys_owner(
    acme, client, service_role, database
):
    id = client.post("/signup", json={"email": DAVE, "password": PASSWORD}).json["id"]
    response = client.put(f"/admin/users/{id}", json={"email_confirm": True}, headers=service_role)
    assert response.status_code == 200
    request = {"path": f"{acme}/members/{id}", "json": {"role": "owner"}, "headers": service_role}
    assert_error(client.put(**request), 403, "email_not_confirmed")
    database.run("UPDATE users SET last_sign_in_at = now() WHERE id = %(id)s", id=id)
    assert client.put(**request).status_code == 200
    response = client.put(f"/admin/users/{id}", json={"email": "d@example.com"}, headers=service_role)
    assert (response.status_code, database.count("users", "email_proved")) == (200, 1)
    response = client.post("/admin/users", json={"email": "d@example.com"}, headers=service_role)
    assert_error(response, 409, "email_exists")
    assert database.count("memberships", "user_id = %(id)s", id=id) == 1


def test_banned_owner_does_not_count_as_another(owner, with_member, bob, client, service_role, database):
    assert (
        client.put(
            f"{with_member}/members/{bob.id}", json={"role": "owner"}, headers=service_role
        ).status_code
        == 200
    )
    database.run("UPDATE users SET banned_until = 'infinity' WHERE id = %(id)s", id=bob.id)
    assert_error(owner.delete(f"{with_member}/members/{owner.user['id']}"), 409, "last_owner")


def test_janitor_removes_what_an_end_has_left(owner, with_member, client, database, app):
    assert owner.delete(with_member, json={}).status_code == 204
    parts = app.extensions[EXTENSION]
    janitor.keep_house(parts.settings, parts.db, parts.sealer)
    assert database.count("memberships") == database.count("organizations") == 0
    assert owner.post("/organizations", json={"name": "Acme", "slug": "acme"}).status_code == 201
