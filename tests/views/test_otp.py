"""POST /otp: a code to sign in, by SMS, or by mail with a link."""

import pytest

from tests.support.answers import A_SENTENCE, A_TIMESTAMP, assert_error, assert_ok, identity, user
from tests.support.cases import cases
from tests.support.cast import PASSWORD
from tests.support.links import (
    ON_ITS_WAY,
    OTHER_PHONE,
    PHONE,
    WITH_CHALLENGE,
    assert_signed_in,
    assert_signs_in,
    hand_in,
    later,
    type_in,
)

DAVE = "dave@example.com"


def phone_user(phone, **changes):
    """Return the expected user object after a sign-in by phone, without an email."""
    expected = {
        "email": None,
        "email_confirmed_at": None,
        "phone": phone,
        "phone_confirmed_at": A_TIMESTAMP,
        "confirmed_at": A_TIMESTAMP,
        "last_sign_in_at": A_TIMESTAMP,
        "app_metadata": {"provider": "phone", "providers": ["phone"]},
        "identities": [identity("phone", phone, last_sign_in_at=A_TIMESTAMP)],
    }
    return user("") | expected | changes


@pytest.fixture
def phil(client, service_role):
    """The id of a user with a confirmed phone."""
    body = {"email": "phil@example.com", "phone": PHONE, "phone_confirm": True, "email_confirm": True}
    return client.post("/admin/users", json=body, headers=service_role).json["id"]


class TestByPhone:
    def test_known_number_is_sent_a_code_without_a_link(self, client, phil, outbox):
        assert_ok(client.post("/otp", json={"phone": PHONE}), ON_ITS_WAY)
        (message,) = outbox.sent()
        assert (message.kind, message.channel, message.to, message.token, message.lifetime) == (
            "sms",
            "sms",
            PHONE,
            None,
            600,
        )
        assert (len(message.code), message.code.isdecimal()) == (6, True)

    def test_code_signs_in(self, client, phil, outbox):
        client.post("/otp", json={"phone": PHONE})
        both = [identity("email", "phil@example.com"), identity("phone", PHONE, last_sign_in_at=A_TIMESTAMP)]
        expected = phone_user(
            PHONE, id=phil, email="phil@example.com", email_confirmed_at=A_TIMESTAMP, identities=both
        )
        expected["app_metadata"] = {"provider": "email", "providers": ["email", "phone"]}
        assert_signed_in(client, type_in(client, "sms", PHONE, outbox.last().code), expected)

    @pytest.mark.parametrize("body", [{}, {"create_user": True}, {"data": {"name": "Dave"}}])
    def test_unknown_number_is_sent_a_code_that_creates_a_user(self, client, outbox, database, body):
        assert_ok(client.post("/otp", json={"phone": PHONE} | body), ON_ITS_WAY)
        assert database.one("SELECT made_by, email, password_hash, phone_confirmed_at FROM users") == (
            "message",
            None,
            None,
            None,
        )
        expected = phone_user(PHONE, user_metadata=body.get("data", {}), confirmation_sent_at=A_TIMESTAMP)
        assert_signed_in(client, type_in(client, "sms", PHONE, outbox.last().code), expected)

    @pytest.mark.parametrize("setting", [None, "AUTH_DISABLE_SIGNUP"])
    def test_nothing_happens_when_no_user_may_be_created(self, make_app, outbox, database, setting):
        client = make_app(**({setting: "true"} if setting else {})).test_client()
        assert_ok(client.post("/otp", json={"phone": PHONE, "create_user": bool(setting)}), ON_ITS_WAY)
        assert (
            outbox.sent(),
            outbox.suppressed(),
            database.count("users"),
            database.count("one_time_tokens"),
        ) == ([], 1, 0, 0)

    @pytest.mark.parametrize(
        "spelling", ["+49 170 1234567", "+49-170-1234567", "+49 (170) 123.45.67", " +491701234567 "]
    )
    def test_number_may_be_spelled_differently(self, client, phil, outbox, spelling):
        assert_ok(client.post("/otp", json={"phone": spelling}), ON_ITS_WAY)
        assert type_in(client, "sms", spelling.strip(), outbox.last(PHONE).code).status_code == 200

    def test_code_confirms_an_unconfirmed_number(self, client, service_role, outbox):
        made = client.post(
            "/admin/users", json={"email": DAVE, "phone": PHONE, "email_confirm": True}, headers=service_role
        ).json
        client.post("/otp", json={"phone": PHONE})
        confirmed = type_in(client, "sms", PHONE, outbox.last().code).json["user"]
        assert (confirmed["id"], confirmed["phone_confirmed_at"]) == (made["id"], A_TIMESTAMP)

    def test_banned_user_is_sent_nothing(self, client, phil, outbox, database):
        database.run("UPDATE users SET banned_until = 'infinity'")
        assert_ok(client.post("/otp", json={"phone": PHONE}), ON_ITS_WAY)
        assert (outbox.sent(), outbox.suppressed()) == ([], 1)

    def test_only_the_newest_code_works(self, client, phil, outbox):
        for _ in range(2):
            client.post("/otp", json={"phone": PHONE})
        first, second = outbox.sent()
        assert_error(type_in(client, "sms", PHONE, first.code), 403, "otp_expired")
        assert type_in(client, "sms", PHONE, second.code).status_code == 200

    def test_code_expires_after_ten_minutes(self, client, phil, outbox, database):
        client.post("/otp", json={"phone": PHONE})
        later(database, secs=590)
        assert type_in(client, "sms", PHONE, outbox.last().code).status_code == 200
        client.post("/otp", json={"phone": PHONE})
        later(database, secs=600)
        assert_error(type_in(client, "sms", PHONE, outbox.last().code), 403, "otp_expired")

    def test_code_works_once(self, client, phil, outbox, database):
        client.post("/otp", json={"phone": PHONE})
        code = outbox.last().code
        assert type_in(client, "sms", PHONE, code).status_code == 200
        assert_error(type_in(client, "sms", PHONE, code), 403, "otp_expired")
        assert database.count("sessions") == 1

    def test_code_challenge_is_ignored_without_a_link(self, client, phil, outbox):
        assert_ok(client.post("/otp", json={"phone": PHONE} | WITH_CHALLENGE), ON_ITS_WAY)
        assert "access_token" in type_in(client, "sms", PHONE, outbox.last().code).json


