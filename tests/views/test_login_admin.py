"""POST /login-admin: signing in as an administrator."""

import pytest

from tests.support.answers import (
    A_SENTENCE,
    A_TIMESTAMP,
    A_UUID,
    assert_error,
    assert_ok,
    token_response,
    user,
)
from tests.support.cases import cases
from tests.support.cast import PASSWORD, register, session_of, sign_in

WRONG = "Wrong-Horse-1"


def log_in(client, email, password=PASSWORD, **options):
    return client.post("/login-admin", json={"email": email, "password": password}, **options)


class TestAdministrator:
    def test_response_has_tokens_user_and_time_of_promotion(self, client, carol):
        expected = token_response(user(carol.email, id=carol.id, role="admin", last_sign_in_at=A_TIMESTAMP))
        details = {"id": carol.id, "email": carol.email, "is_admin": True, "created_at": A_TIMESTAMP}
        assert_ok(log_in(client, carol.email), expected | {"admin_details": details})

    def test_time_of_promotion_is_not_the_creation_of_the_user(self, client, service_role, alice, database):
        client.put(f"/admin/users/{alice.id}", json={"role": "admin"}, headers=service_role)
        database.run(
            "UPDATE users SET created_at = '2020-01-01T00:00:00Z', admin_since = '2025-02-03T04:05:06Z'"
        )
        response = log_in(client, alice.email)
        assert response.json["admin_details"] == {
            "id": alice.id,
            "email": alice.email,
            "is_admin": True,
            "created_at": "2025-02-03T04:05:06.000000Z",
        }

    def test_session_of_an_administrator_is_like_any_other(self, client, carol, database):
        session = session_of(client, log_in(client, carol.email))
        assert session.get("/user").json["id"] == carol.id
        assert session.get("/admin/users").status_code == 200
        assert session.refreshed().get("/user").status_code == 200
        assert database.one("SELECT user_id, method, ended_at FROM sessions") == (carol.id, "password", None)

    def test_email_may_be_spelled_differently(self, client, carol):
        assert log_in(client, "CAROL@Example.COM").status_code == 200

    def test_administrator_may_sign_in_by_phone(self, client, service_role):
        body = {
            "email": "carol@example.com",
            "phone": "+491701234567",
            "phone_confirm": True,
            "password": PASSWORD,
            "role": "admin",
        }
        client.post("/admin/users", json=body, headers=service_role)
        response = client.post("/login-admin", json={"phone": "+49 170 1234567", "password": PASSWORD})
        assert response.json["admin_details"] == {
            "id": A_UUID,
            "email": "carol@example.com",
            "is_admin": True,
            "created_at": A_TIMESTAMP,
        }

    def test_credentials_in_headers_are_ignored(self, client, carol):
        for headers in ({"Authorization": "Bearer nonsense"}, {"apikey": "nonsense"}):
            assert log_in(client, carol.email, headers=headers).status_code == 200

    def test_promoted_user_may_sign_in(self, client, service_role, alice):
        assert log_in(client, alice.email).status_code == 403
        client.put(f"/admin/users/{alice.id}", json={"role": "admin"}, headers=service_role)
        assert log_in(client, alice.email).status_code == 200


