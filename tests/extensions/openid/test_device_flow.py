"""The device flow (RFC 8628): what a device asks for, what its user decides, and what each is told."""

import re
from collections import Counter
from urllib.parse import quote

import pytest
from psycopg2.errors import CheckViolation

from auth.core.tokens.client_tokens import sid_of
from auth.delivery import janitor
from auth.extensions.openid.clients import DEVICE_CODE
from tests.support.audit import timeline_texts
from tests.support.cases import cases
from tests.support.devices import AGE, begin, make_television
from tests.support.links import SITE
from tests.support.openid import (
    REDIRECT_URI,
    USERINFO,
    assert_refused,
    bearer,
    claims_of,
)
from tests.support.pages import Visitor, words
from tests.support.server import at_once

pytest_plugins = ["tests.support.devices"]

EXPIRE = "UPDATE oauth_requests SET code_expires_at = now()"


@pytest.fixture
def visitor(app, alice):
    return Visitor(app).with_session_of(alice)


def allowed(device, visitor):
    """Let the user allow a device, and return its tokens."""
    device.decide(visitor)
    response = device.poll()
    assert response.status_code == 200, response.text
    return response.json


class TestDevice:
    def test_device_gets_its_codes(self, device, database):
        codes = device.codes
        user_code = codes["user_code"]
        assert re.fullmatch("[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}", user_code)
        assert codes == {
            "device_code": codes["device_code"],
            "user_code": user_code,
            "verification_uri": f"{SITE}/device",
            "verification_uri_complete": f"{SITE}/device?user_code={user_code}",
            "expires_in": 600,
            "interval": 5,
        }
        # Neither code is stored, only the hash and MAC of each.
        stored = str(database.everything("oauth_requests"))
        assert not any(
            code in stored for code in (codes["device_code"], user_code, user_code.replace("-", ""))
        )

    def test_metadata_names_the_endpoint_and_the_grant_where_there_are_pages(self, client, make_app):
        told = [
            app.get("/.well-known/openid-configuration").json
            for app in (client, make_app(AUTH_PAGES="false", AUTH_CONSOLE="false").test_client())
        ]
        endpoints = [each.get("device_authorization_endpoint") for each in told]
        assert endpoints == [f"{SITE}/oauth/device_authorization", None]
        assert [DEVICE_CODE in each["grant_types_supported"] for each in told] == [True, False]

    @cases(
        ("columns", "form", "error"),
        [
            ({"grant_types": ["authorization_code"], "redirect_uris": [SITE]}, {}, "unauthorized_client"),
            ({}, {"scope": "unknown"}, "invalid_scope"),
            ({}, {"resource": "https://other.example.com"}, "invalid_target"),
            ({"is_blocked": True}, {}, "invalid_client"),
        ],
    )
    def test_client_that_may_not_use_it_gets_no_code(self, client, database, columns, form, error):
        refused = make_television(database, **columns).post(client, "/oauth/device_authorization", **form)
        assert_refused(refused, error, 401 if error == "invalid_client" else 400)
        assert database.count("oauth_requests") == 0

    def test_confidential_client_sends_its_secret_to_both_endpoints(self, client, database, visitor):
        confidential = make_television(database, token_endpoint_auth_method="client_secret_basic")
        stranger = {"client_id": confidential.id}
        assert_refused(client.post("/oauth/device_authorization", data=stranger), "invalid_client", 401)
        device = begin(client, confidential)
        form = stranger | {"grant_type": DEVICE_CODE, "device_code": device.codes["device_code"]}
        assert_refused(client.post("/oauth/token", data=form), "invalid_client", 401)
        assert allowed(device, visitor)["scope"] == "openid email"

    def test_service_without_pages_has_no_page_for_the_code(self, make_app, television):
        client = make_app(AUTH_PAGES="false", AUTH_CONSOLE="false").test_client()
        assert_refused(television.post(client, "/oauth/device_authorization"), "server_error")


