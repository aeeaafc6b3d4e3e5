"""Limits on messages to one address: a request over them gets the usual response, sends and voids nothing.

Messages are counted by recipient and network, and by recipient, so that a stranger can neither flood a mailbox nor keep
its owner from a link.
"""

import pytest

from tests.support.answers import assert_error, assert_ok
from tests.support.checked_rows import statements_run
from tests.support.elapsed import assert_left
from tests.support.links import ON_ITS_WAY, OTHER_PHONE, PHONE, assert_signs_in, hand_in, later, type_in
from tests.support.server import at_once
from tests.support.users import DAVE, NEW_EMAIL, PASSWORD, session_of

NETWORK, ELSEWHERE, THIRD = (
    {"REMOTE_ADDR": address} for address in ("198.51.100.1", "203.0.113.1", "192.0.2.1")
)
EFFECTS = ("users", "identities", "one_time_tokens", "sessions")
# Limits on messages, but not on the requests of a network.
LIMITS = {
    "AUTH_RATE_LIMITS_ENABLED": "true",
    "AUTH_RATE_LIMIT_RECOVER": "100000 per minute",
    "AUTH_RATE_LIMIT_VERIFY": "100000 per minute",
    "AUTH_RATE_LIMIT_SIGNUP": "100000 per minute",
}


@pytest.fixture
def app(make_app):
    return make_app(**LIMITS)


@pytest.fixture
def session(client, alice):
    return session_of(client, alice.try_to_sign_in(client=client))


@pytest.fixture
def counts(outbox):
    """The numbers of messages that are sent, and that are not."""
    return lambda: (len(outbox.sent()), outbox.suppressed())


def ask(client, to="alice@example.com", network=NETWORK, path="/magiclink", **others):
    body = {"phone" if to.startswith("+") else "email": to} | others
    response = client.post(path, json=body, environ_overrides=network)
    assert_ok(response, ON_ITS_WAY)
    return response


def sign_up(client, **body):
    response = client.post("/signup", json={"password": PASSWORD} | body, environ_overrides=NETWORK)
    assert response.status_code == 201


def ask_from_many_networks(client, count):
    for number in range(count):
        ask(client, network={"REMOTE_ADDR": f"203.0.113.{number}"})


def change(session, **body):
    return session.client.put("/user", json=body, headers=session.authorization, environ_overrides=NETWORK)


def prove_phone(database):
    database.run(f"UPDATE users SET phone = '{PHONE}', phone_proved = true, phone_confirmed_at = now()")


def assert_refused_within_a_minute(response, error_code):
    assert_error(response, 429, error_code)
    assert_left(int(response.headers["Retry-After"]), of=60)


class TestOneAMinute:
    def test_second_request_within_a_minute_gets_the_same_response_and_sends_nothing(
        self, client, alice, outbox, database, counts
    ):
        first = ask(client)
        before = database.everything(*EFFECTS)
        for _ in range(3):
            second = ask(client)
        assert second.json["message_id"] != first.json["message_id"]
        assert set(second.headers.keys()) == set(first.headers.keys())
        assert counts() == (1, 3)
        assert database.everything(*EFFECTS) == before
        assert type_in(client, "magiclink", alice.email, outbox.last().code).status_code == 200
        # A request over the limit does not extend the minute.
        later(database, secs=30)
        ask(client)
        later(database, secs=30)
        ask(client)
        assert len(outbox.sent()) == 2

    def test_endpoints_share_the_limit(self, client, alice, outbox):
        ask(client)
        for path in ("/otp", "/recover", "/magiclink", "/auth/v1/magiclink"):
            ask(client, path=path)
        sign_up(client, email=alice.email)
        sign_up(client, email=DAVE)
        ask(client, DAVE, path="/resend", type="signup")
        assert outbox.kinds() == [("magiclink", alice.email), ("signup", DAVE)]

    def test_sign_up_over_the_limit_replaces_no_earlier_one(self, client, outbox, database):
        """So, only the password of the first sign-up is in doubt."""
        sign_up(client, email=DAVE)
        before = database.everything("identities", "one_time_tokens")
        sign_up(client, email=DAVE, password="Mallorys-Horse-1")
        assert database.everything("identities", "one_time_tokens") == before
        assert hand_in(client, "signup", outbox.last().token).json["password_removed"] is True

    def test_concurrent_requests_send_one_message(self, app, alice, counts):
        at_once(20, lambda _: ask(app.test_client()))
        assert counts() == (1, 19)


