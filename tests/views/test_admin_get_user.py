"""GET /admin/users/{id}: administrators read a user."""

import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok, user


@pytest.fixture
def get(client, service_role):
    return lambda id: client.get(f"/admin/users/{id}", headers=service_role)


def test_response_is_the_whole_user_object(get, alice, carol):
    assert_ok(get(alice.id), user(alice.email, id=alice.id))
    assert_ok(get(alice.id.upper()), user(alice.email, id=alice.id))
    assert_ok(carol.sign_in().get(f"/admin/users/{alice.id}"), user(alice.email, id=alice.id))
    own = alice.open_session().get("/user").json
    assert_ok(get(alice.id), own)


def test_response_shows_a_ban_and_times_in_utc_with_microseconds(get, alice, database):
    database.run(
        "UPDATE users SET banned_until = '9999-12-31T23:59:59Z', created_at = '2026-07-01T14:30:00.5+02:00'"
    )
    shown = get(alice.id).json
    assert shown["banned_until"] == "9999-12-31T23:59:59.000000Z"
    assert (shown["created_at"], shown["updated_at"]) == ("2026-07-01T12:30:00.500000Z", A_TIMESTAMP)


def test_deleted_user_is_404(get, alice):
    alice.sign_in().delete("/user")
    assert_error(get(alice.id), 404, "user_not_found", "User not found")


def test_head_returns_the_same_headers_without_a_body(client, service_role, alice):
    response = client.head(f"/admin/users/{alice.id}", headers=service_role)
    assert (response.status_code, response.data) == (200, b"")
    assert client.head("/admin/users/nonsense", headers=service_role).status_code == 404
