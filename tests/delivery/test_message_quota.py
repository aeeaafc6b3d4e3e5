"""Limits on messages to one address: a request over them gets the usual response, sends and voids nothing.

Counted by recipient and network, and by recipient, so that a stranger can neither flood a mailbox nor keep
its owner from a link.
"""

import pytest

from tests.support.answers import A_SENTENCE, assert_error, assert_ok
from tests.support.cast import PASSWORD, Session
from tests.support.links import ON_ITS_WAY, OTHER_PHONE, PHONE, assert_signs_in, later, type_in
from tests.support.server import at_once

NETWORK, ELSEWHERE, THIRD = (
    {"REMOTE_ADDR": address} for address in ("198.51.100.1", "203.0.113.1", "192.0.2.1")
)
EFFECTS = ("users", "identities", "one_time_tokens", "sessions")


@pytest.fixture
def app(make_app):
    """Limits on messages, but not on the requests of a network."""
    return make_app(
        AUTH_RATE_LIMITS_ENABLED="true",
        AUTH_RATE_LIMIT_RECOVER="100000 per minute",
        AUTH_RATE_LIMIT_VERIFY="100000 per minute",
    )


def ask(client, email="alice@example.com", place=NETWORK, path="/magiclink", **others):
    response = client.post(
        path, json={"phone" if email.startswith("+") else "email": email} | others, environ_overrides=place
    )
    assert_ok(response, ON_ITS_WAY)
    return response


def a_minute_later(database):
    later(database, mins=1)


class TestOneAMinute:
    def test_second_request_within_a_minute_sends_nothing(self, client, alice, outbox):
        first = ask(client)
        second = ask(client)
        assert second.json["message"] == first.json["message"]
        assert second.json["message_id"] != first.json["message_id"]
        assert set(second.headers.keys()) == set(first.headers.keys())
        assert (len(outbox.sent()), outbox.suppressed()) == (1, 1)

    def test_request_over_the_limit_does_not_void_codes(self, client, alice, outbox, database):
        ask(client)
        before = database.everything(*EFFECTS)
        for _ in range(3):
            ask(client)
        assert database.everything(*EFFECTS) == before
        message = outbox.last()
        assert type_in(client, "magiclink", alice.email, message.code).status_code == 200

    def test_request_over_the_limit_does_not_void_links(self, client, alice, outbox):
        for _ in range(5):
            ask(client)
        assert_signs_in(client, "magiclink", outbox.last().token)

    def test_message_is_sent_again_after_a_minute(self, client, alice, outbox, database):
        ask(client)
        a_minute_later(database)
        ask(client)
        assert len(outbox.sent()) == 2

    def test_requests_over_the_limit_do_not_extend_the_minute(self, client, alice, outbox, database):
        ask(client)
        later(database, secs=50)
        ask(client)
        later(database, secs=10)
        ask(client)
        assert len(outbox.sent()) == 2

    def test_endpoints_share_the_limit(self, client, alice, outbox):
        ask(client)
        for path in ("/otp", "/recover", "/magiclink", "/auth/v1/magiclink"):
            ask(client, path=path)
        assert (
            client.post(
                "/signup", json={"email": alice.email, "password": PASSWORD}, environ_overrides=NETWORK
            ).status_code
            == 201
        )
        assert outbox.kinds() == [("magiclink", alice.email)]

    def test_sign_up_and_resend_count(self, client, outbox):
        assert (
            client.post(
                "/signup", json={"email": "dave@example.com", "password": PASSWORD}, environ_overrides=NETWORK
            ).status_code
            == 201
        )
        ask(client, "dave@example.com", path="/resend", type="signup")
        assert outbox.kinds() == [("signup", "dave@example.com")]

    def test_spellings_of_an_address_share_the_limit(self, client, alice, outbox):
        for email in ("alice@example.com", "ALICE@example.com", "Alice@EXAMPLE.COM"):
            ask(client, email)
        for phone in (PHONE, "+49 170 1234567", "+49-170-(123)4567"):
            ask(client, phone, path="/otp")
        assert outbox.kinds() == [("magiclink", alice.email), ("sms", PHONE)]

    def test_other_addresses_have_limits_of_their_own(self, client, alice, bob, outbox):
        for email in (alice.email, bob.email):
            ask(client, email)
        assert len(outbox.sent()) == 2

    @pytest.mark.parametrize(
        ("places", "sent"),
        [
            (("2001:db8::1", "2001:db8::2"), 1),
            (("2001:db8::1", "2001:db8:0:1::1"), 2),
            (("::ffff:198.51.100.1", "198.51.100.1"), 1),
        ],
    )
    def test_forms_of_a_network_share_the_limit(self, client, alice, outbox, places, sent):
        for place in places:
            ask(client, place={"REMOTE_ADDR": place})
        assert len(outbox.sent()) == sent

    def test_forwarding_header_does_not_change_the_network(self, client, alice, outbox):
        for number in range(3):
            client.post(
                "/magiclink",
                json={"email": alice.email},
                headers={"X-Forwarded-For": f"203.0.113.{number}"},
                environ_overrides=NETWORK,
            )
        assert len(outbox.sent()) == 1

    def test_unknown_address_counts_like_a_known_one(self, client, outbox, database):
        """Otherwise the second response, or its time, would reveal the account."""
        ask(client, "nobody@example.com", create_user=False)
        ask(client, "nobody@example.com")
        assert (outbox.sent(), outbox.suppressed(), database.count("users")) == ([], 2, 0)
        a_minute_later(database)
        ask(client, "nobody@example.com")
        assert (len(outbox.sent()), database.count("users")) == (1, 1)

    def test_request_over_the_limit_does_not_create_a_user(self, client, outbox, database):
        ask(client, "dave@example.com", create_user=False)
        ask(client, "dave@example.com", data={"x": 1})
        assert (database.count("users"), database.count("identities")) == (0, 0)

    def test_sign_up_over_the_limit_replaces_none(self, client, outbox, database):
        body = {"email": "dave@example.com", "password": PASSWORD}
        client.post("/signup", json=body, environ_overrides=NETWORK)
        before = database.everything(*EFFECTS)
        again = client.post(
            "/signup", json=body | {"password": "Mallorys-Horse-1"}, environ_overrides=NETWORK
        )
        assert again.status_code == 201
        assert database.everything(*EFFECTS) == before
        assert_signs_in(client, "signup", outbox.last().token)

    def test_concurrent_requests_send_one_message(self, app, alice, outbox):
        at_once(20, lambda _: ask(app.test_client()))
        assert (len(outbox.sent()), outbox.suppressed()) == (1, 19)


