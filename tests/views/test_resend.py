"""POST /resend: another message to confirm a sign-up or a new address."""

import pytest

from tests.support.answers import A_SENTENCE, assert_error, assert_ok
from tests.support.cases import cases
from tests.support.cast import PASSWORD, session_of, sign_in
from tests.support.links import (
    ON_ITS_WAY,
    OTHER_PHONE,
    PHONE,
    assert_dead,
    assert_signs_in,
    follow,
    fragment,
    hand_in,
    type_in,
)

DAVE = "dave@example.com"
NEW = "new@example.com"


def resend(client, type, address, **others):
    field = "phone" if address.startswith("+") else "email"
    response = client.post("/resend", json={"type": type, field: address, **others})
    assert_ok(response, ON_ITS_WAY)
    return response


class TestSignUp:
    def test_resend_sends_a_second_link_and_keeps_the_first(self, client, outbox):
        client.post("/signup", json={"email": DAVE, "password": PASSWORD})
        resend(client, "signup", DAVE)
        first, second = outbox.sent()
        assert (second.kind, second.to, second.lifetime) == ("signup", DAVE, 3600)
        assert second.token != first.token
        assert_error(type_in(client, "signup", DAVE, first.code), 403, "otp_expired")
        assert_signs_in(client, "signup", first.token)
        assert_dead(client, "signup", second.token)

    def test_second_link_confirms_the_sign_up(self, client, outbox):
        client.post("/signup", json={"email": DAVE, "password": PASSWORD})
        resend(client, "signup", DAVE)
        assert_signs_in(client, "signup", outbox.last().token)
        assert sign_in(client, DAVE).status_code == 200

    def test_confirmed_sign_up_is_sent_nothing(self, client, outbox):
        client.post("/signup", json={"email": DAVE, "password": PASSWORD})
        assert_signs_in(client, "signup", outbox.last().token)
        resend(client, "signup", DAVE)
        assert (len(outbox.sent()), outbox.suppressed()) == (1, 1)

    @pytest.mark.parametrize("maker", ["magiclink", "admin", "invite", "generate_link"])
    def test_user_not_created_by_a_sign_up_is_sent_nothing(self, client, service_role, outbox, maker):
        """The link of a sign-up would keep a password that the owner of the address did not set."""
        {
            "magiclink": lambda: client.post("/magiclink", json={"email": DAVE}),
            "admin": lambda: client.post(
                "/admin/users", json={"email": DAVE, "password": PASSWORD}, headers=service_role
            ),
            "invite": lambda: client.post("/admin/invite", json={"email": DAVE}, headers=service_role),
            "generate_link": lambda: client.post(
                "/admin/generate_link", json={"type": "invite", "email": DAVE}, headers=service_role
            ),
        }[maker]()
        before = len(outbox.sent())
        resend(client, "signup", DAVE)
        assert (len(outbox.sent()), outbox.suppressed()) == (before, 1)

    def test_unknown_address_is_sent_nothing_and_creates_no_user(self, client, outbox, database):
        resend(client, "signup", DAVE, create_user=True, data={"x": 1}, password=PASSWORD)
        assert (outbox.sent(), outbox.suppressed(), database.count("users")) == ([], 1, 0)

    def test_resend_by_phone_sends_another_code(self, client, outbox):
        client.post("/signup", json={"phone": PHONE, "password": PASSWORD})
        resend(client, "sms", PHONE)
        first, second = outbox.sent()
        assert (second.kind, second.channel, second.to, second.token, second.lifetime) == (
            "signup",
            "sms",
            PHONE,
            None,
            600,
        )
        assert_error(type_in(client, "sms", PHONE, first.code), 403, "otp_expired")
        session_of(client, type_in(client, "sms", PHONE, second.code))
        assert (
            client.post("/token?grant_type=password", json={"phone": PHONE, "password": PASSWORD}).status_code
            == 200
        )
        resend(client, "sms", PHONE)
        assert (len(outbox.sent()), outbox.suppressed()) == (2, 1)

    def test_banned_user_is_sent_nothing(self, client, outbox, database):
        client.post("/signup", json={"email": DAVE, "password": PASSWORD})
        database.run("UPDATE users SET banned_until = 'infinity'")
        resend(client, "signup", DAVE)
        assert (len(outbox.sent()), outbox.suppressed()) == (1, 1)


