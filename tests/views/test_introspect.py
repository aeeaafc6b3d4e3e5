"""POST /introspect: what an access token is worth at this moment (RFC 7662)."""

import json

import pytest

from tests.conftest import SERVICE_ROLE_KEY
from tests.support.answers import A_SENTENCE, assert_error, assert_ok
from tests.support.cast import PASSWORD

INACTIVE = {"active": False}


@pytest.fixture
def introspect(client, service_role):
    return lambda token, **options: client.post(
        "/introspect", json={"token": token}, headers=service_role, **options
    )


class TestALiveToken:
    def test_it_answers_all_claims(self, introspect, alice):
        session = alice.sign_in()
        assert_ok(introspect(session.access_token), {"active": True} | session.claims)

    def test_a_form_is_taken_too(self, client, service_role, alice):
        session = alice.sign_in()
        response = client.post(
            "/introspect",
            data={"token": session.access_token, "token_type_hint": "access_token"},
            headers=service_role,
        )
        assert_ok(response, {"active": True} | session.claims)

    def test_the_key_may_come_as_apikey(self, client, alice):
        session = alice.sign_in()
        assert (
            client.post(
                "/introspect", json={"token": session.access_token}, headers={"apikey": SERVICE_ROLE_KEY}
            ).json["active"]
            is True
        )

    def test_members_that_it_does_not_know_are_ignored(self, client, service_role, alice):
        body = {"token": alice.sign_in().access_token, "token_type_hint": "refresh_token", "active": False}
        assert client.post("/introspect", json=body, headers=service_role).json["active"] is True

    def test_metadata_can_not_speak_for_the_token(self, introspect, client, service_role, alice):
        metadata = {"active": False, "sub": "x", "role": "admin"}
        client.put(
            f"/admin/users/{alice.id}",
            json={"user_metadata": metadata, "app_metadata": metadata},
            headers=service_role,
        )
        answer = introspect(alice.sign_in().access_token).json
        assert (answer["active"], answer["sub"], answer["role"]) == (True, alice.id, "authenticated")

    def test_a_token_with_all_metadata_that_there_may_be(self, introspect, client, service_role, alice):
        metadata = {"x": "漢" * 2700}
        client.put(
            f"/admin/users/{alice.id}",
            json={"user_metadata": metadata, "app_metadata": metadata},
            headers=service_role,
        )
        assert introspect(alice.sign_in().access_token).json["user_metadata"] == metadata

    def test_asking_changes_nothing(self, introspect, alice, database):
        token = alice.sign_in().access_token
        before = database.everything()
        introspect(token)
        introspect("nonsense")
        assert database.everything() == before