class TestTokens:
    def test_device_waits_for_its_user_and_gets_the_tokens_of_any_client(
        self, client, device, visitor, alice, database
    ):
        assert_refused(device.poll(), "authorization_pending")
        database.run(AGE)
        device.enter(visitor)
        assert_refused(device.poll(), "authorization_pending")
        visitor.press("device/consent", action="approve")
        assert "Your device is connected" in words(visitor.page)
        tokens = device.poll().json
        claims, id_token = claims_of(tokens["access_token"]), claims_of(tokens["id_token"])
        assert (tokens["token_type"], tokens["scope"]) == ("bearer", "openid email")
        own = {"sub": alice.id, "client_id": device.client.id, "aud": USERINFO, "acr": "aal1"}
        assert own.items() <= claims.items()
        assert {"sub": alice.id, "aud": device.client.id, "email": alice.email}.items() <= id_token.items()
        assert ("sid" in id_token, "nonce" in id_token) == (True, False)
        assert client.get("/oauth/userinfo", headers=bearer(tokens["access_token"])).json["sub"] == alice.id
        renewed = device.client.refresh(client, tokens["refresh_token"]).json
        assert claims_of(renewed["id_token"])["sid"] == id_token["sid"]

    def test_page_of_a_session_that_ends_meanwhile_is_still_shown(self, device, visitor, database):
        page = device.enter(visitor)
        assert page.status == 200
        session_id = database.value("SELECT session_id FROM browser_sessions")
        end = "LOCK TABLE oauth_requests; UPDATE sessions SET ended_at = now(), end_reason = 'logout' WHERE id = %s"
        with database.locked("sessions", session_id, end) as lock:
            shown = lock.start(lambda: visitor.visit(page.url))
        assert shown.result().status == 200
        assert visitor.visit(page.url).url.startswith(f"{SITE}/sign-in?")

    def test_audience_is_the_resource_that_the_device_asked_for(self, client, database, visitor):
        resources = ["https://api.example.com/"]
        device = begin(client, make_television(database, resources=resources), resource=resources[0])
        device.decide(visitor)
        assert_refused(device.poll(resource="https://other.example.com"), "invalid_target")
        assert claims_of(device.poll(resource=resources[0]).json["access_token"])["aud"] == resources[0]

    def test_device_that_does_not_wait_has_to_wait_longer_for_good(self, device, database):
        answers = [device.poll().json["error"] for _ in range(3)]
        assert answers == ["authorization_pending", "slow_down", "slow_down"]
        for seconds, error in ((13, "slow_down"), (18, "slow_down"), (25, "authorization_pending")):
            database.run(
                "UPDATE oauth_requests SET polled_at = now() - make_interval(secs => %(n)s)", n=seconds
            )
            assert (seconds, device.poll().json["error"]) == (seconds, error)

    def test_denied_device_is_told_so(self, device, visitor, database):
        device.decide(visitor, "deny")
        assert "The device isn’t connected" in words(visitor.page)
        assert_refused(device.poll(), "access_denied", description="The user denied the request")
        assert (database.count("oauth_grants"), database.count("sessions", "grant_id IS NOT NULL")) == (0, 0)

    @pytest.mark.parametrize("is_approved", [True, False])
    def test_expired_code_gives_nothing(self, device, visitor, database, is_approved):
        if is_approved:
            device.decide(visitor)
        database.run(EXPIRE)
        assert_refused(device.poll(), "expired_token")
        assert database.count("sessions", "grant_id IS NOT NULL") == 0

    def test_unknown_code_or_that_of_another_client_is_no_grant(self, client, device, visitor, database):
        device.decide(visitor)
        other = make_television(database)
        sent = {"grant_type": DEVICE_CODE}
        for code in (device.codes["device_code"], "x" * 43, "x"):
            assert_refused(other.post(client, "/oauth/token", **sent, device_code=code), "invalid_grant")
        assert_refused(other.post(client, "/oauth/token", **sent), "invalid_request")
        assert device.poll().status_code == 200

    def test_device_code_is_no_authorization_code_and_the_reverse(self, client, device, visitor, database):
        device.decide(visitor)
        database.run("UPDATE oauth_clients SET grant_types = grant_types || '{authorization_code}'")
        code = device.codes["device_code"]
        for form in ({}, {"redirect_uri": ""}, {"redirect_uri": SITE}, {"code_verifier": ""}):
            assert_refused(device.client.redeem(client, code, **form), "invalid_grant")
        assert device.poll().status_code == 200

    def test_code_used_twice_ends_what_it_opened(self, client, device, visitor, database):
        tokens = allowed(device, visitor)
        assert_refused(device.poll(), "invalid_grant")
        assert client.get("/oauth/userinfo", headers=bearer(tokens["access_token"])).status_code == 401
        assert_refused(device.client.refresh(client, tokens["refresh_token"]), "invalid_grant")
        ended = "SELECT end_reason FROM sessions WHERE grant_id IS NOT NULL"
        assert database.value(ended) == "authorization_code_reused"

    def test_code_used_fifty_times_at_once_gives_tokens_once(self, app, device, visitor, database):
        device.decide(visitor)
        sent = {"grant_type": DEVICE_CODE, "device_code": device.codes["device_code"]}
        own = {"client_id": device.client.id}

        def poll(_number: int) -> str:
            response = app.test_client().post("/oauth/token", data=own | sent)
            return response.json.get("error", "success")

        assert Counter(at_once(50, poll)) == {"success": 1, "invalid_grant": 49}
        assert database.count("sessions", "grant_id IS NOT NULL") == 1


