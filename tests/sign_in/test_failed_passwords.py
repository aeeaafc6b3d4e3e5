"""Failed passwords: limits per address and network, and per address for networks unknown to the user."""

import pytest

from auth.context import EXTENSION
from tests.support.answers import A_SENTENCE, assert_error
from tests.support.cast import PASSWORD, Session, register, session_of, sign_in
from tests.support.crowd import crowd
from tests.support.hosts import ELSEWHERE, HOME, OFFICE, at
from tests.support.links import OTHER_PHONE, PHONE
from tests.support.server import at_once

WRONG = "Wrong-Horse-1"
TOO_MANY = "Too many failed sign-ins; try again later, or sign in by a link"


@pytest.fixture
def limited(make_app):
    """Make a client with the default or the given limits of failures, and high limits for everything else."""

    def make(**limits):
        changes = {f"AUTH_RATE_LIMIT_{name}": value for name, value in limits.items()}
        return make_app(
            AUTH_RATE_LIMITS_ENABLED="true", AUTH_RATE_LIMIT_LOGIN="1000 per minute", **changes
        ).test_client()

    return make


def log_in(client, email, password=PASSWORD, place=HOME, path="/token?grant_type=password"):
    return client.post(path, json={"email": email, "password": password}, **at(place))


def fail(client, email, times, place=HOME):
    """Try a wrong password `times` times; return the statuses."""
    return [log_in(client, email, WRONG, place).status_code for _ in range(times)]


def assert_invalid(response):
    assert_error(response, 401, "invalid_credentials", "Invalid login credentials")


def assert_locked(response, seconds):
    assert_error(response, 429, "over_request_rate_limit", TOO_MANY)
    assert response.headers["X-RateLimit-Remaining"] == "0"
    assert seconds - 30 <= int(response.headers["Retry-After"]) <= seconds


def pass_time(database, seconds):
    database.run(
        "UPDATE failure_counts SET expires_at = expires_at - make_interval(secs => %(seconds)s)",
        seconds=seconds,
    )


def everyone_elses(number):
    """Return an address in a separate network."""
    return f"192.0.2.{number}"


class TestByAddressAndNetwork:
    def test_ten_failures_in_fifteen_minutes_are_allowed(self, limited, alice):
        client = limited()
        for left in range(9, -1, -1):
            response = log_in(client, alice.email, WRONG)
            assert_invalid(response)
            assert (response.headers["X-RateLimit-Limit"], response.headers["X-RateLimit-Remaining"]) == (
                "10",
                str(left),
            )
        assert_locked(log_in(client, alice.email, WRONG), 900)

    def test_right_password_is_refused_beyond_the_limit(self, limited, alice, database, hashes):
        client = limited()
        fail(client, alice.email, 10)
        before, hashed = database.everything("users", "sessions", "known_networks"), hashes.count
        assert_locked(log_in(client, alice.email), 900)
        assert_locked(log_in(client, alice.email, path="/login-admin"), 900)
        assert database.everything("users", "sessions", "known_networks") == before
        assert hashes.count == hashed

    def test_right_password_works_after_the_window(self, limited, alice, database):
        client = limited()
        fail(client, alice.email, 10)
        pass_time(database, 600)
        assert_locked(log_in(client, alice.email), 300)
        pass_time(database, 301)
        assert log_in(client, alice.email).status_code == 200

    def test_refused_attempts_do_not_prolong_the_window(self, limited, alice, database):
        client = limited()
        fail(client, alice.email, 30)
        pass_time(database, 901)
        assert log_in(client, alice.email).status_code == 200

    def test_other_network_has_its_own_limit(self, limited, alice):
        client = limited()
        fail(client, alice.email, 11, ELSEWHERE)
        assert log_in(client, alice.email, place=HOME).status_code == 200

    def test_other_user_has_its_own_limit(self, limited, alice, bob):
        client = limited()
        fail(client, alice.email, 11)
        assert log_in(client, bob.email).status_code == 200

    def test_unknown_address_is_counted_like_a_known_one(self, limited, alice, service_role, parts):
        client = limited()
        client.post(
            "/admin/users",
            json={"email": "nopassword@example.com", "email_confirm": True},
            headers=service_role,
        )
        seen = []
        for email in (alice.email, "nobody@example.com", "nopassword@example.com"):
            answers = [log_in(client, email, WRONG) for _ in range(12)]
            shown = ("X-RateLimit-Limit", "X-RateLimit-Remaining")
            seen.append(
                [
                    (answer.status_code, answer.data, *[answer.headers.get(name) for name in shown])
                    for answer in answers
                ]
            )
        assert seen[0] == seen[1] == seen[2]

    def test_limited_attempt_costs_the_same_statements_and_hashes(self, limited, alice, hashes):
        client = limited()
        database = client.application.extensions[EXTENSION].db
        work = []
        for email in (alice.email, "nobody@example.com"):
            for times in range(12):
                run, hashed = database.statements_run, hashes.count
                log_in(client, email, WRONG)
                work.append(
                    (email if times < 0 else times, database.statements_run - run, hashes.count - hashed)
                )
        assert work[:12] == work[12:]
        assert [hashed for _, _, hashed in work[:12]] == [1] * 10 + [0] * 2