class TestByEmail:
    def test_known_address_is_sent_a_code_and_a_link(self, client, alice, outbox):
        assert_ok(client.post("/otp", json={"email": alice.email}), ON_ITS_WAY)
        (message,) = outbox.sent()
        assert (message.kind, message.channel, message.to, len(message.token), len(message.code)) == (
            "magiclink",
            "email",
            alice.email,
            43,
            6,
        )

    def test_mailed_code_signs_in_with_type_email(self, client, alice, outbox):
        client.post("/otp", json={"email": alice.email})
        response = type_in(client, "email", alice.email, outbox.last().code)
        assert_signed_in(client, response, user(alice.email, id=alice.id, last_sign_in_at=A_TIMESTAMP))

    def test_mailed_link_signs_in(self, client, alice, outbox):
        client.post("/otp", json={"email": alice.email})
        assert_signs_in(client, "magiclink", outbox.last().token)

    def test_spending_link_or_code_voids_both(self, client, alice, outbox):
        client.post("/otp", json={"email": alice.email})
        message = outbox.last()
        assert type_in(client, "email", alice.email, message.code).status_code == 200
        assert_error(hand_in(client, "magiclink", message.token), 403, "otp_expired")
        client.post("/otp", json={"email": alice.email})
        message = outbox.last()
        assert hand_in(client, "magiclink", message.token).status_code == 200
        assert_error(type_in(client, "email", alice.email, message.code), 403, "otp_expired")

    def test_unknown_address_gets_a_user(self, client, outbox, database):
        assert_ok(client.post("/otp", json={"email": DAVE, "data": {"name": "Dave"}}), ON_ITS_WAY)
        assert type_in(client, "email", DAVE, outbox.last().code).json["user"]["user_metadata"] == {
            "name": "Dave"
        }

    def test_unknown_address_creates_no_user_when_sign_ups_are_disabled(self, client, outbox, database):
        assert_ok(client.post("/otp", json={"email": DAVE, "create_user": False}), ON_ITS_WAY)
        assert (outbox.sent(), outbox.suppressed(), database.count("users")) == ([], 1, 0)


