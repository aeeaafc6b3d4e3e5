"""DELETE /user: users delete their own account."""

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, assert_ok
from tests.support.cast import PASSWORD, sign_in

NEEDED = {"msg": "This needs reauthentication", "details": A_SENTENCE}


def older(database, seconds):
    database.run(
        "UPDATE sessions SET created_at = created_at - make_interval(secs => %(seconds)s)", seconds=seconds
    )


def test_delete_removes_the_user_and_everything_it_owns(alice, database, client, service_role):
    session = alice.open_session()
    assert_ok(session.delete("/user"), {"message": "User deleted", "timestamp": A_TIMESTAMP})
    for table in ("users", "identities", "sessions", "one_time_tokens"):
        assert database.count(table) == 0
    assert_error(client.get(f"/admin/users/{alice.id}", headers=service_role), 404, "user_not_found")


def test_tokens_of_a_deleted_user_are_refused(alice):
    session, other = alice.open_session(), alice.open_session()
    session.delete("/user")
    for ended in (session, other):
        assert_error(ended.get("/user"), 401, "user_not_found")
        assert_error(ended.refresh(), 400, "refresh_token_not_found")
    assert_error(alice.try_to_sign_in(), 401, "invalid_credentials")
    assert_error(session.delete("/user"), 401, "user_not_found")


def test_delete_leaves_other_users_unchanged(alice, bob, database):
    other = bob.open_session()
    before = other.get("/user").json
    alice.sign_in().delete("/user")
    assert_ok(other.get("/user"), before)


def test_address_of_a_deleted_user_can_sign_up_again(alice, client, service_role):
    alice.sign_in().delete("/user")
    response = client.post(
        "/admin/users", json={"email": alice.email, "email_confirm": True}, headers=service_role
    )
    assert response.status_code == 200
    assert response.json["id"] != alice.id


def test_pending_links_of_a_deleted_user_are_not_mailed(make_app, mailbox):
    client = make_app(AUTH_EMAIL_CONFIRM_REQUIRED="false").test_client()
    client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD})
    access_token = sign_in(client, "dave@example.com").json["access_token"]
    client.delete("/user", headers={"Authorization": f"Bearer {access_token}"})
    assert mailbox.messages() == []


def test_delete_accepts_an_empty_body_and_no_body(alice, bob):
    assert alice.sign_in().delete("/user", json={}).status_code == 200
    assert bob.sign_in().delete("/user").status_code == 200


class TestReauthentication:
    def test_delete_with_a_session_older_than_a_day_needs_reauthentication(self, alice, database):
        session = alice.open_session()
        older(database, 86_400)
        before = database.everything()
        assert_error(session.delete("/user"), 400, "reauthentication_needed", **NEEDED)
        assert database.everything() == before

    def test_delete_accepts_the_current_password_as_reauthentication(self, alice, database):
        session = alice.open_session()
        older(database, 86_400)
        assert session.delete("/user", json={"current_password": PASSWORD}).status_code == 200
        assert database.count("users") == 0

    def test_delete_with_a_wrong_password_is_refused(self, alice, database):
        session = alice.open_session()
        older(database, 86_400)
        before = database.everything()
        response = session.delete("/user", json={"current_password": "Wrong-Horse-1"})
        assert_error(
            response, 400, "current_password_invalid", details="current_password: must be the user's password"
        )
        assert database.everything() == before

    @pytest.mark.parametrize(("age", "status"), [("always", 400), ("never", 200)])
    def test_reauthentication_for_delete_follows_the_setting(self, make_app, alice, database, age, status):
        session = alice.sign_in(client=make_app(AUTH_REAUTHENTICATION_AGE=age).test_client())
        assert session.delete("/user").status_code == status


def test_one_of_two_concurrent_deletions_succeeds(app, alice, database):
    session = alice.open_session()
    with database.locked("users", alice.id) as lock:
        first, second = (lock.start(lambda: session.on(app.test_client()).delete("/user")) for _ in range(2))
    assert first.result().status_code == 200
    assert_error(second.result(), 401, "user_not_found")