class TestLongerLimits:
    def test_sixth_message_of_a_network_within_an_hour_is_not_sent(self, client, alice, database, counts):
        for _ in range(8):
            ask(client)
            later(database, mins=1)
        assert counts() == (5, 3)
        ask(client, network=ELSEWHERE)
        later(database, hours=1)
        ask(client)
        assert counts() == (7, 3)

    def test_twenty_first_message_of_all_networks_is_not_sent(self, client, alice, database, counts):
        ask_from_many_networks(client, 25)
        assert counts() == (20, 5)
        later(database, hours=1)
        ask(client)
        assert counts() == (21, 5)

    def test_one_network_cannot_exhaust_the_limit(self, client, session, outbox):
        for _ in range(22):
            ask(client, network=ELSEWHERE)
            ask(client, NEW_EMAIL, network=ELSEWHERE, create_user=False)
        assert len(outbox.sent()) == 1
        ask(client)
        assert len(outbox.sent()) == 2
        assert_signs_in(client, "magiclink", outbox.last().token)
        assert change(session, email=NEW_EMAIL).status_code == 200


def make_networks(count, start=0):
    """Return networks of different customers."""
    return [
        {"REMOTE_ADDR": f"203.0.{number // 250}.{number % 250}"} for number in range(start, start + count)
    ]


def numbers(count, start=0):
    return [f"+4917012{number:05}" for number in range(start, start + count)]


def set_counts(database, **counts):
    for key, count in counts.items():
        database.run(
            "INSERT INTO failure_counts (key, count, expires_at)"
            " VALUES (%(key)s, %(count)s, now() + interval '30 minutes')"
            " ON CONFLICT (key) DO UPDATE SET count = excluded.count",
            key=f"{key} 3600", count=count,
        )  # fmt: skip


def assert_unavailable(response):
    assert_error(response, 503, "service_unavailable")
    assert 0 < int(response.headers["Retry-After"]) <= 3600


