"""How many messages one address is sent: over that a request answers as usual, sends nothing, and voids nothing.

Counted by recipient and network, and by recipient: neither can a stranger flood a mailbox, nor keep its owner from a link.
"""

import pytest

from tests.support.answers import A_SENTENCE, assert_error, assert_ok
from tests.support.cast import PASSWORD, Session
from tests.support.links import ON_ITS_WAY, OTHER_PHONE, PHONE, assert_signs_in, later, type_in
from tests.support.server import at_once

NETWORK, ELSEWHERE, THIRD = ({"REMOTE_ADDR": address} for address in ("198.51.100.1", "203.0.113.1", "192.0.2.1"))
EFFECTS = ("users", "identities", "one_time_tokens", "sessions")


@pytest.fixture
def app(make_app):
    """With limits, but not on how often one network may ask."""
    return make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_RECOVER="100000 per minute", AUTH_RATE_LIMIT_VERIFY="100000 per minute")


def ask(client, email="alice@example.com", place=NETWORK, path="/magiclink", **others):
    response = client.post(path, json={"phone" if email.startswith("+") else "email": email} | others, environ_overrides=place)
    assert_ok(response, ON_ITS_WAY)
    return response


def a_minute_later(database):
    later(database, mins=1)


class TestOneAMinute:
    def test_the_second_answers_as_usual_and_sends_nothing(self, client, alice, outbox):
        first = ask(client)
        second = ask(client)
        assert second.json["message"] == first.json["message"]
        assert second.json["message_id"] != first.json["message_id"]
        assert set(second.headers.keys()) == set(first.headers.keys())
        assert (len(outbox.sent()), outbox.nothings()) == (1, 1)

    def test_it_voids_nothing(self, client, alice, outbox, database):
        ask(client)
        before = database.everything(*EFFECTS)
        for _ in range(3):
            ask(client)
        assert database.everything(*EFFECTS) == before
        message = outbox.last()
        assert type_in(client, "magiclink", alice.email, message.code).status_code == 200

    def test_nor_the_link(self, client, alice, outbox):
        for _ in range(5):
            ask(client)
        assert_signs_in(client, "magiclink", outbox.last().token)

    def test_a_minute_later_the_next_is_sent(self, client, alice, outbox, database):
        ask(client)
        a_minute_later(database)
        ask(client)
        assert len(outbox.sent()) == 2

    def test_asking_meanwhile_does_not_make_the_minute_longer(self, client, alice, outbox, database):
        ask(client)
        later(database, secs=50)
        ask(client)
        later(database, secs=10)
        ask(client)
        assert len(outbox.sent()) == 2

    def test_it_is_one_over_all_endpoints(self, client, alice, outbox):
        ask(client)
        for path in ("/otp", "/recover", "/magiclink", "/auth/v1/magiclink"):
            ask(client, path=path)
        assert client.post("/signup", json={"email": alice.email, "password": PASSWORD}, environ_overrides=NETWORK).status_code == 201
        assert outbox.kinds() == [("magiclink", alice.email)]

    def test_a_sign_up_and_what_is_sent_again_count_too(self, client, outbox):
        assert client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD}, environ_overrides=NETWORK).status_code == 201
        ask(client, "dave@example.com", path="/resend", type="signup")
        assert outbox.kinds() == [("signup", "dave@example.com")]

    def test_every_spelling_of_an_address_is_one(self, client, alice, outbox):
        for email in ("alice@example.com", "ALICE@example.com", "Alice@EXAMPLE.COM"):
            ask(client, email)
        for phone in (PHONE, "+49 170 1234567", "+49-170-(123)4567"):
            ask(client, phone, path="/otp")
        assert outbox.kinds() == [("magiclink", alice.email), ("sms", PHONE)]

    def test_another_address_is_another(self, client, alice, bob, outbox):
        for email in (alice.email, bob.email):
            ask(client, email)
        assert len(outbox.sent()) == 2

    @pytest.mark.parametrize(
        ("places", "sent"), [(("2001:db8::1", "2001:db8::2"), 1), (("2001:db8::1", "2001:db8:0:1::1"), 2), (("::ffff:198.51.100.1", "198.51.100.1"), 1)]
    )
    def test_a_network_is_one_in_all_its_forms(self, client, alice, outbox, places, sent):
        for place in places:
            ask(client, place={"REMOTE_ADDR": place})
        assert len(outbox.sent()) == sent

    def test_a_header_is_no_network(self, client, alice, outbox):
        for number in range(3):
            client.post("/magiclink", json={"email": alice.email}, headers={"X-Forwarded-For": f"203.0.113.{number}"}, environ_overrides=NETWORK)
        assert len(outbox.sent()) == 1

    def test_an_unknown_address_counts_the_same(self, client, outbox, database):
        """Else the second answer, or the time that it takes, would tell."""
        ask(client, "nobody@example.com", create_user=False)
        ask(client, "nobody@example.com")
        assert (outbox.sent(), outbox.nothings(), database.count("users")) == ([], 2, 0)
        a_minute_later(database)
        ask(client, "nobody@example.com")
        assert (len(outbox.sent()), database.count("users")) == (1, 1)

    def test_over_it_no_user_is_made(self, client, outbox, database):
        ask(client, "dave@example.com", create_user=False)
        ask(client, "dave@example.com", data={"x": 1})
        assert (database.count("users"), database.count("identities")) == (0, 0)

    def test_over_it_no_sign_up_is_replaced(self, client, outbox, database):
        body = {"email": "dave@example.com", "password": PASSWORD}
        client.post("/signup", json=body, environ_overrides=NETWORK)
        before = database.everything(*EFFECTS)
        again = client.post("/signup", json=body | {"password": "Mallorys-Horse-1"}, environ_overrides=NETWORK)
        assert again.status_code == 201
        assert database.everything(*EFFECTS) == before
        assert_signs_in(client, "signup", outbox.last().token)

    def test_twenty_at_once_send_one(self, app, alice, outbox):
        at_once(20, lambda _: ask(app.test_client()))
        assert (len(outbox.sent()), outbox.nothings()) == (1, 19)


