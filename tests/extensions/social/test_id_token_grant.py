"""POST /token?grant_type=id_token: signing in with an id_token obtained by a native application."""

import hashlib
import string
import time

import pytest

from auth.core.settings.presets import PRESETS
from sql import queries
from tests.support.answers import ANYTHING, assert_error, token_response
from tests.support.cases import cases
from tests.support.fake_provider import Answer, PlainProvider
from tests.support.oauth import new_user, profile_metadata
from tests.support.server import at_once
from tests.support.users import PASSWORD, session_of

pytest_plugins = ["tests.support.oauth_fixtures"]
PATH = "/token?grant_type=id_token"
NONCE = "a-nonce-of-the-application"
DETAILS = "id_token: must be a fresh one from this provider for this client, with its nonce"
REFUSED = (400, "bad_oauth_callback")
HASHED = hashlib.sha256(NONCE.encode()).hexdigest()


@pytest.fixture(autouse=True)
def _people(google) -> None:
    address = {"email": "alice@example.com", "email_verified": True}
    google.person = {"sub": "alice-at-google", "name": "Alice"} | address


def hand_in(service, id_token, provider="google", **others):
    return service.client.post(PATH, json={"provider": provider, "id_token": id_token, **others})


def assert_refused(response, database) -> None:
    assert_error(response, *REFUSED, details=DETAILS)
    assert [database.count(table) for table in ("users", "identities", "sessions")] == [0, 0, 0]


class TestValidToken:
    def test_id_token_signs_in_without_a_client_secret(self, service, google):
        response = hand_in(service, google.id_token())
        expected = new_user(
            "google", "alice-at-google", "alice@example.com", **profile_metadata(name="Alice")
        )
        assert (response.status_code, response.json) == (200, token_response(expected))
        session = session_of(service.client, response)
        assert session.get("/user").json == expected
        by_google = {"method": "oauth", "timestamp": session.claims["iat"], "provider": "google"}
        assert session.claims["amr"] == [by_google]
        assert ("Set-Cookie" in response.headers, "/token" in google.paths()) == (False, False)
        # The browser signs in the same user.
        assert service.signed_in("google").get("/user").json["id"] == session.user["id"]

    def test_id_token_may_name_any_configured_client(self, make_service, google):
        service = make_service(AUTH_PROVIDER_GOOGLE_CLIENT_ID=f"{google.client_id},android-client,ios-client")
        for client_id in (google.client_id, "android-client", "ios-client"):
            assert hand_in(service, google.id_token(aud=client_id)).status_code == 200
            assert hand_in(service, google.id_token(aud=[client_id])).status_code == 200
        authorized = google.id_token(aud=["web", "android-client"], azp="android-client")
        assert hand_in(service, authorized).status_code == 200
        assert service.leave(service.browser(), "google")["client_id"] == google.client_id


class TestReplay:
    def test_id_token_works_once(self, service, google, database):
        token = google.id_token()
        assert hand_in(service, token).status_code == 200
        assert_error(hand_in(service, token), *REFUSED, details=DETAILS)
        assert database.count("sessions") == 1
        assert not any(part in str(database.everything()) for part in token.split("."))
        # A second token of the same person works.
        assert hand_in(service, google.id_token(jti="second")).status_code == 200
        assert (database.count("sessions"), database.count("users")) == (2, 1)

    def test_one_of_many_concurrent_requests_succeeds(self, service, google, database):
        token = google.id_token()
        responses = at_once(8, lambda _: hand_in(service, token))
        assert sorted(response.status_code for response in responses) == [200] + [400] * 7
        assert (database.count("sessions"), database.count("users")) == (1, 1)

    def test_other_spelling_of_a_spent_token_is_refused(self, service, google, database):
        token = google.id_token()
        hand_in(service, token)
        head, body, signature = token.split(".")
        spellings = [f"{token}=", f"{token}==", f" {token}", f"{token}\n", f"{token}."]
        spellings += [f"{head}=.{body}.{signature}", f"{head}.{body}=.{signature}"]
        # The last character of a 256-byte signature has four unused bits.
        last = {*string.ascii_letters, *string.digits, "-", "_"} - {token[-1]}
        spellings += [token[:-1] + letter for letter in last]
        assert {hand_in(service, spelling).status_code for spelling in spellings} == {400}
        assert database.count("sessions") == 1

    def test_spent_token_is_remembered_until_it_expires(self, service, google):
        # Clocks may differ by a minute, during which an expired token is accepted.
        token = google.id_token(exp=int(time.time()) - 30)
        assert hand_in(service, token).status_code == 200
        queries.delete_expired_id_tokens(service.parts.db, batch=500)
        assert_error(hand_in(service, token), *REFUSED, details=DETAILS)