class TestEnds:
    def test_sign_out_of_the_browser_ends_the_device_too(self, client, device, visitor):
        tokens = allowed(device, visitor)
        visitor.visit("/account")
        visitor.press("sign-out")
        assert client.get("/oauth/userinfo", headers=bearer(tokens["access_token"])).status_code == 401

    @pytest.mark.parametrize("action", [None, "approve"])
    def test_sign_out_before_the_device_has_its_tokens_ends_its_request(
        self, device, visitor, database, action
    ):
        device.enter(visitor)
        if action:
            visitor.press("device/consent", action=action)
        visitor.visit("/account")
        visitor.press("sign-out")
        assert_refused(device.poll(), "invalid_grant")
        assert database.count("oauth_requests") == 0

    def test_user_who_lost_the_role_meanwhile_gets_no_tokens(self, device, visitor, database):
        device.decide(visitor)
        database.run("UPDATE oauth_clients SET allowed_roles = '{editor}'")
        assert_refused(
            device.poll(), "access_denied", description="This user may not sign in to the application"
        )
        assert database.count("sessions", "grant_id IS NOT NULL") == 0

    @pytest.mark.parametrize(
        ("ends", "error"),
        [
            ("UPDATE users SET banned_until = 'infinity'", "access_denied"),
            ("UPDATE sessions SET ended_at = now(), end_reason = 'logout'", "invalid_grant"),
            ("DELETE FROM oauth_grants", "invalid_grant"),
            ("DELETE FROM users", "invalid_grant"),
        ],
    )
    def test_what_has_ended_gives_no_tokens(self, device, visitor, database, ends, error):
        device.decide(visitor)
        database.run(ends)
        assert_refused(device.poll(), error)
        assert database.count("sessions", "grant_id IS NOT NULL") == 0

    def test_removed_application_takes_the_request_with_it(self, client, device, visitor, alice, database):
        device.decide(visitor)
        session = alice.open_session(client)
        assert session.delete(f"/user/oauth/grants?client_id={device.client.id}").status_code == 204
        assert (database.count("oauth_requests"), device.poll().json["error"]) == (0, "invalid_grant")

    def test_janitor_removes_requests_that_have_expired(self, device, parts, database):
        database.run("UPDATE oauth_requests SET expires_at = now() - interval '1 second'")
        assert janitor.clean(parts.db) > 0
        assert database.count("oauth_requests") == 0

    def test_application_is_told_of_the_end_by_the_sid_of_its_id_token(self, client, database, visitor):
        television = make_television(database, backchannel_logout_uri="https://tv.example.com/logout")
        device = begin(client, television)
        tokens = allowed(device, visitor)
        visitor.visit("/account")
        visitor.press("sign-out")
        (told,) = database.all("SELECT recipient, variables FROM outbox WHERE channel = 'logout'")
        assert told.recipient == "https://tv.example.com/logout"
        assert claims_of(tokens["id_token"])["sid"] == sid_of(told.variables["session_id"])


