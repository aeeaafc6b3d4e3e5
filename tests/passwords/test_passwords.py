"""The password policy, and hashing."""

import threading

import bcrypt
import pytest

from auth.context import EXTENSION
from auth.passwords import hashing
from tests.support.answers import A_SENTENCE, Like, assert_error
from tests.support.cases import cases
from tests.support.cast import PASSWORD, sign_in


@pytest.fixture
def sign_up(client):
    return lambda password, email="dave@example.com": client.post(
        "/signup", json={"email": email, "password": password}
    )


def reasons(response):
    """Return the reasons for which a password is weak."""
    found = response.json.get("weak_password", {}).get("reasons")
    assert_error(
        response,
        422,
        "weak_password",
        Like("a sentence", r"Password should .+\."),
        A_SENTENCE,
        weak_password={"reasons": found},
    )
    assert response.json["details"].startswith("password: must ")
    return found


class TestStrength:
    @cases(
        "password",
        [
            "Aa1-Aa1-",
            "correct Horse 1!",
            "Größe-42",
            "Пароль-42",
            "Aa1☃Aa1☃",
            "Aa1_xxxx",
            "Aa1" + " " * 5,
            "Aa1-" * 256,
        ],
    )
    def test_strong_password_is_accepted(self, sign_up, password):
        assert sign_up(password).status_code == 201

    @cases(
        ("password", "why"),
        [
            ("", ["length", "characters"]),
            ("Aa1-Aa1", ["length"]),
            ("Ää1-Ää1", ["length"]),
            ("aa1-aa1-", ["characters"]),
            ("AA1-AA1-", ["characters"]),
            ("Aab-Aab-", ["characters"]),
            ("Aa12Aa12", ["characters"]),
            ("12345678", ["characters", "common"]),
            ("password", ["characters", "common"]),
            ("PASSWORD", ["characters", "common"]),
            ("123456", ["length", "characters", "common"]),
        ],
    )
    def test_weak_password_is_refused_with_all_reasons(self, sign_up, database, password, why):
        assert reasons(sign_up(password)) == why
        assert database.count("users") == 0

    @cases(
        "password",
        [
            "Password1!",
            "Qwerty123!",
            "Passw0rd!",
            "Welcome1!",
            "Abcd1234!",
            "P@$$w0rd2024",
            "$Un5h1n3!",
            "Footba11!",
            "!!Dragon1",
        ],
    )
    def test_common_password_with_digits_and_symbols_is_refused(self, sign_up, database, password):
        assert reasons(sign_up(password)) == ["common"]
        assert database.count("users") == 0

    @pytest.mark.parametrize("password", ["Dragon98765!", "Dragonx1!", "Bob-1234!"])
    def test_common_password_with_letters_or_five_characters_added_is_accepted(self, sign_up, password):
        assert sign_up(password).status_code == 201

    def test_address_of_the_user_is_common(self, sign_up, client, alice):
        assert reasons(sign_up("Dave-1@Example.com", "dave-1@example.com")) == ["common"]
        response = alice.sign_in().put("/user", json={"password": "ALICE@example.com"})
        assert reasons(response) == ["characters", "common"]

    def test_address_of_another_user_is_not_common(self, sign_up):
        assert sign_up("Dave-1@Example.com", "erin@example.com").status_code == 201

    def test_common_password_with_additions_is_not_common(self, make_app):
        client = make_app(AUTH_PASSWORD_REQUIREMENTS="").test_client()
        assert (
            client.post(
                "/signup", json={"email": "dave@example.com", "password": "password-password"}
            ).status_code
            == 201
        )

    def test_length_is_counted_in_characters(self, make_app):
        client = make_app(AUTH_PASSWORD_REQUIREMENTS="", AUTH_PASSWORD_MIN_LENGTH="4").test_client()
        assert reasons(client.post("/signup", json={"email": "dave@example.com", "password": "äöü"})) == [
            "length"
        ]
        assert (
            client.post("/signup", json={"email": "dave@example.com", "password": "äöüß"}).status_code == 201
        )

    def test_minimum_length_is_a_setting(self, make_app):
        client = make_app(AUTH_PASSWORD_MIN_LENGTH="12").test_client()
        response = client.post("/signup", json={"email": "dave@example.com", "password": "Aa1-Aa1-Aa1"})
        assert reasons(response) == ["length"]
        assert "12 characters" in response.json["details"]

    def test_required_characters_are_a_setting(self, make_app):
        client = make_app(AUTH_PASSWORD_REQUIREMENTS="numbers").test_client()
        assert (
            client.post("/signup", json={"email": "dave@example.com", "password": "xxxxxxx1"}).status_code
            == 201
        )
        assert reasons(
            client.post("/signup", json={"email": "erin@example.com", "password": "xxxxxxxx"})
        ) == ["characters"]

    def test_check_for_common_passwords_is_a_setting(self, make_app):
        changes = {"AUTH_PASSWORD_REQUIREMENTS": "", "AUTH_PASSWORD_COMMON_CHECK": "false"}
        assert (
            make_app(**changes)
            .test_client()
            .post("/signup", json={"email": "dave@example.com", "password": "password"})
            .status_code
            == 201
        )
        client = make_app(AUTH_PASSWORD_REQUIREMENTS="").test_client()
        assert reasons(
            client.post("/signup", json={"email": "erin@example.com", "password": "PassWord"})
        ) == ["common"]

    def test_log_in_does_not_check_the_strength(self, alice, database):
        weak = bcrypt.hashpw(b"weak", bcrypt.gensalt(4)).decode()
        database.run("UPDATE users SET password_hash = %(weak)s", weak=weak)
        assert alice.try_to_sign_in("weak").status_code == 200

    def test_weak_password_is_not_hashed(self, sign_up, hashes):
        sign_up("weak")
        assert hashes.count == 0


class TestHashing:
    def test_hash_is_bcrypt_of_the_configured_cost(self, sign_up, database):
        sign_up(PASSWORD)
        stored = database.value("SELECT password_hash FROM users")
        assert stored.startswith("latchkey1$2b$04$")
        assert bcrypt.checkpw(PASSWORD.encode(), stored.removeprefix("latchkey1").encode())

    def test_users_with_the_same_password_have_different_hashes(self, client, service_role, database):
        for email in ("alice@example.com", "bob@example.com"):
            body = {"email": email, "password": PASSWORD}
            assert client.post("/admin/users", json=body, headers=service_role).status_code == 200
        assert len({row.password_hash for row in database.all("SELECT password_hash FROM users")}) == 2

    def test_request_is_refused_when_it_has_waited_too_long(self, make_app, monkeypatch):
        app = make_app()
        passwords = app.extensions[EXTENSION].passwords
        monkeypatch.setattr(hashing, "PATIENCE", 0.01)
        with monkeypatch.context() as busy:
            busy.setattr(passwords, "_admission", threading.Semaphore(0))
            # More requests than the queue holds: each must leave it.
            for _ in range(100):
                response = sign_in(app.test_client(), "nobody@example.com", "Wrong-Horse-1")
                assert_error(
                    response, 503, "service_unavailable", "Too many sign-ins at once; try again shortly"
                )
        assert sign_in(app.test_client(), "nobody@example.com", "Wrong-Horse-1").status_code == 401