class TestNonce:
    def test_nonce_matches_raw_or_hashed(self, service, google):
        for claim in (NONCE, HASHED):
            token = google.id_token(nonce=claim)
            # The refusal does not spend the token.
            assert hand_in(service, token, nonce="other").status_code == 400
            assert hand_in(service, token, nonce=NONCE).status_code == 200

    @cases(
        ("claim", "nonce"),
        [
            *((NONCE, None), (NONCE, ""), (None, NONCE), ("", NONCE), ("", ""), ("", None)),
            *((HASHED, HASHED + "x"), (HASHED.upper(), NONCE), (HASHED[:32], NONCE)),
            *(([NONCE], NONCE), (True, "True")),
        ],
    )
    def test_other_nonce_is_refused(self, service, google, database, claim, nonce):
        options = {} if nonce is None else {"nonce": nonce}
        assert_refused(hand_in(service, google.id_token(nonce=claim), **options), database)

    def test_nonce_of_a_browser_flow_is_refused_and_there_a_hashed_one(self, service, google, database):
        browser = service.browser()
        url = service.return_url(browser, "google")
        (grant,) = google.grants.values()
        assert_refused(hand_in(service, google.id_token(grant)), database)
        google.claims = {"nonce": hashlib.sha256(grant.parameters["nonce"].encode()).hexdigest()}
        assert "bad_oauth_callback" in browser.visit(url).url
        assert database.count("users") == 0


class TestInvalidToken:
    def test_token_with_wrong_claims_or_another_provider_is_refused(self, service, google, fakes, database):
        # tests/extensions/social/test_oauth_faults.py has all claims.
        for claims in ({"iss": "x"}, {"aud": "another"}, {"exp": int(time.time()) - 3600}, {"sub": ""}):
            assert_refused(hand_in(service, google.id_token(**claims)), database)
        fakes.acme.person = google.person
        assert_refused(hand_in(service, fakes.acme.id_token()), database)
        assert_refused(hand_in(service, google.id_token(), "acme"), database)
        assert_error(hand_in(service, google.id_token(), "nobody"), 400, "provider_disabled")

    @pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if not preset.issuer])
    def test_provider_without_id_tokens_is_refused_as_one(self, make_service, google, database, name):
        with PlainProvider(name) as plain:
            response = hand_in(make_service(**plain.settings()), google.id_token(), name)
        details = "provider: has no ID tokens; sign in with it at GET /authorize"
        assert_error(response, 400, "validation_failed", details=details)
        assert database.count("users") == 0

    @pytest.mark.parametrize(
        ("path", "answer"),
        [
            ("/.well-known/openid-configuration", Answer(500)),
            ("/.well-known/openid-configuration", Answer(behaviour="close")),
            ("/jwks", Answer(200, b'{"keys": []}')),
        ],
        ids=str,
    )
    def test_token_is_503_while_the_issuer_is_down(self, make_service, google, database, path, answer):
        google.instead = {path: answer}
        service, token = make_service(), google.id_token()
        response = hand_in(service, token)
        assert_error(response, 503, "service_unavailable")
        assert (response.headers["Retry-After"], database.count("users")) == ("2", 0)
        google.instead = {}
        service.age("google", 5)
        assert hand_in(service, token).status_code == 200

    def test_second_name_of_google_is_accepted_and_own_access_tokens_are_refused(
        self, service, google, alice
    ):
        token = alice.open_session().access_token
        assert_error(hand_in(service, token), *REFUSED, details=DETAILS)
        assert hand_in(service, google.id_token(iss="accounts.google.com")).status_code == 200


