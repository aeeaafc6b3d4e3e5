"""Whoever makes an administrator sees what was added to the user in the last seven days: a thief may have added it, or
a program with an administrative key.
"""

import json

import pytest

from auth.delivery import janitor
from tests.support.admin_keys import make_admin_key
from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok
from tests.support.api_keys import make_key
from tests.support.commands import run_command
from tests.support.links import ON_ITS_WAY, PHONE, type_in
from tests.support.passkeys import register as register_passkey
from tests.support.users import NEW_PASSWORD, Person, session_of

PLANTED = "Planted-Horse-1"
CODES = {"email": "email", "phone": "sms"}


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
    # The key's holder may be the user who changes it.
    changed = bob.sign_in(PLANTED, client).put(
        "/user", json={"password": NEW_PASSWORD, "current_password": PLANTED}
    )
    assert changed.status_code == 200
    for person in (alice, bob):
        if door == "API":
            assert promote(client, service_role, person, role="admin").status_code == 200
        else:
            assert run_command(client.application, "create-admin", person.email).exit_code == 0
    assert alice.try_to_sign_in(PLANTED, client).status_code == 401
    assert bob.try_to_sign_in(NEW_PASSWORD, client).status_code == 401


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
    confirmed = {"email": dave.email, "email_confirm": True}
    assert promote(client, service_role, dave, role="admin", **confirmed).status_code == 200
    assert dave.try_to_sign_in(PLANTED).status_code == 401


def test_password_of_a_key_is_not_forgotten_with_the_audit_log(client, service_role, alice, parts, database):
    key = make_admin_key(parts, "users:write")
    client.put(f"/admin/users/{alice.id}", json={"password": PLANTED}, headers=key.headers)
    database.run("UPDATE audit_log SET at = at - interval '401 days'")
    for _ in range(2):
        janitor.keep_house(parts.settings, parts.db, parts.sealer)
    assert database.count("audit_log", "action = 'password_changed'") == 0
    # The hash of another length is no other password.
    database.run("UPDATE users SET password_hash = %(hash)s", hash=parts.passwords.hash(PLANTED))
    assert promote(client, service_role, alice, role="admin").status_code == 200
    assert alice.try_to_sign_in(PLANTED, client).status_code == 401


def test_password_that_a_key_gave_a_sign_up_ends_though_the_link_is_used(client, service_role, parts):
    key = make_admin_key(parts, "links")
    body = {"type": "signup", "email": "dave@example.com", "password": PLANTED}
    made = client.post("/admin/generate_link", json=body, headers=key.headers).json
    used = client.post("/verify", json={"type": "signup", "token_hash": made["hashed_token"]})
    dave = Person(client, made["id"], made["email"])
    assert (used.status_code, dave.try_to_sign_in(PLANTED).status_code) == (200, 200)
    assert promote(client, service_role, dave, role="admin").status_code == 200
    assert dave.try_to_sign_in(PLANTED).status_code == 401


def test_link_of_a_key_sets_no_password(client, service_role, alice, parts, database):
    key = make_admin_key(parts, "links")
    body = {"type": "recovery", "email": alice.email, "password": PLANTED}
    refused = client.post("/admin/generate_link", json=body, headers=key.headers)
    assert_error(refused, 403, "insufficient_permissions", details="password: must be absent")
    assert database.count("one_time_tokens") == 0
    assert client.post("/admin/generate_link", json=body, headers=service_role).status_code == 200


