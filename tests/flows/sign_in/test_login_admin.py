"""POST /login-admin: signing in as an administrator."""

import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok, token_response, user
from tests.support.users import PASSWORD, session_of, sign_in

ADMINISTRATORS_ONLY = "Only administrators can sign in here"


def log_in(client, email, password=PASSWORD, **options):
    return client.post("/login-admin", json={"email": email, "password": password}, **options)


class TestAdministrator:
    def test_administrator_gets_tokens_of_a_session_like_any_other(self, client, carol, database):
        expected = token_response(user(carol.email, id=carol.id, role="admin", last_sign_in_at=A_TIMESTAMP))
        details = {"id": carol.id, "email": carol.email, "is_admin": True, "created_at": A_TIMESTAMP}
        response = log_in(client, "CAROL@Example.COM")
        assert_ok(response, expected | {"admin_details": details})
        session = session_of(client, response)
        assert session.get("/user").json["id"] == carol.id
        assert session.get("/admin/users").status_code == 200
        assert session.refreshed().get("/user").status_code == 200
        assert database.one("SELECT user_id, method, ended_at FROM sessions") == (carol.id, "password", None)
        assert_ok(sign_in(client, carol.email), expected)

    def test_promoted_user_sees_the_time_of_promotion(self, client, service_role, alice, database):
        assert log_in(client, alice.email).status_code == 403
        client.put(f"/admin/users/{alice.id}", json={"role": "admin"}, headers=service_role)
        database.run(
            "UPDATE users SET created_at = '2020-01-01T00:00:00Z', admin_since = '2025-02-03T04:05:06Z'"
        )
        details = log_in(client, alice.email).json["admin_details"]
        assert (details["id"], details["created_at"]) == (alice.id, "2025-02-03T04:05:06.000000Z")


@pytest.mark.parametrize(
    ("change", "error_code", "msg"),
    [
        # Data that users write about themselves does not make them administrators.
        ({"role": "authenticated", "user_metadata": {"role": "admin"}}, "not_admin", ADMINISTRATORS_ONLY),
        ({"ban_duration": "1h"}, "user_banned", "User is banned"),
    ],
)
def test_former_or_banned_administrator_is_403_without_effect(
    client, service_role, carol, database, change, error_code, msg
):
    client.put(f"/admin/users/{carol.id}", json=change, headers=service_role)
    before = database.everything()
    assert_error(log_in(client, carol.email), 403, error_code, msg)
    assert database.everything() == before


@pytest.mark.parametrize("change", ["role = 'authenticated'", "banned_until = 'infinity'"])
def test_administrator_demoted_meanwhile_gets_no_session(app, carol, database, change):
    with database.locked("users", carol.id, f"UPDATE users SET {change} WHERE id = %s") as lock:
        future = lock.start(lambda: log_in(app.test_client(), carol.email))
    assert future.result().status_code in (401, 403)
    assert database.count("sessions") == 0


def test_sign_in_by_disabled_email_and_get_are_refused(make_app, carol):
    client = make_app(AUTH_EMAIL_ENABLED="false").test_client()
    assert_error(log_in(client, carol.email), 400, "email_provider_disabled")
    response = client.get("/login-admin?email=carol@example.com&password=x")
    assert_error(response, 405, "method_not_allowed")