class TestFiveAnHour:
    def test_sixth_message_within_an_hour_is_not_sent(self, client, alice, outbox, database):
        for _ in range(8):
            ask(client)
            database.run("UPDATE failure_counts SET expires_at = now() WHERE key LIKE '%% 60'")
        assert (len(outbox.sent()), outbox.suppressed()) == (5, 3)

    def test_messages_are_sent_again_after_an_hour(self, client, alice, outbox, database):
        for _ in range(6):
            ask(client)
            a_minute_later(database)
        assert len(outbox.sent()) == 5
        later(database, hours=1)
        ask(client)
        assert len(outbox.sent()) == 6

    def test_other_networks_have_limits_of_their_own(self, client, alice, outbox, database):
        for _ in range(6):
            ask(client)
            a_minute_later(database)
        ask(client, place=ELSEWHERE)
        assert len(outbox.sent()) == 6


class TestTwentyAnHour:
    def test_twenty_first_message_of_all_networks_is_not_sent(self, client, alice, outbox, database):
        for number in range(25):
            ask(client, place={"REMOTE_ADDR": f"203.0.113.{number}"})
        assert (len(outbox.sent()), outbox.suppressed()) == (20, 5)
        later(database, hours=1)
        ask(client)
        assert len(outbox.sent()) == 21

    def test_one_network_cannot_exhaust_the_limit(self, client, alice, outbox):
        """Mallory cannot keep Alice from her link by asking often, because refused requests do not count."""
        for _ in range(22):
            ask(client, place=ELSEWHERE)
        assert len(outbox.sent()) == 1
        ask(client)
        assert len(outbox.sent()) == 2
        assert_signs_in(client, "magiclink", outbox.last().token)

    def test_one_network_cannot_block_a_change_of_email(self, client, alice, outbox):
        session = signed_in(client, alice)
        for _ in range(22):
            ask(client, "new@example.com", place=ELSEWHERE, create_user=False)
        assert change(session, email="new@example.com").status_code == 200


