"""POST /token?grant_type=pkce: redeeming the code of an OAuth sign-in with its verifier (RFC 7636)."""

import base64
import hashlib
from typing import Any

import pytest

from tests.support.answers import A_SENTENCE, assert_error, token_response
from tests.support.cases import cases
from tests.support.cast import session_of
from tests.support.links import CHALLENGE, VERIFIER, WITH_CHALLENGE, later
from tests.support.oauth import APPLICATION, fragment, new_user, query
from tests.support.server import at_once

pytest_plugins = ["tests.support.oauth_fixtures"]
PATH = "/token?grant_type=pkce"
ALICE: dict[str, Any] = {"sub": "alice-at-google", "email": "alice@example.com", "email_verified": True}


@pytest.fixture(autouse=True)
def _people(google) -> None:
    google.person = ALICE


@pytest.fixture
def code(service) -> str:
    """The authorization code of a sign-in with a code challenge."""
    return query(service.sign_in("google", **WITH_CHALLENGE))["code"]


def trade(service, code, verifier=VERIFIER):
    return service.client.post(PATH, json={"auth_code": code, "code_verifier": verifier})


def challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


class TestCode:
    def test_redirect_contains_only_the_code(self, service, database):
        page = service.sign_in("google", redirect_to=APPLICATION, **WITH_CHALLENGE)
        assert set(query(page, APPLICATION)) == {"code"}
        assert database.count("sessions") == 0

    def test_code_is_redeemed_for_tokens(self, service, code, database):
        response = trade(service, code)
        assert (response.status_code, response.json) == (
            200,
            token_response(new_user("google", ALICE["sub"], ALICE["email"])),
        )
        session = session_of(service.client, response)
        assert session.get("/user").status_code == 200
        assert session.claims["amr"] == [{"method": "oauth", "timestamp": session.claims["iat"]}]
        assert database.count("sessions") == 1

    def test_code_is_not_that_of_the_provider(self, service, google, code):
        assert code not in google.grants

    def test_code_is_not_stored_in_clear(self, code, database):
        assert code not in str(database.everything())

    @pytest.mark.parametrize(("seconds", "works"), [(290, True), (300, False)])
    def test_code_expires_after_five_minutes(self, service, code, database, seconds, works):
        later(database, secs=seconds)
        response = trade(service, code)
        if works:
            assert response.status_code == 200
        else:
            assert_error(response, 404, "flow_state_not_found")
            assert database.count("sessions") == 0

    @cases("wrong", ["x", "x" * 43, "x" * 2048, "ä" * 43, "{code}x", "{code} "])
    def test_unknown_code_is_refused(self, service, code, wrong, database):
        assert_error(trade(service, wrong.format(code=code)), 404, "flow_state_not_found")
        assert database.count("sessions") == 0

    def test_code_is_refused_as_state_link_and_refresh_token(self, service, code):
        assert_error(
            service.client.post("/token?grant_type=refresh_token", json={"refresh_token": code}),
            400,
            "refresh_token_not_found",
        )
        assert_error(
            service.client.post("/verify", json={"type": "magiclink", "token_hash": code}), 403, "otp_expired"
        )
        assert (
            fragment(service.browser().visit(f"{service.origin}/callback?state={code}&code={code}"))[
                "error_code"
            ]
            == "bad_oauth_state"
        )
        assert trade(service, code).status_code == 200

    def test_several_codes_are_valid_at_once(self, service, database):
        codes = [query(service.sign_in("google", **WITH_CHALLENGE))["code"] for _ in range(2)]
        assert [trade(service, code).status_code for code in reversed(codes)] == [200, 200]
        assert database.count("sessions", "ended_at IS NULL") == 2