class TestFiveAnHour:
    def test_from_one_network(self, client, alice, outbox, database):
        for _ in range(8):
            ask(client)
            database.run("UPDATE failure_counts SET expires_at = now() WHERE key LIKE '%% 60'")
        assert (len(outbox.sent()), outbox.nothings()) == (5, 3)

    def test_an_hour_later_there_are_more(self, client, alice, outbox, database):
        for _ in range(6):
            ask(client)
            a_minute_later(database)
        assert len(outbox.sent()) == 5
        later(database, hours=1)
        ask(client)
        assert len(outbox.sent()) == 6

    def test_another_network_has_its_own(self, client, alice, outbox, database):
        for _ in range(6):
            ask(client)
            a_minute_later(database)
        ask(client, place=ELSEWHERE)
        assert len(outbox.sent()) == 6


class TestTwentyAnHour:
    def test_from_wherever(self, client, alice, outbox, database):
        for number in range(25):
            ask(client, place={"REMOTE_ADDR": f"203.0.113.{number}"})
        assert (len(outbox.sent()), outbox.nothings()) == (20, 5)
        later(database, hours=1)
        ask(client)
        assert len(outbox.sent()) == 21

    def test_one_network_cannot_use_them_up(self, client, alice, outbox):
        """What was refused is not sent: Mallory, who asks as often as she likes, must not keep Alice from her link."""
        for _ in range(40):
            ask(client, place=ELSEWHERE)
        assert len(outbox.sent()) == 1
        ask(client)
        assert len(outbox.sent()) == 2
        assert_signs_in(client, "magiclink", outbox.last().token)

    def test_nor_keep_her_from_a_change_of_email(self, client, alice, outbox):
        session = signed_in(client, alice)
        for _ in range(40):
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
        return make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_RECOVER="100000 per minute", AUTH_RATE_LIMIT_SMS_TOTAL="3 per hour")

    def test_over_it_no_sms_is_sent_to_anybody(self, client, outbox, database):
        for number in range(5):
            ask(client, f"+4917012345{number:02}", path="/otp")
        response = client.post("/signup", json={"phone": OTHER_PHONE, "password": PASSWORD})
        assert response.status_code == 201
        assert (len(outbox.sent()), outbox.nothings()) == (3, 3)
        ask(client, "dave@example.com")
        assert outbox.kinds()[-1] == ("magiclink", "dave@example.com")
        later(database, hours=1)
        ask(client, OTHER_PHONE, path="/otp")
        assert len(outbox.sent(OTHER_PHONE)) == 1

    def test_who_is_signed_in_is_told(self, client, alice, outbox):
        for number in range(3):
            ask(client, f"+4917012345{number:02}", path="/otp")
        session = signed_in(client, alice)
        assert_error(change(session, phone=OTHER_PHONE), 429, "over_sms_send_rate_limit")
        assert session.get("/user").json["new_phone"] is None
        assert outbox.sent(OTHER_PHONE) == []

    def test_what_was_refused_for_one_number_is_not_counted_for_all(self, client, outbox):
        """Else whoever asks for one number over and over, which costs nothing, stops the SMS of everybody."""
        for _ in range(10):
            ask(client, PHONE, place=ELSEWHERE, path="/otp")
        assert len(outbox.sent()) == 1
        ask(client, OTHER_PHONE, path="/otp")
        assert len(outbox.sent(OTHER_PHONE)) == 1

    def test_the_default_is_two_hundred_an_hour(self, make_app, outbox, database):
        client = make_app(AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_RECOVER="100000 per minute").test_client()
        ask(client, PHONE, path="/otp")
        assert database.run("UPDATE failure_counts SET count = 199 WHERE key = 'sms 3600'") == 1
        ask(client, OTHER_PHONE, path="/otp")
        ask(client, "+491705555555", path="/otp")
        assert outbox.kinds() == [("sms", PHONE), ("sms", OTHER_PHONE)]