class TestElsewhere:
    def test_routes_of_authorizations_find_no_device(self, client, device, visitor, alice, database):
        """They find it neither by its codes, nor by its id, before or after the decision."""
        session = alice.open_session(client)
        ids = [*device.codes.values(), database.value("SELECT id::text FROM oauth_requests")]
        for decide in (lambda: None, lambda: device.decide(visitor)):
            decide()
            for id in (quote(str(each), safe="") for each in ids):
                read = session.get(f"/oauth/authorizations/{id}")
                approve = session.post(f"/oauth/authorizations/{id}/consent", json={"action": "approve"})
                assert (id, read.status_code, approve.status_code) == (id, 404, 404)
                assert visitor.visit(f"/oauth/consent?authorization_id={id}").status == 404
        assert device.poll().status_code == 200

    def test_clients_that_registered_themselves_or_came_by_a_document_never_get_it(
        self, make_app, service_role, database
    ):
        client = make_app(AUTH_OAUTH_DYNAMIC_REGISTRATION="true").test_client()
        body = {
            "client_name": "Agent",
            "redirect_uris": [REDIRECT_URI],
            "grant_types": ["authorization_code", DEVICE_CODE],
        }
        made = client.post("/oauth/clients/register", json=body).json
        assert made["grant_types"] == ["authorization_code"]
        path = f"/admin/oauth/clients/{made['client_id']}"
        refused = client.put(path, json={"grant_types": [DEVICE_CODE]}, headers=service_role)
        assert (refused.status_code, refused.json["error_code"]) == (400, "validation_failed")
        with pytest.raises(CheckViolation):
            database.run(f"UPDATE oauth_clients SET grant_types = '{{{DEVICE_CODE}}}'")

    def test_device_client_needs_no_redirect_uri_and_the_dialect_leaves_the_grant_out(
        self, client, service_role
    ):
        body = {"client_name": "TV", "client_type": "public", "grant_types": [DEVICE_CODE, "refresh_token"]}
        made = client.post("/admin/oauth/clients", json=body, headers=service_role).json
        path = f"/admin/oauth/clients/{made['client_id']}"
        lists = [
            client.get(prefix + path, headers=service_role).json["grant_types"] for prefix in ("", "/auth/v1")
        ]
        assert (made["redirect_uris"], lists) == ([], [["refresh_token", DEVICE_CODE], ["refresh_token"]])
        both = body | {"grant_types": ["authorization_code", DEVICE_CODE]}
        assert client.post("/admin/oauth/clients", json=both, headers=service_role).status_code == 400

    def test_history_says_why_a_device_was_turned_away(
        self, client, device, visitor, alice, television, database, service_role
    ):
        device.decide(visitor, "deny")
        device.poll()
        late = begin(client, television)
        late.enter(visitor)
        database.run(EXPIRE)
        late.poll()
        timeline = client.get(f"/admin/users/{alice.id}/timeline", headers=service_role)
        texts = " / ".join(timeline_texts(timeline))
        for said in (
            "not allowed: Television, The user denied the request",
            "wrong, used or expired: Television, The code expired",
        ):
            assert said in texts

    def test_device_is_turned_away_beyond_the_window_of_its_network(self, make_app, television):
        limits = {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_AUTHORIZE": "2 per minute"}
        client = make_app(**limits, AUTH_RATE_LIMIT_CLIENT_TOKENS="2 per minute").test_client()
        device = begin(client, television)
        begin(client, television)
        refused = television.post(client, "/oauth/device_authorization")
        assert (refused.status_code, refused.json["error_code"]) == (429, "over_request_rate_limit")
        assert [device.poll().status_code for _ in range(3)] == [400, 400, 429]
        # Another act has its own window.
        sent = {"grant_type": "client_credentials", "client_id": television.id}
        assert client.post("/oauth/token", data=sent).status_code == 400
