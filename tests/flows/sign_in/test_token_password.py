"""POST /token?grant_type=password: signing in with an email or a phone number and a password."""

import base64
import hashlib
import unicodedata

import bcrypt
import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok, token_response, user
from tests.support.cases import cases
from tests.support.checked_rows import statements_run
from tests.support.links import PHONE
from tests.support.server import at_once, until_served
from tests.support.users import PASSWORD, WRONG_PASSWORD, refresh, session_of, sign_in

LONG = "Correct-Horse-1 " * 5
PATH = "/token?grant_type=password"
DAVE = {"email": "dave@example.com", "password": PASSWORD}
BY_PHONE = {"phone": PHONE, "password": PASSWORD}


def assert_invalid_credentials(response):
    assert_error(response, 401, "invalid_credentials", "Invalid login credentials")


def digest(password):
    return base64.b64encode(hashlib.sha256(password.encode()).digest()).decode()


@pytest.fixture
def create_dave(client, service_role):
    def make(**members):
        response = client.post("/admin/users", json=DAVE | members, headers=service_role)
        assert response.status_code == 200

    return make


def test_sign_in_returns_tokens_and_the_user_in_a_look_up_and_an_act(alice, parts, hashes, database):
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
    condition = "last_sign_in_at BETWEEN now() - interval '1 minute' AND now()"
    assert database.value(f"SELECT {condition} FROM users")
    assert database.value("SELECT last_sign_in_at = (SELECT last_sign_in_at FROM users) FROM identities")


@pytest.mark.parametrize("path", [PATH, "/login-admin"])
def test_wrong_credentials_get_and_cost_the_same(
    client, create_dave, alice, carol, database, parts, hashes, path
):
    create_dave(email="nopassword@example.com", password=None, email_confirm=True)
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


class TestPassword:
    @pytest.mark.parametrize("length", [72, 73, 100, 1024])
    def test_every_character_of_a_long_password_counts(self, client, create_dave, length):
        password = "Aa1-" * (length // 4) + "x" * (length % 4)
        create_dave(password=password, email_confirm=True)
        assert sign_in(client, DAVE["email"], password).status_code == 200
        middle = password[: length // 2] + "?" + password[length // 2 + 1 :]
        wrong_passwords = {password[:-1], password[:-1] + "?", password[:72], "?" + password[1:], middle}
        for other in wrong_passwords - {password}:
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
    def test_password_is_compared_in_unicode_normal_form(self, client, create_dave, password, others):
        create_dave(password=unicodedata.normalize("NFD", password), email_confirm=True)
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
        statement = "SELECT password_hash FROM users"
        imported_hash = bcrypt.hashpw(bcrypt_input.encode(), bcrypt.gensalt(cost)).decode()
        database.run("UPDATE users SET password_hash = %(imported_hash)s", imported_hash=imported_hash)
        assert_invalid_credentials(alice.try_to_sign_in(WRONG_PASSWORD))
        assert database.value(statement) == imported_hash
        alice.sign_in(password)
        renewed_hash = database.value(statement)
        assert renewed_hash.startswith("latchkey1$2b$04$")
        alice.sign_in(password)
        assert database.value(statement) == renewed_hash
        if password == LONG:
            assert_invalid_credentials(alice.try_to_sign_in(bcrypt_input))

    def test_long_password_costs_the_same_for_each_scheme(self, alice, database, hashes):
        counts = []
        for stored_hash in ("latchkey1$2b$04$" + "." * 53, "$2b$04$" + "." * 53, None):
            database.run("UPDATE users SET password_hash = %(stored_hash)s", stored_hash=stored_hash)
            hashes.count = 0
            assert_invalid_credentials(alice.try_to_sign_in(LONG))
            counts.append(hashes.count)
        assert counts == [2, 2, 2]


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
            ("?grant_type=x&grant_type=x", {}, "validation_failed", "grant_type: must be given once"),
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
    def test_disabled_email_or_phone_does_not_sign_in(self, make_app, create_dave, database, name):
        create_dave(phone=PHONE, phone_confirm=True, email_confirm=True)
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

    def test_concurrent_sign_ins_stay_within_the_limit(self, client, alice):
        new_client = client.application.test_client
        sessions = at_once(
            12, lambda _: session_of(new_client(), until_served(lambda: sign_in(new_client(), alice.email)))
        )
        assert sorted(session.get("/user").status_code for session in sessions) == [200] * 3 + [401] * 9


class TestRaces:
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

        def sign_in_or_change(number):
            if number >= 4:
                return sign_in(server, alice.email)
            return sessions[number].on(server).put("/user", json={"password": passwords[number]})

        answers = at_once(24, lambda number: until_served(lambda: sign_in_or_change(number)))
        statuses = [sign_in(client, alice.email, password).status_code for password in passwords]
        assert sorted(statuses) == [200, 401, 401, 401]
        assert answers[statuses.index(200)].status_code == 200
        # Each session of the old password has ended, whenever it started.
        for answer in answers[4:]:
            if answer.status_code == 200:
                assert_error(refresh(server, answer.json["refresh_token"]), 400, "refresh_token_not_found")