class TestReplay:
    def test_second_use_is_refused_and_ends_the_session_of_the_first(self, service, code, database):
        session = session_of(service.client, trade(service, code))
        assert_error(trade(service, code), 404, "flow_state_not_found")
        assert_error(session.get("/user"), 401, "session_not_found")
        assert_error(session.refresh(), 400, "refresh_token_not_found")
        assert database.all("SELECT end_reason FROM sessions") == [("authorization_code_reused",)]

    def test_second_use_keeps_other_sessions(self, service, code):
        other = service.signed_in("google")
        trade(service, code)
        trade(service, code)
        assert other.get("/user").status_code == 200

    def test_third_use_changes_nothing_more(self, service, code, database):
        for _ in range(2):
            trade(service, code)
        before = database.everything("sessions", "authorization_codes")
        assert_error(trade(service, code), 404, "flow_state_not_found")
        assert database.everything("sessions", "authorization_codes") == before

    def test_one_of_many_concurrent_uses_starts_a_session_that_the_others_end(self, service, code, database):
        responses = at_once(8, lambda _: trade(service, code))
        assert sorted(response.status_code for response in responses) == [200] + [404] * 7
        assert database.all("SELECT end_reason FROM sessions") == [("authorization_code_reused",)]

    def test_second_use_with_a_wrong_verifier_ends_nothing(self, service, code):
        # Otherwise a code found in a log could end sessions.
        session = session_of(service.client, trade(service, code))
        assert_error(trade(service, code, "x" * 43), 400, "bad_code_verifier")
        assert session.get("/user").status_code == 200


class TestVerifier:
    @cases("verifier", ["x" * 43, VERIFIER[:-1] + "F", VERIFIER.upper(), VERIFIER + "x", CHALLENGE])
    def test_wrong_verifier_is_refused(self, service, code, verifier, database):
        assert_error(trade(service, code, verifier), 400, "bad_code_verifier")
        assert database.count("sessions") == 0

    def test_right_verifier_works_after_a_wrong_one(self, service, code):
        trade(service, code, "x" * 43)
        assert trade(service, code).status_code == 200

    @cases(
        "body",
        [
            {},
            {"code_verifier": None},
            {"code_verifier": ""},
            {"code_verifier": "x" * 42},
            {"code_verifier": "x" * 129},
        ],
    )
    def test_missing_or_malformed_verifier_is_refused(self, service, code, body, database):
        assert_error(
            service.client.post(PATH, json={"auth_code": code} | body),
            400,
            "validation_failed",
            details=A_SENTENCE,
        )
        assert database.count("sessions") == 0

    @cases("verifier", ["ä" * 43, "x" * 42 + "=", "x" * 42 + " ", "x" * 42 + "\n", 7, ["x" * 43], True])
    def test_verifier_with_forbidden_characters_is_refused(self, service, code, verifier):
        assert_error(
            service.client.post(PATH, json={"auth_code": code, "code_verifier": verifier}),
            400,
            "validation_failed",
            details=A_SENTENCE,
        )

    @pytest.mark.parametrize("verifier", ["x" * 43, "y" * 128, "-._~" * 11])
    def test_every_form_allowed_by_rfc_7636_is_accepted(self, service, verifier):
        code = query(service.sign_in("google", code_challenge=challenge_of(verifier)))["code"]
        assert trade(service, code, verifier).status_code == 200

    def test_missing_code_is_refused(self, service):
        assert_error(
            service.client.post(PATH, json={"code_verifier": VERIFIER}),
            400,
            "validation_failed",
            details=A_SENTENCE,
        )

    def test_verifier_of_another_flow_is_refused(self, service, code):
        other = query(service.sign_in("google", code_challenge=challenge_of("z" * 43)))["code"]
        assert_error(trade(service, code, "z" * 43), 400, "bad_code_verifier")
        assert_error(trade(service, other, VERIFIER), 400, "bad_code_verifier")


