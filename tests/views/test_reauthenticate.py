"""GET /reauthenticate: a code for what a session of some age may not do without, and PUT and DELETE /user,
which take it as nonce.
"""

import pytest

from tests.support.answers import A_SENTENCE, ANYTHING, assert_error, assert_ok
from tests.support.cast import PASSWORD
from tests.support.crowd import crowd
from tests.support.links import ON_ITS_WAY, OTHER_PHONE, PHONE, counted, hand_in, later, type_in

NEW = "Another-Horse-1"
NEEDED = (400, "reauthentication_needed")
NOT_VALID = (400, "reauthentication_not_valid")


@pytest.fixture
def session(alice, database):
    """A session of Alice that is a day old."""
    session = alice.sign_in()
    grow_old(database)
    return session


def grow_old(database):
    database.run("UPDATE sessions SET created_at = created_at - interval '1 day'")


@pytest.fixture
def nonce(session, outbox):
    assert_ok(session.get("/reauthenticate"), ON_ITS_WAY)
    return outbox.last().code


class TestTheCode:
    def test_it_is_sent_to_the_email_without_a_link(self, session, alice, outbox):
        assert_ok(session.get("/reauthenticate"), ON_ITS_WAY)
        (message,) = outbox.sent()
        assert (message.kind, message.channel, message.to, message.token, message.lifetime) == (
            "reauthentication",
            "email",
            alice.email,
            None,
            3600,
        )
        assert (len(message.code), message.code.isdecimal()) == (6, True)

    def test_it_is_sent_to_the_email_where_there_is_a_phone_too(self, session, outbox, database):
        database.run("UPDATE users SET phone = %(phone)s, phone_confirmed_at = now()", phone=PHONE)
        session.get("/reauthenticate")
        assert outbox.kinds() == [("reauthentication", "alice@example.com")]

    def test_it_is_sent_to_the_phone_where_the_email_is_not_confirmed(self, session, outbox, database):
        database.run(
            "UPDATE users SET phone = %(phone)s, phone_confirmed_at = now(), email_confirmed_at = NULL",
            phone=PHONE,
        )
        assert_ok(session.get("/reauthenticate"), ON_ITS_WAY)
        (message,) = outbox.sent()
        assert (message.channel, message.to, message.token, message.lifetime) == ("sms", PHONE, None, 600)
        assert session.put("/user", json={"password": NEW, "nonce": message.code}).status_code == 200

    def test_it_is_sent_to_no_pending_address(self, session, outbox, database):
        database.run("UPDATE users SET new_email = 'mallory@example.com', new_phone = %(phone)s", phone=PHONE)
        session.get("/reauthenticate")
        assert outbox.kinds() == [("reauthentication", "alice@example.com")]

    def test_where_no_address_is_confirmed_there_is_none(self, session, outbox, database):
        database.run("UPDATE users SET phone = %(phone)s, email_confirmed_at = NULL", phone=PHONE)
        assert_error(session.get("/reauthenticate"), 400, "validation_failed")
        assert (outbox.sent(), database.count("outbox")) == ([], 0)

    def test_head_sends_nothing(self, session, outbox, client, database):
        """HEAD answers as GET without a body, and never has an effect."""
        response = client.head("/reauthenticate", headers=session.authorization)
        assert response.data == b""
        assert (database.count("outbox"), database.count("one_time_tokens")) == (0, 0)

    @pytest.mark.parametrize("method", ["post", "put", "delete"])
    def test_it_is_asked_for_by_get_alone(self, client, session, method):
        assert_error(
            client.open("/reauthenticate", method=method.upper(), headers=session.authorization),
            405,
            "method_not_allowed",
        )


class TestWhoMayAsk:
    def test_nobody_without_a_token(self, client, database):
        assert_error(client.get("/reauthenticate"), 401, "no_authorization", details=A_SENTENCE)
        assert_error(client.get("/reauthenticate", headers={"Authorization": "Bearer x.y.z"}), 401, "bad_jwt")

    def test_not_the_service_role_key(self, client, service_role):
        assert client.get("/reauthenticate", headers=service_role).status_code == 401
        assert (
            client.get(
                "/reauthenticate", headers={"apikey": service_role["Authorization"].removeprefix("Bearer ")}
            ).status_code
            == 401
        )

    def test_no_session_that_has_ended(self, alice, session, outbox):
        session.post("/logout")
        assert_error(session.get("/reauthenticate"), 401, "session_not_found")
        assert outbox.sent() == []

    def test_nobody_banned_or_deleted(self, session, outbox, database):
        database.run("UPDATE users SET banned_until = 'infinity'")
        assert_error(session.get("/reauthenticate"), 403, "user_banned")
        database.run("DELETE FROM users")
        assert_error(session.get("/reauthenticate"), 401, "user_not_found")
        assert outbox.sent() == []


