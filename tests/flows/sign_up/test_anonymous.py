"""POST /signup without email, phone and password: anonymous users, whose session is the only way in."""

from typing import Any

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, token_response, user
from tests.support.cases import cases
from tests.support.server import at_once
from tests.support.users import PASSWORD, session_of, sign_up_anonymously

ENABLED = {"AUTH_ANONYMOUS_ENABLED": "true"}


@pytest.fixture
def client(make_app):
    return make_app(**ENABLED).test_client()


@pytest.fixture
def sign_up(client):
    return lambda: sign_up_anonymously(client)


def anonymous_user(**changes):
    absent: dict[str, Any] = dict.fromkeys(("email", "email_confirmed_at", "confirmed_at"))
    members = {"app_metadata": {"provider": None, "providers": []}, "is_anonymous": True}
    return user("") | absent | members | {"identities": [], "last_sign_in_at": A_TIMESTAMP} | changes


class TestSignUp:
    def test_user_without_an_address_is_made_signed_in(self, client, service_role, database, target, hooks):
        hooks.register(target)
        response = client.post("/signup", json={"data": {"theme": "dark"}, "gotrue_meta_security": {}})
        expected = anonymous_user(user_metadata={"theme": "dark"})
        assert response.status_code == 201
        assert response.json == expected | {"app_metadata": {}} | token_response(expected)
        id = response.json["id"]
        row = database.one("SELECT id::text, made_by, converted_at FROM users")
        assert (row, database.count("identities")) == ((id, "anonymous", None), 0)
        entries = database.all(
            "SELECT action, details ->> 'method', user_id::text FROM audit_log WHERE user_id IS NOT NULL ORDER BY action"
        )
        assert entries == [("signed_in", "anonymous", id), ("user_created", "anonymous", id)]
        assert {row.kind for row in database.all("SELECT kind FROM outbox")} == {"user.created", "auth.login"}
        # For administrators, this is a user like any other.
        path = f"/admin/users/{id}"
        assert client.get(path, headers=service_role).json == expected
        client.put(path, json={"ban_duration": "1h"}, headers=service_role)
        assert client.delete(path, headers=service_role).json == {}

    def test_access_token_says_that_its_user_is_anonymous_and_is_refreshed(self, sign_up):
        session = sign_up()
        claims = session.claims
        assert claims["is_anonymous"] is True
        assert [entry["method"] for entry in claims["amr"]] == ["anonymous"]
        assert (claims["email"], claims["phone"], claims["role"]) == ("", "", "authenticated")
        refreshed = session.refreshed()
        assert (refreshed.user["id"], refreshed.claims["is_anonymous"]) == (session.user["id"], True)
        assert refreshed.get("/user").json == anonymous_user()
        # A sign-up ignores the token.
        second = session_of(session.client, refreshed.post("/signup", json={}), status=201)
        assert second.user["id"] != session.user["id"]
        assert refreshed.get("/user").status_code == 200


def test_administrators_list_anonymous_users_or_the_others(client, service_role, sign_up, alice):
    visitor = sign_up().user["id"]

    def list_ids(query):
        return {user["id"] for user in client.get(f"/admin/users{query}", headers=service_role).json["data"]}

    assert list_ids("?is_anonymous=true") == {visitor}
    assert list_ids("?is_anonymous=false") == {alice.id}
    assert list_ids("") == {visitor, alice.id}
    response = client.get("/admin/users?is_anonymous=maybe", headers=service_role)
    assert_error(response, 400, "validation_failed", details=A_SENTENCE)


DISABLED = (422, "anonymous_provider_disabled")
INVALID = (400, "validation_failed", A_SENTENCE, A_SENTENCE)


class TestRefusals:
    @cases(
        ("settings", "body", "error"),
        [
            ({}, {"data": {}}, DISABLED),
            ({}, {"gotrue_meta_security": {}}, DISABLED),
            ({}, {}, INVALID),
            ({}, {"password": PASSWORD}, INVALID),
            ({}, {"password": PASSWORD, "data": {}}, INVALID),
            (ENABLED, {"password": PASSWORD}, INVALID),
            (ENABLED, {"data": {"x": "y" * 1100}}, INVALID),
            (ENABLED | {"AUTH_DISABLE_SIGNUP": "true"}, {}, (403, "signup_disabled")),
        ],
    )
    def test_disabled_or_invalid_sign_up_is_refused(self, make_app, database, settings, body, error):
        assert_error(make_app(**settings).test_client().post("/signup", json=body), *error)
        assert database.count("users") == 0

    def test_network_may_sign_up_thirty_anonymous_users_an_hour(self, make_app, database):
        client = make_app(**ENABLED, AUTH_RATE_LIMITS_ENABLED="true").test_client()
        responses = at_once(40, lambda _: client.application.test_client().post("/signup", json={}))
        refusals = [response for response in responses if response.status_code != 201]
        assert (len(refusals), database.count("users")) == (10, 30)
        assert_error(refusals[0], 429, "over_request_rate_limit")
        sign_up = {"email": "dave@example.com", "password": PASSWORD}
        assert client.post("/signup", json=sign_up).status_code == 201
