"""POST /introspect: the present state of an access token (RFC 7662)."""

import json

import pytest

from tests.conftest import SERVICE_ROLE_KEY
from tests.support.answers import A_SENTENCE, assert_error, assert_ok
from tests.support.users import PASSWORD

INACTIVE = {"active": False}
INVALID = (400, "validation_failed")


@pytest.fixture
def introspect(client, service_role):
    return lambda token: client.post("/introspect", json={"token": token}, headers=service_role)


@pytest.fixture
def send_form(client, service_role):
    """Send a form, or a body of another type."""

    def send(data, content_type="application/x-www-form-urlencoded"):
        return client.post("/introspect", data=data, content_type=content_type, headers=service_role)

    return send


class TestActiveToken:
    def test_active_token_returns_all_claims_and_nothing_changes(
        self, client, service_role, introspect, send_form, alice, database
    ):
        session = alice.open_session()
        before = database.everything()
        expected = {"active": True} | session.claims
        assert_ok(introspect(session.access_token), expected)
        form = f"token={session.access_token}&token_type_hint=access_token"
        assert_ok(send_form(form.encode()), expected)
        # Unknown members are ignored.
        body = {"token": session.access_token, "token_type_hint": "refresh_token", "active": False}
        for headers in (service_role, {"apikey": SERVICE_ROLE_KEY}):
            assert_ok(client.post("/introspect", json=body, headers=headers), expected)
        introspect("nonsense")
        assert database.everything() == before

    def test_metadata_are_returned_and_do_not_override_claims(self, introspect, client, service_role, alice):
        metadata = {"active": False, "sub": "x", "role": "admin", "x": "漢" * 2600}
        change = {"user_metadata": metadata, "app_metadata": metadata}
        client.put(f"/admin/users/{alice.id}", json=change, headers=service_role)
        answer = introspect(alice.sign_in().access_token).json
        assert (answer["active"], answer["sub"], answer["role"]) == (True, alice.id, "authenticated")
        assert answer["user_metadata"] == metadata

    def test_token_of_a_former_administrator_stays_active(self, introspect, database, carol):
        token = carol.open_session().access_token
        database.run("UPDATE users SET role = 'authenticated', admin_since = NULL")
        assert introspect(token).json["active"] is True


class TestInactiveToken:
    """The response is inactive, without a reason."""

    def test_malformed_token_is_inactive(self, introspect, send_form):
        tokens = ["", "nonsense", "a.b.c", "x" * 32_000, SERVICE_ROLE_KEY, "é", "Bearer x"]
        for token in [*tokens, "../../etc/passwd", "eyJhbGciOiJub25lIn0.e30."]:
            assert_ok(introspect(token), INACTIVE)
        for encoded in (b"%ff", b"x" * 32_000, b"%78" * 10_000):
            assert_ok(send_form(b"token=" + encoded), INACTIVE)

    def test_forged_expired_or_other_token_is_inactive(self, introspect, alice, bob, app):
        session, others = alice.open_session(), bob.open_session()
        head, payload, signature = session.access_token.split(".")
        issue = app.extensions["latchkey"].access_tokens.issue
        issued_at = session.claims["iat"]
        for token in (
            f"{head}.{payload}.{signature[:-4]}AAAA",
            f"{head}.{payload}.",
            f"{head}.{payload}",
            f"{payload}.{payload}.{signature}",
            session.refresh_token,
            issue(session.user, session.id, issued_at - 3601, "aal1", []),
            issue(session.user, others.id, issued_at, "aal1", []),
        ):
            assert_ok(introspect(token), INACTIVE)
        assert introspect(issue(session.user, session.id, issued_at, "aal1", [])).json["active"] is True

    def test_token_of_an_ended_session_or_deleted_user_is_inactive(self, introspect, alice, database):
        for change in (
            "UPDATE sessions SET ended_at = now(), end_reason = 'logout'",
            "UPDATE sessions SET refreshed_at = now() - interval '30 days'",
            "DELETE FROM sessions",
            "UPDATE users SET banned_until = now() + interval '1 minute'",
            "DELETE FROM users",
        ):
            database.run("UPDATE users SET banned_until = NULL")
            token = alice.open_session().access_token
            assert introspect(token).json["active"] is True
            database.run(change)
            assert_ok(introspect(token), INACTIVE)


class TestRefusals:
    def test_malformed_body_or_form_is_400(self, client, service_role, send_form):
        for token in (None, 1, ["x"]):
            response = client.post("/introspect", json={"token": token}, headers=service_role)
            assert_error(response, *INVALID, details=A_SENTENCE)
        for form in (b"", b"x=y", b"token=a&token=b", b"token=%00"):
            assert_error(send_form(form), *INVALID, details=A_SENTENCE)

    def test_oversized_form_is_refused(self, send_form):
        message = "The body is larger than 32 KiB"
        assert_error(send_form(b"token=" + b"x" * 32 * 1024), 413, "request_entity_too_large", message)
        assert_error(send_form(b"token=x" + b"&x=" * 100), *INVALID, details=A_SENTENCE)

    def test_other_content_type_and_forms_of_other_routes_are_415(self, client, service_role, send_form):
        for kind in ("multipart/form-data; boundary=x", "text/plain", "application/jwt", ""):
            response = send_form(json.dumps({"token": "x"}), kind)
            assert_error(response, 415, "unsupported_media_type", details=A_SENTENCE)
        for path in ("/admin/users", "/login-admin", "/token?grant_type=password", "/signup"):
            form = {"email": "dave@example.com", "password": PASSWORD}
            response = client.post(path, data=form, headers=service_role)
            assert_error(response, 415, "unsupported_media_type", details=A_SENTENCE)