class TestTheNonce:
    def test_a_password_is_changed_with_it(self, session, nonce, alice):
        assert_error(session.put("/user", json={"password": NEW}), *NEEDED, details=A_SENTENCE)
        assert session.put("/user", json={"password": NEW, "nonce": nonce}).status_code == 200
        assert alice.try_to_sign_in(NEW).status_code == 200

    @pytest.mark.parametrize("change", [{"email": "new@example.com"}, {"phone": PHONE}])
    def test_an_address_is_changed_with_it(self, session, nonce, outbox, change):
        assert_error(session.put("/user", json=change), *NEEDED, details=A_SENTENCE)
        assert len(outbox.sent()) == 1
        assert session.put("/user", json=change | {"nonce": nonce}).status_code == 200
        assert len(outbox.sent()) == 2

    def test_the_account_is_deleted_with_it(self, client, session, nonce, database):
        assert_error(session.delete("/user"), *NEEDED, details=A_SENTENCE)
        assert_error(session.delete("/user", json={"nonce": "x"}), *NOT_VALID, details=A_SENTENCE)
        assert database.count("users") == 1
        assert_ok(
            session.delete("/user", json={"nonce": nonce}), {"message": A_SENTENCE, "timestamp": ANYTHING}
        )
        assert database.count("users") == 0

    def test_it_works_once(self, session, nonce, alice):
        assert session.put("/user", json={"email": "new@example.com", "nonce": nonce}).status_code == 200
        assert_error(
            session.put("/user", json={"password": NEW, "nonce": nonce}), *NOT_VALID, details=A_SENTENCE
        )
        assert alice.try_to_sign_in().status_code == 200

    def test_whoever_is_turned_away_has_not_spent_it(self, session, nonce, parts, alice):
        with crowd(parts.passwords):
            assert_error(
                session.put("/user", json={"password": NEW, "nonce": nonce}), 503, "service_unavailable"
            )
        assert alice.try_to_sign_in().status_code == 200
        assert session.put("/user", json={"password": NEW, "nonce": nonce}).status_code == 200

    def test_it_lives_an_hour(self, session, nonce, alice, database):
        later(database, secs=3600)
        assert_error(
            session.put("/user", json={"password": NEW, "nonce": nonce}), *NOT_VALID, details=A_SENTENCE
        )
        assert alice.try_to_sign_in().status_code == 200

    def test_only_the_newest_is_good(self, session, nonce, outbox):
        session.get("/reauthenticate")
        assert_error(
            session.put("/user", json={"password": NEW, "nonce": nonce}), *NOT_VALID, details=A_SENTENCE
        )
        assert session.put("/user", json={"password": NEW, "nonce": outbox.last().code}).status_code == 200

    def test_five_wrong_tries_end_it(self, session, nonce, outbox, alice, database):
        for _ in range(5):
            assert_error(
                session.put("/user", json={"password": NEW, "nonce": outbox.last().wrong_code}),
                *NOT_VALID,
                details=A_SENTENCE,
            )
        assert_error(
            session.put("/user", json={"password": NEW, "nonce": nonce}), *NOT_VALID, details=A_SENTENCE
        )
        assert alice.try_to_sign_in().status_code == 200
        assert counted(database, f"code {alice.email}") == 6

    @pytest.mark.parametrize(
        "nonce", ["", "x", "12345", "1234567", "\uff11\uff12\uff13\uff14\uff15\uff16", " 123456", "123 456"]
    )
    def test_what_is_no_code(self, session, alice, nonce):
        assert_error(
            session.put("/user", json={"password": NEW, "nonce": nonce}), *NOT_VALID, details=A_SENTENCE
        )
        assert alice.try_to_sign_in().status_code == 200

    @pytest.mark.parametrize("nonce", [123456, True, ["123456"], {}])
    def test_what_is_no_string(self, session, nonce):
        assert_error(
            session.put("/user", json={"password": NEW, "nonce": nonce}),
            400,
            "validation_failed",
            details="nonce: must be a string",
        )

    def test_another_users_is_none(self, session, nonce, bob, database, outbox, alice):
        mine = bob.sign_in()
        grow_old(database)
        mine.get("/reauthenticate")
        bobs = outbox.last(bob.email).code
        assert_error(
            session.put("/user", json={"password": NEW, "nonce": bobs}), *NOT_VALID, details=A_SENTENCE
        )
        assert_error(
            mine.put("/user", json={"password": NEW, "nonce": nonce}), *NOT_VALID, details=A_SENTENCE
        )
        assert mine.put("/user", json={"password": NEW, "nonce": bobs}).status_code == 200

    @pytest.mark.parametrize("purpose", ["magiclink", "recovery"])
    def test_a_code_that_signs_in_is_none(self, client, session, alice, outbox, purpose):
        client.post({"magiclink": "/magiclink", "recovery": "/recover"}[purpose], json={"email": alice.email})
        code = outbox.last().code
        assert_error(
            session.put("/user", json={"password": NEW, "nonce": code}), *NOT_VALID, details=A_SENTENCE
        )
        assert type_in(client, purpose, alice.email, code).status_code == 200

    @pytest.mark.parametrize(
        "type", ["magiclink", "email", "signup", "recovery", "invite", "email_change", "sms", "phone_change"]
    )
    def test_it_does_not_sign_in(self, client, session, nonce, alice, database, type):
        assert_error(type_in(client, type, alice.email, nonce), 403, "otp_expired")
        assert_error(hand_in(client, type, nonce), 403, "otp_expired")
        assert_error(
            client.post("/verify", json={"type": "reauthentication", "email": alice.email, "token": nonce}),
            400,
            "validation_failed",
            details=A_SENTENCE,
        )
        assert database.count("sessions") == 1
        assert session.put("/user", json={"password": NEW, "nonce": nonce}).status_code == 200

    def test_it_dies_with_a_change_of_password(self, session, nonce, alice, service_role, client):
        assert session.put("/user", json={"password": NEW, "current_password": PASSWORD}).status_code == 200
        assert_error(
            session.put("/user", json={"password": PASSWORD, "nonce": nonce}), *NOT_VALID, details=A_SENTENCE
        )

    def test_it_dies_with_a_change_of_email(self, client, session, nonce, outbox, database):
        session.put("/user", json={"email": "new@example.com", "current_password": PASSWORD})
        assert hand_in(client, "email_change", outbox.last("new@example.com").token).status_code == 200
        grow_old(database)
        assert_error(
            session.put("/user", json={"password": NEW, "nonce": nonce}), *NOT_VALID, details=A_SENTENCE
        )

    def test_a_wrong_one_beside_a_wrong_password_helps_neither(self, session, nonce, alice):
        response = session.put(
            "/user", json={"password": NEW, "nonce": nonce, "current_password": "Wrong-Horse-1"}
        )
        assert_error(response, 400, "current_password_invalid", details=A_SENTENCE)
        assert alice.try_to_sign_in().status_code == 200

    def test_a_right_one_is_no_wrong_try_for_the_other_address(self, client, session, nonce, database):
        """Twenty wrong tries a day end the codes of an address: those that were right, for another address,
        must not count.
        """
        database.run("UPDATE users SET phone = %(phone)s, phone_confirmed_at = now()", phone=OTHER_PHONE)
        assert session.put("/user", json={"password": NEW, "nonce": nonce}).status_code == 200
        assert counted(database, "code alice@example.com") == 0
        assert counted(database, f"code {OTHER_PHONE}") == 0

    def test_a_change_that_is_refused_changes_nothing(self, session, nonce, bob, alice):
        response = session.put("/user", json={"email": bob.email, "password": NEW, "nonce": nonce})
        assert_error(response, 409, "email_exists")
        assert session.get("/user").json["new_email"] is None
        assert alice.try_to_sign_in().status_code == 200


