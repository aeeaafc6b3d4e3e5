"""The device flow (RFC 8628): what a device asks for, what its user decides, and what each is told."""

import re
from collections import Counter
from urllib.parse import quote

import pytest

from auth.extensions.openid.clients import DEVICE_CODE
from tests.support.cases import cases
from tests.support.devices import AGE_POLLS, begin, make_television
from tests.support.links import SITE
from tests.support.openid import USERINFO, assert_refused, bearer, claims_of
from tests.support.pages import Visitor, words
from tests.support.server import at_once

pytest_plugins = ["tests.support.devices"]


@pytest.fixture
def visitor(app, alice):
    return Visitor(app).with_session_of(alice)


def approved_tokens(device, visitor):
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
        documents = [
            app.get("/.well-known/openid-configuration").json
            for app in (client, make_app(AUTH_PAGES="false", AUTH_CONSOLE="false").test_client())
        ]
        endpoints = [each.get("device_authorization_endpoint") for each in documents]
        assert endpoints == [f"{SITE}/oauth/device_authorization", None]
        assert [DEVICE_CODE in each["grant_types_supported"] for each in documents] == [True, False]

    @cases(
        ("columns", "form", "error"),
        [
            ({"grant_types": ["authorization_code"], "redirect_uris": [SITE]}, {}, "unauthorized_client"),
            ({}, {"scope": "unknown"}, "invalid_scope"),
            ({}, {"resource": "https://other.example.com"}, "invalid_target"),
            ({"is_blocked": True}, {}, "invalid_client"),
        ],
    )
    def test_client_that_may_not_use_the_device_flow_gets_no_code(
        self, client, database, columns, form, error
    ):
        response = make_television(database, **columns).post(client, "/oauth/device_authorization", **form)
        assert_refused(response, error, 401 if error == "invalid_client" else 400)
        assert database.count("oauth_requests") == 0

    def test_confidential_client_sends_its_secret_to_both_endpoints(self, client, database, visitor):
        confidential = make_television(database, token_endpoint_auth_method="client_secret_basic")
        stranger = {"client_id": confidential.id}
        assert_refused(client.post("/oauth/device_authorization", data=stranger), "invalid_client", 401)
        device = begin(client, confidential)
        form = stranger | {"grant_type": DEVICE_CODE, "device_code": device.codes["device_code"]}
        assert_refused(client.post("/oauth/token", data=form), "invalid_client", 401)
        assert approved_tokens(device, visitor)["scope"] == "openid email"

    def test_service_without_pages_has_no_page_for_the_code(self, make_app, television):
        client = make_app(AUTH_PAGES="false", AUTH_CONSOLE="false").test_client()
        assert_refused(television.post(client, "/oauth/device_authorization"), "server_error")


