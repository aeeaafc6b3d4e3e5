"""Phone changes: pending until the code sent to the new number is verified."""

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, assert_ok, identity, user
from tests.support.cast import register, session_of
from tests.support.links import (
    OTHER_PHONE,
    PHONE,
    assert_signed_in,
    follow,
    fragment,
    hand_in,
    later,
    type_in,
)

THIRD_PHONE = "+491705555555"


@pytest.fixture
def session(alice):
    return alice.sign_in()


def change(session, phone):
    response = session.put("/user", json={"phone": phone})
    assert (response.status_code, response.json["new_phone"]) == (200, phone)
    return response


def with_phone(alice, phone=PHONE, **changes):
    """Return Alice's expected user object with a confirmed phone."""
    both = [identity("email", alice.email, last_sign_in_at=A_TIMESTAMP), identity("phone", phone)]
    expected = user(
        alice.email,
        id=alice.id,
        phone=phone,
        phone_confirmed_at=A_TIMESTAMP,
        last_sign_in_at=A_TIMESTAMP,
        identities=both,
    )
    return expected | {"app_metadata": {"provider": "email", "providers": ["email", "phone"]}} | changes


class TestRequest:
    def test_change_is_pending(self, session, alice):
        before = session.get("/user").json
        expected = before | {
            "new_phone": PHONE,
            "phone_change_sent_at": A_TIMESTAMP,
            "updated_at": A_TIMESTAMP,
        }
        assert_ok(session.put("/user", json={"phone": PHONE}), expected)
        assert_ok(session.get("/user"), expected)

    def test_only_the_new_number_is_sent_a_code(self, session, outbox):
        change(session, PHONE)
        (message,) = outbox.sent()
        assert (message.kind, message.channel, message.to, message.token, message.lifetime) == (
            "phone_change",
            "sms",
            PHONE,
            None,
            600,
        )

    def test_pending_change_does_not_reserve_the_number(self, client, session, outbox):
        change(session, PHONE)
        assert_error(
            client.post("/token?grant_type=password", json={"phone": PHONE, "password": "Correct-Horse-1"}),
            401,
            "invalid_credentials",
        )
        client.post("/otp", json={"phone": PHONE})
        assert type_in(client, "sms", PHONE, outbox.last(kind="sms").code).json["user"]["email"] is None

    def test_taken_number_is_409(self, client, session, service_role, outbox):
        client.post("/admin/users", json={"email": "phil@example.com", "phone": PHONE}, headers=service_role)
        assert_error(session.put("/user", json={"phone": PHONE, "data": {"x": 1}}), 409, "phone_exists")
        assert session.get("/user").json["new_phone"] is None
        assert session.get("/user").json["user_metadata"] == {}
        assert outbox.sent() == []

    def test_current_number_is_not_a_change(self, client, session, alice, outbox):
        change(session, PHONE)
        type_in(client, "phone_change", PHONE, outbox.last().code)
        before = len(outbox.sent())
        assert session.put("/user", json={"phone": "+49 170 1234567"}).json["new_phone"] is None
        assert len(outbox.sent()) == before

    def test_email_and_phone_can_change_together(self, client, session, outbox):
        assert session.put("/user", json={"phone": PHONE, "email": "new@example.com"}).status_code == 200
        assert sorted(outbox.kinds()) == [("email_change", "new@example.com"), ("phone_change", PHONE)]

    def test_invalid_number_is_400(self, session, outbox):
        assert_error(
            session.put("/user", json={"phone": "0170"}), 400, "validation_failed", details=A_SENTENCE
        )
        assert outbox.sent() == []

    def test_change_is_refused_when_phones_are_disabled(self, make_app, session, outbox):
        """Without phones no SMS may be sent, and the number could not sign in."""
        client = make_app(AUTH_PHONE_ENABLED="false").test_client()
        assert_error(session.on(client).put("/user", json={"phone": PHONE}), 400, "phone_provider_disabled")
        assert outbox.sent() == []