class TestRefusals:
    @cases(
        ("body", "details"),
        [
            ({}, "email: give either an email or a phone"),
            ({"email": "alice@example.com", "phone": PHONE}, "email: give either an email or a phone"),
            ({"email": None, "phone": None}, "email: give either an email or a phone"),
            ({"phone": 491701234567}, "phone: must be a string"),
            ({"phone": "491701234567"}, A_SENTENCE),
            ({"phone": "+0491701234567"}, A_SENTENCE),
            ({"phone": "+49170"}, A_SENTENCE),
            ({"phone": "+4917012345678901"}, A_SENTENCE),
            ({"phone": "+49170123456\uff17"}, A_SENTENCE),
            ({"phone": "+491701234567\n"}, A_SENTENCE),
            ({"phone": "+491701234567,+15551234567"}, A_SENTENCE),
            ({"phone": "+491701234567;ext=1"}, A_SENTENCE),
            ({"phone": "++491701234567"}, A_SENTENCE),
            ({"phone": PHONE, "create_user": "yes"}, "create_user: must be true or false"),
            ({"phone": PHONE, "data": "x"}, "data: must be an object"),
        ],
    )
    def test_invalid_body_is_400(self, client, phil, database, body, details):
        assert_error(client.post("/otp", json=body), 400, "validation_failed", details=details)
        assert (database.count("outbox"), database.count("users")) == (0, 1)

    @pytest.mark.parametrize(
        "changes",
        [
            {"AUTH_PHONE_ENABLED": "false"},
            {"AUTH_SMS_PROVIDER": "none"},
            {"AUTH_BASE_URL": "https://auth.example.com"},
        ],
        ids=str,
    )
    def test_request_by_phone_is_refused_when_no_sms_can_be_sent(self, make_app, phil, database, changes):
        client = make_app(**changes).test_client()
        assert client.get("/settings").json["external_phone_enabled"] is False
        body = {"phone": PHONE, "password": PASSWORD}
        assert_error(client.post("/signup", json=body), 400, "phone_provider_disabled")
        assert_error(client.post("/token?grant_type=password", json=body), 400, "phone_provider_disabled")
        assert_error(client.post("/otp", json={"phone": PHONE}), 400, "phone_provider_disabled")
        assert_error(
            client.post("/resend", json={"type": "sms", "phone": PHONE}), 400, "phone_provider_disabled"
        )
        assert database.count("outbox") == 0

    def test_country_without_sms_is_refused(self, make_app, phil, alice, database, outbox):
        client = make_app(AUTH_SMS_COUNTRIES="+1,+44").test_client()
        session = alice.sign_in(client=client)
        refused = {"details": "phone: must begin with +1, +44"}
        assert_error(client.post("/otp", json={"phone": PHONE}), 400, "validation_failed", **refused)
        assert_error(
            client.post("/resend", json={"type": "sms", "phone": PHONE}), 400, "validation_failed", **refused
        )
        assert_error(
            client.post("/signup", json={"phone": PHONE, "password": "Correct-Horse-1"}),
            400,
            "validation_failed",
            **refused,
        )
        assert_error(session.put("/user", json={"phone": PHONE}), 400, "validation_failed", **refused)
        assert database.count("outbox") == 0
        assert_ok(client.post("/otp", json={"phone": "+447700900123"}), ON_ITS_WAY)
        assert outbox.kinds() == [("sms", "+447700900123")]

    def test_code_of_another_number_is_refused(self, client, phil, outbox, database):
        client.post("/otp", json={"phone": PHONE})
        client.post("/otp", json={"phone": OTHER_PHONE})
        mine, other = outbox.last(PHONE), outbox.last(OTHER_PHONE)
        assert_error(type_in(client, "sms", OTHER_PHONE, mine.code), 403, "otp_expired")
        assert database.count("sessions") == 0
        assert type_in(client, "sms", OTHER_PHONE, other.code).status_code == 200
        assert type_in(client, "sms", PHONE, mine.code).status_code == 200


def test_first_sign_in_by_a_phone_confirmed_by_an_administrator_keeps_the_account(
    client, service_role, alice, outbox, database
):
    # The email was proved before, and the phone by the administrator: the sign-in by SMS is not the first
    # proof.
    changed = client.put(
        f"/admin/users/{alice.id}",
        headers=service_role,
        json={"phone": "+491701234567", "phone_confirm": True},
    )
    assert changed.status_code == 200
    database.run("UPDATE users SET made_by = 'signup'")
    client.post("/otp", json={"phone": "+491701234567", "create_user": False})
    response = client.post(
        "/verify", json={"type": "sms", "phone": "+491701234567", "token": outbox.last().code}
    )
    user = response.json["user"]
    assert (response.status_code, user["email"], user["app_metadata"]["providers"]) == (
        200,
        alice.email,
        ["email", "phone"],
    )
    assert database.count("users", "password_hash IS NOT NULL") == 1


def test_first_sign_in_by_a_phone_set_unconfirmed_keeps_the_account(
    client, service_role, alice, outbox, database
):
    client.put(f"/admin/users/{alice.id}", headers=service_role, json={"phone": "+491701234567"})
    database.run("UPDATE users SET made_by = 'signup'")
    client.post("/otp", json={"phone": "+491701234567", "create_user": False})
    response = client.post(
        "/verify", json={"type": "sms", "phone": "+491701234567", "token": outbox.last().code}
    )
    assert (response.status_code, response.json["user"]["email"]) == (200, alice.email)
    assert database.count("users", "password_hash IS NOT NULL") == 1
