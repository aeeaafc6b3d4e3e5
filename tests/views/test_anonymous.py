"""POST /signup without email, phone and password: anonymous users, whose session is the only way in."""

from typing import Any

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, token_response, user
from tests.support.cast import PASSWORD, session_of, sign_up_anonymously
from tests.support.server import at_once


@pytest.fixture
def client(make_app):
    return make_app(AUTH_ANONYMOUS_ENABLED="true").test_client()


@pytest.fixture
def sign_up(client):
    return lambda: sign_up_anonymously(client)


def anonymous(**changes):
    nothing: dict[str, Any] = {
        "email": None,
        "email_confirmed_at": None,
        "confirmed_at": None,
        "identities": [],
    }
    named = {"app_metadata": {"provider": None, "providers": []}, "is_anonymous": True}
    return user("") | nothing | named | {"last_sign_in_at": A_TIMESTAMP} | changes


class TestSignUp:
    def test_anonymous_sign_up_creates_a_user_without_address_and_signs_it_in(self, client, database):
        response = client.post("/signup", json={"data": {"theme": "dark"}, "gotrue_meta_security": {}})
        made = anonymous(user_metadata={"theme": "dark"})
        assert response.status_code == 201
        assert response.json == made | {"app_metadata": {}} | token_response(made)
        row = database.one("SELECT id::text, made_by, converted_at FROM users")
        assert row == (response.json["id"], "anonymous", None)
        assert database.count("identities") == 0

    def test_access_token_says_so(self, sign_up):
        claims = sign_up().claims
        assert claims["is_anonymous"] is True
        assert [entry["method"] for entry in claims["amr"]] == ["anonymous"]
        assert (claims["email"], claims["phone"], claims["role"]) == ("", "", "authenticated")

    def test_session_is_refreshed(self, sign_up):
        session = sign_up()
        refreshed = session.refreshed()
        assert refreshed.user["id"] == session.user["id"]
        assert refreshed.claims["is_anonymous"] is True
        assert refreshed.get("/user").json == anonymous()

    def test_access_token_of_another_anonymous_user_is_ignored(self, sign_up):
        first = sign_up()
        second = session_of(first.client, first.post("/signup", json={}), status=201)
        assert second.user["id"] != first.user["id"]
        assert first.get("/user").status_code == 200

    def test_it_is_recorded_and_sent(self, client, service_role, sign_up, database, target, hooks):
        hooks.register(target)
        session = sign_up()
        acts = database.all(
            "SELECT action, details ->> 'method', user_id::text FROM audit_log WHERE user_id IS NOT NULL ORDER BY action"
        )
        expected = [("signed_in", "anonymous"), ("user_created", "anonymous")]
        assert [tuple(act) for act in acts] == [(*act, session.user["id"]) for act in expected]
        assert {row.kind for row in database.all("SELECT kind FROM outbox")} == {"user.created", "auth.login"}

    def test_it_is_an_account_like_others_to_administrators(self, client, service_role, sign_up):
        path = f"/admin/users/{sign_up().user['id']}"
        assert client.get(path, headers=service_role).json == anonymous()
        client.put(path, json={"ban_duration": "1h"}, headers=service_role)
        assert client.delete(path, headers=service_role).json == {}


def test_administrators_list_anonymous_users_or_the_others(client, service_role, sign_up, alice):
    visitor = sign_up().user["id"]

    def listed(query):
        return [user["id"] for user in client.get(f"/admin/users{query}", headers=service_role).json["data"]]

    assert listed("?is_anonymous=true") == [visitor]
    assert listed("?is_anonymous=false") == [alice.id]
    assert set(listed("")) == {visitor, alice.id}
    response = client.get("/admin/users?is_anonymous=maybe", headers=service_role)
    assert_error(response, 400, "validation_failed", details=A_SENTENCE)


class TestRefusals:
    def test_disabled(self, make_app, database):
        client = make_app().test_client()
        for name in ("data", "gotrue_meta_security"):
            assert_error(client.post("/signup", json={name: {}}), 422, "anonymous_provider_disabled")
        assert database.count("users") == 0

    @pytest.mark.parametrize("body", [{}, {"password": PASSWORD}, {"password": PASSWORD, "data": {}}])
    def test_sign_up_without_email_is_invalid_while_disabled(self, make_app, database, body):
        client = make_app().test_client()
        assert_error(client.post("/signup", json=body), 400, "validation_failed", details=A_SENTENCE)
        assert database.count("users") == 0

    def test_password_without_an_address_is_invalid(self, client, database):
        assert_error(
            client.post("/signup", json={"password": PASSWORD}), 400, "validation_failed", details=A_SENTENCE
        )
        assert database.count("users") == 0

    def test_sign_up_is_disabled(self, make_app):
        client = make_app(AUTH_ANONYMOUS_ENABLED="true", AUTH_DISABLE_SIGNUP="true").test_client()
        assert_error(client.post("/signup", json={}), 403, "signup_disabled")

    def test_metadata_is_limited(self, client, database):
        assert_error(
            client.post("/signup", json={"data": {"x": "y" * 1100}}),
            400,
            "validation_failed",
            details=A_SENTENCE,
        )
        assert database.count("users") == 0

    def test_thirty_an_hour_and_network(self, make_app, database):
        client = make_app(AUTH_ANONYMOUS_ENABLED="true", AUTH_RATE_LIMITS_ENABLED="true").test_client()
        responses = at_once(40, lambda _: client.application.test_client().post("/signup", json={}))
        refused = [response for response in responses if response.status_code != 201]
        assert (len(refused), database.count("users")) == (10, 30)
        assert_error(refused[0], 429, "over_request_rate_limit")
        sign_up = {"email": "dave@example.com", "password": PASSWORD}
        assert client.post("/signup", json=sign_up).status_code == 201
