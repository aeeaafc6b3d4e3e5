"""Links requested with a code_challenge: they redirect with a code, which test_pkce_grant.py redeems."""

import pytest

from tests.support.answers import A_SENTENCE, assert_error, assert_ok
from tests.support.cases import cases
from tests.support.links import CHALLENGE, ON_ITS_WAY, PHONE, VERIFIER, WITH_CHALLENGE, follow, query
from tests.support.users import PASSWORD

DAVE = {"email": "dave@example.com", "password": PASSWORD}


@pytest.fixture
def message(client, alice, outbox):
    """A message to Alice whose link gives an authorization code."""
    assert_ok(client.post("/magiclink", json={"email": alice.email} | WITH_CHALLENGE), ON_ITS_WAY)
    return outbox.last()


@pytest.fixture
def code(client, message):
    return query(follow(client, "magiclink", message.token))["code"]


def exchange(client, code, verifier=VERIFIER):
    return client.post("/token?grant_type=pkce", json={"auth_code": code, "code_verifier": verifier})


class TestLogout:
    """A code is a session that has not begun."""

    @pytest.mark.parametrize("scope", ["global", "others"])
    def test_logout_voids_the_code(self, client, alice, code, database, scope):
        alice.open_session().post(f"/logout?scope={scope}")
        assert_error(exchange(client, code), 404, "flow_state_not_found")
        assert database.count("sessions", "method = 'otp'") == 0

    def test_logout_during_an_exchange_ends_its_session(self, app, alice, code, database):
        session = alice.open_session()
        with database.locked("users", alice.id) as lock:
            exchanging = lock.start(lambda: exchange(app.test_client(), code))
            logout = lock.start(lambda: session.on(app.test_client()).post("/logout"))
        assert (exchanging.result().status_code, logout.result().status_code) == (200, 200)
        assert database.count("sessions", "ended_at IS NULL") == 0


class TestRequestsWithAChallenge:
    @pytest.mark.parametrize(
        ("request_for", "body", "type"),
        [
            ("/signup", DAVE, "signup"),
            ("/magiclink", {"email": "alice@example.com"}, "magiclink"),
            ("/otp", {"email": "alice@example.com"}, "magiclink"),
            ("/recover", {"email": "alice@example.com"}, "recovery"),
            ("/resend", {"type": "signup", "email": DAVE["email"]}, "signup"),
        ],
    )
    def test_link_gives_a_code_on_each_route(self, client, alice, outbox, request_for, body, type):
        if request_for == "/resend":
            client.post("/signup", json=DAVE)
        assert client.post(request_for, json=body | WITH_CHALLENGE).status_code in (200, 201)
        code = query(follow(client, type, outbox.last().token))["code"]
        assert_error(exchange(client, code, "x" * 43), 400, "bad_code_verifier")
        assert exchange(client, code).json["user"]["email"] == body["email"]

    @cases(
        ("challenge", "details"),
        [
            (
                {"code_challenge": CHALLENGE, "code_challenge_method": "s512"},
                "code_challenge_method: must be s256",
            ),
            (
                {"code_challenge": CHALLENGE, "code_challenge_method": 256},
                "code_challenge_method: must be a string",
            ),
            ({"code_challenge_method": "s256"}, "code_challenge: must be given with code_challenge_method"),
            *(
                ({"code_challenge": malformed}, A_SENTENCE)
                for malformed in ("", *(CHALLENGE[:-1] + end for end in ("", "+", "\n")), CHALLENGE + "=")
            ),
        ],
    )
    def test_invalid_challenge_is_400_on_each_route(self, client, alice, database, challenge, details):
        session = alice.open_session()
        before = database.everything("users", "outbox", "one_time_tokens")
        change = {"email": "new@example.com"} | challenge
        assert_error(session.put("/user", json=change), 400, "validation_failed", details=details)
        for request_for, body in (
            ("/signup", DAVE),
            ("/magiclink", {"email": alice.email}),
            ("/otp", {"phone": PHONE}),
            ("/recover", {"email": alice.email}),
            ("/resend", {"type": "signup", "email": alice.email}),
        ):
            response = client.post(request_for, json=body | challenge)
            assert_error(response, 400, "validation_failed", details=details)
        assert database.everything("users", "outbox", "one_time_tokens") == before