class TestRightPassword:
    def test_right_password_returns_only_its_own_count(self, limited, alice):
        client = limited()
        assert fail(client, alice.email, 9) == [401] * 9
        for _ in range(3):
            assert log_in(client, alice.email).status_code == 200
        assert fail(client, alice.email, 2) == [401, 429]

    def test_successful_sign_ins_are_not_counted(self, limited, alice, database):
        client = limited()
        assert {log_in(client, alice.email).status_code for _ in range(25)} == {200}
        assert {row.count for row in database.all("SELECT count FROM failure_counts")} <= {0}

    @pytest.mark.parametrize(
        ("change", "path"),
        [
            ("UPDATE users SET banned_until = 'infinity'", "/token?grant_type=password"),
            ("UPDATE users SET email_confirmed_at = NULL", "/token?grant_type=password"),
            ("UPDATE users SET role = 'authenticated'", "/login-admin"),
        ],
        ids=["banned", "unconfirmed", "no administrator"],
    )
    def test_right_password_of_a_refused_user_is_not_counted(self, limited, alice, database, change, path):
        client = limited()
        database.run(change)
        assert {log_in(client, alice.email, path=path).status_code for _ in range(12)} == {403}
        assert {row.count for row in database.all("SELECT count FROM failure_counts")} <= {0}

    def test_headers_do_not_describe_the_limit_of_failures(self, limited, alice):
        client = limited()
        fail(client, alice.email, 5)
        assert log_in(client, alice.email).headers["X-RateLimit-Limit"] == "1000"