def signed_in(client, person):
    tokens = person.try_to_sign_in(client=client).json
    return Session(client, tokens["access_token"], tokens["refresh_token"], tokens["user"])


def change(session, place=NETWORK, **body):
    return session.client.put("/user", json=body, headers=session.authorization, environ_overrides=place)


class TestSmsTotal:
    @pytest.fixture
    def app(self, make_app):
        return make_app(
            AUTH_RATE_LIMITS_ENABLED="true",
            AUTH_RATE_LIMIT_RECOVER="100000 per minute",
            AUTH_RATE_LIMIT_SMS_TOTAL="4 per hour",
        )

    def test_no_sms_is_sent_over_the_total(self, client, outbox, database):
        for number in range(5):
            ask(client, f"+4917012345{number:02}", path="/otp")
        response = client.post("/signup", json={"phone": OTHER_PHONE, "password": PASSWORD})
        assert response.status_code == 201
        assert (len(outbox.sent()), outbox.suppressed()) == (3, 3)
        ask(client, "dave@example.com")
        assert outbox.kinds()[-1] == ("magiclink", "dave@example.com")
        later(database, hours=1)
        ask(client, OTHER_PHONE, path="/otp")
        assert len(outbox.sent(OTHER_PHONE)) == 1

    def test_signed_in_user_gets_429_over_the_total(self, client, alice, outbox):
        for number in range(3):
            ask(client, f"+4917012345{number:02}", path="/otp")
        session = signed_in(client, alice)
        assert_error(change(session, phone=OTHER_PHONE), 429, "over_sms_send_rate_limit")
        assert session.get("/user").json["new_phone"] is None
        assert outbox.sent(OTHER_PHONE) == []

    def test_refused_requests_do_not_count_for_the_total(self, client, outbox):
        """Otherwise repeated requests for one number, which send nothing, would stop all SMS."""
        for _ in range(10):
            ask(client, PHONE, place=ELSEWHERE, path="/otp")
        assert len(outbox.sent()) == 1
        ask(client, OTHER_PHONE, path="/otp")
        assert len(outbox.sent(OTHER_PHONE)) == 1

    def test_default_total_is_200_an_hour(self, make_app, outbox, database):
        client = make_app(
            AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_RECOVER="100000 per minute"
        ).test_client()
        ask(client, PHONE, path="/otp")
        for key, count in (("sms 3600", 199), ("sms_new 3600", 148)):
            assert database.run(f"UPDATE failure_counts SET count = {count} WHERE key = '{key}'") == 1
        ask(client, OTHER_PHONE, path="/otp")
        ask(client, "+491705555555", path="/otp")
        assert outbox.kinds() == [("sms", PHONE), ("sms", OTHER_PHONE)]

    def test_default_share_of_new_numbers_is_150_an_hour(self, make_app, outbox, database):
        client = make_app(
            AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_RECOVER="100000 per minute"
        ).test_client()
        ask(client, PHONE, path="/otp")
        database.run("UPDATE failure_counts SET count = 149 WHERE key = 'sms_new 3600'")
        for phone in (OTHER_PHONE, "+491705555555"):
            ask(client, phone, path="/otp")
        assert outbox.kinds() == [("sms", PHONE), ("sms", OTHER_PHONE)]

    @pytest.mark.parametrize("path", ["/otp", "/signup"])
    def test_new_numbers_of_one_network_have_a_quota(self, make_app, outbox, path):
        client = make_app(
            AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_SIGNUP="1000 per minute"
        ).test_client()
        for number in range(12):
            body = {"phone": f"+4917012345{number:02}", "password": PASSWORD}
            assert client.post(path, json=body, environ_overrides=NETWORK).status_code in (200, 201)
        assert (len(outbox.sent()), outbox.suppressed()) == (10, 2)
        client.post(path, json={"phone": OTHER_PHONE, "password": PASSWORD}, environ_overrides=ELSEWHERE)
        assert len(outbox.sent(OTHER_PHONE)) == 1

    def test_confirmed_users_keep_a_reserve(self, client, service_role, outbox):
        body = {"email": "phil@example.com", "phone": PHONE, "phone_confirm": True}
        assert client.post("/admin/users", json=body, headers=service_role).status_code == 200
        for number in range(20):
            place = {"REMOTE_ADDR": f"192.0.2.{number}"}
            ask(client, f"+4917012345{number:02}", path="/otp", place=place)
        assert len(outbox.sent()) == 3
        ask(client, PHONE, path="/otp")
        assert len(outbox.sent(PHONE)) == 1

    def test_unconfirmed_users_have_no_reserve(self, client, service_role, outbox):
        client.post("/admin/users", json={"email": "phil@example.com", "phone": PHONE}, headers=service_role)
        for number in range(3):
            ask(client, f"+4917012345{number:02}", path="/otp")
        ask(client, PHONE, path="/otp")
        assert outbox.sent(PHONE) == []

    def test_confirmed_numbers_cost_the_same_statements_and_counts(
        self, client, service_role, database, parts
    ):
        body = {"email": "phil@example.com", "phone": PHONE, "phone_confirm": True}
        client.post("/admin/users", json=body, headers=service_role)
        costs = []
        for phone in (PHONE, OTHER_PHONE):
            before = parts.db.statements_run, database.count("failure_counts")
            ask(client, phone, path="/otp", create_user=False)
            after = parts.db.statements_run, database.count("failure_counts")
            costs.append((after[0] - before[0], after[1] - before[1]))
            database.run("DELETE FROM failure_counts")
        assert costs[0] == costs[1]