class TestWhoIsSignedIn:
    """GET /reauthenticate and PUT /user say 429: who asks is no stranger, and waits for the message."""

    @pytest.fixture
    def session(self, client, alice):
        return signed_in(client, alice)

    def reauthenticate(self, session, place=NETWORK):
        return session.client.get("/reauthenticate", headers=session.authorization, environ_overrides=place)

    def test_a_second_code_within_a_minute(self, session, outbox, database):
        assert_ok(self.reauthenticate(session), ON_ITS_WAY)
        before = database.everything("one_time_tokens", "outbox")
        response = self.reauthenticate(session)
        assert_error(response, 429, "over_email_send_rate_limit")
        assert 50 <= int(response.headers["Retry-After"]) <= 60
        assert database.everything("one_time_tokens", "outbox") == before
        a_minute_later(database)
        assert_ok(self.reauthenticate(session), ON_ITS_WAY)

    def test_a_code_by_sms(self, session, database):
        database.run("UPDATE users SET phone = %(phone)s, phone_confirmed_at = now(), email_confirmed_at = NULL", phone=PHONE)
        assert_ok(self.reauthenticate(session), ON_ITS_WAY)
        assert_error(self.reauthenticate(session), 429, "over_sms_send_rate_limit")

    @pytest.mark.parametrize(
        ("body", "error_code"), [({"email": "new@example.com"}, "over_email_send_rate_limit"), ({"phone": PHONE}, "over_sms_send_rate_limit")]
    )
    def test_a_second_change_to_an_address_within_a_minute(self, session, outbox, database, body, error_code):
        assert change(session, **body).status_code == 200
        before = database.everything("users", "one_time_tokens", "outbox", "sessions")
        response = change(session, **body, data={"x": 1}, password="Another-Horse-1")
        assert_error(response, 429, error_code)
        assert 50 <= int(response.headers["Retry-After"]) <= 60
        assert database.everything("users", "one_time_tokens", "outbox", "sessions") == before
        a_minute_later(database)
        assert change(session, **body).status_code == 200
        assert len(outbox.sent()) == 2

    def test_where_one_of_two_is_over_nothing_is_sent(self, session, outbox, database):
        assert change(session, email="new@example.com").status_code == 200
        assert_error(change(session, email="new@example.com", phone=PHONE), 429, "over_email_send_rate_limit")
        assert outbox.kinds() == [("email_change", "new@example.com")]
        assert session.get("/user").json["new_phone"] is None

    def test_what_strangers_asked_for_counts_for_their_network(self, client, session, outbox):
        ask(client, "new@example.com", place=ELSEWHERE, create_user=False)
        assert change(session, email="new@example.com").status_code == 200
        assert outbox.kinds() == [("email_change", "new@example.com")]

    def test_a_refused_change_does_not_count(self, client, session, bob, outbox):
        for _ in range(3):
            assert_error(change(session, email=bob.email), 409, "email_exists")
        ask(client, bob.email)
        assert outbox.kinds() == [("magiclink", bob.email)]

    def test_five_changes_of_address_an_hour(self, session, database):
        for number in range(5):
            assert change(session, email=f"new{number}@example.com").status_code == 200
        assert_error(change(session, email="new5@example.com"), 429, "over_request_rate_limit")
        assert_error(change(session, phone=PHONE), 429, "over_request_rate_limit")
        assert change(session, data={"x": 1}).status_code == 200
        assert session.get("/user").json["new_email"] == "new4@example.com"