class TestByUser:
    """Wrong passwords for a user's email and phone add up, without a sign that both are the same user's."""

    @pytest.fixture
    def phil(self, client, service_role):
        body = {"email": "phil@example.com", "phone": PHONE, "email_confirm": True, "phone_confirm": True}
        assert (
            client.post("/admin/users", json=body | {"password": PASSWORD}, headers=service_role).status_code
            == 200
        )
        return "phil@example.com"

    def by_phone(self, client, password, phone=PHONE, place=HOME):
        body = {"phone": phone, "password": password}
        return client.post("/token?grant_type=password", json=body, **at(place))

    def test_right_password_is_refused_after_ten_failures_in_all(self, limited, phil, database):
        client = limited()
        assert fail(client, phil, 6) == [401] * 6
        assert [self.by_phone(client, WRONG).status_code for _ in range(4)] == [401] * 4
        assert_invalid(self.by_phone(client, PASSWORD))
        assert_invalid(log_in(client, phil))
        assert database.count("sessions") == 0
        pass_time(database, 901)
        assert self.by_phone(client, PASSWORD).status_code == 200

    def test_phone_of_a_locked_user_looks_like_an_unknown_one(self, limited, phil, hashes, parts):
        client = limited()
        statements = client.application.extensions[EXTENSION].db
        fail(client, phil, 11)
        seen = []
        for phone in (PHONE, OTHER_PHONE):
            run, hashed = statements.statements_run, hashes.count
            response = self.by_phone(client, PASSWORD, phone)
            assert_invalid(response)
            cost = statements.statements_run - run, hashes.count - hashed
            seen.append((response.headers["X-RateLimit-Remaining"], cost))
        assert seen[0] == seen[1]

    def test_failures_from_unknown_networks_add_up(self, limited, phil):
        client = limited(ACCOUNT_FAILURES="5 per day")
        for number in range(3):
            fail(client, phil, 1, everyone_elses(number))
        for number in range(3, 5):
            self.by_phone(client, WRONG, place=everyone_elses(number))
        assert_invalid(self.by_phone(client, PASSWORD, place=ELSEWHERE))

    def test_right_password_returns_the_count_of_the_user(self, limited, phil):
        client = limited()
        fail(client, phil, 9)
        for _ in range(3):
            assert self.by_phone(client, PASSWORD).status_code == 200

    def test_fifty_concurrent_attempts_by_email_and_phone_check_ten(self, limited, phil, monkeypatch):
        client, checked = limited(), []
        passwords = client.application.extensions[EXTENSION].passwords
        check = passwords.check

        def checking(password, password_hash):
            checked.append(password_hash is not None)
            return check(password, password_hash)

        monkeypatch.setattr(passwords, "check", checking)
        at_once(50, lambda number: fail(client, phil, 1) if number % 2 else self.by_phone(client, WRONG))
        assert checked.count(True) == 10


class TestByAddressAlone:
    """100 failures a day from networks where the user has never signed in."""

    def stranger(self, client, email, number, times=1):
        return fail(client, email, times, everyone_elses(number))

    def test_failures_of_unknown_networks_add_up(self, limited, alice, database):
        client = limited(ACCOUNT_FAILURES="5 per day")
        assert [self.stranger(client, alice.email, number) for number in range(5)] == [[401]] * 5
        assert_locked(log_in(client, alice.email, WRONG, everyone_elses(9)), 86_400)
        pass_time(database, 86_401)
        assert self.stranger(client, alice.email, 9) == [401]

    def test_hundred_failures_a_day_are_allowed(self, limited, alice, database):
        client = limited()
        self.stranger(client, alice.email, 1)
        key = f"account {alice.email}"
        assert database.value(
            "SELECT extract(epoch FROM expires_at - now()) > 86000 FROM failure_counts WHERE key = %(key)s",
            key=key,
        )
        database.run("UPDATE failure_counts SET count = 99 WHERE key = %(key)s", key=key)
        assert [self.stranger(client, alice.email, number) for number in (2, 3)] == [[401], [429]]

    def test_failures_elsewhere_do_not_lock_a_known_network(self, limited, alice):
        client = limited(ACCOUNT_FAILURES="5 per day")
        assert log_in(client, alice.email, place=HOME).status_code == 200
        for number in range(10):
            self.stranger(client, alice.email, number)
        assert log_in(client, alice.email, place=HOME).status_code == 200
        assert log_in(client, alice.email, place=ELSEWHERE).status_code == 429

    def test_right_password_from_an_unknown_network_is_refused_beyond_the_limit(self, limited, alice, hashes):
        client = limited(ACCOUNT_FAILURES="5 per day")
        for number in range(5):
            self.stranger(client, alice.email, number)
        hashed = hashes.count
        assert_locked(log_in(client, alice.email, place=OFFICE), 86_400)
        assert hashes.count == hashed

    def test_failures_from_a_known_network_are_not_counted(self, limited, alice):
        client = limited(ACCOUNT_FAILURES="5 per day")
        log_in(client, alice.email, place=HOME)
        assert fail(client, alice.email, 8, HOME) == [401] * 8
        assert log_in(client, alice.email, place=OFFICE).status_code == 200

    def test_attempts_refused_per_network_are_not_counted(self, limited, alice):
        client = limited(ACCOUNT_FAILURES="5 per day", LOGIN_FAILURES="3 per 15 minutes")
        assert fail(client, alice.email, 50, ELSEWHERE) == [401] * 3 + [429] * 47
        assert [self.stranger(client, alice.email, number) for number in range(3)] == [[401], [401], [429]]

    def test_right_password_from_an_unknown_network_returns_its_own_count(self, limited, alice, database):
        client = limited(ACCOUNT_FAILURES="3 per day")
        for number in range(2):
            self.stranger(client, alice.email, number)
        # From four networks unknown to the user.
        for number in range(10, 14):
            assert log_in(client, alice.email, place=everyone_elses(number)).status_code == 200
        assert [self.stranger(client, alice.email, number) for number in (2, 3)] == [[401], [429]]

    def test_unknown_address_is_counted_like_a_known_one(self, limited, alice):
        client = limited(ACCOUNT_FAILURES="3 per day")
        seen = [
            [self.stranger(client, email, number) for number in range(5)]
            for email in (alice.email, "nobody@example.com")
        ]
        assert seen[0] == seen[1] == [[401], [401], [401], [429], [429]]

    def test_sign_in_by_link_works_beyond_the_limit_and_makes_the_network_known(self, limited, alice, outbox):
        client = limited(ACCOUNT_FAILURES="3 per day")
        for number in range(4):
            self.stranger(client, alice.email, number)
        assert log_in(client, alice.email, place=OFFICE).status_code == 429
        client.post("/magiclink", json={"email": alice.email}, **at(OFFICE))
        response = client.get(f"/verify?type=magiclink&token={outbox.last(alice.email).token}", **at(OFFICE))
        assert "access_token=" in response.location
        assert log_in(client, alice.email, place=OFFICE).status_code == 200
        assert log_in(client, alice.email, place=ELSEWHERE).status_code == 429