class TestSignedInUsers:
    """GET /reauthenticate and PUT /user return 429, because the user waits for the message."""

    @pytest.fixture
    def session(self, client, alice):
        return signed_in(client, alice)

    def reauthenticate(self, session, place=NETWORK):
        return session.client.get("/reauthenticate", headers=session.authorization, environ_overrides=place)

    def test_second_code_within_a_minute_is_429(self, session, outbox, database):
        assert_ok(self.reauthenticate(session), ON_ITS_WAY)
        before = database.everything("one_time_tokens", "outbox")
        response = self.reauthenticate(session)
        assert_error(response, 429, "over_email_send_rate_limit")
        assert 50 <= int(response.headers["Retry-After"]) <= 60
        assert database.everything("one_time_tokens", "outbox") == before
        a_minute_later(database)
        assert_ok(self.reauthenticate(session), ON_ITS_WAY)

    def test_second_sms_code_within_a_minute_is_429(self, session, database):
        database.run(
            "UPDATE users SET phone = %(phone)s, phone_confirmed_at = now(), email_confirmed_at = NULL",
            phone=PHONE,
        )
        assert_ok(self.reauthenticate(session), ON_ITS_WAY)
        assert_error(self.reauthenticate(session), 429, "over_sms_send_rate_limit")

    @pytest.mark.parametrize(
        ("body", "error_code"),
        [
            ({"email": "new@example.com"}, "over_email_send_rate_limit"),
            ({"phone": PHONE}, "over_sms_send_rate_limit"),
        ],
    )
    def test_second_change_to_an_address_within_a_minute_is_429(
        self, session, outbox, database, body, error_code
    ):
        assert change(session, **body).status_code == 200
        before = database.everything("users", "one_time_tokens", "outbox", "sessions")
        response = change(session, **body, data={"x": 1}, password="Another-Horse-1")
        assert_error(response, 429, error_code)
        assert 50 <= int(response.headers["Retry-After"]) <= 60
        assert database.everything("users", "one_time_tokens", "outbox", "sessions") == before
        a_minute_later(database)
        assert change(session, **body).status_code == 200
        assert len(outbox.sent()) == 2

    def test_change_of_both_addresses_sends_nothing_when_one_is_over_the_limit(
        self, session, outbox, database
    ):
        assert change(session, email="new@example.com").status_code == 200
        assert_error(change(session, email="new@example.com", phone=PHONE), 429, "over_email_send_rate_limit")
        assert outbox.kinds() == [("email_change", "new@example.com")]
        assert session.get("/user").json["new_phone"] is None

    def test_requests_of_strangers_count_for_their_network(self, client, session, outbox):
        ask(client, "new@example.com", place=ELSEWHERE, create_user=False)
        assert change(session, email="new@example.com").status_code == 200
        assert outbox.kinds() == [("email_change", "new@example.com")]

    def test_refused_change_does_not_count(self, client, session, bob, outbox):
        for _ in range(3):
            assert_error(change(session, email=bob.email), 409, "email_exists")
        ask(client, bob.email)
        assert outbox.kinds() == [("magiclink", bob.email)]

    def test_sixth_change_of_address_within_an_hour_is_429(self, session, database):
        for number in range(5):
            assert change(session, email=f"new{number}@example.com").status_code == 200
        assert_error(change(session, email="new5@example.com"), 429, "over_request_rate_limit")
        assert_error(change(session, phone=PHONE), 429, "over_request_rate_limit")
        assert change(session, data={"x": 1}).status_code == 200
        assert session.get("/user").json["new_email"] == "new4@example.com"