class TestTokens:
    def test_device_waits_for_its_user_and_gets_the_tokens_of_any_client(
        self, client, device, visitor, alice, database
    ):
        assert_refused(device.poll(), "authorization_pending")
        database.run(AGE_POLLS)
        device.enter(visitor)
        assert_refused(device.poll(), "authorization_pending")
        visitor.press("device/consent", action="approve")
        assert "Your device is connected" in words(visitor.page)
        tokens = device.poll().json
        claims, id_token = claims_of(tokens["access_token"]), claims_of(tokens["id_token"])
        assert (tokens["token_type"], tokens["scope"]) == ("bearer", "openid email")
        expected = {"sub": alice.id, "client_id": device.client.id, "aud": USERINFO, "acr": "aal1"}
        assert expected.items() <= claims.items()
        assert {"sub": alice.id, "aud": device.client.id, "email": alice.email}.items() <= id_token.items()
        assert ("sid" in id_token, "nonce" in id_token) == (True, False)
        assert client.get("/oauth/userinfo", headers=bearer(tokens["access_token"])).json["sub"] == alice.id
        renewed = device.client.refresh(client, tokens["refresh_token"]).json
        assert claims_of(renewed["id_token"])["sid"] == id_token["sid"]

    def test_audience_is_the_resource_that_the_device_asked_for(self, client, database, visitor):
        resources = ["https://api.example.com/"]
        device = begin(client, make_television(database, resources=resources), resource=resources[0])
        device.decide(visitor)
        assert_refused(device.poll(resource="https://other.example.com"), "invalid_target")
        assert claims_of(device.poll(resource=resources[0]).json["access_token"])["aud"] == resources[0]

    def test_device_that_does_not_wait_has_to_wait_longer_for_good(self, device, database):
        answers = [device.poll().json["error"] for _ in range(3)]
        assert answers == ["authorization_pending", "slow_down", "slow_down"]
        database.run(AGE_POLLS)
        assert device.poll().json["error"] == "authorization_pending"

    def test_denied_device_is_told_so(self, device, visitor, database):
        device.decide(visitor, "deny")
        assert "The device isn’t connected" in words(visitor.page)
        assert_refused(device.poll(), "access_denied", description="The user denied the request")
        assert (database.count("oauth_grants"), database.count("sessions", "grant_id IS NOT NULL")) == (0, 0)

    def test_unknown_code_or_that_of_another_client_is_no_grant(self, client, device, visitor, database):
        device.decide(visitor)
        other = make_television(database)
        form = {"grant_type": DEVICE_CODE}
        for code in (device.codes["device_code"], "x" * 43, "x"):
            assert_refused(other.post(client, "/oauth/token", **form, device_code=code), "invalid_grant")
        assert_refused(other.post(client, "/oauth/token", **form), "invalid_request")
        assert device.poll().status_code == 200

    def test_device_code_is_no_authorization_code_and_the_reverse(self, client, device, visitor, database):
        device.decide(visitor)
        database.run("UPDATE oauth_clients SET grant_types = grant_types || '{authorization_code}'")
        code = device.codes["device_code"]
        for form in ({}, {"redirect_uri": ""}, {"redirect_uri": SITE}, {"code_verifier": ""}):
            assert_refused(device.client.redeem(client, code, **form), "invalid_grant")
        assert device.poll().status_code == 200

    def test_code_used_twice_ends_what_it_opened(self, client, device, visitor, database):
        tokens = approved_tokens(device, visitor)
        assert_refused(device.poll(), "invalid_grant")
        assert client.get("/oauth/userinfo", headers=bearer(tokens["access_token"])).status_code == 401
        assert_refused(device.client.refresh(client, tokens["refresh_token"]), "invalid_grant")
        end_reason = "SELECT end_reason FROM sessions WHERE grant_id IS NOT NULL"
        assert database.value(end_reason) == "authorization_code_reused"

    def test_code_used_fifty_times_at_once_gives_tokens_once(self, app, device, visitor, database):
        device.decide(visitor)
        form = {"grant_type": DEVICE_CODE, "device_code": device.codes["device_code"]}
        sender = {"client_id": device.client.id}

        def poll(_number: int) -> str:
            response = app.test_client().post("/oauth/token", data=sender | form)
            return response.json.get("error", "success")

        assert Counter(at_once(50, poll)) == {"success": 1, "invalid_grant": 49}
        assert database.count("sessions", "grant_id IS NOT NULL") == 1


class TestEnds:
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

    @pytest.mark.parametrize(
        ("ends", "error"),
        [
            ("UPDATE oauth_requests SET code_expires_at = now()", "expired_token"),
            ("UPDATE users SET banned_until = 'infinity'", "access_denied"),
            ("UPDATE oauth_clients SET allowed_roles = '{editor}'", "access_denied"),
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


class TestElsewhere:
    def test_routes_of_authorizations_find_no_device(self, client, device, visitor, alice, database):
        """They find it neither by its codes, nor by its id, before or after the decision."""
        session = alice.open_session(client)
        ids = [*device.codes.values(), database.value("SELECT id::text FROM oauth_requests")]
        for decide in (lambda: None, lambda: device.decide(visitor)):
            decide()
            for id in (quote(str(each), safe="") for each in ids):
                reading = session.get(f"/oauth/authorizations/{id}")
                approval = session.post(f"/oauth/authorizations/{id}/consent", json={"action": "approve"})
                assert (id, reading.status_code, approval.status_code) == (id, 404, 404)
                assert visitor.visit(f"/oauth/consent?authorization_id={id}").status == 404
        assert device.poll().status_code == 200
