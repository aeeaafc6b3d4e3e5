"""GET /admin/users/{id}: administrators read a user."""

import uuid

from tests.conftest import SERVICE_ROLE_KEY
from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, assert_ok, user
from tests.support.cases import cases


def test_response_is_the_whole_user_object(client, service_role, alice):
    assert_ok(client.get(f"/admin/users/{alice.id}", headers=service_role), user(alice.email, id=alice.id))


def test_response_equals_that_of_get_user(client, service_role, alice):
    own = alice.open_session().get("/user").json
    assert_ok(client.get(f"/admin/users/{alice.id}", headers=service_role), own)


def test_response_shows_a_ban(client, service_role, alice, database):
    database.run("UPDATE users SET banned_until = '9999-12-31T23:59:59Z'")
    response = client.get(f"/admin/users/{alice.id}", headers=service_role)
    assert response.json["banned_until"] == "9999-12-31T23:59:59.000000Z"


def test_id_is_case_insensitive(client, service_role, alice):
    assert client.get(f"/admin/users/{alice.id.upper()}", headers=service_role).json["id"] == alice.id


@cases(
    "id",
    [
        str(uuid.UUID(int=0)),
        "1",
        "me",
        "%00",
        "0" * 32,
        "{00000000-0000-0000-0000-000000000000}",
        "\u0660" * 8 + "-0000-0000-0000-000000000000",
    ],
)
def test_unknown_or_malformed_id_is_404(client, service_role, alice, id):
    response = client.get(f"/admin/users/{id}", headers=service_role)
    assert_error(response, 404, "user_not_found", "User not found")


def test_deleted_user_is_404(client, service_role, alice):
    alice.sign_in().delete("/user")
    assert_error(
        client.get(f"/admin/users/{alice.id}", headers=service_role),
        404,
        "user_not_found",
        "User not found",
    )


class TestAuthorization:
    def test_service_role_key_is_accepted_as_apikey(self, client, alice):
        assert client.get(f"/admin/users/{alice.id}", headers={"apikey": SERVICE_ROLE_KEY}).status_code == 200

    def test_administrator_is_accepted(self, alice, carol):
        assert_ok(carol.sign_in().get(f"/admin/users/{alice.id}"), user(alice.email, id=alice.id))

    def test_user_is_refused_even_for_itself(self, alice, mallory):
        for id in (alice.id, mallory.id, "nonsense"):
            assert_error(
                mallory.sign_in().get(f"/admin/users/{id}"),
                403,
                "not_admin",
                "Only administrators may do this",
            )

    def test_missing_credential_is_refused(self, client, alice):
        for id in (alice.id, "nonsense"):
            assert_error(client.get(f"/admin/users/{id}"), 401, "no_authorization", details=A_SENTENCE)


def test_head_returns_the_same_headers_without_a_body(client, service_role, alice):
    response = client.head(f"/admin/users/{alice.id}", headers=service_role)
    assert (response.status_code, response.data) == (200, b"")
    assert client.head("/admin/users/nonsense", headers=service_role).status_code == 404


def test_times_are_in_utc_with_microseconds(client, service_role, alice, database):
    database.run("UPDATE users SET created_at = '2026-07-01T14:30:00.5+02:00'")
    made = client.get(f"/admin/users/{alice.id}", headers=service_role).json
    assert made["created_at"] == "2026-07-01T12:30:00.500000Z"
    assert made["updated_at"] == A_TIMESTAMP