class TestKnownNetworks:
    @pytest.fixture
    def client(self, limited):
        return limited(ACCOUNT_FAILURES="1 per day")

    def knows(self, client, email, place):
        """Whether the user may sign in from a network while the limit for unknown networks is used up."""
        fail(client, email, 2, "198.18.0.1")
        return log_in(client, email, place=place).status_code == 200

    def test_network_is_known_after_a_sign_in(self, client, alice):
        assert log_in(client, alice.email, place=HOME).status_code == 200
        assert self.knows(client, alice.email, HOME)

    def test_network_is_unknown_before_a_sign_in(self, client, alice):
        assert not self.knows(client, alice.email, HOME)

    def test_wrong_password_does_not_make_the_network_known(self, client, alice):
        fail(client, alice.email, 1, HOME)
        assert not self.knows(client, alice.email, HOME)

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE users SET banned_until = now() + interval '1 hour'",
            "UPDATE users SET email_confirmed_at = NULL",
        ],
    )
    def test_refused_sign_in_does_not_make_the_network_known(self, client, alice, database, change):
        database.run(change)
        assert log_in(client, alice.email, place=HOME).status_code == 403
        database.run("UPDATE users SET banned_until = NULL, email_confirmed_at = now()")
        assert not self.knows(client, alice.email, HOME)

    def test_refresh_does_not_make_the_network_known(self, client, alice):
        session = session_of(client, log_in(client, alice.email, place=HOME))
        client.post(
            "/token?grant_type=refresh_token", json={"refresh_token": session.refresh_token}, **at(OFFICE)
        )
        assert not self.knows(client, alice.email, OFFICE)

    def test_network_is_known_per_user(self, client, alice, mallory):
        assert log_in(client, mallory.email, place=HOME).status_code == 200
        assert not self.knows(client, alice.email, HOME)

    def test_ipv6_network_is_a_64_prefix(self, client, alice):
        assert log_in(client, alice.email, place="2001:db8::1").status_code == 200
        assert self.knows(client, alice.email, "2001:0DB8::ffff:1")
        assert not self.knows(client, alice.email, "2001:db8:0:1::1")

    def test_next_user_of_the_address_does_not_inherit_known_networks(self, client, alice, service_role):
        log_in(client, alice.email, place=HOME)
        client.delete(f"/admin/users/{alice.id}", headers=service_role)
        register(client, service_role, alice.email)
        assert not self.knows(client, alice.email, HOME)