class TestNotices:
    """Notices to owners are never limited."""

    def test_notices_of_changes_are_not_limited(self, client, alice, outbox, database):
        for number in range(25):
            ask(client, place={"REMOTE_ADDR": f"203.0.113.{number}"})
        before = len(outbox.sent())
        session = signed_in(client, alice)
        assert change(session, password="Another-Horse-1").status_code == 200
        assert change(session, phone=PHONE).status_code == 200
        assert type_in(client, "phone_change", PHONE, outbox.last(PHONE).code).status_code == 200
        assert change(session, email="new@example.com").status_code == 200
        assert (
            type_in(
                client, "email_change", "new@example.com", outbox.last("new@example.com").code
            ).status_code
            == 200
        )
        assert [kind for kind, to in outbox.kinds()[before:] if to == alice.email] == [
            "password_changed",
            "phone_changed",
            "email_changed",
        ]


class TestRequestsOfOneNetwork:
    """RECOVER: 30 in 5 minutes over all endpoints that send messages."""

    @pytest.fixture
    def app(self, make_app):
        return make_app(AUTH_RATE_LIMITS_ENABLED="true")

    def test_thirty_first_request_is_429(self, client, alice, database):
        paths = [
            ("/magiclink", {}),
            ("/otp", {}),
            ("/recover", {}),
            ("/resend", {"type": "signup"}),
            ("/auth/v1/magiclink", {}),
        ]
        for number in range(30):
            path, body = paths[number % 5]
            response = ask(client, f"nobody{number}@example.com", path=path, **body)
            assert response.headers["X-RateLimit-Remaining"] == str(29 - number)
        before = database.everything("outbox", "users", "one_time_tokens", "failure_counts")
        for path, body in paths:
            response = client.post(path, json={"email": alice.email} | body, environ_overrides=NETWORK)
            assert_error(response, 429, "over_request_rate_limit")
            assert 1 <= int(response.headers["Retry-After"]) <= 300
        assert database.everything("outbox", "users", "one_time_tokens", "failure_counts") == before
        ask(client, place=ELSEWHERE)
        later(database, mins=5)
        ask(client, place=THIRD)
        ask(client)

    def test_reauthentication_counts(self, client, alice):
        session = signed_in(client, alice)
        for number in range(30):
            ask(client, f"nobody{number}@example.com")
        response = session.client.get(
            "/reauthenticate", headers=session.authorization, environ_overrides=NETWORK
        )
        assert_error(response, 429, "over_request_rate_limit")


def test_disabled_rate_limits_disable_the_quota(make_app, alice, outbox):
    client = make_app(AUTH_RATE_LIMITS_ENABLED="false").test_client()
    for _ in range(25):
        ask(client)
    assert len(outbox.sent()) == 25


def test_settings_change_the_quota(make_app, alice, outbox, database):
    changes = {
        "AUTH_RATE_LIMIT_MESSAGES": "2 per minute; 3 per hour",
        "AUTH_RATE_LIMIT_MESSAGES_PER_RECIPIENT": "4 per hour",
    }
    client = make_app(AUTH_RATE_LIMITS_ENABLED="true", **changes).test_client()
    ask(client)
    ask(client)
    a_minute_later(database)
    for place in (NETWORK, ELSEWHERE, NETWORK, THIRD):
        ask(client, place=place)
    assert (len(outbox.sent()), outbox.suppressed()) == (4, 2)


def test_invalid_body_does_not_count(client, alice, outbox):
    for _ in range(3):
        response = client.post(
            "/magiclink", json={"email": alice.email, "create_user": "x"}, environ_overrides=NETWORK
        )
        assert_error(response, 400, "validation_failed", details=A_SENTENCE)
    ask(client)
    assert len(outbox.sent()) == 1
