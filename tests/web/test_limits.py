"""Rate limits: what counts together, and the headers of responses."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.support.answers import NO_ID, assert_error
from tests.support.elapsed import assert_left
from tests.support.server import at_once
from tests.support.services import ELSEWHERE, HOME, OFFICE, at
from tests.support.users import PASSWORD, WRONG_PASSWORD, refresh, session_of, sign_in

TOO_MANY = "Too many requests; try again later"
NAMES = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")


def limits(response: Any) -> tuple[int, int] | None:
    """Return the limit and the remaining requests from the headers, or None without headers."""
    present = [name for name in NAMES if name in response.headers]
    if not present:
        return None
    assert present == list(NAMES), present
    return int(response.headers["X-RateLimit-Limit"]), int(response.headers["X-RateLimit-Remaining"])


def assert_refused(
    response: Any, seconds: int, amount: int, msg: str = TOO_MANY, error_code: str = "over_request_rate_limit"
) -> None:
    """Check that a response is the 429 of a window with `seconds` left when the test began."""
    assert_error(response, 429, error_code, msg)
    assert limits(response) == (amount, 0)
    assert response.headers["Retry-After"] == response.headers["X-RateLimit-Reset"]
    assert_left(int(response.headers["Retry-After"]), of=seconds)


def pass_time(database: Any, seconds: float) -> None:
    """Move the ends of all windows into the past by these seconds."""
    for table in ("request_counts", "failure_counts"):
        database.run(
            f"UPDATE {table} SET expires_at = expires_at - make_interval(secs => %(seconds)s)",
            seconds=seconds,
        )
    database.run(
        "UPDATE sessions SET counted_until = counted_until - make_interval(secs => %(seconds)s)",
        seconds=seconds,
    )


@pytest.fixture
def limited(make_app) -> Callable[..., Any]:
    """Return a function that makes a client of an application with limits: `limited(LOGIN="3 per minute")`."""

    def make(**amounts: str) -> Any:
        changes = {f"AUTH_RATE_LIMIT_{name}": value for name, value in amounts.items()}
        return make_app(AUTH_RATE_LIMITS_ENABLED="true", **changes).test_client()

    return make


class Window(NamedTuple):
    """An operation that counts by network, with the name of its setting, and its requests."""

    operation: str
    setting: str
    method: str
    paths: list[str]


BY_NETWORK = [
    Window("sign_up", "SIGNUP", "POST", ["/signup"]),
    Window("sign_in_with_password", "LOGIN", "POST", ["/token?grant_type=password", "/login-admin"]),
    Window("sign_in_with_id_token", "LOGIN", "POST", ["/token?grant_type=id_token"]),
    Window("sign_in_with_passkey", "LOGIN", "POST", ["/passkeys/authentication/verify"]),
    Window("request_recovery", "RECOVER", "POST", ["/recover"]),
    Window("request_sign_in", "RECOVER", "POST", ["/magiclink", "/otp"]),
    Window("request_confirmation", "RECOVER", "POST", ["/resend"]),
    Window("verify", "VERIFY", "POST", ["/verify"]),
    Window("begin_linking", "VERIFY", "POST", ["/link-identity"]),
    Window("exchange_code", "VERIFY", "POST", ["/token?grant_type=pkce"]),
    Window("begin_at_provider", "AUTHORIZE", "GET", ["/authorize"]),
    Window("request_authorization", "AUTHORIZE", "GET", ["/oauth/authorize"]),
    Window("continue_authorization", "AUTHORIZE", "GET", ["/oauth/continue"]),
    Window("open_link", "LINKS", "GET", ["/verify"]),
    Window("open_linking", "LINKS", "GET", ["/link-identity"]),
]
each_by_network = pytest.mark.parametrize("limit", BY_NETWORK, ids=lambda limit: limit.operation)


def ask(client: Any, method: str, path: str, **options: Any) -> Any:
    return client.open(path, method=method, **({} if method == "GET" else {"json": {}}), **options)


class TestLimitsByNetwork:
    @each_by_network
    def test_act_is_refused_beyond_its_window_at_all_doors_until_it_ends(self, limited, limit, database):
        client = limited(**{limit.setting: "7 per 5 minutes"})
        for number, path in enumerate((limit.paths * 7)[:7], 1):
            response = ask(client, limit.method, path, **at(HOME))
            assert (response.status_code, limits(response)) == (400, (7, 7 - number))
            assert_left(int(response.headers["X-RateLimit-Reset"]), of=300)
            assert "Retry-After" not in response.headers
        for path in limit.paths:
            assert_refused(ask(client, limit.method, path, **at(HOME)), 300, 7)
            for place in (OFFICE, ELSEWHERE, "2001:db8::1"):
                assert ask(client, limit.method, path, **at(place)).status_code == 400
        pass_time(database, 200)
        assert_refused(ask(client, limit.method, path, **at(HOME)), 100, 7)
        pass_time(database, 101)
        assert limits(ask(client, limit.method, path, **at(HOME))) == (7, 6)

    def test_acts_count_separately(self, limited):
        client = limited(**{limit.setting: "1 per 5 minutes" for limit in BY_NETWORK})
        assert {limits(ask(client, limit.method, limit.paths[0])) for limit in BY_NETWORK} == {(1, 0)}

    def test_refused_request_does_nothing(self, limited, database, alice, hashes):
        client = limited(LOGIN="1 per 5 minutes", SIGNUP="1 per 5 minutes", RECOVER="1 per 5 minutes")
        for path in ("/login-admin", "/signup", "/recover"):
            ask(client, "POST", path)
        tables = ("users", "sessions", "one_time_tokens", "outbox", "failure_counts")
        before, hashes_before = database.everything(*tables), hashes.count
        for path, email in (
            ("/token?grant_type=password", alice.email),
            ("/login-admin", alice.email),
            ("/signup", "dave@example.com"),
            ("/recover", alice.email),
        ):
            response = client.post(path, json={"email": email, "password": PASSWORD})
            assert_error(response, 429, "over_request_rate_limit", TOO_MANY)
        assert (database.everything(*tables), hashes.count) == (before, hashes_before)


class TestLimitBySession:
    """A server that refreshes for all its users has one network, so refreshes are limited by session."""

    def test_each_session_has_its_own_count_across_networks_and_tokens(self, limited, alice, database):
        client = limited(REFRESH="2 per 5 minutes")
        first, phone = alice.sign_in().on(client), alice.sign_in().on(client)
        second = session_of(client, refresh(client, first.refresh_token))
        body = {"refresh_token": second.refresh_token}
        third = client.post("/token?grant_type=refresh_token", json=body, **at(OFFICE))
        assert limits(third) == (2, 0)
        before = database.everything("sessions")
        assert_refused(refresh(client, third.json["refresh_token"]), 300, 2)
        assert database.everything("sessions") == before
        assert limits(phone.refresh()) == (2, 1)
        pass_time(database, 301)
        assert refresh(client, third.json["refresh_token"]).status_code == 200

    def test_stolen_token_ends_the_session_when_its_limit_is_used_up(self, limited, alice, database):
        """Otherwise a thief could use up the limit, so that the replay of the stolen token is never noticed."""
        client = limited(REFRESH="3 per 5 minutes")
        owner = alice.sign_in().on(client)
        thief = session_of(client, refresh(client, owner.refresh_token))
        database.run("UPDATE sessions SET refreshed_at = refreshed_at - interval '2 minutes'")
        for _ in range(2):
            thief = session_of(client, refresh(client, thief.refresh_token))
        assert_refused(thief.refresh(), 300, 3)
        assert_error(owner.refresh(), 400, "refresh_token_already_used")
        assert_error(thief.refresh(), 400, "refresh_token_not_found")
        reason = database.value("SELECT end_reason FROM sessions WHERE id = %(id)s", id=owner.id)
        assert reason == "refresh_token_reused"

    def test_forged_token_is_refused_without_counting(self, limited, alice, database):
        client = limited(REFRESH="1 per 5 minutes")
        for token in ("x", "A" * 56, "", 1, None, ["x"], alice.sign_in().access_token[:56]):
            response = client.post("/token?grant_type=refresh_token", json={"refresh_token": token})
            assert (response.status_code, limits(response)) == (400, None)
        assert database.count("request_counts") == 0

    def test_concurrent_refreshes_do_not_exceed_the_limit(self, limited, alice):
        client = limited(REFRESH="5 per 5 minutes")
        session = alice.sign_in()
        answers = at_once(20, lambda _: refresh(client.application.test_client(), session.refresh_token))
        assert sorted(answer.status_code for answer in answers) == [200] * 5 + [429] * 15


class TestLimitsByUser:
    def test_log_outs_are_limited_to_20_in_5_minutes_and_a_refused_one_ends_nothing(
        self, limited, alice, bob
    ):
        client = limited()
        laptop, phone = alice.sign_in().on(client), alice.sign_in().on(client)
        assert limits(phone.post("/logout?scope=local")) == (20, 19)
        for remaining in range(18, -1, -1):
            assert limits(laptop.post("/logout?scope=others")) == (20, remaining)
        assert_refused(laptop.post("/logout"), 300, 20)
        assert laptop.get("/user").status_code == 200
        assert limits(bob.sign_in().on(client).post("/logout")) == (20, 19)

    def test_acts_of_a_user_count_separately(self, limited, alice, bob):
        client = limited(USER_CHANGES="2 per 5 minutes")
        session = alice.sign_in().on(client)
        requests = [
            lambda: session.put("/user", json={"data": {"x": 1}}),
            lambda: session.delete(f"/sessions/{NO_ID}"),
            lambda: session.delete(f"/user/identities/{NO_ID}"),
            lambda: session.get("/user/identities/authorize?provider=google"),
        ]
        assert [[limits(request()) for request in requests] for _ in range(2)] == [[(2, 1)] * 4, [(2, 0)] * 4]
        assert_refused(session.put("/user", json={"data": {"x": 2}}), 300, 2)
        assert session.get("/user").json["user_metadata"] == {"x": 1}
        assert limits(bob.sign_in().on(client).put("/user", json={})) == (2, 1)
        assert limits(session.delete("/user")) == (2, 1)

    def test_address_changes_are_limited_to_5_an_hour_which_reveal_taken_ones(
        self, limited, alice, bob, database
    ):
        session = alice.open_session().on(limited())
        for number in range(4):
            pass_time(database, 61)
            response = session.put("/user", json={"email": f"alice{number}@example.com"})
            assert (response.status_code, limits(response)) == (200, (5, 4 - number))
        assert_error(session.put("/user", json={"email": bob.email}), 409, "email_exists")
        for body in ({"email": bob.email}, {"email": "alice9@example.com"}, {"phone": "+491701234567"}):
            assert_refused(session.put("/user", json=body), 3600 - 3 * 61, 5)
        assert session.put("/user", json={"data": {"x": 1}}).status_code == 200
        pass_time(database, 3600)
        assert session.put("/user", json={"email": "alice9@example.com"}).status_code == 200

    @pytest.mark.parametrize(
        ("method", "path"), [("PUT", "/user"), ("POST", "/logout?scope=others")], ids=str
    )
    def test_each_network_of_a_user_has_its_own_count(self, limited, alice, method, path):
        client = limited(USER_CHANGES="1 per 5 minutes", LOGOUT="1 per 5 minutes")
        headers = alice.sign_in().authorization
        for place in (HOME, OFFICE, "2001:db8::1"):
            response = ask(client, method, path, headers=headers, **at(place))
            assert (response.status_code, limits(response)) == (200, (1, 0))
        assert_refused(ask(client, method, path, headers=headers, **at("2001:db8::2")), 300, 1)

    def test_token_of_an_ended_session_does_not_use_up_the_users_limit(self, limited, alice, database):
        # Otherwise a thief could keep the user from changing the password or logging out.
        client = limited(USER_CHANGES="2 per 5 minutes", LOGOUT="2 per 5 minutes")
        session = alice.sign_in().on(client)
        for assignments in (
            "ended_at = now(), end_reason = 'logout'",
            "refreshed_at = now() - interval '30 days'",
        ):
            stolen = alice.sign_in().on(client)
            database.run(f"UPDATE sessions SET {assignments} WHERE id = %(id)s", id=stolen.id)
            for _ in range(3):
                assert stolen.put("/user", json={}).status_code in (401, 429)
                assert stolen.post("/logout").status_code in (401, 429)
        assert session.put("/user", json={"data": {"x": 1}}).status_code == 200
        assert session.post("/logout").status_code == 200


class TestLimitsOfInvitations:
    """30 an hour, and 3 a day for one address, in a table that survives a crash."""

    @pytest.fixture
    def invite(self, limited, service_role):
        client = limited()
        return lambda email, path="/admin/invite": client.post(
            path, json={"email": email}, headers=service_role
        )

    def assert_refused(self, invite, database, seconds):
        before = database.everything("users", "one_time_tokens", "outbox")
        response = invite("dave@example.com")
        assert_error(response, 429, "over_email_send_rate_limit")
        assert_left(int(response.headers["Retry-After"]), of=seconds)
        assert database.everything("users", "one_time_tokens", "outbox") == before

    def test_one_address_gets_three_invitations_a_day(self, invite, database):
        assert invite("dave@example.com").status_code == 200
        assert invite("DAVE@example.com", "/invite").status_code == 200
        assert invite("dave@EXAMPLE.com").status_code == 200
        self.assert_refused(invite, database, 86_400)
        assert invite("erin@example.com").status_code == 200
        pass_time(database, 86_400)
        assert invite("dave@example.com").status_code == 200

    def test_thirty_invitations_are_sent_an_hour(self, invite, database):
        assert {invite(f"user{number}@example.com").status_code for number in range(30)} == {200}
        self.assert_refused(invite, database, 3600)
        pass_time(database, 3600)
        assert invite("dave@example.com").status_code == 200


def test_service_role_key_has_no_other_limit(limited, service_role, alice):
    client = limited(LOGIN="1 per 5 minutes")
    for _ in range(70):
        assert limits(client.post("/introspect", json={"token": "x"}, headers=service_role)) is None
    for path in ("/admin/users", f"/admin/users/{alice.id}"):
        assert limits(client.get(path, headers=service_role)) is None
    assert limits(client.put(f"/admin/users/{alice.id}", json={}, headers=service_role)) is None
    # The key does not lift the limits of public routes.
    answers = [ask(client, "POST", "/login-admin", headers=service_role) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [400, 429]


def test_headers_show_the_tightest_limit(limited, alice):
    client = limited(LOGIN="30 per 5 minutes", LOGIN_FAILURES="3 per 15 minutes")
    assert limits(sign_in(client, alice.email)) == (30, 29)
    assert [limits(sign_in(client, alice.email, WRONG_PASSWORD)) for _ in range(3)] == [
        (3, 2),
        (3, 1),
        (3, 0),
    ]


def test_settings_endpoint_shows_the_configured_limits(limited):
    client = limited(SIGNUP="7 per 10 minutes", LOGIN="20/hour", RECOVER="3 per 1 day")
    assert client.get("/settings").json["rate_limits"] == {
        "signup": {"requests": 7, "window": 600},
        "login": {"requests": 20, "window": 3600},
        "recover": {"requests": 3, "window": 86_400},
    }
    counted = [limits(ask(client, "POST", path)) for path in ("/signup", "/login-admin", "/recover")]
    assert counted == [(7, 6), (20, 19), (3, 2)]


class TestLimitsDisabled:
    """AUTH_RATE_LIMITS_ENABLED is false, as in all other tests."""

    def test_requests_are_not_counted(self, client, alice, service_role, database):
        session = alice.open_session()
        # Twice, as without a count no request can be the one too many.
        for _ in range(2):
            for limit in BY_NETWORK:
                for path in limit.paths:
                    response = ask(client, limit.method, path)
                    assert (response.status_code, limits(response)) == (400, None)
            assert session.put("/user", json={}).status_code == 200
            assert session.post("/logout?scope=others").status_code == 200
        assert database.count("request_counts") == 0
        lifted = {"requests": 30, "window": 300, "enabled": False}
        amounts = client.get("/settings").json["rate_limits"]
        assert amounts == dict.fromkeys(("signup", "login", "recover"), lifted)

    def test_attempts_of_a_code_are_counted_anyway(self, client, alice, outbox):
        client.post("/magiclink", json={"email": alice.email})
        message = outbox.last(alice.email)
        for code in [message.wrong_code] * 5 + [message.code]:
            response = client.post("/verify", json={"type": "magiclink", "email": alice.email, "token": code})
            assert_error(response, 403, "otp_expired")
