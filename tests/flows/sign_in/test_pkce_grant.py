"""POST /token?grant_type=pkce: redeeming the code of a link or of an OAuth sign-in with its verifier (RFC 7636)."""

import base64
import hashlib
from typing import Any

import pytest

from tests.support import links
from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, token_response, user
from tests.support.cases import cases
from tests.support.links import CHALLENGE, VERIFIER, WITH_CHALLENGE, follow, hand_in, later, type_in
from tests.support.oauth import fragment, new_user, query
from tests.support.server import at_once
from tests.support.users import Person, session_of

pytest_plugins = ["tests.support.oauth_fixtures"]
PATH = "/token?grant_type=pkce"
ALICE: dict[str, Any] = {"sub": "alice-at-google", "email": "alice@example.com", "email_verified": True}
OTHER_VERIFIER = "another-code-verifier-0123456789-abcdefghijklmn"
GONE = (404, "flow_state_not_found")
WRONG = (400, "bad_code_verifier")


@pytest.fixture(autouse=True)
def _people(google) -> None:
    google.person = ALICE


@pytest.fixture(params=["link", "provider"])
def source(request):
    """The source of the code: a link to Alice, who has a user, or a provider, where she signs up."""
    if request.param == "link":
        request.getfixturevalue("alice")
    return request.param


def begin(service, outbox, source, challenge=WITH_CHALLENGE):
    if source == "provider":
        return query(service.sign_in("google", **challenge))["code"]
    service.client.post("/magiclink", json={"email": ALICE["email"]} | challenge)
    return links.query(follow(service.client, "magiclink", outbox.last(kind="magiclink").token))["code"]


@pytest.fixture
def code(service, outbox, source):
    return begin(service, outbox, source)


@pytest.fixture
def owner(service, code, database):
    return Person(service.client, database.value("SELECT id::text FROM users"), ALICE["email"])


def trade(service, code, verifier=VERIFIER):
    client = getattr(service, "client", service)
    return client.post(PATH, json={"auth_code": code, "code_verifier": verifier})


def challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


class TestCode:
    def test_code_is_redeemed_for_tokens(self, service, source, code, database):
        assert (len(code), database.count("sessions")) == (43, 0)
        assert code not in str(database.everything())
        response = trade(service, code)
        expected = (
            user(ALICE["email"], last_sign_in_at=A_TIMESTAMP)
            if source == "link"
            else new_user("google", ALICE["sub"], ALICE["email"])
        )
        assert (response.status_code, response.json) == (200, token_response(expected))
        session = session_of(service.client, response)
        assert session.get("/user").json == response.json["user"]
        method = {"method": "otp"} if source == "link" else {"method": "oauth", "provider": "google"}
        expected_amr = [{"timestamp": session.claims["iat"], **method}]
        assert session.claims["amr"] == expected_amr
        assert session.refreshed().claims["amr"] == expected_amr
        assert database.count("sessions") == 1

    def test_code_expires_after_five_minutes(self, service, outbox, source, code, database):
        later(database, secs=240)
        assert trade(service, code).status_code == 200
        other = begin(service, outbox, source)
        later(database, secs=300)
        for verifier in (VERIFIER, OTHER_VERIFIER):
            assert_error(trade(service, other, verifier), *GONE)
        assert database.count("sessions") == 1

    def test_code_is_refused_as_any_other_credential(self, service, code, owner):
        client = service.client
        response = client.post("/token?grant_type=refresh_token", json={"refresh_token": code})
        assert_error(response, 400, "refresh_token_not_found")
        response = client.post("/token?grant_type=authorization_code", json={"code": code})
        assert_error(response, 400, "unsupported_grant_type", details=A_SENTENCE)
        assert_error(hand_in(client, "magiclink", code), 403, "otp_expired")
        assert_error(type_in(client, "magiclink", owner.email, code), 403, "otp_expired")
        assert client.get("/user", headers={"Authorization": f"Bearer {code}"}).status_code == 401
        page = service.browser().visit(f"{service.origin}/callback?state={code}&code={code}")
        assert fragment(page)["error_code"] == "bad_oauth_state"
        assert trade(service, code).status_code == 200

    def test_code_is_void_after_another_link_but_not_sign_in(self, service, outbox, source, code, database):
        codes = [begin(service, outbox, source), code]
        statuses = [trade(service, each).status_code for each in codes]
        assert statuses == [200, 404 if source == "link" else 200]
        assert database.count("sessions", "ended_at IS NULL") == statuses.count(200)


class TestReplay:
    def test_second_use_ends_the_session_of_the_first_alone(self, service, code, owner, database):
        other = owner.open_session()
        session = session_of(service.client, trade(service, code))
        # A code found in a log or in a browser's history must not be able to sign its user out.
        assert_error(trade(service, code, OTHER_VERIFIER), *WRONG)
        assert session.get("/user").status_code == 200
        assert_error(trade(service, code), *GONE)
        assert_error(session.get("/user"), 401, "session_not_found")
        assert_error(session.refresh(), 400, "refresh_token_not_found")
        statement = "SELECT end_reason FROM sessions WHERE ended_at IS NOT NULL"
        assert database.all(statement) == [("authorization_code_reused",)]
        assert other.get("/user").status_code == 200
        before = database.everything("sessions", "authorization_codes")
        assert_error(trade(service, code), *GONE)
        assert database.everything("sessions", "authorization_codes") == before

    def test_one_of_many_concurrent_uses_starts_a_session_that_the_others_end(self, server, code, database):
        responses = at_once(20, lambda _: trade(server, code))
        codes = [response.json.get("error_code") for response in responses]
        assert sorted(codes, key=str) == [None] + ["flow_state_not_found"] * 19
        assert database.all("SELECT end_reason FROM sessions") == [("authorization_code_reused",)]


