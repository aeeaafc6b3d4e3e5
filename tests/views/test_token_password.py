"""POST /token?grant_type=password: signing in with an email or a phone number and a password."""

import base64
import hashlib
import unicodedata

import bcrypt
import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok, identity, token_response, user
from tests.support.cases import cases
from tests.support.cast import PASSWORD, Session, refresh, register, session_of, sign_in
from tests.support.server import at_once, until_served

WRONG = "Wrong-Horse-1"
LONG = "Correct-Horse-1 " * 5


def assert_invalid_credentials(response):
    assert_error(response, 401, "invalid_credentials", "Invalid login credentials")


def digest(password):
    return base64.b64encode(hashlib.sha256(password.encode()).digest()).decode()


def test_sign_in_returns_tokens_and_the_whole_user(alice):
    response = alice.try_to_sign_in()
    assert_ok(response, token_response(user(alice.email, last_sign_in_at=A_TIMESTAMP)))
    session = session_of(alice.client, response)
    assert response.json["expires_at"] == session.claims["iat"] + 3600 == session.claims["exp"]
    assert session.get("/user").json == response.json["user"]


def test_sign_in_takes_two_statements_and_one_hash(alice, parts, hashes):
    alice.sign_in()
    before = parts.db.statements_run, hashes.count
    alice.sign_in()
    assert (parts.db.statements_run - before[0], hashes.count - before[1]) == (2, 1)


def test_sign_in_starts_one_session(alice, database):
    session = alice.sign_in()
    row = database.one(
        "SELECT id, user_id, counter, method, ended_at, host(ip) AS ip, user_agent FROM sessions"
    )
    assert row == (session.id, alice.id, 0, "password", None, "127.0.0.1", "Werkzeug/3.1.9")


def test_sign_in_records_its_time(alice, database):
    alice.sign_in()
    assert database.value("SELECT last_sign_in_at BETWEEN now() - interval '1 minute' AND now() FROM users")
    assert database.value("SELECT last_sign_in_at = (SELECT last_sign_in_at FROM users) FROM identities")


@pytest.mark.parametrize("spelling", ["Alice@Example.com", "ALICE@EXAMPLE.COM", "alice@eXAMPLE.com"])
def test_email_may_be_spelled_differently(client, alice, spelling):
    assert session_of(client, sign_in(client, spelling)).user["id"] == alice.id


@pytest.mark.parametrize("spelling", ["+491701234567", "+49 170 1234567", "+49 (170) 123-45.67"])
def test_confirmed_phone_number_signs_in(client, service_role, spelling):
    body = {
        "email": "dave@example.com",
        "phone": "+491701234567",
        "phone_confirm": True,
        "password": PASSWORD,
    }
    client.post("/admin/users", json=body, headers=service_role)
    response = client.post("/token?grant_type=password", json={"phone": spelling, "password": PASSWORD})
    expected = user(
        "dave@example.com",
        email_confirmed_at=None,
        phone="+491701234567",
        phone_confirmed_at=A_TIMESTAMP,
        last_sign_in_at=A_TIMESTAMP,
        app_metadata={"provider": "email", "providers": ["email", "phone"]},
        identities=[
            identity("email", "dave@example.com"),
            identity("phone", "+491701234567", last_sign_in_at=A_TIMESTAMP),
        ],
    )
    assert_ok(response, token_response(expected))


def test_credentials_in_headers_are_ignored(client, alice):
    for headers in ({"Authorization": "Bearer nonsense"}, {"apikey": "nonsense"}):
        response = client.post(
            "/token?grant_type=password", json={"email": alice.email, "password": PASSWORD}, headers=headers
        )
        assert response.status_code == 200


