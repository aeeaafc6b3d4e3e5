"""POST /resend: another message to confirm a sign-up or a new address."""

from typing import Any

import pytest

from tests.support.answers import assert_error, assert_ok
from tests.support.links import (
    ON_ITS_WAY,
    OTHER_PHONE,
    PHONE,
    assert_dead,
    assert_signs_in,
    follow,
    fragment,
    type_in,
)
from tests.support.users import DAVE, NEW_EMAIL, PASSWORD, session_of


@pytest.fixture
def resend(client, outbox):
    """Ask for another message, and return the messages sent and the number of those that were not."""

    def resend(type, address):
        before = len(outbox.sent())
        field = "phone" if address.startswith("+") else "email"
        assert_ok(client.post("/resend", json={"type": type, field: address}), ON_ITS_WAY)
        return outbox.sent()[before:], outbox.suppressed()

    return resend


NOTHING: tuple[list[Any], int] = ([], 1)


def test_resend_keeps_the_first_link_but_not_its_code(client, outbox, resend):
    client.post("/signup", json={"email": DAVE, "password": PASSWORD})
    first = outbox.last()
    (second,), _ = resend("signup", DAVE)
    assert second.token != first.token
    assert_error(type_in(client, "signup", DAVE, first.code), 403, "otp_expired")
    assert_signs_in(client, "signup", first.token)
    assert_dead(client, "signup", second.token)
    assert resend("signup", DAVE) == NOTHING


@pytest.mark.parametrize("type", ["sms", "phone_change"])
def test_phone_is_sent_a_second_code(client, alice, outbox, resend, type):
    body = {"phone": PHONE, "password": PASSWORD}
    if type == "sms":
        client.post("/signup", json=body)
    else:
        alice.open_session().put("/user", json={"phone": PHONE})
    first = outbox.last()
    (second,), _ = resend(type, PHONE)
    kind = "signup" if type == "sms" else type
    assert (second.kind, second.channel, second.to) == (kind, "sms", PHONE)
    assert (second.token, second.lifetime) == (None, 600)
    assert_error(type_in(client, type, PHONE, first.code), 403, "otp_expired")
    assert session_of(client, type_in(client, type, PHONE, second.code)).user["phone"] == PHONE
    assert client.post("/token?grant_type=password", json=body).status_code == 200
    for address in (PHONE, OTHER_PHONE):
        messages, _ = resend(type, address)
        assert messages == []
    assert outbox.suppressed() == 2


def test_new_address_is_sent_a_second_link(client, alice, outbox, resend):
    laptop, phone = alice.open_session(), alice.open_session()
    laptop.put("/user", json={"email": NEW_EMAIL})
    first = outbox.last()
    (second,), _ = resend("email_change", NEW_EMAIL)
    assert (second.kind, second.to, second.lifetime) == ("email_change", NEW_EMAIL, 3600)
    assert fragment(follow(client, "email_change", second.token))["type"] == "email_change"
    assert_dead(client, "email_change", first.token)
    # All sessions end but the one that requested the change.
    assert_error(phone.get("/user"), 401, "session_not_found")
    assert laptop.get("/user").json["email"] == NEW_EMAIL
    assert resend("email_change", NEW_EMAIL) == NOTHING
