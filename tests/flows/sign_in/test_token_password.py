"""POST /token?grant_type=password: signing in with an email or a phone number and a password."""

import base64
import hashlib
import unicodedata

import bcrypt
import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok, identity, token_response, user
from tests.support.cases import cases
from tests.support.checked_rows import statements_run
from tests.support.links import PHONE
from tests.support.server import at_once, until_served
from tests.support.users import NEW_PASSWORD, PASSWORD, WRONG_PASSWORD, refresh, session_of, sign_in

LONG = "Correct-Horse-1 " * 5
PATH = "/token?grant_type=password"
DAVE = {"email": "dave@example.com", "password": PASSWORD}
BY_PHONE = {"phone": PHONE, "password": PASSWORD}


def assert_invalid_credentials(response):
    assert_error(response, 401, "invalid_credentials", "Invalid login credentials")


def digest(password):
    return base64.b64encode(hashlib.sha256(password.encode()).digest()).decode()


@pytest.fixture
def dave(client, service_role):
    def make(**members):
        response = client.post("/admin/users", json=DAVE | members, headers=service_role)
        assert response.status_code == 200

    return make


class TestSignIn:
    def test_sign_in_returns_tokens_and_the_user_in_a_look_up_and_an_act(
        self, alice, parts, hashes, database
    ):
        before = statements_run(), hashes.count
        response = alice.try_to_sign_in()
        assert (statements_run() - before[0], hashes.count - before[1]) == (6, 1)
        assert_ok(response, token_response(user(alice.email, last_sign_in_at=A_TIMESTAMP)))
        session = session_of(alice.client, response)
        assert response.json["expires_at"] == session.claims["iat"] + 3600 == session.claims["exp"]
        assert session.get("/user").json == response.json["user"]
        columns = "id, user_id, counter, method, ended_at, host(ip) AS ip, user_agent"
        row = database.one(f"SELECT {columns} FROM sessions")
        assert row == (session.id, alice.id, 0, "password", None, "127.0.0.1", "Werkzeug/3.1.9")
        recent = "last_sign_in_at BETWEEN now() - interval '1 minute' AND now()"
        assert database.value(f"SELECT {recent} FROM users")
        assert database.value("SELECT last_sign_in_at = (SELECT last_sign_in_at FROM users) FROM identities")

    def test_sign_in_on_a_known_network_writes_one_row_a_table_in_one_commit(self, alice, database):
        """One of the rows is the copy of the user object, which a trigger rewrites."""
        alice.sign_in()
        before = database.versions()
        alice.sign_in()
        after = database.versions().items()
        written = [
            (table, writer) for (table, place), writer in after if before.get((table, place)) != writer
        ]
        tables = ["audit_log", "identities", "known_networks", "sessions", "user_objects", "users"]
        assert sorted(table for table, _ in written) == tables
        assert len({writer for _, writer in written}) == 1

    @pytest.mark.parametrize("spelling", [PHONE, "+49 170 1234567", "+49 (170) 123-45.67"])
    def test_confirmed_phone_number_signs_in(self, client, dave, spelling):
        dave(phone=PHONE, phone_confirm=True)
        response = client.post(PATH, json=BY_PHONE | {"phone": spelling, "email": None})
        phone = identity("phone", PHONE, last_sign_in_at=A_TIMESTAMP)
        expected = {
            "email_confirmed_at": None,
            "phone": PHONE,
            "phone_confirmed_at": A_TIMESTAMP,
            "app_metadata": {"provider": "email", "providers": ["email", "phone"]},
            "identities": [identity("email", DAVE["email"]), phone],
        }
        assert_ok(response, token_response(user(DAVE["email"], **expected, last_sign_in_at=A_TIMESTAMP)))

    def test_password_of_one_user_does_not_sign_in_another(self, client, alice, bob):
        alice.open_session().put("/user", json={"password": NEW_PASSWORD})
        assert_invalid_credentials(bob.try_to_sign_in(NEW_PASSWORD))