class TestCode:
    def test_code_changes_the_number_and_signs_in(self, client, session, alice, outbox):
        change(session, PHONE)
        assert_signed_in(
            client, type_in(client, "phone_change", PHONE, outbox.last().code), with_phone(alice)
        )

    def test_change_keeps_all_sessions(self, client, session, alice, outbox):
        other = alice.sign_in()
        change(session, PHONE)
        type_in(client, "phone_change", PHONE, outbox.last().code)
        assert (session.get("/user").status_code, other.get("/user").status_code) == (200, 200)

    def test_new_number_signs_in(self, client, session, outbox):
        change(session, PHONE)
        type_in(client, "phone_change", PHONE, outbox.last().code)
        assert (
            client.post(
                "/token?grant_type=password", json={"phone": PHONE, "password": "Correct-Horse-1"}
            ).status_code
            == 200
        )
        client.post("/otp", json={"phone": PHONE})
        assert type_in(client, "sms", PHONE, outbox.last().code).status_code == 200

    def test_change_mails_a_notice_with_an_undo_link(self, client, session, alice, outbox):
        change(session, PHONE)
        type_in(client, "phone_change", PHONE, outbox.last().code)
        notice = outbox.last(alice.email)
        assert (notice.kind, notice.channel, notice.code, notice.lifetime) == (
            "phone_changed",
            "email",
            None,
            7 * 86_400,
        )
        assert notice.variables["new_phone"] == PHONE
        assert len(outbox.sent()) == 2

    def test_old_number_does_not_sign_in(self, client, session, outbox, database):
        change(session, PHONE)
        type_in(client, "phone_change", PHONE, outbox.last().code)
        client.post("/otp", json={"phone": PHONE})
        old = outbox.last().code
        change(session, OTHER_PHONE)
        new = outbox.last(OTHER_PHONE).code
        assert type_in(client, "phone_change", OTHER_PHONE, new).status_code == 200
        assert_error(type_in(client, "sms", PHONE, old), 403, "otp_expired")
        assert_error(
            client.post("/token?grant_type=password", json={"phone": PHONE, "password": "Correct-Horse-1"}),
            401,
            "invalid_credentials",
        )
        client.post("/otp", json={"phone": PHONE, "create_user": False})
        assert outbox.kinds()[-1] != ("sms", PHONE)

    def test_code_works_once(self, client, session, outbox):
        change(session, PHONE)
        code = outbox.last().code
        assert type_in(client, "phone_change", PHONE, code).status_code == 200
        assert_error(type_in(client, "phone_change", PHONE, code), 403, "otp_expired")

    def test_code_expires_after_ten_minutes(self, client, session, outbox, database):
        change(session, PHONE)
        later(database, secs=600)
        assert_error(type_in(client, "phone_change", PHONE, outbox.last().code), 403, "otp_expired")
        assert session.get("/user").json["phone"] is None

    def test_code_is_refused_for_another_number(self, client, session, outbox, database):
        change(session, PHONE)
        first = outbox.last().code
        change(session, OTHER_PHONE)
        second = outbox.last().code
        assert_error(type_in(client, "phone_change", PHONE, first), 403, "otp_expired")
        assert_error(type_in(client, "phone_change", PHONE, second), 403, "otp_expired")
        assert session.get("/user").json["phone"] is None
        assert type_in(client, "phone_change", OTHER_PHONE, second).json["user"]["phone"] == OTHER_PHONE

    def test_code_of_a_replaced_change_is_refused(self, client, session, outbox):
        change(session, PHONE)
        first = outbox.last().code
        change(session, OTHER_PHONE)
        assert_error(type_in(client, "phone_change", PHONE, first), 403, "otp_expired")
        assert session.get("/user").json["new_phone"] == OTHER_PHONE

    @pytest.mark.parametrize(
        "type", ["sms", "email_change", "magiclink", "signup", "recovery", "invite", "email"]
    )
    def test_code_is_refused_for_other_types(self, client, session, outbox, type):
        change(session, PHONE)
        assert_error(type_in(client, type, PHONE, outbox.last().code), 403, "otp_expired")
        assert session.get("/user").json["phone"] is None

    def test_code_is_refused_as_a_link(self, client, session, outbox):
        change(session, PHONE)
        code = outbox.last().code
        assert fragment(follow(client, "phone_change", code))["error_code"] == "otp_expired"
        assert_error(hand_in(client, "phone_change", code), 403, "otp_expired")

    def test_number_taken_meanwhile_is_409(self, client, session, service_role, alice, outbox, database):
        change(session, PHONE)
        client.post("/admin/users", json={"email": "phil@example.com", "phone": PHONE}, headers=service_role)
        before = database.everything("users", "identities", "sessions", "one_time_tokens")
        assert_error(type_in(client, "phone_change", PHONE, outbox.last().code), 409, "phone_exists")
        assert database.everything("users", "identities", "sessions", "one_time_tokens") == before

    def test_of_the_codes_of_two_users_for_one_number_only_the_newest_works(
        self, client, alice, bob, outbox, database
    ):
        change(alice.sign_in(), PHONE)
        alices = outbox.last().code
        change(bob.sign_in(), PHONE)
        bobs = outbox.last().code
        assert_error(type_in(client, "phone_change", PHONE, alices), 403, "otp_expired")
        assert type_in(client, "phone_change", PHONE, bobs).json["user"]["id"] == bob.id
        assert_error(type_in(client, "phone_change", PHONE, alices), 403, "otp_expired")
        assert database.all("SELECT id::text FROM users WHERE phone = %(phone)s", phone=PHONE) == [(bob.id,)]

    def test_change_voids_other_links_and_codes(self, client, session, alice, outbox):
        client.post("/magiclink", json={"email": alice.email})
        change(session, PHONE)
        assert type_in(client, "phone_change", PHONE, outbox.last(PHONE).code).status_code == 200
        assert_error(hand_in(client, "magiclink", outbox.last(kind="magiclink").token), 403, "otp_expired")

    def test_code_of_a_banned_user_is_refused(self, client, session, outbox, database):
        change(session, PHONE)
        database.run("UPDATE users SET banned_until = 'infinity'")
        assert_error(type_in(client, "phone_change", PHONE, outbox.last().code), 403, "user_banned")
        assert database.value("SELECT phone FROM users") is None

    def test_session_started_by_the_code_counts_toward_the_limit(self, make_app, alice, outbox, database):
        """AUTH_SESSIONS_PER_USER: each way to sign in ends the oldest session beyond the limit."""
        client = make_app(AUTH_SESSIONS_PER_USER="1").test_client()
        session = alice.sign_in(client=client)
        change(session, PHONE)
        latest = session_of(client, type_in(client, "phone_change", PHONE, outbox.last().code))
        assert latest.get("/user").status_code == 200
        assert database.count("sessions", "ended_at IS NULL") == 1

    def test_number_can_change_back_and_forth(self, client, session, outbox):
        for phone in (PHONE, OTHER_PHONE, PHONE, THIRD_PHONE):
            change(session, phone)
            assert (
                type_in(client, "phone_change", phone, outbox.last(phone).code).json["user"]["phone"] == phone
            )
        assert [entry["identity_data"].get("phone") for entry in session.get("/user").json["identities"]] == [
            None,
            THIRD_PHONE,
        ]


def test_change_by_an_administrator_voids_the_pending_one(client, session, service_role, alice, outbox):
    change(session, PHONE)
    client.put(
        f"/admin/users/{alice.id}", json={"phone": OTHER_PHONE, "phone_confirm": True}, headers=service_role
    )
    assert_error(type_in(client, "phone_change", PHONE, outbox.last().code), 403, "otp_expired")
    assert session.get("/user").json["phone"] == OTHER_PHONE


def test_old_number_is_free_after_the_change(client, session, service_role, outbox):
    change(session, PHONE)
    type_in(client, "phone_change", PHONE, outbox.last().code)
    change(session, OTHER_PHONE)
    type_in(client, "phone_change", OTHER_PHONE, outbox.last(OTHER_PHONE).code)
    bob = register(client, service_role, "bob@example.com").sign_in()
    change(bob, PHONE)
    assert (
        type_in(client, "phone_change", PHONE, outbox.last(PHONE).code).json["user"]["email"]
        == "bob@example.com"
    )