class TestWrongCredentials:
    """An unknown address, a wrong password and a user without a password look the same."""

    @pytest.fixture
    def attempts(self, client, service_role, alice):
        client.post(
            "/admin/users",
            json={"email": "nopassword@example.com", "email_confirm": True},
            headers=service_role,
        )
        return {
            "wrong password": {"email": alice.email, "password": WRONG},
            "unknown address": {"email": "nobody@example.com", "password": WRONG},
            "no password": {"email": "nopassword@example.com", "password": WRONG},
            "unknown phone": {"phone": "+491701234567", "password": WRONG},
            "empty password": {"email": alice.email, "password": ""},
        }

    def test_wrong_credentials_get_the_same_response(self, client, attempts, database):
        before = database.everything()
        answers = [client.post("/token?grant_type=password", json=body) for body in attempts.values()]
        for answer in answers:
            assert_invalid_credentials(answer)
        assert len({answer.data for answer in answers}) == 1
        assert len({tuple(sorted(answer.headers.keys())) for answer in answers}) == 1
        assert database.everything() == before

    def test_wrong_credentials_cost_the_same_statements_and_hashes(self, client, attempts, parts, hashes):
        work = {}
        for name, body in attempts.items():
            statements, before = parts.db.statements_run, hashes.count
            client.post("/token?grant_type=password", json=body)
            work[name] = (parts.db.statements_run - statements, hashes.count - before)
        assert work == dict.fromkeys(attempts, (2, 1))

    def test_wrong_password_does_not_reveal_an_unconfirmed_user(self, client):
        client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD})
        assert_invalid_credentials(sign_in(client, "dave@example.com", WRONG))

    def test_wrong_password_does_not_reveal_a_banned_user(self, client, alice, database):
        database.run("UPDATE users SET banned_until = 'infinity'")
        assert_invalid_credentials(alice.try_to_sign_in(WRONG))


class TestPassword:
    @pytest.fixture
    def with_password(self, client, service_role):
        def make(password):
            body = {"email": "dave@example.com", "password": password, "email_confirm": True}
            assert client.post("/admin/users", json=body, headers=service_role).status_code == 200

        return make

    @pytest.mark.parametrize("length", [72, 73, 100, 1024])
    def test_every_character_of_a_long_password_counts(self, client, with_password, length):
        password = "Aa1-" * (length // 4) + "x" * (length % 4)
        with_password(password)
        assert sign_in(client, "dave@example.com", password).status_code == 200
        for wrong in (
            password[:-1],
            password[:-1] + "?",
            password[:72],
            "?" + password[1:],
            password[: length // 2] + "?" + password[length // 2 + 1 :],
        ):
            if wrong != password:
                assert_invalid_credentials(sign_in(client, "dave@example.com", wrong))

    def test_password_is_compared_in_unicode_normal_form(self, client, with_password):
        password = "Größe-ñandú-1"
        with_password(unicodedata.normalize("NFD", password))
        for form in ("NFC", "NFD"):
            assert (
                sign_in(client, "dave@example.com", unicodedata.normalize(form, password)).status_code == 200
            )

    def test_case_and_spaces_of_the_password_count(self, client, with_password):
        with_password(" Correct Horse 1 ")
        for wrong in ("Correct Horse 1", " correct horse 1 ", " Correct  Horse 1 "):
            assert_invalid_credentials(sign_in(client, "dave@example.com", wrong))

    def test_password_over_1024_bytes_is_400(self, client, alice, hashes):
        for password in ("x" * 1025, "ü" * 513):
            response = sign_in(client, alice.email, password)
            assert_error(
                response, 400, "validation_failed", details="password: must be a string of at most 1024 bytes"
            )
        assert hashes.count == 0

    def test_sign_in_renews_a_hash_of_another_cost(self, alice, database):
        old = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(5)).decode()
        database.run("UPDATE users SET password_hash = %(old)s", old=old)
        alice.sign_in()
        assert database.value("SELECT password_hash FROM users").startswith("latchkey1$2b$04$")
        alice.sign_in()

    def test_digest_of_a_long_password_is_no_second_password(self, client, with_password):
        with_password(LONG)
        assert_invalid_credentials(sign_in(client, "dave@example.com", digest(LONG)))
        assert sign_in(client, "dave@example.com", LONG).status_code == 200

    @pytest.mark.parametrize(
        ("password", "bcrypt_input"),
        [(PASSWORD, PASSWORD), (LONG, LONG[:72]), (LONG, digest(LONG))],
        ids=["short", "cut by its maker", "hashed first"],
    )
    def test_hash_without_a_scheme_works_and_is_renewed(self, alice, database, password, bcrypt_input):
        imported = bcrypt.hashpw(bcrypt_input.encode(), bcrypt.gensalt(4)).decode()
        database.run("UPDATE users SET password_hash = %(imported)s", imported=imported)
        alice.sign_in(password)
        assert database.value("SELECT password_hash FROM users").startswith("latchkey1$2b$04$")
        alice.sign_in(password)
        if password == LONG:
            assert_invalid_credentials(alice.try_to_sign_in(bcrypt_input))

    def test_long_password_costs_the_same_for_each_scheme(self, alice, client, database, hashes):
        counts = []
        for stored in ("latchkey1$2b$04$" + "." * 53, "$2b$04$" + "." * 53, None):
            database.run("UPDATE users SET password_hash = %(stored)s", stored=stored)
            hashes.count = 0
            assert_invalid_credentials(alice.try_to_sign_in(LONG))
            counts.append(hashes.count)
        assert counts == [2, 2, 2]

    def test_wrong_password_does_not_renew_the_hash(self, alice, database):
        old = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(5)).decode()
        database.run("UPDATE users SET password_hash = %(old)s", old=old)
        assert_invalid_credentials(alice.try_to_sign_in(WRONG))
        assert database.value("SELECT password_hash FROM users") == old

    def test_sign_in_keeps_a_hash_of_the_configured_cost(self, alice, database):
        before = database.value("SELECT password_hash FROM users")
        alice.sign_in()
        assert database.value("SELECT password_hash FROM users") == before


