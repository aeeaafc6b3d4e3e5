"""GET /user: the caller, as a user object."""

import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok, identity, user
from tests.support.cases import cases
from tests.support.cast import PASSWORD, session_of, sign_in

MALFORMED = {
    "msg": "invalid JWT: unable to parse or verify signature: it is malformed",
    "details": "Authorization: must be Bearer <token>",
}


def test_response_is_the_whole_user_object(alice):
    assert_ok(alice.sign_in().get("/user"), user(alice.email, id=alice.id, last_sign_in_at=A_TIMESTAMP))


def test_response_is_the_user_of_the_token(alice, bob):
    assert (alice.sign_in().get("/user").json["id"], bob.sign_in().get("/user").json["id"]) == (
        alice.id,
        bob.id,
    )


def test_response_contains_no_secret(alice, database):
    text = alice.open_session().get("/user").text
    assert "password" not in text
    assert database.value("SELECT password_hash FROM users") not in text


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
    assert_ok(session.get("/user"), expected)


def test_identity_contains_the_id_of_its_user(alice):
    (only,) = alice.open_session().get("/user").json["identities"]
    assert only["user_id"] == only["identity_data"]["sub"] == alice.id
    assert only["identity_id"] == only["id"]


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
    database.run(
        "UPDATE users SET email_confirmed_at = %(email)s, phone_confirmed_at = %(phone)s",
        email=email,
        phone=phone,
    )
    assert session.get("/user").json["confirmed_at"] == confirmed


def test_provider_and_providers_come_from_the_identities(alice, database):
    session = alice.open_session()
    database.run(
        """UPDATE users SET app_metadata = '{"provider": "forged", "providers": ["forged"], "plan": "gold"}'"""
    )
    assert session.get("/user").json["app_metadata"] == {
        "plan": "gold",
        "provider": "email",
        "providers": ["email"],
    }


def test_request_costs_one_statement(alice, parts):
    session = alice.open_session()
    before = parts.db.statements_run
    session.get("/user")
    assert parts.db.statements_run == before + 1


def test_head_returns_the_same_headers_without_a_body(client, alice):
    session = alice.open_session()
    got, headed = session.get("/user"), client.head("/user", headers=session.authorization)
    assert (headed.status_code, headed.data) == (200, b"")
    assert headed.headers["Content-Length"] == got.headers["Content-Length"]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer  "])
def test_authorization_scheme_is_case_insensitive(client, alice, scheme):
    assert (
        client.get("/user", headers={"Authorization": f"{scheme} {alice.sign_in().access_token}"}).status_code
        == 200
    )


@cases(
    "headers",
    [{}, {"Authorization": ""}, {"Authorization": "  "}, {"apikey": "x"}, {"Cookie": "access_token=x"}],
)
def test_missing_token_is_401(client, headers):
    response = client.get("/user", headers=headers)
    assert_error(
        response,
        401,
        "no_authorization",
        "This endpoint requires a valid Bearer token",
        "Authorization: must be Bearer <token>",
    )


@cases(
    "value",
    [
        "Bearer",
        "Bearer ",
        "Basic YWxpY2U6cGFzc3dvcmQ=",
        "Token x.y.z",
        "x.y.z",
        "Bearer x y",
        "Bearer x;y",
        "Bearer \xfc",
        "Bearer x==",
    ],
)
def test_malformed_authorization_is_401(client, value):
    assert_error(client.get("/user", headers={"Authorization": value}), 401, "bad_jwt", **MALFORMED)


def test_token_in_the_query_is_ignored(client, alice):
    assert_error(
        client.get(f"/user?access_token={alice.sign_in().access_token}"),
        401,
        "no_authorization",
        details=MALFORMED["details"],
    )


def test_token_in_the_apikey_header_is_ignored(client, alice):
    assert_error(
        client.get("/user", headers={"apikey": alice.sign_in().access_token}),
        401,
        "no_authorization",
        details=MALFORMED["details"],
    )


def test_repeated_authorization_is_400(client, alice, bob):
    for tokens in ((alice.sign_in(), bob.sign_in()), (alice.sign_in(),) * 2):
        headers = [("Authorization", f"Bearer {session.access_token}") for session in tokens]
        assert_error(
            client.get("/user", headers=headers),
            400,
            "validation_failed",
            details="Authorization: must be given once",
        )


def test_repeated_authorization_is_400_through_gunicorn(server, alice):
    value = f"Bearer {alice.sign_in().access_token}"
    response = server.get("/user", headers=[("Authorization", value), ("Authorization", value)])
    assert_error(response, 400, "validation_failed", details="Authorization: must be given once")