class TestWhereItIsNotNeeded:
    @pytest.mark.parametrize("nonce", ["123456", "nonsense", ""])
    def test_a_young_session_is_not_asked_for_it_and_it_is_not_looked_at(self, alice, database, nonce):
        session = alice.sign_in()
        assert session.put("/user", json={"password": NEW, "nonce": nonce}).status_code == 200
        assert counted(database, f"code {alice.email}") == 0

    def test_it_is_not_spent_there_either(self, alice, outbox, database):
        session = alice.sign_in()
        session.get("/reauthenticate")
        nonce = outbox.last().code
        assert session.put("/user", json={"phone": PHONE, "nonce": nonce}).status_code == 200
        grow_old(database)
        assert session.put("/user", json={"phone": OTHER_PHONE, "nonce": nonce}).status_code == 200

    def test_metadata_is_changed_without(self, session):
        assert session.put("/user", json={"data": {"x": 1}}).json["user_metadata"] == {"x": 1}

    def test_an_address_that_stays_the_same_is_no_change(self, session, alice):
        assert session.put("/user", json={"email": alice.email.upper()}).json["new_email"] is None

    def test_the_setting_never(self, make_app, session):
        client = make_app(AUTH_REAUTHENTICATION_AGE="never").test_client()
        assert session.on(client).put("/user", json={"password": NEW}).status_code == 200

    def test_the_setting_always(self, make_app, alice, outbox):
        session = alice.sign_in(client=make_app(AUTH_REAUTHENTICATION_AGE="always").test_client())
        assert_error(session.put("/user", json={"password": NEW}), *NEEDED, details=A_SENTENCE)
        session.get("/reauthenticate")
        assert session.put("/user", json={"password": NEW, "nonce": outbox.last().code}).status_code == 200
