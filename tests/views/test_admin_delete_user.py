"""DELETE /admin/users/{id}: deleting any user."""

import uuid

import pytest

from tests.support.answers import A_SENTENCE, assert_error, assert_ok
from tests.support.cases import cases
from tests.support.cast import PASSWORD
from tests.support.server import at_once

NO_SUCH_USER = "User not found"


@pytest.fixture
def delete(client, service_role):
    return lambda id, **options: client.delete(f"/admin/users/{id}", headers=service_role, **options)


def test_delete_removes_the_user(delete, client, service_role, alice):
    assert_ok(delete(alice.id), {})
    assert_error(
        client.get(f"/admin/users/{alice.id}", headers=service_role), 404, "user_not_found", NO_SUCH_USER
    )
    assert client.get("/admin/users", headers=service_role).json["data"] == []


def test_delete_removes_everything_the_user_owns(delete, client, service_role, alice, database):
    alice.sign_in()
    client.post("/recover", json={"email": alice.email})
    delete(alice.id)
    for table in ("users", "identities", "sessions", "known_networks", "one_time_tokens"):
        assert database.count(table) == 0


def test_delete_leaves_other_users_unchanged(delete, alice, bob):
    session = bob.open_session()
    before = session.get("/user").json
    delete(alice.id)
    assert_ok(session.get("/user"), before)


def test_soft_deletion_is_refused(delete, alice):
    session = alice.open_session()
    for body, details in (
        ({"should_soft_delete": True}, "should_soft_delete: must be false"),
        ({"should_soft_delete": "false"}, "should_soft_delete: must be false"),
        ({"soft": True}, "soft: is not a member of this body"),
    ):
        assert_error(delete(alice.id, json=body), 400, "validation_failed", details=details)
    assert session.get("/user").status_code == 200
    assert_ok(delete(alice.id, json={"should_soft_delete": False}), {})


def test_second_delete_is_404(delete, alice):
    delete(alice.id)
    assert_error(delete(alice.id), 404, "user_not_found", NO_SUCH_USER)


def test_tokens_of_a_deleted_user_are_refused_at_once(delete, alice):
    session = alice.open_session()
    assert session.get("/user").status_code == 200
    delete(alice.id)
    assert_error(session.get("/user"), 401, "user_not_found")
    assert_error(session.put("/user", json={"data": {"x": 1}}), 401, "user_not_found")
    assert_error(session.refresh(), 400, "refresh_token_not_found")
    assert_error(alice.try_to_sign_in(), 401, "invalid_credentials", "Invalid login credentials")


def test_deleted_administrator_is_refused_at_once(delete, carol):
    session = carol.open_session()
    assert session.get("/admin/users").status_code == 200
    delete(carol.id)
    assert_error(session.get("/admin/users"), 401, "user_not_found")


def test_deleted_user_cannot_be_used(delete, client, service_role, alice):
    delete(alice.id)
    path = f"/admin/users/{alice.id}"
    assert_error(
        client.put(path, json={"role": "admin"}, headers=service_role), 404, "user_not_found", NO_SUCH_USER
    )
    assert_error(
        client.put(path, json={"password": PASSWORD}, headers=service_role),
        404,
        "user_not_found",
        NO_SUCH_USER,
    )
    assert_error(client.post(f"{path}/logout", headers=service_role), 404, "user_not_found", NO_SUCH_USER)


def test_address_of_a_deleted_user_is_free_for_a_new_one(delete, client, service_role, alice):
    session = alice.open_session()
    delete(alice.id)
    made = client.post(
        "/admin/users",
        json={"email": alice.email, "password": PASSWORD, "email_confirm": True},
        headers=service_role,
    ).json
    assert made["id"] != alice.id
    # Tokens of the deleted user are not valid for the new one.
    assert_error(session.get("/user"), 401, "user_not_found")
    assert_error(session.refresh(), 400, "refresh_token_not_found")


def test_links_of_a_deleted_user_are_void(delete, client, mailbox, alice):
    client.post("/recover", json={"email": alice.email})
    link = mailbox.link_for(alice.email)
    delete(alice.id)
    assert client.get(link).status_code == 403


def test_pending_messages_of_a_deleted_user_are_not_sent(delete, client, mailbox, alice):
    client.post("/recover", json={"email": alice.email})
    delete(alice.id)
    assert mailbox.messages_to(alice.email) == []


@cases(
    "id",
    [
        str(uuid.UUID(int=0)),
        "1",
        "me",
        "%00",
        "0" * 32,
        "%25",
        "' OR true --",
        "{00000000-0000-0000-0000-000000000000}",
        "*",
    ],
)
def test_unknown_or_malformed_id_is_404(delete, alice, database, id):
    assert_error(delete(id), 404, "user_not_found", NO_SUCH_USER)
    assert database.count("users") == 1


def test_list_of_users_cannot_be_deleted(client, service_role, alice, database):
    assert_error(client.delete("/admin/users", headers=service_role), 405, "method_not_allowed")
    assert_error(client.delete("/admin/users/", headers=service_role), 404, "not_found")
    assert database.count("users") == 1


class TestAuthorization:
    def test_administrators_may_not_delete(self, carol, alice, database):
        response = carol.open_session().delete(f"/admin/users/{alice.id}")
        assert_error(response, 403, "insufficient_permissions", "Only the service role key may do this")
        assert database.count("users") == 2

    def test_users_may_not_delete_even_themselves(self, mallory, alice, database):
        session = mallory.open_session()
        for id in (alice.id, mallory.id, str(uuid.UUID(int=0)), "nonsense"):
            assert_error(session.delete(f"/admin/users/{id}"), 403, "insufficient_permissions")
        assert database.count("users") == 2

    def test_missing_credential_is_refused(self, client, alice, database):
        for id in (alice.id, str(uuid.UUID(int=0)), "nonsense"):
            assert_error(client.delete(f"/admin/users/{id}"), 401, "no_authorization", details=A_SENTENCE)
        assert database.count("users") == 1


def test_one_of_fifty_concurrent_requests_deletes_the_user(server, service_role, alice):
    answers = at_once(50, lambda _: server.delete(f"/admin/users/{alice.id}", headers=service_role))
    assert sorted(answer.status_code for answer in answers) == [200] + [404] * 49


def test_concurrent_log_in_leaves_no_session(app, alice, database):
    with database.locked("users", alice.id, "DELETE FROM users WHERE id = %s") as lock:
        log_in = lock.start(lambda: alice.try_to_sign_in(client=app.test_client()))
    assert_error(log_in.result(), 401, "invalid_credentials", "Invalid login credentials")
    assert database.count("sessions") == 0
