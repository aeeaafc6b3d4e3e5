"""POST /introspect: the present state of an access token (RFC 7662)."""

import json

import pytest

from tests.conftest import SERVICE_ROLE_KEY
from tests.support.answers import A_SENTENCE, assert_error, assert_ok
from tests.support.cases import cases
from tests.support.cast import PASSWORD

INACTIVE = {"active": False}


@pytest.fixture
def introspect(client, service_role):
    return lambda token, **options: client.post(
        "/introspect", json={"token": token}, headers=service_role, **options
    )


class TestActiveToken:
    def test_active_token_returns_all_claims(self, introspect, alice):
        session = alice.open_session()
        assert_ok(introspect(session.access_token), {"active": True} | session.claims)

    def test_form_is_accepted(self, client, service_role, alice):
        session = alice.open_session()
        response = client.post(
            "/introspect",
            data={"token": session.access_token, "token_type_hint": "access_token"},
            headers=service_role,
        )
        assert_ok(response, {"active": True} | session.claims)

    def test_service_role_key_is_accepted_as_apikey(self, client, alice):
        session = alice.open_session()
        assert (
            client.post(
                "/introspect", json={"token": session.access_token}, headers={"apikey": SERVICE_ROLE_KEY}
            ).json["active"]
            is True
        )

    def test_unknown_members_are_ignored(self, client, service_role, alice):
        body = {
            "token": alice.open_session().access_token,
            "token_type_hint": "refresh_token",
            "active": False,
        }
        assert client.post("/introspect", json=body, headers=service_role).json["active"] is True

    def test_metadata_cannot_override_claims(self, introspect, client, service_role, alice):
        metadata = {"active": False, "sub": "x", "role": "admin"}
        client.put(
            f"/admin/users/{alice.id}",
            json={"user_metadata": metadata, "app_metadata": metadata},
            headers=service_role,
        )
        answer = introspect(alice.sign_in().access_token).json
        assert (answer["active"], answer["sub"], answer["role"]) == (True, alice.id, "authenticated")

    def test_token_with_metadata_of_maximum_size_is_active(self, introspect, client, service_role, alice):
        metadata = {"x": "漢" * 2700}
        client.put(
            f"/admin/users/{alice.id}",
            json={"user_metadata": metadata, "app_metadata": metadata},
            headers=service_role,
        )
        assert introspect(alice.sign_in().access_token).json["user_metadata"] == metadata

    def test_introspection_changes_nothing(self, introspect, alice, database):
        token = alice.open_session().access_token
        before = database.everything()
        introspect(token)
        introspect("nonsense")
        assert database.everything() == before


class TestInactiveToken:
    """The response is inactive, without a reason."""

    @cases(
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
    def test_malformed_token_is_inactive(self, introspect, token):
        assert_ok(introspect(token), INACTIVE)

    @cases("token", [b"%ff", b"x" * 65_536, b"%78" * 65_536])
    def test_token_of_a_form_that_is_not_utf_8_or_long_is_inactive(self, client, service_role, token):
        response = client.post(
            "/introspect",
            data=b"token=" + token,
            content_type="application/x-www-form-urlencoded",
            headers=service_role,
        )
        assert_ok(response, INACTIVE)

    def test_forged_token_is_inactive(self, introspect, alice):
        head, payload, signature = alice.open_session().access_token.split(".")
        for forged in (
            f"{head}.{payload}.{signature[:-4]}AAAA",
            f"{head}.{payload}.",
            f"{head}.{payload}",
            f"{payload}.{payload}.{signature}",
        ):
            assert_ok(introspect(forged), INACTIVE)

    def test_refresh_token_is_inactive(self, introspect, alice):
        assert_ok(introspect(alice.sign_in().refresh_token), INACTIVE)

    def test_expired_token_is_inactive(self, introspect, alice, app):
        session = alice.open_session()
        issue = app.extensions["latchkey"].access_tokens.issue
        expired = issue(session.user, session.id, session.claims["iat"] - 3601, "aal1", [])
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
    def test_token_of_an_ended_session_or_deleted_user_is_inactive(self, introspect, alice, database, change):
        token = alice.open_session().access_token
        assert introspect(token).json["active"] is True
        database.run(change)
        assert_ok(introspect(token), INACTIVE)

    def test_token_with_the_session_of_another_user_is_inactive(self, introspect, alice, bob, app):
        session = bob.open_session()
        mixed = app.extensions["latchkey"].access_tokens.issue(
            alice.open_session().user, session.id, session.claims["iat"], "aal1", []
        )
        assert_ok(introspect(mixed), INACTIVE)

    def test_token_of_a_former_administrator_stays_active(self, introspect, client, service_role, carol):
        token = carol.open_session().access_token
        client.put(f"/admin/users/{carol.id}", json={"role": "authenticated"}, headers=service_role)
        assert introspect(token).json["active"] is True


class TestRefusals:
    @cases(
        "body",
        [{}, {"token": None}, {"token": 1}, {"token": ["x"]}, {"token": "x" * 65_537}],
    )
    def test_malformed_body_is_400(self, client, service_role, body):
        assert_error(
            client.post("/introspect", json=body, headers=service_role),
            400,
            "validation_failed",
            details=A_SENTENCE,
        )

    @cases("form", [b"", b"x=y", b"token=a&token=b", b"token=%00", b"token=" + b"x" * 65_537])
    def test_malformed_form_is_400(self, client, service_role, form):
        response = client.post(
            "/introspect", data=form, content_type="application/x-www-form-urlencoded", headers=service_role
        )
        assert_error(response, 400, "validation_failed", details=A_SENTENCE)

    @pytest.mark.parametrize("size", [600_000, 1024 * 1024 + 1])
    def test_oversized_form_is_refused(self, client, service_role, size):
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

    @cases("kind", ["multipart/form-data; boundary=x", "text/plain", "application/jwt", ""])
    def test_other_content_type_is_415(self, client, service_role, kind):
        response = client.post(
            "/introspect", data=json.dumps({"token": "x"}), content_type=kind, headers=service_role
        )
        assert_error(response, 415, "unsupported_media_type", details=A_SENTENCE)

    def test_other_routes_do_not_accept_forms(self, client, service_role):
        for path in ("/admin/users", "/login-admin", "/token?grant_type=password", "/signup"):
            response = client.post(
                path, data={"email": "dave@example.com", "password": PASSWORD}, headers=service_role
            )
            assert_error(response, 415, "unsupported_media_type", details=A_SENTENCE)

    def test_other_credentials_than_the_service_role_key_are_refused(self, client, alice, carol):
        token = alice.open_session().access_token
        assert_error(
            client.post("/introspect", json={"token": token}), 401, "no_authorization", details=A_SENTENCE
        )
        for session in (alice.sign_in(), carol.sign_in()):
            assert_error(session.post("/introspect", json={"token": token}), 403, "insufficient_permissions")
