"""Whoever makes an administrator sees what was added to the user in the last seven days: a thief may have added it, or
a program with an administrative key.
"""

import json

import pytest

from tests.support.admin_keys import make_admin_key
from tests.support.answers import A_TIMESTAMP
from tests.support.api_keys import make_key
from tests.support.commands import run_command
from tests.support.passkeys import register as register_passkey
from tests.support.users import NEW_PASSWORD, Person

PLANTED = "Planted-Horse-1"


@pytest.fixture
def client(make_app):
    return make_app(AUTH_API_KEYS="true").test_client()


@pytest.fixture
def additions(alice, client, database):
    """What was added to Alice, oldest first."""
    for table in ("users", "identities"):
        database.run(f"UPDATE {table} SET created_at = '2025-01-01', updated_at = '2025-01-01'")
    session = alice.open_session(client)
    _, passkey = register_passkey(session)
    id, _ = make_key(session, "CI")
    database.run("UPDATE factors SET verified_at = now() - interval '1 hour'")
    return [
        {"id": passkey["id"], "type": "passkey", "added_at": A_TIMESTAMP, "label": passkey["friendly_name"]},
        {"id": id, "type": "api_key", "added_at": A_TIMESTAMP, "label": "CI"},
    ]


def promote(client, service_role, alice, **body):
    return client.put(f"/admin/users/{alice.id}", json=body, headers=service_role)


def test_api_returns_what_was_added_with_the_new_administrator_and_removes_it(
    client, service_role, alice, additions
):
    answer = promote(client, service_role, alice, role="admin")
    assert (answer.json["role"], answer.json["recent_changes"]) == ("admin", additions)
    assert "recent_changes" not in promote(client, service_role, alice, role="admin").json
    ids = [each["id"] for each in additions]
    assert promote(client, service_role, alice, remove=ids).status_code == 200
    recent = client.get(f"/admin/users/{alice.id}/recent_changes", headers=service_role)
    assert recent.json == {"recent_changes": []}


@pytest.mark.parametrize("door", ["API", "command"])
def test_password_that_a_key_has_set_does_not_become_an_administrators(
    client, service_role, alice, bob, parts, door
):
    key = make_admin_key(parts, "users:write")
    for person in (alice, bob):
        planted = client.put(f"/admin/users/{person.id}", json={"password": PLANTED}, headers=key.headers)
        assert planted.status_code == 200
    # Bob sets his own.
    own = bob.sign_in(PLANTED, client).put(
        "/user", json={"password": NEW_PASSWORD, "current_password": PLANTED}
    )
    assert own.status_code == 200
    for person in (alice, bob):
        if door == "API":
            assert promote(client, service_role, person, role="admin").status_code == 200
        else:
            assert run_command(client.application, "create-admin", person.email).exit_code == 0
    assert alice.try_to_sign_in(PLANTED, client).status_code == 401
    assert bob.try_to_sign_in(NEW_PASSWORD, client).status_code == 200


@pytest.mark.parametrize(
    "bodies", [[{"password": NEW_PASSWORD}, {"role": "admin"}], [{"password": NEW_PASSWORD, "role": "admin"}]]
)
def test_password_that_the_service_role_key_has_set_stays(client, service_role, alice, parts, bodies):
    key = make_admin_key(parts, "users:write")
    client.put(f"/admin/users/{alice.id}", json={"password": PLANTED}, headers=key.headers)
    for body in bodies:
        assert promote(client, service_role, alice, **body).status_code == 200
    assert alice.try_to_sign_in(NEW_PASSWORD, client).status_code == 200


def test_user_whom_a_key_created_begins_without_its_password(client, service_role, parts):
    key = make_admin_key(parts, "users:write")
    body = {"email": "dave@example.com", "password": PLANTED, "email_confirm": True}
    made = client.post("/admin/users", json=body, headers=key.headers).json
    dave = Person(client, made["id"], made["email"])
    assert dave.try_to_sign_in(PLANTED).status_code == 200
    assert promote(client, service_role, dave, role="admin").status_code == 200
    assert dave.try_to_sign_in(PLANTED).status_code == 401


def test_nothing_is_returned_with_another_role(client, service_role, alice, additions):
    for role in ("editor", "authenticated"):
        assert "recent_changes" not in promote(client, service_role, alice, role=role).json


def test_command_prints_what_was_added_and_how_to_remove_it(client, alice, additions):
    result = run_command(client.application, "create-admin", alice.email)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    start = lines.index("Added to this user in the last seven days:")
    assert [line.split(", added ")[0] for line in lines[start + 1 : start + 3]] == [
        f"  passkey {additions[0]['label']}",
        "  API key CI",
    ]
    assert lines[start + 3] == f"If someone else added it: remove it with PUT /admin/users/{alice.id}, remove"


def test_command_with_json_has_the_same(client, alice, additions):
    result = run_command(client.application, "create-admin", alice.email, "--json")
    assert json.loads(result.output)["recent_changes"] == additions


def test_command_says_nothing_of_additions_where_there_are_none(client, alice, carol):
    for email in (alice.email, carol.email):
        assert "Added to this user" not in run_command(client.application, "create-admin", email).output