class TestLinking:
    """`link_identity`, as the JavaScript client's linkIdentity sends it for an id_token."""

    @pytest.fixture
    def session(self, service, alice):
        return alice.sign_in(client=service.client)

    @pytest.fixture
    def link(self, service, google):
        google.person["email"] = "alice@gmail.example"

        def link(session=None, id_token=None, service=service):
            body = {"provider": "google", "id_token": id_token or google.id_token(), "link_identity": True}
            headers = session.authorization if session else {}
            return service.client.post(PATH, json=body, headers=headers)

        return link

    @pytest.mark.parametrize(
        ("statement", "error"),
        [
            ("UPDATE sessions SET ended_at = now(), end_reason = 'logout'", (401, "session_not_found")),
            ("UPDATE users SET banned_until = 'infinity'", (403, "user_banned")),
            ("DELETE FROM users", (401, "user_not_found")),
        ],
    )
    def test_caller_who_is_refused_while_the_token_hook_is_asked_gets_its_refusal(
        self, make_service, google, alice, target, database, statement, error
    ):
        google.person["email"] = "alice@gmail.example"
        hook = {"AUTH_HOOK_CUSTOM_ACCESS_TOKEN": target.url}
        secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        client = make_service(**hook, AUTH_HOOK_CUSTOM_ACCESS_TOKEN_SECRETS=secret).client
        target.answer = lambda event: {"claims": event["claims"]}
        session = alice.sign_in(client=client)
        target.answer = lambda event: (database.run(statement), {"claims": event["claims"]})[1]
        body = {"provider": "google", "id_token": google.id_token(), "link_identity": True}
        response = client.post(PATH, json=body, headers=session.authorization)
        assert (response.status_code, response.json["error_code"]) == error
        assert len(target.requests) == 2

    def test_identity_is_linked_and_the_session_stays(self, service, link, session, outbox, database, google):
        linked = session_of(service.client, link(session))
        assert (linked.id, linked.claims["amr"]) == (session.id, session.claims["amr"])
        assert linked.user["id"] == session.user["id"]
        assert [identity["provider"] for identity in linked.user["identities"]] == ["email", "google"]
        assert outbox.last(session.user["email"]).kind == "identity_linked"
        # A tab that has not seen the response yet, and one whose response was lost.
        assert session.refresh().json["refresh_token"] == linked.refresh_token
        database.run("UPDATE sessions SET refreshed_at = refreshed_at - interval '8 hours'")
        linked = session.refreshed()
        assert linked.refresh().status_code == 200
        assert (database.count("users"), database.count("sessions")) == (1, 1)
        assert hand_in(service, google.id_token(jti="later")).json["user"]["id"] == session.user["id"]

    def test_recent_session_is_needed(self, link, session, google, database):
        assert_error(link(), 401, "no_authorization", details=ANYTHING)
        token = google.id_token()
        database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
        assert_error(link(session, token), 400, "reauthentication_needed", details=ANYTHING)
        session.post("/reauthenticate", json={"current_password": PASSWORD})
        assert link(session, token).status_code == 200
        session.post("/logout")
        assert_error(link(session), 401, "session_not_found")
        assert database.count("users") == 1

    def test_linking_can_be_forbidden(self, make_service, link, session):
        strict_service = make_service(AUTH_MANUAL_LINKING="false")
        assert_error(link(session, service=strict_service), 404, "manual_linking_disabled")
