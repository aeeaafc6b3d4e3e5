"""DELETE /admin/users/{id}: deleting any user."""

import pytest

from tests.support.answers import assert_error, assert_ok
from tests.support.server import at_once
from tests.support.users import PASSWORD

GONE = (404, "user_not_found", "User not found")


@pytest.fixture
def delete(client, service_role):
    return lambda id, **options: client.delete(f"/admin/users/{id}", headers=service_role, **options)


def test_delete_removes_the_user_with_everything_it_owns(delete, client, service_role, alice, database):
    alice.sign_in()
    client.post("/recover", json={"email": alice.email})
    assert_ok(delete(alice.id), {})
    for table in ("users", "identities", "sessions", "known_networks", "one_time_tokens"):
        assert database.count(table) == 0
    path = f"/admin/users/{alice.id}"
    assert_error(delete(alice.id), *GONE)
    assert_error(client.get(path, headers=service_role), *GONE)
    for body in ({"role": "admin"}, {"password": PASSWORD}):
        assert_error(client.put(path, json=body, headers=service_role), *GONE)
    assert_error(client.post(f"{path}/logout", headers=service_role), *GONE)
    assert client.get("/admin/users", headers=service_role).json["data"] == []


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


def test_tokens_of_a_deleted_user_are_refused_at_once_and_not_valid_for_a_new_one(
    delete, client, service_role, alice
):
    session = alice.open_session()
    assert session.get("/user").status_code == 200
    delete(alice.id)
    assert_error(alice.try_to_sign_in(), 401, "invalid_credentials", "Invalid login credentials")
    for _ in range(2):
        assert_error(session.get("/user"), 401, "user_not_found")
        assert_error(session.put("/user", json={"data": {"x": 1}}), 401, "user_not_found")
        assert_error(session.refresh(), 400, "refresh_token_not_found")
        # The address is free.
        client.post("/admin/users", json={"email": alice.email}, headers=service_role)
    assert client.get("/admin/users", headers=service_role).json["data"][0]["id"] != alice.id


def test_pending_messages_of_a_deleted_user_are_not_sent(delete, client, mailbox, alice):
    client.post("/recover", json={"email": alice.email})
    delete(alice.id)
    assert mailbox.messages_to(alice.email) == []


def test_list_of_users_cannot_be_deleted(client, service_role, alice, database):
    assert_error(client.delete("/admin/users", headers=service_role), 405, "method_not_allowed")
    assert_error(client.delete("/admin/users/", headers=service_role), 404, "not_found")
    assert database.count("users") == 1


def test_users_and_administrators_may_not_delete_even_themselves(carol, mallory, database):
    msg = "Only the service role key may do this"
    for session in (carol.open_session(), mallory.open_session()):
        for id in (mallory.id, carol.id, "nonsense"):
            assert_error(session.delete(f"/admin/users/{id}"), 403, "insufficient_permissions", msg)
    assert database.count("users") == 2


def test_one_of_fifty_concurrent_requests_deletes_the_user(server, service_role, alice):
    answers = at_once(50, lambda _: server.delete(f"/admin/users/{alice.id}", headers=service_role))
    assert sorted(answer.status_code for answer in answers) == [200] + [404] * 49


def test_concurrent_log_in_leaves_no_session(app, alice, database):
    with database.locked("users", alice.id, "DELETE FROM users WHERE id = %s") as lock:
        log_in = lock.start(lambda: alice.try_to_sign_in(client=app.test_client()))
    assert_error(log_in.result(), 401, "invalid_credentials", "Invalid login credentials")
    assert database.count("sessions") == 0