@pytest.mark.parametrize("path", [PATH, "/login-admin"])
def test_wrong_credentials_get_and_cost_the_same(client, dave, alice, carol, database, parts, hashes, path):
    dave(email="nopassword@example.com", password=None, email_confirm=True)
    attempts = {
        "wrong password": {"email": alice.email, "password": WRONG_PASSWORD},
        "wrong password of an administrator": {"email": carol.email, "password": WRONG_PASSWORD},
        "unknown address": {"email": "nobody@example.com", "password": WRONG_PASSWORD},
        "no password": {"email": "nopassword@example.com", "password": WRONG_PASSWORD},
        "unknown phone": {"phone": PHONE, "password": WRONG_PASSWORD},
        "empty password": {"email": alice.email, "password": ""},
    }
    rows, work, answers = database.everything(), {}, []
    for name, body in attempts.items():
        statements, before = statements_run(), hashes.count
        answers.append(client.post(path, json=body))
        work[name] = (statements_run() - statements, hashes.count - before)
        assert_invalid_credentials(answers[-1])
    assert set(work.values()) == {(4, 1)}
    assert len({(answer.data, *sorted(answer.headers.keys())) for answer in answers}) == 1
    assert database.everything() == rows


def test_wrong_password_reveals_neither_an_unconfirmed_nor_a_banned_user(client, alice, database):
    client.post("/signup", json=DAVE)
    assert_invalid_credentials(sign_in(client, DAVE["email"], WRONG_PASSWORD))
    database.run("UPDATE users SET banned_until = 'infinity'")
    assert_invalid_credentials(alice.try_to_sign_in(WRONG_PASSWORD))


