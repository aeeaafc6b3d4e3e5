"""Phone changes: pending until the code sent to the new number is verified."""

import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok, identity, user
from tests.support.links import OTHER_PHONE, PHONE, assert_signed_in, hand_in, type_in
from tests.support.users import PASSWORD, register

THIRD_PHONE = "+491705555555"


@pytest.fixture
def change(client, session, outbox):
    def change(phone=PHONE, session=session):
        response = session.put("/user", json={"phone": phone})
        assert (response.status_code, response.json["new_phone"]) == (200, phone)
        return outbox.last(phone, "phone_change").code

    return change


def confirm(client, phone, code):
    return type_in(client, "phone_change", phone, code)


def assert_expired(client, phone, code, type="phone_change"):
    assert_error(type_in(client, type, phone, code), 403, "otp_expired")


def log_in(client, phone):
    return client.post("/token?grant_type=password", json={"phone": phone, "password": PASSWORD})


class TestRequest:
    def test_change_is_pending_and_the_new_number_alone_is_sent_a_code(self, session, outbox):
        expected = session.get("/user").json | {
            "new_phone": PHONE,
            "phone_change_sent_at": A_TIMESTAMP,
            "updated_at": A_TIMESTAMP,
        }
        assert_ok(session.put("/user", json={"phone": PHONE}), expected)
        assert_ok(session.get("/user"), expected)
        (message,) = outbox.sent()
        assert (message.kind, message.channel, message.to) == ("phone_change", "sms", PHONE)
        assert (message.token, message.lifetime) == (None, 600)

    def test_pending_change_does_not_reserve_the_number(self, client, change, outbox):
        change()
        assert_error(log_in(client, PHONE), 401, "invalid_credentials")
        client.post("/otp", json={"phone": PHONE})
        assert type_in(client, "sms", PHONE, outbox.last(kind="sms").code).json["user"]["email"] is None

    def test_email_and_phone_can_change_together(self, session, outbox):
        assert session.put("/user", json={"phone": PHONE, "email": "new@example.com"}).status_code == 200
        assert sorted(outbox.kinds()) == [("email_change", "new@example.com"), ("phone_change", PHONE)]


class TestCode:
    def test_code_changes_the_number_and_ends_the_other_sessions_and_links(
        self, client, session, alice, change, outbox
    ):
        other = alice.open_session()
        client.post("/magiclink", json={"email": alice.email})
        changed = confirm(client, PHONE, change())
        both = [identity("email", alice.email), identity("phone", PHONE)]
        expected = user(
            alice.email, id=alice.id, phone=PHONE, phone_confirmed_at=A_TIMESTAMP, identities=both
        )
        expected["app_metadata"] = {"provider": "email", "providers": ["email", "phone"]}
        expected["last_sign_in_at"] = A_TIMESTAMP
        assert_signed_in(client, changed, expected)
        assert (session.get("/user").status_code, other.get("/user").status_code) == (200, 401)
        assert_error(hand_in(client, "magiclink", outbox.last(kind="magiclink").token), 403, "otp_expired")
        notice = outbox.last(alice.email)
        assert (notice.kind, notice.channel, notice.code) == ("phone_changed", "email", None)
        assert (notice.lifetime, notice.variables["new_phone"]) == (7 * 86_400, PHONE)
        assert len(outbox.sent()) == 3

    def test_new_number_signs_in_and_the_old_one_does_not(self, client, change, outbox):
        confirm(client, PHONE, change())
        assert log_in(client, PHONE).status_code == 200
        client.post("/otp", json={"phone": PHONE})
        old = outbox.last(PHONE).code
        assert confirm(client, OTHER_PHONE, change(OTHER_PHONE)).status_code == 200
        assert_expired(client, PHONE, old, "sms")
        assert_error(log_in(client, PHONE), 401, "invalid_credentials")
        client.post("/otp", json={"phone": PHONE, "create_user": False})
        assert outbox.kinds()[-1] != ("sms", PHONE)
        client.post("/otp", json={"phone": OTHER_PHONE})
        assert type_in(client, "sms", OTHER_PHONE, outbox.last().code).status_code == 200

    def test_only_the_code_of_the_latest_change_works_for_its_number(self, client, session, change):
        first, second = change(), change(OTHER_PHONE)
        for code in (first, second):
            assert_expired(client, PHONE, code)
        changes = session.get("/user").json
        assert (changes["phone"], changes["new_phone"]) == (None, OTHER_PHONE)
        assert_error(hand_in(client, "phone_change", second), 403, "otp_expired")
        assert confirm(client, OTHER_PHONE, second).json["user"]["phone"] == OTHER_PHONE

    def test_number_taken_meanwhile_is_409(self, client, service_role, change, database):
        code = change()
        client.post("/admin/users", json={"email": "phil@example.com", "phone": PHONE}, headers=service_role)
        before = database.everything("users", "identities", "sessions", "one_time_tokens")
        assert_error(confirm(client, PHONE, code), 409, "phone_exists")
        assert database.everything("users", "identities", "sessions", "one_time_tokens") == before

    def test_of_the_codes_of_two_users_for_one_number_the_newest_works(self, client, change, bob, database):
        alices, bobs = change(), change(session=bob.open_session())
        assert_expired(client, PHONE, alices)
        assert confirm(client, PHONE, bobs).json["user"]["id"] == bob.id
        assert_expired(client, PHONE, alices)
        assert database.all("SELECT id::text FROM users WHERE phone = %(phone)s", phone=PHONE) == [(bob.id,)]

    def test_code_of_a_banned_user_is_refused(self, client, change, database):
        code = change()
        database.run("UPDATE users SET banned_until = 'infinity'")
        assert_error(confirm(client, PHONE, code), 403, "user_banned")
        assert database.value("SELECT phone FROM users") is None

    def test_number_can_change_and_is_free_again(self, client, session, service_role, change, outbox):
        for phone in (PHONE, OTHER_PHONE, PHONE, THIRD_PHONE):
            assert confirm(client, phone, change(phone)).json["user"]["phone"] == phone
        before = len(outbox.sent())
        # The current number is not a change.
        assert session.put("/user", json={"phone": "+49 170 5555555"}).json["new_phone"] is None
        assert len(outbox.sent()) == before
        identities = session.get("/user").json["identities"]
        assert [each["identity_data"].get("phone") for each in identities] == [None, THIRD_PHONE]
        bob = register(client, service_role, "bob@example.com").open_session()
        assert confirm(client, PHONE, change(session=bob)).json["user"]["email"] == "bob@example.com"