class TestNotices:
    """What warns an owner is never withheld."""

    def test_of_a_change_of_password_email_and_phone(self, client, alice, outbox, database):
        for number in range(25):
            ask(client, place={"REMOTE_ADDR": f"203.0.113.{number}"})
        before = len(outbox.sent())
        session = signed_in(client, alice)
        assert change(session, password="Another-Horse-1").status_code == 200
        assert change(session, phone=PHONE).status_code == 200
        assert type_in(client, "phone_change", PHONE, outbox.last(PHONE).code).status_code == 200
        assert change(session, email="new@example.com").status_code == 200
        assert type_in(client, "email_change", "new@example.com", outbox.last("new@example.com").code).status_code == 200
        assert [kind for kind, to in outbox.kinds()[before:] if to == alice.email] == ["password_changed", "phone_changed", "email_changed"]


class TestHowOftenOneNetworkAsks:
    """RECOVER: 30 in 5 minutes, over all that sends a message."""

    @pytest.fixture
    def app(self, make_app):
        return make_app(AUTH_RATE_LIMITS_ENABLED="true")

    def test_the_thirty_first_is_429(self, client, alice, database):
        paths = [("/magiclink", {}), ("/otp", {}), ("/recover", {}), ("/resend", {"type": "signup"}), ("/auth/v1/magiclink", {})]
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

    def test_reauthentication_counts_there_too(self, client, alice):
        session = signed_in(client, alice)
        for number in range(30):
            ask(client, f"nobody{number}@example.com")
        response = session.client.get("/reauthenticate", headers=session.authorization, environ_overrides=NETWORK)
        assert_error(response, 429, "over_request_rate_limit")


def test_limits_that_are_lifted_lift_this_one(make_app, alice, outbox):
    client = make_app(AUTH_RATE_LIMITS_ENABLED="false").test_client()
    for _ in range(25):
        ask(client)
    assert len(outbox.sent()) == 25


def test_the_settings_are_heeded(make_app, alice, outbox, database):
    changes = {"AUTH_RATE_LIMIT_MESSAGES": "2 per minute; 3 per hour", "AUTH_RATE_LIMIT_MESSAGES_PER_RECIPIENT": "4 per hour"}
    client = make_app(AUTH_RATE_LIMITS_ENABLED="true", **changes).test_client()
    ask(client)
    ask(client)
    a_minute_later(database)
    for place in (NETWORK, ELSEWHERE, NETWORK, THIRD):
        ask(client, place=place)
    assert (len(outbox.sent()), outbox.nothings()) == (4, 2)


def test_a_body_that_is_not_valid_does_not_count(client, alice, outbox):
    for _ in range(3):
        response = client.post("/magiclink", json={"email": alice.email, "create_user": "x"}, environ_overrides=NETWORK)
        assert_error(response, 400, "validation_failed", details=A_SENTENCE)
    ask(client)
    assert len(outbox.sent()) == 1