class TestVerifier:
    def test_wrong_verifier_is_refused_and_does_not_spend_the_code(
        self, service, outbox, source, code, database
    ):
        for verifier in (OTHER_VERIFIER, VERIFIER[:-1] + "F", VERIFIER.upper(), VERIFIER + "x", CHALLENGE):
            assert_error(trade(service, code, verifier), *WRONG)
        assert database.count("sessions") == 0
        assert trade(service, code).status_code == 200
        other_code = begin(service, outbox, source, {"code_challenge": challenge_of(OTHER_VERIFIER)})
        assert_error(trade(service, other_code), *WRONG)
        assert trade(service, other_code, OTHER_VERIFIER).status_code == 200

    @pytest.mark.parametrize("verifier", ["x" * 43, "y" * 128, "-._~" * 11])
    def test_every_form_allowed_by_rfc_7636_is_accepted(self, service, outbox, source, verifier):
        code = begin(service, outbox, source, {"code_challenge": challenge_of(verifier)})
        assert trade(service, code, verifier).status_code == 200


class TestBody:
    @pytest.fixture
    def source(self, alice):
        return "link"

    @cases("unknown", ["x", "x" * 43, "x" * 2048, "ä" * 43, "{code}x", "{code} "])
    def test_unknown_code_is_refused(self, service, code, unknown, database):
        assert_error(trade(service, unknown.format(code=code)), *GONE)
        assert database.count("sessions") == 0


class TestChallenge:
    """The challenge can be neither dropped nor weakened (RFC 9700, section 2.1.1)."""

    @cases(
        "changes",
        [
            *({"code_challenge_method": method} for method in ("plain", "none", "", "s256 ")),
            *(
                {"code_challenge": challenge}
                for challenge in ("", "x" * 42, "x" * 44, "x" * 42 + "=", "ä" * 43)
            ),
            {"code_challenge": None, "code_challenge_method": "s256"},
        ],
    )
    def test_malformed_challenge_or_method_is_refused(self, service, database, changes):
        parameters = {"provider": "google", "code_challenge": CHALLENGE} | changes
        query = {name: value for name, value in parameters.items() if value is not None}
        response = service.client.get("/authorize", query_string=query)
        assert_error(response, 400, "validation_failed", details=A_SENTENCE)
        assert database.count("oauth_flows") == 0

    @pytest.mark.parametrize("method", ["s256", "S256", None])
    def test_challenge_method_is_case_insensitive_and_means_s256(self, service, outbox, source, method):
        challenge = {"code_challenge": CHALLENGE} | ({"code_challenge_method": method} if method else {})
        assert trade(service, begin(service, outbox, source, challenge)).status_code == 200
        plain_code = begin(service, outbox, source, challenge | {"code_challenge": VERIFIER[:43]})
        assert_error(trade(service, plain_code, VERIFIER[:43]), *WRONG)

    def test_callback_parameters_cannot_change_the_challenge(self, service):
        browser = service.browser()
        with_challenge = service.return_url(browser, "google", **WITH_CHALLENGE)
        without_challenge = service.return_url(browser, "google")
        assert set(query(browser.visit(f"{with_challenge}&code_challenge=&response_type=token"))) == {"code"}
        service.session(
            browser.visit(f"{without_challenge}&code_challenge={CHALLENGE}&code_challenge_method=plain")
        )

    def test_provider_gets_another_challenge_and_its_code_is_refused(self, service, google):
        parameters = service.leave(service.browser(), "google", **WITH_CHALLENGE)
        assert parameters["code_challenge"] != CHALLENGE
        service.return_url(service.browser(), "google", **WITH_CHALLENGE)
        (code,) = google.grants
        assert_error(trade(service, code), *GONE)


class TestChangesBeforeRedemption:
    """For five minutes a code is worth a session, so everything that ends sessions must void it."""

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("PUT", "/user", {"password": "Another-Horse-2"}),
            ("POST", "/admin/users/{}/logout", None),
            ("PUT", "/admin/users/{}", {"password": "Another-Horse-2"}),
            ("DELETE", "/admin/users/{}", None),
        ],
    )
    def test_change_voids_the_code(self, service, service_role, code, owner, database, method, path, body):
        headers = service_role if path.startswith("/admin") else owner.open_session().authorization
        before, path = database.count("sessions"), path.format(owner.id)
        response = service.client.open(path, method=method, json=body, headers=headers)
        assert response.status_code == 200
        assert_error(trade(service, code), *GONE)
        assert database.count("sessions") <= before

    def test_other_sessions_and_their_end_keep_the_code(self, service, code, owner, mallory):
        owner.open_session().post("/logout?scope=local")
        mallory.open_session().post("/logout")
        service.signed_in("google")
        assert trade(service, code).status_code == 200