class TestAddressOfAKey:
    """An address that a key has set may be that of its holder, who proves it, too."""

    @pytest.fixture
    def change(self, client, alice, parts, database):
        """Change Alice with a key, weeks ago."""
        key = make_admin_key(parts, "users:write")

        def change(**body):
            changed = client.put(f"/admin/users/{alice.id}", json=body, headers=key.headers)
            database.run("UPDATE identities SET created_at = '2025-01-01', updated_at = '2025-01-01'")
            return changed.status_code

        return change

    def sign_in_by(self, client, outbox, phone):
        assert_ok(client.post("/otp", json={"phone": phone}), ON_ITS_WAY)
        return type_in(client, "sms", phone, outbox.last(kind="sms").code)

    def assert_refused(self, answer, kind):
        details = f"{kind}: an administrative key has set it; send it again with {kind}_confirm, or null"
        assert_error(answer, 400, "validation_failed", details=details)

    @pytest.mark.parametrize("is_used", [True, False])
    def test_phone_that_a_key_has_confirmed_does_not_become_an_administrators(
        self, client, service_role, alice, change, outbox, database, is_used
    ):
        assert change(phone=PHONE, phone_confirm=True) == 200
        if is_used:
            assert self.sign_in_by(client, outbox, PHONE).status_code == 200
        self.assert_refused(promote(client, service_role, alice, role="admin"), "phone")
        command = run_command(client.application, "create-admin", alice.email)
        assert (command.exit_code, "phone: an administrative key has set it" in command.output) == (2, True)
        assert database.count("users", "role = 'admin'") == 0
        assert self.sign_in_by(client, outbox, PHONE).json["user"]["role"] == "authenticated"

    @pytest.mark.parametrize(
        "body",
        [
            {"phone": PHONE},
            {"phone": PHONE, "phone_confirmed_at": "2025-01-01T00:00:00Z"},
            {"email": "mallory@example.com", "email_confirm": True, "phone": None},
        ],
    )
    def test_address_is_refused_however_the_key_has_set_it(self, client, service_role, alice, change, body):
        assert change(**body) == 200
        kind = "email" if "email" in body else "phone"
        self.assert_refused(promote(client, service_role, alice, role="admin"), kind)

    @pytest.mark.parametrize("phone", [{"phone": None}, {"phone": PHONE, "phone_confirm": True}])
    def test_operator_removes_or_confirms_it_with_the_role(self, client, service_role, alice, change, phone):
        assert change(phone=PHONE, phone_confirm=True) == 200
        promoted = promote(client, service_role, alice, role="admin", **phone)
        assert (promoted.status_code, promoted.json["phone"]) == (200, phone["phone"])

    def test_command_confirms_the_address_that_it_is_given(self, client, alice, change):
        assert change(email="alice@new.example.com", email_confirm=True) == 200
        assert run_command(client.application, "create-admin", "alice@new.example.com").exit_code == 0

    @pytest.mark.parametrize("kind", ["email", "phone"])
    @pytest.mark.parametrize("door", ["email", "phone", "password"])
    def test_address_that_was_changed_by_what_a_key_has_set_is_a_keys(
        self, client, service_role, alice, change, outbox, door, kind
    ):
        """The key's holder signs in, and changes the address as the user."""
        keys = {"email": "mallory@example.com", "phone": PHONE, "password": PLANTED}[door]
        own = {"email": "mallory@new.example", "phone": "+4915100000077"}[kind]
        assert change(**{door: keys} if door == "password" else {door: keys, f"{door}_confirm": True}) == 200
        if door == "password":
            session = alice.sign_in(PLANTED, client)
        else:
            assert_ok(client.post("/otp", json={door: keys}), ON_ITS_WAY)
            message = outbox.last(to=keys)
            session = session_of(client, type_in(client, CODES[door], keys, message.code))
        assert session.put("/user", json={kind: own}).status_code == 200
        changed = type_in(client, f"{kind}_change", own, outbox.last(to=own).code)
        assert changed.status_code == 200, changed.text
        others = {}
        if door in ("email", "phone") and door != kind:
            others = {door: keys, f"{door}_confirm": True}
        self.assert_refused(promote(client, service_role, alice, role="admin", **others), kind)
        others |= {kind: own, f"{kind}_confirm": True}
        assert promote(client, service_role, alice, role="admin", **others).status_code == 200

    def test_password_that_was_set_by_the_address_of_a_key_ends(
        self, client, service_role, alice, change, outbox
    ):
        keys = "mallory@example.com"
        assert change(email=keys, email_confirm=True) == 200
        assert_ok(client.post("/recover", json={"email": keys}), ON_ITS_WAY)
        session = session_of(client, type_in(client, "recovery", keys, outbox.last(to=keys).code))
        assert session.put("/user", json={"password": NEW_PASSWORD}).status_code == 200
        own = {"email": alice.email, "email_confirm": True}
        assert promote(client, service_role, alice, role="admin", **own).status_code == 200
        assert alice.try_to_sign_in(NEW_PASSWORD, client).status_code == 401

    @pytest.mark.parametrize("how", ["link", "code"])
    @pytest.mark.parametrize("is_keys_already", [False, True])
    def test_address_of_a_link_of_a_key_is_a_keys(
        self, client, service_role, alice, change, parts, how, is_keys_already
    ):
        if is_keys_already:
            assert change(email=alice.email, email_confirm=True) == 200
        key = make_admin_key(parts, "links", name="mailing")
        body = {"type": "email_change", "email": alice.email, "new_email": "mallory@example.com"}
        made = client.post("/admin/generate_link", json=body, headers=key.headers).json
        if is_keys_already:
            self.assert_refused(promote(client, service_role, alice, role="admin"), "email")
        if how == "link":
            used = client.post("/verify", json={"type": "email_change", "token_hash": made["hashed_token"]})
        else:
            used = type_in(client, "email_change", body["new_email"], made["email_otp"])
        assert (used.status_code, used.json["user"]["email"]) == (200, body["new_email"])
        self.assert_refused(promote(client, service_role, alice, role="admin"), "email")

    def test_own_address_in_a_session_that_no_key_can_open_is_no_keys(
        self, client, service_role, alice, change, outbox
    ):
        assert change(phone=PHONE, phone_confirm=True) == 200
        assert change(phone=None) == 200
        own = "+4915100000077"
        assert alice.open_session(client).put("/user", json={"phone": own}).status_code == 200
        assert type_in(client, "phone_change", own, outbox.last(to=own).code).status_code == 200
        assert promote(client, service_role, alice, role="admin").status_code == 200

    def test_address_of_a_user_whom_a_key_created_is_a_keys(self, client, service_role, parts):
        key = make_admin_key(parts, "users:write")
        body = {"email": "dave@example.com", "phone": PHONE, "email_confirm": True, "phone_confirm": True}
        made = client.post("/admin/users", json=body, headers=key.headers).json
        dave = Person(client, made["id"], made["email"])
        self.assert_refused(promote(client, service_role, dave, role="admin"), "email")
        confirmed = {"email": dave.email, "email_confirm": True}
        self.assert_refused(promote(client, service_role, dave, role="admin", **confirmed), "phone")
        command = run_command(client.application, "create-admin", dave.email)
        assert (command.exit_code, "phone: an administrative key has set it" in command.output) == (2, True)


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