class TestCurrentPassword:
    """A wrong current password for reauthentication counts like a failed sign-in."""

    @pytest.fixture
    def session(self, limited, alice):
        client = limited(LOGIN_FAILURES="3 per 15 minutes", USER_CHANGES="100 per minute")
        client.application.extensions[EXTENSION]
        return Session(
            client, *[getattr(alice.sign_in(), name) for name in ("access_token", "refresh_token", "user")]
        )

    def change(self, session, current_password):
        return session.client.put(
            "/user",
            json={"password": "Another-Horse-1", "current_password": current_password},
            headers=session.authorization,
            **at(HOME),
        )

    @pytest.fixture(autouse=True)
    def _old(self, session, database):
        database.run("UPDATE sessions SET created_at = now() - interval '2 days'")

    def test_wrong_passwords_at_post_reauthenticate_count_too(self, session):
        for _ in range(3):
            body, options = {"current_password": WRONG}, {"headers": session.authorization, **at(HOME)}
            response = session.client.post("/reauthenticate", json=body, **options)
            assert_error(response, 400, "current_password_invalid", details=A_SENTENCE)
        assert self.change(session, PASSWORD).status_code == 429

    def test_wrong_current_passwords_are_limited(self, session, alice, hashes):
        for _ in range(3):
            assert_error(self.change(session, WRONG), 400, "current_password_invalid", details=A_SENTENCE)
        hashed = hashes.count
        assert_error(self.change(session, PASSWORD), 429, "over_request_rate_limit", TOO_MANY)
        assert_error(
            session.client.delete(
                "/user", json={"current_password": PASSWORD}, headers=session.authorization, **at(HOME)
            ),
            429,
            "over_request_rate_limit",
        )
        assert hashes.count == hashed

    def test_wrong_current_passwords_and_failed_sign_ins_share_the_limit(self, session, alice):
        assert fail(session.client, alice.email, 2) == [401, 401]
        assert self.change(session, WRONG).status_code == 400
        assert log_in(session.client, alice.email).status_code == 429

    def test_right_current_password_returns_its_count(self, session, alice):
        assert fail(session.client, alice.email, 2) == [401, 401]
        assert self.change(session, PASSWORD).status_code == 200
        assert fail(session.client, alice.email, 2) == [401, 429]


class TestHashingQueue:
    def test_attempt_refused_by_the_queue_is_not_counted(self, limited, alice, database):
        client = limited()
        passwords = client.application.extensions[EXTENSION].passwords
        with crowd(passwords):
            for _ in range(12):
                assert_error(log_in(client, alice.email, WRONG), 503, "service_unavailable")
        assert database.count("failure_counts") == 0
        assert fail(client, alice.email, 11) == [401] * 10 + [429]

    def test_limited_attempt_takes_no_place_in_the_queue(self, limited, alice):
        client = limited(LOGIN_FAILURES="1 per 15 minutes")
        fail(client, alice.email, 40)
        assert sign_in(client, "nobody@example.com", WRONG).status_code == 401

    def test_database_error_frees_the_place_in_the_queue(self, limited, alice, database):
        client = limited()
        app = client.application
        for _ in range(20):
            app.extensions[EXTENSION].db.close()
            database.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'latchkey'"
            )
            log_in(client, alice.email, WRONG, everyone_elses(1))
        assert log_in(client, alice.email).status_code == 200