class TestUsersWhoMayNotSignIn:
    def test_unconfirmed_email_is_403(self, client, database):
        client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD})
        before = database.everything()
        assert_error(
            sign_in(client, "dave@example.com"),
            403,
            "email_not_confirmed",
            "Email not confirmed",
        )
        assert database.everything() == before

    def test_unconfirmed_phone_is_403(self, client, service_role, database):
        body = {
            "email": "dave@example.com",
            "email_confirm": True,
            "phone": "+491701234567",
            "password": PASSWORD,
        }
        client.post("/admin/users", json=body, headers=service_role)
        before = database.everything()
        response = client.post(
            "/token?grant_type=password", json={"phone": "+491701234567", "password": PASSWORD}
        )
        assert_error(response, 403, "phone_not_confirmed", "Phone not confirmed")
        assert database.everything() == before

    def test_unconfirmed_phone_signs_in_when_allowed(self, make_app, service_role):
        client = make_app(AUTH_PHONE_CONFIRM_REQUIRED="false").test_client()
        body = {"email": "dave@example.com", "phone": "+491701234567", "password": PASSWORD}
        client.post("/admin/users", json=body, headers=service_role)
        assert (
            client.post(
                "/token?grant_type=password", json={"phone": "+491701234567", "password": PASSWORD}
            ).status_code
            == 200
        )
        assert_error(sign_in(client, "dave@example.com"), 403, "email_not_confirmed")

    def test_banned_user_is_403(self, alice, database):
        database.run("UPDATE users SET banned_until = now() + interval '1 minute'")
        before = database.everything()
        assert_error(alice.try_to_sign_in(), 403, "user_banned", "User is banned")
        assert database.everything() == before

    def test_expired_ban_does_not_refuse_the_user(self, alice, database):
        database.run("UPDATE users SET banned_until = now() - interval '1 second'")
        assert alice.try_to_sign_in().status_code == 200


