"""Failed passwords: limits per address and network, and per address for networks unknown to the user."""

from typing import Any

import pytest

from auth.web.context import EXTENSION
from tests.support.answers import A_SENTENCE, assert_error
from tests.support.checked_rows import statements_run
from tests.support.elapsed import assert_left
from tests.support.full_queue import full_queue
from tests.support.links import OTHER_PHONE, PHONE
from tests.support.server import at_once
from tests.support.services import ELSEWHERE, HOME, OFFICE, at
from tests.support.users import PASSWORD, WRONG_PASSWORD, register, session_of, sign_in

CHANGE, PROOF = {"password": "Another-Horse-1"}, {"current_password": PASSWORD}
TOO_MANY = "Too many failed sign-ins; try again later, or sign in with a link"


@pytest.fixture
def limited(make_app):
    """Make a client with the default or the given limits of failures, and high limits for everything else."""

    def make(**limits):
        changes = {f"AUTH_RATE_LIMIT_{name}": value for name, value in limits.items()}
        changes |= {"AUTH_RATE_LIMITS_ENABLED": "true", "AUTH_RATE_LIMIT_LOGIN": "1000 per minute"}
        return make_app(**changes).test_client()

    return make


def log_in(client, email, password=PASSWORD, place=HOME, path="/token?grant_type=password"):
    return client.post(path, json={"email": email, "password": password}, **at(place))


def fail(client, email, times, place=HOME):
    """Try a wrong password `times` times; return the statuses."""
    return [log_in(client, email, WRONG_PASSWORD, place).status_code for _ in range(times)]


def assert_invalid(response):
    assert_error(response, 401, "invalid_credentials", "Invalid login credentials")


def assert_locked(response, seconds):
    assert_error(response, 429, "over_request_rate_limit", TOO_MANY)
    assert response.headers["X-RateLimit-Remaining"] == "0"
    assert_left(int(response.headers["Retry-After"]), of=seconds)


def pass_time(database, seconds):
    database.run(f"UPDATE failure_counts SET expires_at = expires_at - interval '{seconds} seconds'")


def fail_from_network(client, email, number):
    """Try a wrong password once from a new network."""
    return fail(client, email, 1, f"192.0.2.{number}")


class TestByAddressAndNetwork:
    def test_ten_failures_in_fifteen_minutes_are_allowed(self, limited, alice, database):
        client = limited()
        for remaining in range(9, -1, -1):
            response = log_in(client, alice.email, WRONG_PASSWORD)
            assert_invalid(response)
            assert response.headers["X-RateLimit-Limit"] == "10"
            assert response.headers["X-RateLimit-Remaining"] == str(remaining)
        for _ in range(20):
            assert_locked(log_in(client, alice.email, WRONG_PASSWORD), 900)
        pass_time(database, 600)
        assert_locked(log_in(client, alice.email), 300)
        # Refused attempts do not prolong the window.
        pass_time(database, 301)
        assert log_in(client, alice.email).status_code == 200

    def test_right_password_is_refused_beyond_the_limit(self, limited, alice, bob, database, hashes):
        client = limited()
        fail(client, alice.email, 10)
        before, hashes_before = database.everything("users", "sessions", "known_networks"), hashes.count
        assert_locked(log_in(client, alice.email), 900)
        assert_locked(log_in(client, alice.email, path="/login-admin"), 900)
        assert database.everything("users", "sessions", "known_networks") == before
        assert hashes.count == hashes_before
        # Other networks and users have their own limit.
        for email, place in ((alice.email, ELSEWHERE), (bob.email, HOME)):
            assert log_in(client, email, place=place).status_code == 200

    def test_unknown_address_gets_the_same_for_the_same_work(self, limited, alice, service_role, hashes):
        client = limited()
        body = {"email": "nopassword@example.com", "email_confirm": True}
        client.post("/admin/users", json=body, headers=service_role)
        # The first log-in of an application prepares statements.
        log_in(client, "somebody@example.com", WRONG_PASSWORD)
        runs: dict[str, list[Any]] = {alice.email: [], "nobody@example.com": [], "nopassword@example.com": []}
        for email, answers in runs.items():
            for _ in range(12):
                statements_before, hashes_before = statements_run(), hashes.count
                answer = log_in(client, email, WRONG_PASSWORD)
                headers = [answer.headers.get(f"X-RateLimit-{name}") for name in ("Limit", "Remaining")]
                cost = statements_run() - statements_before, hashes.count - hashes_before
                answers.append((answer.status_code, answer.data, headers, cost))
        first, *others = runs.values()
        assert others == [first, first]
        assert [cost[1] for *_, cost in first] == [1] * 10 + [0] * 2


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ("banned_until = 'infinity'", "/token?grant_type=password"),
        ("email_confirmed_at = NULL", "/token?grant_type=password"),
        ("role = 'authenticated'", "/login-admin"),
    ],
    ids=["banned", "unconfirmed", "no administrator"],
)
def test_right_password_of_a_refused_user_is_not_counted_and_its_network_stays_unknown(
    limited, alice, database, change, path
):
    client = limited(ACCOUNT_FAILURES="1 per day")
    database.run(f"UPDATE users SET {change}")
    assert {log_in(client, alice.email, path=path).status_code for _ in range(12)} == {403}
    assert {row.count for row in database.all("SELECT count FROM failure_counts")} <= {0}
    database.run("UPDATE users SET banned_until = NULL, email_confirmed_at = now()")
    assert not is_known_network(client, alice.email, HOME)