class TestChallenge:
    """The challenge can be neither dropped nor weakened (RFC 9700, section 2.1.1)."""

    @cases("method", ["plain", "PLAIN", "none", "", "s512", "s256 "])
    def test_unknown_challenge_method_is_refused(self, service, database, method):
        sent = {"provider": "google", "code_challenge": CHALLENGE, "code_challenge_method": method}
        assert_error(
            service.client.get("/authorize", query_string=sent), 400, "validation_failed", details=A_SENTENCE
        )
        assert database.count("oauth_flows") == 0

    @pytest.mark.parametrize("method", ["s256", "S256"])
    def test_challenge_method_is_case_insensitive(self, service, method):
        code = query(service.sign_in("google", code_challenge=CHALLENGE, code_challenge_method=method))[
            "code"
        ]
        assert trade(service, code).status_code == 200

    def test_challenge_without_a_method_means_s256(self, service):
        code = query(service.sign_in("google", code_challenge=VERIFIER[:43]))["code"]
        assert_error(trade(service, code, VERIFIER[:43]), 400, "bad_code_verifier")

    @cases("challenge", ["", "x", "x" * 42, "x" * 44, "x" * 42 + "=", "x" * 42 + "+", "ä" * 43])
    def test_malformed_challenge_is_refused(self, service, database, challenge):
        for sent in (
            {"code_challenge": challenge},
            {"code_challenge": challenge, "code_challenge_method": "s256"},
        ):
            response = service.client.get("/authorize", query_string={"provider": "google"} | sent)
            assert_error(response, 400, "validation_failed", details=A_SENTENCE)
        assert database.count("oauth_flows") == 0

    def test_method_without_a_challenge_is_refused(self, service):
        response = service.client.get("/authorize?provider=google&code_challenge_method=s256")
        assert_error(response, 400, "validation_failed", details=A_SENTENCE)

    def test_callback_parameters_cannot_change_the_challenge(self, service):
        browser = service.browser()
        with_one = service.return_url(browser, "google", **WITH_CHALLENGE)
        without = service.return_url(browser, "google")
        assert set(query(browser.visit(f"{with_one}&code_challenge=&response_type=token"))) == {"code"}
        service.session(browser.visit(f"{without}&code_challenge={CHALLENGE}&code_challenge_method=plain"))

    def test_sign_in_without_a_challenge_gives_no_code(self, service, google, database):
        service.signed_in("google")
        assert database.count("authorization_codes") == 0
        for code in (*google.grants, database.value("SELECT id FROM sessions")):
            assert_error(trade(service, code), 404, "flow_state_not_found")

    def test_code_of_the_provider_is_refused(self, service, google):
        service.leave(service.browser(), "google")
        service.return_url(service.browser(), "google", **WITH_CHALLENGE)
        (code,) = google.grants
        assert_error(trade(service, code), 404, "flow_state_not_found")

    def test_challenge_sent_to_the_provider_is_another(self, service):
        sent = service.leave(service.browser(), "google", **WITH_CHALLENGE)
        assert sent["code_challenge"] != CHALLENGE


class TestChangesBeforeRedemption:
    def test_code_of_a_banned_user_is_refused(self, service, code, service_role, database):
        path = f"/admin/users/{database.value('SELECT id FROM users')}"
        service.client.put(path, json={"ban_duration": "1h"}, headers=service_role)
        response = trade(service, code)
        assert (response.status_code, response.json["error_code"]) in (
            (403, "user_banned"),
            (404, "flow_state_not_found"),
        )
        # Lifting the ban does not revive the code.
        service.client.put(path, json={"ban_duration": None}, headers=service_role)
        assert_error(trade(service, code), 404, "flow_state_not_found")
        assert database.count("sessions") == 0

    def test_code_of_a_deleted_user_is_refused(self, service, code, service_role, database):
        user_id = database.value("SELECT id FROM users")
        assert service.client.delete(f"/admin/users/{user_id}", headers=service_role).status_code == 200
        assert_error(trade(service, code), 404, "flow_state_not_found")

    @pytest.mark.parametrize("change", ["password", "by an administrator"])
    def test_ending_all_sessions_voids_the_code(self, service, code, service_role, database, change):
        session = service.signed_in("google")
        if change == "password":
            assert session.put("/user", json={"password": "Another-Horse-2"}).status_code == 200
        else:
            response = service.client.put(
                f"/admin/users/{session.claims['sub']}",
                json={"password": "Another-Horse-2"},
                headers=service_role,
            )
            assert response.status_code == 200
        assert_error(trade(service, code), 404, "flow_state_not_found")

    def test_second_sign_in_keeps_the_code(self, service, code):
        service.signed_in("google")
        assert trade(service, code).status_code == 200


def test_redeemed_code_ends_the_oldest_session_beyond_the_limit(make_service, database):
    service = make_service(AUTH_SESSIONS_PER_USER="1")
    first = service.signed_in("google")
    code = query(service.sign_in("google", **WITH_CHALLENGE))["code"]
    assert first.get("/user").status_code == 200
    assert trade(service, code).status_code == 200
    assert_error(first.get("/user"), 401, "session_not_found")