class TestRefusals:
    def test_grant_type_in_the_body_is_refused_with_a_hint(self, client, alice):
        body = {"grant_type": "password", "email": alice.email, "password": PASSWORD}
        details = "grant_type: must be in the query, not in the body"
        assert_error(client.post("/token", json=body), 400, "validation_failed", details=details)

    @cases(
        ("query", "error_code", "details"),
        [
            ("", "validation_failed", "grant_type: is required"),
            (
                "?grant_type=password&grant_type=password",
                "validation_failed",
                "grant_type: must be given once",
            ),
            (
                "?grant_type=client_credentials",
                "unsupported_grant_type",
                "grant_type: must be password, refresh_token, pkce or id_token",
            ),
            (
                "?grant_type=",
                "unsupported_grant_type",
                "grant_type: must be password, refresh_token, pkce or id_token",
            ),
            (
                "?grant_type=PASSWORD",
                "unsupported_grant_type",
                "grant_type: must be password, refresh_token, pkce or id_token",
            ),
        ],
    )
    def test_unknown_grant_type_is_refused(self, client, alice, database, query, error_code, details):
        response = client.post(f"/token{query}", json={"email": alice.email, "password": PASSWORD})
        assert_error(response, 400, error_code, details=details)
        assert database.count("sessions") == 0

    @cases(
        ("body", "details"),
        [
            ({"password": PASSWORD}, "email: give either an email or a phone"),
            (
                {"email": "alice@example.com", "phone": "+491701234567", "password": PASSWORD},
                "email: give either an email or a phone",
            ),
            ({"email": "alice@example.com"}, "password: is required"),
            ({}, "password: is required"),
        ],
    )
    def test_body_needs_one_address_and_a_password(self, client, alice, body, details):
        assert_error(
            client.post("/token?grant_type=password", json=body), 400, "validation_failed", details=details
        )

    def test_null_for_the_other_address_means_absent(self, client, alice):
        response = client.post(
            "/token?grant_type=password", json={"email": alice.email, "phone": None, "password": PASSWORD}
        )
        assert response.status_code == 200

    @pytest.mark.parametrize(("address", "of"), [("email", "alice@example.com"), ("phone", "+491701234567")])
    def test_disabled_email_or_phone_does_not_sign_in(self, make_app, alice, database, address, of):
        client = make_app(**{f"AUTH_{address.upper()}_ENABLED": "false"}).test_client()
        response = client.post("/token?grant_type=password", json={address: of, "password": PASSWORD})
        assert_error(response, 400, f"{address}_provider_disabled")
        assert database.count("sessions") == 0


class TestSessionsPerUser:
    """Beyond AUTH_SESSIONS_PER_USER the oldest session ends."""

    @pytest.fixture
    def client(self, make_app):
        return make_app(AUTH_SESSIONS_PER_USER="3").test_client()

    def test_sign_in_beyond_the_limit_ends_the_oldest_session(self, client, alice, database):
        sessions = [alice.open_session() for _ in range(4)]
        assert_error(sessions[0].get("/user"), 401, "session_not_found")
        assert_error(sessions[0].refresh(), 400, "refresh_token_not_found")
        assert [session.get("/user").status_code for session in sessions[1:]] == [200, 200, 200]
        assert (
            database.value("SELECT end_reason FROM sessions WHERE id = %(id)s", id=sessions[0].id)
            == "too_many_sessions"
        )

    def test_sessions_of_other_users_do_not_count(self, client, alice, bob):
        sessions = [
            alice.open_session(),
            bob.open_session(),
            bob.open_session(),
            bob.open_session(),
            alice.open_session(),
            alice.open_session(),
        ]
        assert [session.get("/user").status_code for session in sessions] == [200] * 6

    def test_ended_sessions_do_not_count(self, client, alice):
        first, second, third = (alice.open_session() for _ in range(3))
        third.post("/logout?scope=local")
        alice.sign_in()
        assert first.get("/user").status_code == second.get("/user").status_code == 200

    def test_expired_sessions_do_not_count(self, client, alice, database):
        first, second, third = (alice.open_session() for _ in range(3))
        database.run(
            "UPDATE sessions SET refreshed_at = refreshed_at - interval '30 days' WHERE id IN (%(a)s, %(b)s)",
            a=second.id,
            b=third.id,
        )
        alice.sign_in()
        alice.sign_in()
        assert first.get("/user").status_code == 200

    def test_concurrent_sign_ins_stay_within_the_limit(self, client, alice):
        new_client = client.application.test_client
        sessions = at_once(
            12, lambda _: session_of(new_client(), until_served(lambda: sign_in(new_client(), alice.email)))
        )
        assert sorted(session.get("/user").status_code for session in sessions) == [200] * 3 + [401] * 9