class TestPassword:
    @pytest.mark.parametrize("length", [72, 73, 100, 1024])
    def test_every_character_of_a_long_password_counts(self, client, dave, length):
        password = "Aa1-" * (length // 4) + "x" * (length % 4)
        dave(password=password, email_confirm=True)
        assert sign_in(client, DAVE["email"], password).status_code == 200
        middle = password[: length // 2] + "?" + password[length // 2 + 1 :]
        wrong = {password[:-1], password[:-1] + "?", password[:72], "?" + password[1:], middle}
        for other in wrong - {password}:
            assert_invalid_credentials(sign_in(client, DAVE["email"], other))

    @pytest.mark.parametrize(
        ("password", "others"),
        [
            ("Größe-ñandú-1", ["Grosse-nandu-1", "größe-ñandú-1"]),
            (" Correct Horse 1 ", ["Correct Horse 1", " Correct  Horse 1 "]),
            (LONG, [digest(LONG)]),
        ],
        ids=["unicode", "spaces", "long"],
    )
    def test_password_is_compared_in_unicode_normal_form(self, client, dave, password, others):
        dave(password=unicodedata.normalize("NFD", password), email_confirm=True)
        for form in ("NFC", "NFD"):
            assert sign_in(client, DAVE["email"], unicodedata.normalize(form, password)).status_code == 200
        for other in others:
            assert_invalid_credentials(sign_in(client, DAVE["email"], other))

    def test_password_over_1024_bytes_is_400(self, client, alice, hashes):
        details = "password: must be a string of at most 1024 bytes"
        for password in ("x" * 1025, "ü" * 513):
            response = sign_in(client, alice.email, password)
            assert_error(response, 400, "validation_failed", details=details)
        assert hashes.count == 0

    @pytest.mark.parametrize(
        ("password", "bcrypt_input", "cost"),
        [(PASSWORD, PASSWORD, 4), (PASSWORD, PASSWORD, 5), (LONG, LONG[:72], 4), (LONG, digest(LONG), 4)],
        ids=["short", "of another cost", "cut by its maker", "hashed first"],
    )
    def test_hash_without_a_scheme_works_and_is_renewed(self, alice, database, password, bcrypt_input, cost):
        stored = "SELECT password_hash FROM users"
        imported = bcrypt.hashpw(bcrypt_input.encode(), bcrypt.gensalt(cost)).decode()
        database.run("UPDATE users SET password_hash = %(imported)s", imported=imported)
        assert_invalid_credentials(alice.try_to_sign_in(WRONG_PASSWORD))
        assert database.value(stored) == imported
        alice.sign_in(password)
        renewed = database.value(stored)
        assert renewed.startswith("latchkey1$2b$04$")
        alice.sign_in(password)
        assert database.value(stored) == renewed
        if password == LONG:
            assert_invalid_credentials(alice.try_to_sign_in(bcrypt_input))

    def test_long_password_costs_the_same_for_each_scheme(self, alice, database, hashes):
        counts = []
        for stored in ("latchkey1$2b$04$" + "." * 53, "$2b$04$" + "." * 53, None):
            database.run("UPDATE users SET password_hash = %(stored)s", stored=stored)
            hashes.count = 0
            assert_invalid_credentials(alice.try_to_sign_in(LONG))
            counts.append(hashes.count)
        assert counts == [2, 2, 2]


class TestUsersWhoMayNotSignIn:
    def test_unconfirmed_address_is_403(self, make_app, client, dave, database):
        client.post("/signup", json=DAVE)
        dave(email="erin@example.com", email_confirm=True, phone=PHONE)
        before = database.everything()
        assert_error(client.post(PATH, json=DAVE), 403, "email_not_confirmed", "Email not confirmed")
        assert_error(client.post(PATH, json=BY_PHONE), 403, "phone_not_confirmed", "Phone not confirmed")
        assert database.everything() == before
        lenient = make_app(AUTH_PHONE_CONFIRM_REQUIRED="false").test_client()
        assert lenient.post(PATH, json=BY_PHONE).status_code == 200
        assert_error(lenient.post(PATH, json=DAVE), 403, "email_not_confirmed")

    def test_banned_user_is_403_until_the_ban_expires(self, alice, database):
        database.run("UPDATE users SET banned_until = now() + interval '1 minute'")
        before = database.everything()
        assert_error(alice.try_to_sign_in(), 403, "user_banned", "User is banned")
        assert database.everything() == before
        database.run("UPDATE users SET banned_until = now() - interval '1 second'")
        assert alice.try_to_sign_in().status_code == 200


class TestRefusals:
    UNSUPPORTED = (
        "unsupported_grant_type",
        "grant_type: must be one of password, refresh_token, pkce, id_token",
    )
    NO_ADDRESS = "email: give either an email or a phone"

    @cases(
        ("query", "body", "error_code", "details"),
        [
            ("", {"grant_type": "password"}, "validation_failed", "grant_type: is required in the query"),
            (
                "?grant_type=password&grant_type=password",
                {},
                "validation_failed",
                "grant_type: must be given once",
            ),
            ("?grant_type=client_credentials", {}, *UNSUPPORTED),
            ("?grant_type=", {}, *UNSUPPORTED),
            ("?grant_type=PASSWORD", {}, *UNSUPPORTED),
            ("?grant_type=password", {"email": None}, "validation_failed", NO_ADDRESS),
            ("?grant_type=password", {"phone": PHONE}, "validation_failed", NO_ADDRESS),
            ("?grant_type=password", {"password": None}, "validation_failed", "password: is required"),
        ],
    )
    def test_invalid_grant_or_body_is_400(self, client, alice, database, query, body, error_code, details):
        response = client.post(f"/token{query}", json=DAVE | {"email": alice.email} | body)
        assert_error(response, 400, error_code, details=details)
        assert database.count("sessions") == 0

    @pytest.mark.parametrize("name", ["email", "phone"])
    def test_disabled_email_or_phone_does_not_sign_in(self, make_app, dave, database, name):
        dave(phone=PHONE, phone_confirm=True, email_confirm=True)
        client = make_app(**{f"AUTH_{name.upper()}_ENABLED": "false"}).test_client()
        response = client.post(PATH, json=DAVE if name == "email" else BY_PHONE)
        assert_error(response, 400, f"{name}_provider_disabled")
        assert database.count("sessions") == 0


class TestSessionsPerUser:
    """Beyond AUTH_SESSIONS_PER_USER the oldest session ends."""

    @pytest.fixture
    def client(self, make_app):
        return make_app(AUTH_SESSIONS_PER_USER="3").test_client()

    def test_sign_in_beyond_the_limit_ends_the_oldest_session_of_the_user(self, alice, bob, database):
        sessions = [person.open_session() for person in (alice, bob, bob, bob, alice, alice)]
        assert [session.get("/user").status_code for session in sessions] == [200] * 6
        fourth = alice.open_session()
        assert_error(sessions[0].get("/user"), 401, "session_not_found")
        assert_error(sessions[0].refresh(), 400, "refresh_token_not_found")
        assert [session.get("/user").status_code for session in (*sessions[1:], fourth)] == [200] * 6
        reason = "SELECT end_reason FROM sessions WHERE id = %(id)s"
        assert database.value(reason, id=sessions[0].id) == "too_many_sessions"

    def test_ended_and_expired_sessions_do_not_count(self, alice, database):
        first, second, third = (alice.open_session() for _ in range(3))
        third.post("/logout?scope=local")
        alice.sign_in()
        assert first.get("/user").status_code == second.get("/user").status_code == 200
        expired = "UPDATE sessions SET refreshed_at = refreshed_at - interval '30 days' WHERE id <> %(id)s"
        database.run(expired, id=first.id)
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
    def change_password(self, app, session):
        return session.on(app.test_client()).put("/user", json={"password": NEW_PASSWORD})

    def test_sign_in_with_the_old_password_fails_after_a_concurrent_change(self, app, alice, database):
        session = alice.open_session()
        with database.locked("users", alice.id) as lock:
            change = lock.start(lambda: self.change_password(app, session))
            log_in = lock.start(lambda: sign_in(app.test_client(), alice.email))
        assert change.result().status_code == 200
        assert_invalid_credentials(log_in.result())
        assert database.count("sessions", "ended_at IS NULL") == 1

    def test_concurrent_password_change_ends_sessions_of_the_old_one(self, app, client, alice, database):
        session = alice.open_session()
        with database.locked("users", alice.id) as lock:
            log_in = lock.start(lambda: sign_in(app.test_client(), alice.email))
            change = lock.start(lambda: self.change_password(app, session))
        assert change.result().status_code == 200
        old = session_of(client, log_in.result())
        assert_error(old.get("/user"), 401, "session_not_found")
        assert_error(old.refresh(), 400, "refresh_token_not_found")
        assert session.get("/user").status_code == 200

    @pytest.mark.parametrize(
        ("change", "codes"),
        [
            ("UPDATE users SET banned_until = 'infinity'", {"invalid_credentials", "user_banned"}),
            ("DELETE FROM users", {"invalid_credentials"}),
            ("UPDATE users SET email = 'other@example.com'", {"invalid_credentials"}),
        ],
        ids=["ban", "deletion", "another address"],
    )
    def test_sign_in_fails_after_a_concurrent_act_that_refuses_it(self, app, alice, database, change, codes):
        with database.locked("users", alice.id, f"{change} WHERE id = %s") as lock:
            log_in = lock.start(lambda: sign_in(app.test_client(), alice.email))
        assert log_in.result().json["error_code"] in codes
        assert database.count("sessions") == 0

    def test_fifty_concurrent_sign_ins_and_password_changes_leave_one_password(self, server, alice, client):
        sessions = [alice.sign_in() for _ in range(4)]
        passwords = [f"Another-Horse-{number}" for number in range(4)]

        def act(number):
            if number >= 4:
                return sign_in(server, alice.email)
            return sessions[number].on(server).put("/user", json={"password": passwords[number]})

        answers = at_once(24, lambda number: until_served(lambda: act(number)))
        good = [sign_in(client, alice.email, password).status_code for password in passwords]
        assert sorted(good) == [200, 401, 401, 401]
        assert answers[good.index(200)].status_code == 200
        # Each session of the old password has ended, whenever it started.
        for answer in answers[4:]:
            if answer.status_code == 200:
                assert_error(refresh(server, answer.json["refresh_token"]), 400, "refresh_token_not_found")