class TestEmailChange:
    def test_new_address_is_sent_a_second_link(self, client, alice, outbox):
        alice.sign_in().put("/user", json={"email": NEW})
        resend(client, "email_change", NEW)
        first, second = outbox.sent()
        assert (second.kind, second.to, second.lifetime) == ("email_change", NEW, 3600)
        assert fragment(follow(client, "email_change", second.token))["type"] == "email_change"
        assert_dead(client, "email_change", first.token)

    def test_second_link_ends_all_sessions_but_the_one_that_requested_the_change(self, client, alice, outbox):
        laptop, phone = alice.open_session(), alice.open_session()
        laptop.put("/user", json={"email": NEW})
        resend(client, "email_change", NEW)
        follow(client, "email_change", outbox.last(NEW).token)
        assert_error(phone.get("/user"), 401, "session_not_found")
        assert laptop.get("/user").json["email"] == NEW

    @pytest.mark.parametrize("address", ["alice@example.com", "other@example.com", "bob@example.com"])
    def test_address_without_a_pending_change_is_sent_nothing(self, client, alice, bob, outbox, address):
        alice.sign_in().put("/user", json={"email": NEW})
        resend(client, "email_change", address)
        assert (len(outbox.sent()), outbox.suppressed()) == (1, 1)

    def test_nothing_is_sent_after_the_change(self, client, alice, outbox):
        alice.sign_in().put("/user", json={"email": NEW})
        follow(client, "email_change", outbox.last().token)
        before = len(outbox.sent())
        resend(client, "email_change", NEW)
        assert (len(outbox.sent()), outbox.suppressed()) == (before, 1)

    def test_latest_of_two_pending_changes_to_one_address_is_sent_the_link(
        self, client, alice, bob, outbox, database
    ):
        bob.sign_in().put("/user", json={"email": NEW})
        alice.sign_in().put("/user", json={"email": NEW})
        bob.sign_in().put("/user", json={"phone": PHONE})
        resend(client, "email_change", NEW)
        follow(client, "email_change", outbox.last(NEW).token)
        assert database.value("SELECT email FROM users WHERE id = %(id)s", id=alice.id) == NEW


class TestPhoneChange:
    def test_new_number_is_sent_a_second_code(self, client, alice, outbox):
        session = alice.open_session()
        session.put("/user", json={"phone": PHONE})
        resend(client, "phone_change", PHONE)
        first, second = outbox.sent()
        assert (second.kind, second.channel, second.to, second.token, second.lifetime) == (
            "phone_change",
            "sms",
            PHONE,
            None,
            600,
        )
        assert_error(type_in(client, "phone_change", PHONE, first.code), 403, "otp_expired")
        assert type_in(client, "phone_change", PHONE, second.code).json["user"]["phone"] == PHONE

    def test_other_number_is_sent_nothing(self, client, alice, outbox):
        alice.sign_in().put("/user", json={"phone": PHONE})
        resend(client, "phone_change", OTHER_PHONE)
        assert (len(outbox.sent()), outbox.suppressed()) == (1, 1)


@cases(
    ("body", "details"),
    [
        ({"email": DAVE}, "type: is required"),
        (
            {"type": "magiclink", "email": DAVE},
            "type: must be one of signup, email_change, sms, phone_change",
        ),
        ({"type": "recovery", "email": DAVE}, A_SENTENCE),
        ({"type": "invite", "email": DAVE}, A_SENTENCE),
        ({"type": "undo", "email": DAVE}, A_SENTENCE),
        ({"type": "reauthentication", "email": DAVE}, A_SENTENCE),
        ({"type": "sms_signup", "phone": PHONE}, A_SENTENCE),
        ({"type": 1, "email": DAVE}, "type: must be a string"),
        ({"type": "signup"}, A_SENTENCE),
        ({"type": "signup", "phone": PHONE}, "email: must be given for type signup"),
        ({"type": "email_change", "phone": PHONE}, "email: must be given for type email_change"),
        ({"type": "sms", "email": DAVE}, "phone: must be given for type sms"),
        ({"type": "phone_change", "email": DAVE}, "phone: must be given for type phone_change"),
        ({"type": "signup", "email": DAVE, "phone": PHONE}, A_SENTENCE),
    ],
)
def test_invalid_body_is_400(client, database, body, details):
    client.post("/signup", json={"email": DAVE, "password": PASSWORD})
    before = database.everything("outbox", "one_time_tokens", "users")
    assert_error(client.post("/resend", json=body), 400, "validation_failed", details=details)
    assert database.everything("outbox", "one_time_tokens", "users") == before


def test_resent_link_is_of_the_same_kind(client, alice, outbox):
    client.post("/signup", json={"email": DAVE, "password": PASSWORD})
    resend(client, "signup", DAVE)
    assert_error(hand_in(client, "email_change", outbox.last().token), 403, "otp_expired")
    assert_error(hand_in(client, "magiclink", outbox.last().token), 403, "otp_expired")
    assert hand_in(client, "email", outbox.last().token).status_code == 200