class TestTotals:
    """The totals of messages for all strangers together, and for one network."""

    def test_hundreds_of_networks_get_what_the_totals_allow_and_never_learn_who_has_an_account(
        self, make_app, alice, bob, outbox, database
    ):
        """A third of the messages each are for sign-ups, links and codes by SMS.

        2,000 networks lead to the same result, but take a minute.
        """
        network_count = 200
        totals = {"AUTH_RATE_LIMIT_MAIL_TOTAL": "60 per hour", "AUTH_RATE_LIMIT_SMS_TOTAL": "40 per hour"}
        client = make_app(**LIMITS, **totals).test_client()
        database.run(
            "UPDATE users SET phone = %(phone)s, phone_proved = true, phone_confirmed_at = now()"
            " WHERE id = %(id)s",
            phone=PHONE, id=bob.id,
        )  # fmt: skip

        def effects(path, number, **body):
            (network,), before = make_networks(1, number), statements_run()
            body |= {"password": PASSWORD} if path == "/signup" else {}
            response = client.post(path, json=body, environ_overrides=network)
            types = {name: type(value) for name, value in response.json.items()}
            return response.status_code, types, statements_run() - before

        def assert_alike(number):
            for path in ("/signup", "/magiclink", "/recover", "/otp"):
                kind = "phone" if path == "/otp" else "email"
                taken, free = (
                    (PHONE, f"+4917099{number:05}")
                    if kind == "phone"
                    else (bob.email, f"f{number}{path[1:]}@example.com")
                )
                assert effects(path, number, **{kind: taken}) == effects(path, number + 1, **{kind: free}), (
                    path
                )
                number += 2

        for number in range(network_count):
            if number in (30, network_count // 2, network_count - 1):
                assert_alike(10_000 + 10 * number)
            if number == network_count // 2:
                ask(client, alice.email, path="/recover")
            path, body = [
                ("/signup", {"email": f"s{number}@example.net"}),
                ("/magiclink", {"email": f"m{number}@example.net"}),
                ("/otp", {"phone": numbers(1, number)[0]}),
            ][number % 3]
            effects(path, number, **body)
        flood = {f"{each}{number}@example.net" for number in range(network_count) for each in "sm"}
        strangers = [to for _, to in outbox.kinds() if to in flood | {*numbers(network_count)}]
        by_sms = [to for to in strangers if to.startswith("+")]
        # The requests of `assert_alike` used up the rest of both totals.
        assert (len(strangers) - len(by_sms), len(by_sms)) == (60 - 6, 30 - 2)
        assert len(outbox.sent(alice.email)) == 1

    def test_mail_to_a_proved_address_counts_but_is_not_stopped(self, client, alice, outbox, database):
        set_counts(database, mail=1000)
        ask(client, alice.email)
        ask(client, DAVE)
        assert outbox.kinds() == [("magiclink", alice.email)]
        assert database.value("SELECT count FROM failure_counts WHERE key = 'mail 3600'") == 1002

    def test_sms_of_strangers_stop_at_three_quarters_and_all_at_the_total(
        self, client, alice, service_role, outbox, database
    ):
        prove_phone(database)
        set_counts(database, sms=149)
        for number, network in zip((*numbers(2), PHONE), make_networks(3), strict=True):
            ask(client, number, network, path="/otp")
        assert [to for _, to in outbox.kinds()] == [numbers(1)[0], PHONE]
        set_counts(database, sms=200)
        later(database, mins=1)
        ask(client, PHONE, ELSEWHERE, path="/otp")
        assert len(outbox.sent(PHONE)) == 1

    @pytest.mark.parametrize(
        ("address", "address_in_the_network", "address_elsewhere"),
        [
            ("198.51.100.1", "198.51.100.1", "198.51.100.2"),
            ("2001:db8:1:1::1", "2001:db8:1:ffff::1", "2001:db8:2:1::1"),
        ],
    )
    def test_one_network_can_send_a_tenth_and_further_requests_use_up_no_total(
        self, make_app, outbox, database, address, address_in_the_network, address_elsewhere
    ):
        client = make_app(**LIMITS).test_client()
        for digits in numbers(20):
            ask(client, digits, {"REMOTE_ADDR": address}, path="/otp")
        for digits in numbers(200, 20):
            ask(client, digits, {"REMOTE_ADDR": address_in_the_network}, path="/otp")
        assert len(outbox.sent()) == 20
        assert database.value("SELECT count FROM failure_counts WHERE key = 'sms 3600'") == 20
        ask(client, PHONE, {"REMOTE_ADDR": address_elsewhere}, path="/otp")
        assert len(outbox.sent(PHONE)) == 1

    @pytest.mark.parametrize("channel", ["mail", "sms"])
    def test_sign_up_is_429_beyond_the_tenth_and_503_at_the_total_for_every_address(
        self, client, alice, database, channel
    ):
        prove_phone(database)
        taken, free = (alice.email, DAVE) if channel == "mail" else (PHONE, OTHER_PHONE)
        before = database.everything("outbox", *EFFECTS)

        def sign_up_response(to):
            body = {"email" if "@" in to else "phone": to, "password": PASSWORD}
            return client.post("/signup", json=body, environ_overrides=NETWORK)

        set_counts(database, **{f"{channel}_tenth 198.51.100.1": 100})
        name = "email" if channel == "mail" else "sms"
        for to in (taken, free):
            assert_error(sign_up_response(to), 429, f"over_{name}_send_rate_limit")
        set_counts(database, **{f"{channel}_tenth 198.51.100.1": 0, channel: 1000})
        for to in (taken, free):
            assert_unavailable(sign_up_response(to))
        assert database.everything("outbox", *EFFECTS) == before

    def test_operator_gets_429_at_the_total_and_the_service_role_key_has_no_tenth(
        self, client, service_role, database
    ):
        def invite(email):
            body = {"email": email}
            return client.post("/admin/invite", json=body, headers=service_role, environ_overrides=NETWORK)

        set_counts(database, **{"mail_tenth 198.51.100.1": 1000})
        assert invite(DAVE).status_code == 200
        set_counts(database, mail=1000)
        assert_error(invite(NEW_EMAIL), 429, "over_email_send_rate_limit")
        assert database.count("users") == 1

    def test_owner_defends_the_account_at_every_total(self, client, alice, session, outbox, database):
        set_counts(database, mail=1000, sms=200, **{"mail_tenth 198.51.100.1": 1000})
        ask(client, alice.email, path="/recover")
        response = session.client.get(
            "/reauthenticate", headers=session.authorization, environ_overrides=ELSEWHERE
        )
        assert_ok(response, ON_ITS_WAY)
        assert change(session, password="Another-Horse-1").status_code == 200
        assert session.post("/logout?scope=others").status_code == 200
        assert [kind for kind, _ in outbox.kinds()] == ["recovery", "reauthentication", "password_changed"]

    @pytest.mark.parametrize("counts", [{}, {"sms": 150}, {"sms_tenth 198.51.100.1": 20, "sms": 20}], ids=str)
    def test_known_and_unknown_numbers_cost_the_same_statements(self, client, alice, database, parts, counts):
        prove_phone(database)
        costs = set()
        for phone in (PHONE, OTHER_PHONE):
            set_counts(database, **counts)
            before = statements_run()
            ask(client, phone, path="/otp", create_user=False)
            costs.add(statements_run() - before)
            database.run("DELETE FROM failure_counts")
        assert len(costs) == 1

    def test_concurrent_requests_take_exactly_the_tenth(self, app, outbox):
        at_once(50, lambda number: ask(app.test_client(), numbers(50)[number], path="/otp"))
        assert len(outbox.sent()) == 20


class TestSignedInUsers:
    """GET /reauthenticate and PUT /user return 429, because the user waits for the message.

    What others have requested for an address is hidden from a user who wants to change to it.
    """

    def test_second_code_within_a_minute_is_429(self, session, database):
        options = {"headers": session.authorization, "environ_overrides": NETWORK}

        def reauthenticate():
            return session.client.get("/reauthenticate", **options)

        assert_ok(reauthenticate(), ON_ITS_WAY)
        before = database.everything("one_time_tokens", "outbox")
        assert_refused_within_a_minute(reauthenticate(), "over_email_send_rate_limit")
        assert database.everything("one_time_tokens", "outbox") == before
        later(database, mins=1)
        assert_ok(reauthenticate(), ON_ITS_WAY)

    @pytest.mark.parametrize("channel", ["email", "sms"])
    def test_second_change_to_an_address_within_a_minute_is_429_and_changes_nothing(
        self, session, outbox, database, channel
    ):
        body, other = {"email": NEW_EMAIL}, {"phone": PHONE}
        if channel == "sms":
            body, other = other, body
        assert change(session, **body).status_code == 200
        before = database.everything("outbox", *EFFECTS)
        for other_changes in ({"data": {"x": 1}, "password": "Another-Horse-1"}, other):
            assert_refused_within_a_minute(
                change(session, **body, **other_changes), f"over_{channel}_send_rate_limit"
            )
            assert database.everything("outbox", *EFFECTS) == before
        later(database, mins=1)
        assert change(session, **body).status_code == 200
        assert len(outbox.sent()) == 2

    @pytest.mark.parametrize("channel", ["email", "sms"])
    def test_change_to_an_address_that_others_have_used_up_answers_as_ever_and_sends_nothing(
        self, session, client, outbox, database, channel
    ):
        body = {"email": NEW_EMAIL} if channel == "email" else {"phone": PHONE}
        (to,), (kind,) = body.values(), body
        for number in range(20):
            network = {"REMOTE_ADDR": f"203.0.113.{number}"}
            ask(client, to, network, path="/otp", create_user=False)
        response = change(session, **body, password="Another-Horse-1")
        assert (response.status_code, response.json[f"new_{kind}"]) == (200, to)
        assert response.headers["X-RateLimit-Limit"] != "20"
        assert outbox.kinds() == [("password_changed", "alice@example.com")]
        assert (database.count("one_time_tokens", "purpose = 'undo'"), database.count("one_time_tokens")) == (
            1,
            1,
        )
        database.run("DELETE FROM failure_counts")
        assert change(session, **body).status_code == 200
        assert len(outbox.sent(to)) == 1


def test_settings_change_the_quota(make_app, alice, database, counts):
    changes = {
        "AUTH_RATE_LIMIT_MESSAGES": "2 per minute; 3 per hour",
        "AUTH_RATE_LIMIT_MESSAGES_PER_RECIPIENT": "4 per hour",
    }
    client = make_app(AUTH_RATE_LIMITS_ENABLED="true", **changes).test_client()
    ask(client)
    ask(client)
    later(database, mins=1)
    for network in (NETWORK, ELSEWHERE, NETWORK, THIRD):
        ask(client, network=network)
    assert counts() == (4, 2)