class TestByUser:
    """Wrong passwords for a user's email and phone add up, without a sign that both are the same user's."""

    @pytest.fixture
    def phil(self, client, service_role):
        body = {"email": "phil@example.com", "phone": PHONE, "email_confirm": True, "phone_confirm": True}
        response = client.post("/admin/users", json=body | {"password": PASSWORD}, headers=service_role)
        assert response.status_code == 200
        return "phil@example.com"

    def by_phone(self, client, password, phone=PHONE, place=HOME):
        body = {"phone": phone, "password": password}
        return client.post("/token?grant_type=password", json=body, **at(place))

    def test_right_password_is_refused_after_ten_failures_in_all(self, limited, phil, database):
        client = limited()
        assert fail(client, phil, 5) == [401] * 5
        assert [self.by_phone(client, WRONG_PASSWORD).status_code for _ in range(4)] == [401] * 4
        # A right password returns its own count.
        assert [self.by_phone(client, PASSWORD).status_code for _ in range(3)] == [200] * 3
        assert fail(client, phil, 1) == [401]
        assert_invalid(self.by_phone(client, PASSWORD))
        assert_invalid(log_in(client, phil))
        assert database.count("sessions") == 3
        pass_time(database, 901)
        assert self.by_phone(client, PASSWORD).status_code == 200

    def test_phone_of_a_locked_user_looks_like_an_unknown_one(self, limited, phil, hashes, database):
        client = limited()
        fail(client, phil, 11)
        pass_time(database, 100)
        outcomes = []
        for phone in (PHONE, OTHER_PHONE):
            statements_before, hashes_before = statements_run(), hashes.count
            response = self.by_phone(client, PASSWORD, phone)
            assert_invalid(response)
            cost = statements_run() - statements_before, hashes.count - hashes_before
            headers = [response.headers[f"X-RateLimit-{name}"] for name in ("Limit", "Remaining", "Reset")]
            outcomes.append((headers, cost))
        assert outcomes[0] == outcomes[1]

    def test_right_password_signs_in_nobody_after_fifty_concurrent_ones_by_email_and_phone(
        self, limited, phil
    ):
        client = limited()
        at_once(
            50, lambda number: fail(client, phil, 1) if number % 2 else self.by_phone(client, WRONG_PASSWORD)
        )
        assert {log_in(client, phil).status_code, self.by_phone(client, PASSWORD).status_code} <= {401, 429}


