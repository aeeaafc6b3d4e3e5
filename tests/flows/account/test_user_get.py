"""GET /user: the caller, as a user object."""

import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok, identity, user
from tests.support.cases import cases
from tests.support.checked_rows import statements_run
from tests.support.users import PASSWORD, session_of, sign_in

MALFORMED = {
    "msg": "invalid JWT: unable to parse or verify signature: it is malformed",
    "details": "Authorization: must be Bearer <token>",
}


def test_response_is_the_whole_user_object_of_the_token_and_costs_one_statement(alice, bob, parts):
    for person in (alice, bob):
        session = person.sign_in()
        before = statements_run()
        response = session.get("/user")
        assert statements_run() == before + 1
        assert_ok(response, user(person.email, id=person.id, last_sign_in_at=A_TIMESTAMP))
        (only,) = response.json["identities"]
        assert only["user_id"] == only["identity_data"]["sub"] == person.id
        assert only["identity_id"] == only["id"]


def test_response_contains_every_member_a_user_may_have(client, service_role):
    body = {
        "email": "dave@example.com",
        "phone": "+491701234567",
        "password": PASSWORD,
        "email_confirm": True,
        "phone_confirm": True,
        "role": "editor",
        "user_metadata": {"name": "Dave"},
        "app_metadata": {"plan": "gold"},
    }
    client.post("/admin/users", json=body, headers=service_role)
    session = session_of(client, sign_in(client, "dave@example.com"))
    expected = user(
        "dave@example.com",
        role="editor",
        phone="+491701234567",
        phone_confirmed_at=A_TIMESTAMP,
        last_sign_in_at=A_TIMESTAMP,
        user_metadata={"name": "Dave"},
        app_metadata={"plan": "gold", "provider": "email", "providers": ["email", "phone"]},
        identities=[
            identity("email", "dave@example.com", last_sign_in_at=A_TIMESTAMP),
            identity("phone", "+491701234567"),
        ],
    )
    response = session.get("/user")
    assert_ok(response, dict(expected))
    assert "password" not in response.text


@pytest.mark.parametrize(
    ("email", "phone", "confirmed"),
    [
        (None, None, None),
        ("2026-01-02T00:00:00Z", None, "2026-01-02T00:00:00.000000Z"),
        (None, "2026-01-03T00:00:00Z", "2026-01-03T00:00:00.000000Z"),
        ("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-02T00:00:00.000000Z"),
        ("2026-01-05T02:00:00+02:00", "2026-01-03T00:00:00Z", "2026-01-03T00:00:00.000000Z"),
    ],
)
def test_confirmed_at_is_the_earlier_confirmation(alice, database, email, phone, confirmed):
    session = alice.open_session()
    statement = "UPDATE users SET email_confirmed_at = %(email)s, phone_confirmed_at = %(phone)s"
    database.run(statement, email=email, phone=phone)
    assert session.get("/user").json["confirmed_at"] == confirmed


def test_provider_and_providers_come_from_the_identities(alice, database):
    session = alice.open_session()
    forged = '{"provider": "forged", "providers": ["forged"], "plan": "gold"}'
    database.run("UPDATE users SET app_metadata = %(forged)s", forged=forged)
    expected = {"plan": "gold", "provider": "email", "providers": ["email"]}
    assert session.get("/user").json["app_metadata"] == expected


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer  "])
def test_authorization_scheme_is_case_insensitive(client, alice, scheme):
    headers = {"Authorization": f"{scheme} {alice.open_session().access_token}"}
    assert client.get("/user", headers=headers).status_code == 200


@cases(
    "value",
    [
        *("Bearer", "Bearer ", "Basic YWxpY2U6cGFzc3dvcmQ=", "Token x.y.z", "x.y.z"),
        *("Bearer x y", "Bearer x;y", "Bearer \xfc", "Bearer x=="),
    ],
)
def test_malformed_authorization_is_401(client, value):
    assert_error(client.get("/user", headers={"Authorization": value}), 401, "bad_jwt", **MALFORMED)


def test_repeated_authorization_is_400_with_and_without_gunicorn(client, server, alice, bob):
    tokens = [person.open_session().access_token for person in (alice, bob)]
    for repeated in (tokens, tokens[:1] * 2):
        headers = [("Authorization", f"Bearer {token}") for token in repeated]
        for response in (client.get("/user", headers=headers), server.get("/user", headers=headers)):
            details = "Authorization: must be given once"
            assert_error(response, 400, "validation_failed", details=details)
