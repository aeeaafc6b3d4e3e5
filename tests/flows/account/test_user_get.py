"""GET /user: the caller, as a user object."""

import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok, user
from tests.support.cases import cases
from tests.support.checked_rows import statements_run

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
        # Unlike UserObject, a dict has no further members.
        assert_ok(response, dict(user(person.email, id=person.id, last_sign_in_at=A_TIMESTAMP)))
        assert "password" not in response.text
        (identity,) = response.json["identities"]
        assert identity["user_id"] == identity["identity_data"]["sub"] == person.id
        assert identity["identity_id"] == identity["id"]


@pytest.mark.parametrize(
    ("email", "phone", "expected"),
    [
        (None, None, None),
        (None, "2026-01-03T00:00:00Z", "2026-01-03T00:00:00.000000Z"),
        ("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-02T00:00:00.000000Z"),
        ("2026-01-05T02:00:00+02:00", "2026-01-03T00:00:00Z", "2026-01-03T00:00:00.000000Z"),
    ],
)
def test_confirmed_at_is_the_earlier_confirmation(alice, database, email, phone, expected):
    session = alice.open_session()
    statement = "UPDATE users SET email_confirmed_at = %(email)s, phone_confirmed_at = %(phone)s"
    database.run(statement, email=email, phone=phone)
    assert session.get("/user").json["confirmed_at"] == expected


@cases(
    "value",
    [
        *("Bearer", "Bearer ", "Basic YWxpY2U6cGFzc3dvcmQ=", "Token x.y.z", "x.y.z"),
        *("Bearer x y", "Bearer x;y", "Bearer \xfc", "Bearer x=="),
    ],
)
def test_malformed_authorization_is_401(client, value):
    assert_error(client.get("/user", headers={"Authorization": value}), 401, "bad_jwt", **MALFORMED)