class TestRaces:
    NEW = "Another-Horse-1"

    def change_password(self, app, session):
        return Session(app.test_client(), session.access_token, "", {}).put(
            "/user", json={"password": self.NEW}
        )

    def test_sign_in_with_the_old_password_fails_after_a_concurrent_change(self, app, alice, database):
        session = alice.open_session()
        with database.locked("users", alice.id) as lock:
            change = lock.start(lambda: self.change_password(app, session))
            log_in = lock.start(lambda: sign_in(app.test_client(), alice.email))
        assert change.result().status_code == 200
        assert_invalid_credentials(log_in.result())
        assert database.count("sessions", "ended_at IS NULL") == 1

    def test_concurrent_password_change_ends_a_session_of_the_old_password(
        self, app, client, alice, database
    ):
        session = alice.open_session()
        with database.locked("users", alice.id) as lock:
            log_in = lock.start(lambda: sign_in(app.test_client(), alice.email))
            change = lock.start(lambda: self.change_password(app, session))
        assert change.result().status_code == 200
        old = session_of(client, log_in.result())
        assert_error(old.get("/user"), 401, "session_not_found")
        assert_error(old.refresh(), 400, "refresh_token_not_found")
        assert session.get("/user").status_code == 200

    def test_sign_in_fails_after_a_concurrent_ban(self, app, alice, database):
        with database.locked(
            "users", alice.id, "UPDATE users SET banned_until = 'infinity' WHERE id = %s"
        ) as lock:
            log_in = lock.start(lambda: sign_in(app.test_client(), alice.email))
        assert log_in.result().status_code in (401, 403)
        assert database.count("sessions") == 0

    def test_sign_in_fails_after_a_concurrent_deletion(self, app, alice, database):
        with database.locked("users", alice.id, "DELETE FROM users WHERE id = %s") as lock:
            log_in = lock.start(lambda: sign_in(app.test_client(), alice.email))
        assert_invalid_credentials(log_in.result())
        assert database.count("sessions") == 0

    def test_fifty_concurrent_sign_ins_and_password_changes_leave_one_password(self, server, alice, client):
        passwords = [PASSWORD, self.NEW]
        sessions = [alice.sign_in() for _ in range(4)]

        def act(number):
            if number < 4:
                return until_served(
                    lambda: (
                        sessions[number].on(server).put("/user", json={"password": f"Another-Horse-{number}"})
                    )
                )
            return until_served(lambda: sign_in(server, alice.email, passwords[0]))

        answers = at_once(24, act)
        (good,) = [
            number
            for number in range(4)
            if sign_in(client, alice.email, f"Another-Horse-{number}").status_code == 200
        ]
        # Each session of the old password has ended, whenever it started.
        for answer in answers[4:]:
            if answer.status_code == 200:
                assert_error(refresh(server, answer.json["refresh_token"]), 400, "refresh_token_not_found")
        assert answers[good].status_code == 200


def test_password_of_one_user_does_not_sign_in_another(client, alice, service_role):
    register(client, service_role, "bob@example.com")
    client.put("/user", headers=alice.sign_in().authorization, json={"password": "Another-Horse-1"})
    assert_invalid_credentials(sign_in(client, "bob@example.com", "Another-Horse-1"))
