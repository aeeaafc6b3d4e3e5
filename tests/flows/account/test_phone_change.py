"""Phone changes: pending until the code sent to the new number is verified."""

import pytest

from tests.support.answers import A_TIMESTAMP, assert_error, assert_ok, identity, user
from tests.support.links import OTHER_PHONE, PHONE, assert_signed_in, hand_in, type_in


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


def test_change_is_pending_and_the_new_number_alone_is_sent_a_code(session, outbox):
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


class TestCode:
    def test_code_changes_the_number_and_ends_the_other_sessions_and_links(
        self, client, session, alice, change, outbox
    ):
        other = alice.open_session()
        client.post("/magiclink", json={"email": alice.email})
        response = confirm(client, PHONE, change())
        identities = [identity("email", alice.email), identity("phone", PHONE)]
        expected = user(
            alice.email, id=alice.id, phone=PHONE, phone_confirmed_at=A_TIMESTAMP, identities=identities
        )
        expected["app_metadata"] = {"provider": "email", "providers": ["email", "phone"]}
        expected["last_sign_in_at"] = A_TIMESTAMP
        assert_signed_in(client, response, expected)
        assert (session.get("/user").status_code, other.get("/user").status_code) == (200, 401)
        assert_error(hand_in(client, "magiclink", outbox.last(kind="magiclink").token), 403, "otp_expired")
        notice = outbox.last(alice.email)
        assert (notice.kind, notice.channel, notice.code) == ("phone_changed", "email", None)
        assert (notice.lifetime, notice.variables["new_phone"]) == (7 * 86_400, PHONE)
        assert len(outbox.sent()) == 3

    def test_only_the_code_of_the_latest_change_works_for_its_number(self, client, session, change):
        first, second = change(), change(OTHER_PHONE)
        for code in (first, second):
            assert_expired(client, PHONE, code)
        changes = session.get("/user").json
        assert (changes["phone"], changes["new_phone"]) == (None, OTHER_PHONE)
        assert_error(hand_in(client, "phone_change", second), 403, "otp_expired")
        assert confirm(client, OTHER_PHONE, second).json["user"]["phone"] == OTHER_PHONE