class TestAnythingElse:
    """Inactive, and nothing said of why."""

    @pytest.mark.parametrize(
        "token",
        [
            "",
            "nonsense",
            "a.b.c",
            "x" * 65_536,
            SERVICE_ROLE_KEY,
            "é",
            "Bearer x",
            "../../etc/passwd",
            "eyJhbGciOiJub25lIn0.e30.",
        ],
    )
    def test_what_is_no_token(self, introspect, token):
        assert_ok(introspect(token), INACTIVE)

    def test_what_is_not_utf_8(self, client, service_role):
        response = client.post(
            "/introspect",
            data=b"token=%ff",
            content_type="application/x-www-form-urlencoded",
            headers=service_role,
        )
        assert_ok(response, INACTIVE)

    def test_a_forged_one(self, introspect, alice):
        head, payload, signature = alice.sign_in().access_token.split(".")
        for forged in (
            f"{head}.{payload}.{signature[:-4]}AAAA",
            f"{head}.{payload}.",
            f"{head}.{payload}",
            f"{payload}.{payload}.{signature}",
        ):
            assert_ok(introspect(forged), INACTIVE)

    def test_a_refresh_token(self, introspect, alice):
        assert_ok(introspect(alice.sign_in().refresh_token), INACTIVE)

    def test_one_that_has_expired(self, introspect, alice, app):
        session = alice.sign_in()
        issue = app.extensions["latchkey"].access_tokens.issue
        expired = issue(
            session.user, session.id, "password", session.claims["iat"] - 3601, session.claims["iat"] - 3601
        )
        assert_ok(introspect(expired), INACTIVE)

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE sessions SET ended_at = now(), end_reason = 'logout'",
            "UPDATE sessions SET refreshed_at = now() - interval '30 days'",
            "DELETE FROM sessions",
            "UPDATE users SET banned_until = now() + interval '1 minute'",
            "DELETE FROM users",
        ],
    )
    def test_one_whose_session_or_user_is_no_more(self, introspect, alice, database, change):
        token = alice.sign_in().access_token
        assert introspect(token).json["active"] is True
        database.run(change)
        assert_ok(introspect(token), INACTIVE)

    def test_one_with_another_users_session(self, introspect, alice, bob, app):
        session = bob.sign_in()
        mixed = app.extensions["latchkey"].access_tokens.issue(
            alice.sign_in().user, session.id, "password", session.claims["iat"], session.claims["iat"]
        )
        assert_ok(introspect(mixed), INACTIVE)

    def test_a_former_administrator_still_has_a_session(self, introspect, client, service_role, carol):
        token = carol.sign_in().access_token
        client.put(f"/admin/users/{carol.id}", json={"role": "authenticated"}, headers=service_role)
        assert introspect(token).json["active"] is True


class TestRefusals:
    @pytest.mark.parametrize(
        "body",
        [{}, {"token": None}, {"token": 1}, {"token": ["x"]}, {"token": "x" * 65_537}],
        ids=lambda body: str(body)[:30],
    )
    def test_a_malformed_body_is_400(self, client, service_role, body):
        assert_error(
            client.post("/introspect", json=body, headers=service_role),
            400,
            "validation_failed",
            details=A_SENTENCE,
        )

    @pytest.mark.parametrize(
        "form", [b"", b"x=y", b"token=a&token=b", b"token=%00", b"token=" + b"x" * 65_537]
    )
    def test_a_malformed_form_is_400(self, client, service_role, form):
        response = client.post(
            "/introspect", data=form, content_type="application/x-www-form-urlencoded", headers=service_role
        )
        assert_error(response, 400, "validation_failed", details=A_SENTENCE)

    @pytest.mark.parametrize("size", [600_000, 1024 * 1024 + 1])
    def test_a_form_that_is_too_large_is_refused(self, client, service_role, size):
        response = client.post(
            "/introspect",
            data=b"token=" + b"x" * size,
            content_type="application/x-www-form-urlencoded",
            headers=service_role,
        )
        assert response.status_code in (400, 413)
        assert_error(
            response,
            response.status_code,
            {400: "validation_failed", 413: "request_entity_too_large"}[response.status_code],
            details=response.json.get("details"),
        )

    @pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "text/plain", "application/jwt", ""])
    def test_other_content_types_are_415(self, client, service_role, kind):
        response = client.post(
            "/introspect", data=json.dumps({"token": "x"}), content_type=kind, headers=service_role
        )
        assert_error(response, 415, "unsupported_media_type", details=A_SENTENCE)

    def test_only_this_one_takes_forms(self, client, service_role):
        for path in ("/admin/users", "/login-admin", "/token?grant_type=password", "/signup"):
            response = client.post(
                path, data={"email": "dave@example.com", "password": PASSWORD}, headers=service_role
            )
            assert_error(response, 415, "unsupported_media_type", details=A_SENTENCE)

    def test_nobody_asks_without_the_service_role_key(self, client, alice, carol):
        token = alice.sign_in().access_token
        assert_error(
            client.post("/introspect", json={"token": token}), 401, "no_authorization", details=A_SENTENCE
        )
        for session in (alice.sign_in(), carol.sign_in()):
            assert_error(session.post("/introspect", json={"token": token}), 403, "insufficient_permissions")