class TestOtherUsers:
    """The right password of a user who is not an administrator is 403 and has no effect."""

    def refused(self, client, database, email, error_code, msg):
        before = database.everything()
        assert_error(log_in(client, email), 403, error_code, msg)
        assert database.everything() == before

    def test_user_is_403_without_a_session(self, client, alice, database):
        self.refused(client, database, alice.email, "not_admin", "Only administrators may sign in here")

    @pytest.mark.parametrize("role", ["administrator", "admins", "authenticated", "admin_"])
    def test_user_with_another_role_is_403(self, client, service_role, database, role):
        dave = register(client, service_role, "dave@example.com", role)
        self.refused(client, database, dave.email, "not_admin", "Only administrators may sign in here")

    def test_metadata_do_not_make_an_administrator(self, client, service_role, database):
        metadata = {"role": "admin", "is_admin": True, "roles": ["admin"]}
        body = {
            "email": "dave@example.com",
            "password": PASSWORD,
            "email_confirm": True,
            "user_metadata": metadata,
            "app_metadata": metadata,
        }
        client.post("/admin/users", json=body, headers=service_role)
        self.refused(
            client, database, "dave@example.com", "not_admin", "Only administrators may sign in here"
        )

    def test_former_administrator_is_403(self, client, service_role, carol, database):
        client.put(f"/admin/users/{carol.id}", json={"role": "authenticated"}, headers=service_role)
        self.refused(client, database, carol.email, "not_admin", "Only administrators may sign in here")

    def test_banned_administrator_is_403(self, client, service_role, carol, database):
        client.put(f"/admin/users/{carol.id}", json={"ban_duration": "1h"}, headers=service_role)
        self.refused(client, database, carol.email, "user_banned", "User is banned")

    def test_unconfirmed_administrator_is_403(self, client, service_role, carol, database):
        client.put(f"/admin/users/{carol.id}", json={"email_confirmed_at": None}, headers=service_role)
        self.refused(client, database, carol.email, "email_not_confirmed", "Email not confirmed")


class TestWrongCredentials:
    def test_wrong_credentials_get_the_same_response(self, client, service_role, carol, alice, database):
        client.post(
            "/admin/users",
            json={"email": "nopassword@example.com", "email_confirm": True, "role": "admin"},
            headers=service_role,
        )
        before = database.everything()
        answers = [
            log_in(client, email, WRONG)
            for email in (carol.email, alice.email, "nopassword@example.com", "nobody@example.com")
        ]
        for answer in answers:
            assert_error(answer, 401, "invalid_credentials", "Invalid login credentials")
        assert len({answer.data for answer in answers}) == 1
        assert database.everything() == before

    def test_wrong_password_does_not_reveal_whether_the_user_is_an_administrator(
        self, client, alice, carol, hashes, parts
    ):
        work = []
        for email in (alice.email, carol.email):
            hashed, run = hashes.count, parts.db.statements_run
            log_in(client, email, WRONG)
            work.append((hashes.count - hashed, parts.db.statements_run - run))
        assert work == [(1, 2), (1, 2)]


class TestRefusals:
    @cases(
        "body",
        [
            {},
            {"email": "carol@example.com"},
            {"password": PASSWORD},
            {"email": "carol", "password": PASSWORD},
            {"email": ["carol@example.com"], "password": PASSWORD},
            {"email": "carol@example.com", "password": {"$ne": ""}},
            {"email": "carol@example.com", "password": True},
            {"email": None, "password": None},
        ],
    )
    def test_malformed_body_is_400(self, client, carol, database, body):
        assert_error(client.post("/login-admin", json=body), 400, "validation_failed", details=A_SENTENCE)
        assert database.count("sessions") == 0

    def test_sign_in_by_email_is_refused_when_disabled(self, make_app, carol):
        client = make_app(AUTH_EMAIL_ENABLED="false").test_client()
        assert_error(log_in(client, carol.email), 400, "email_provider_disabled")

    def test_get_is_405(self, client):
        assert_error(client.get("/login-admin?email=carol@example.com&password=x"), 405, "method_not_allowed")


class TestRaces:
    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE users SET role = 'authenticated' WHERE id = %s",
            "UPDATE users SET banned_until = 'infinity' WHERE id = %s",
        ],
        ids=["demotion", "ban"],
    )
    def test_administrator_demoted_meanwhile_gets_no_session(self, app, carol, database, change):
        with database.locked("users", carol.id, change) as lock:
            response = lock.start(lambda: log_in(app.test_client(), carol.email))
        assert response.result().status_code in (401, 403)
        assert database.count("sessions") == 0


def test_administrator_may_also_sign_in_like_other_users(client, carol):
    response = sign_in(client, carol.email)
    assert_ok(
        response, token_response(user(carol.email, id=carol.id, role="admin", last_sign_in_at=A_TIMESTAMP))
    )