class TestByAddressAlone:
    """100 failures a day from networks where the user has never signed in."""

    def test_failures_of_unknown_networks_add_up(self, limited, alice, database):
        client = limited(ACCOUNT_FAILURES="5 per day")
        for email in (alice.email, "nobody@example.com"):
            assert [fail_from_network(client, email, number) for number in range(5)] == [[401]] * 5
            assert_locked(log_in(client, email, WRONG_PASSWORD, "192.0.2.9"), 86_400)
        pass_time(database, 86_401)
        assert fail_from_network(client, alice.email, 9) == [401]
        # A hundred a day by default.
        client = limited()
        database.run("UPDATE failure_counts SET count = 99 WHERE key = %(key)s", key=f"account {alice.email}")
        assert [fail_from_network(client, alice.email, number) for number in (2, 3)] == [[401], [429]]

    def test_failures_elsewhere_do_not_lock_a_known_network(self, limited, alice, hashes):
        client = limited(ACCOUNT_FAILURES="5 per day")
        assert log_in(client, alice.email, place=HOME).status_code == 200
        for number in range(10):
            fail_from_network(client, alice.email, number)
        assert log_in(client, alice.email, place=HOME).status_code == 200
        hashes_before = hashes.count
        assert_locked(log_in(client, alice.email, place=ELSEWHERE), 86_400)
        assert hashes.count == hashes_before

    def test_sign_in_by_link_works_beyond_the_limit_and_makes_the_network_known(self, limited, alice, outbox):
        client = limited(ACCOUNT_FAILURES="3 per day")
        for number in range(4):
            fail_from_network(client, alice.email, number)
        assert log_in(client, alice.email, place=OFFICE).status_code == 429
        client.post("/magiclink", json={"email": alice.email}, **at(OFFICE))
        response = client.get(f"/verify?type=magiclink&token={outbox.last(alice.email).token}", **at(OFFICE))
        assert "access_token=" in response.location
        assert log_in(client, alice.email, place=OFFICE).status_code == 200
        assert log_in(client, alice.email, place=ELSEWHERE).status_code == 429


def is_known_network(client, email, place):
    """Whether the user may sign in from a network while the limit for unknown networks is used up."""
    fail(client, email, 2, "198.18.0.1")
    return log_in(client, email, place=place).status_code == 200


class TestKnownNetworks:
    @pytest.fixture
    def client(self, limited):
        return limited(ACCOUNT_FAILURES="1 per day")

    def test_network_is_known_to_its_user_after_a_sign_in_only(self, client, alice, mallory, service_role):
        assert log_in(client, mallory.email, place=HOME).status_code == 200
        fail(client, alice.email, 1, HOME)
        assert not is_known_network(client, alice.email, HOME)
        assert is_known_network(client, mallory.email, HOME)
        # The next user of the address does not inherit it.
        client.delete(f"/admin/users/{mallory.id}", headers=service_role)
        register(client, service_role, mallory.email)
        assert not is_known_network(client, mallory.email, HOME)

    def test_ipv6_network_is_a_64_prefix_and_a_refresh_makes_none_known(self, client, alice):
        session = session_of(client, log_in(client, alice.email, place="2001:db8::1"))
        body = {"refresh_token": session.refresh_token}
        client.post("/token?grant_type=refresh_token", json=body, **at(OFFICE))
        assert is_known_network(client, alice.email, "2001:0DB8::ffff:1")
        for network in ("2001:db8:0:1::1", OFFICE):
            assert not is_known_network(client, alice.email, network)


@pytest.mark.parametrize(
    ("method", "path", "body"), [("PUT", "/user", CHANGE), ("POST", "/reauthenticate", {})]
)
def test_wrong_current_passwords_are_limited(limited, alice, database, hashes, method, path, body):
    """Wrong current passwords count like failed sign-ins."""
    client = limited(LOGIN_FAILURES="3 per 15 minutes", USER_CHANGES="100 per minute")
    session = alice.sign_in().on(client)
    database.run("UPDATE sessions SET created_at = now() - interval '2 days'")
    for _ in range(3):
        response = session.open(path, method, json=body | {"current_password": WRONG_PASSWORD})
        assert_error(response, 400, "current_password_invalid", details=A_SENTENCE)
    hashes_before = hashes.count
    for response in (session.put("/user", json=CHANGE | PROOF), session.delete("/user", json=PROOF)):
        assert_error(response, 429, "over_request_rate_limit", TOO_MANY)
    assert hashes.count == hashes_before


class TestHashingQueue:
    def test_attempt_refused_by_the_queue_is_not_counted(self, limited, alice, database):
        client = limited()
        passwords = client.application.extensions[EXTENSION].passwords
        with full_queue(passwords):
            for _ in range(12):
                assert_error(log_in(client, alice.email, WRONG_PASSWORD), 503, "service_unavailable")
        assert database.count("failure_counts") == 0
        # Limited attempts take no place in the queue.
        assert fail(client, alice.email, 50) == [401] * 10 + [429] * 40
        assert sign_in(client, "nobody@example.com", WRONG_PASSWORD).status_code == 401

    def test_database_error_frees_the_place_in_the_queue(self, limited, alice, database):
        client = limited()
        for _ in range(20):
            client.application.extensions[EXTENSION].db.close()
            database.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = 'latchkey'"
            )
            log_in(client, alice.email, WRONG_PASSWORD, "192.0.2.1")
        assert log_in(client, alice.email).status_code == 200
