"""`channel`: how a phone is sent its message. tests/extensions/hooks/test_message_hooks.py tests what the hook is told."""

import pytest

from tests.support.answers import assert_error
from tests.support.cases import cases
from tests.support.links import PHONE
from tests.support.users import PASSWORD

REQUESTS = {
    "signup": ("POST", "/signup", {"phone": PHONE, "password": PASSWORD}),
    "otp": ("POST", "/otp", {"phone": PHONE}),
    "resend": ("POST", "/resend", {"type": "sms", "phone": PHONE}),
    "change": ("PUT", "/user", {"phone": PHONE}),
}


@pytest.fixture(params=REQUESTS)
def ask(request, session):
    """Return a function that asks for an SMS on a channel."""
    method, path, body = REQUESTS[request.param]
    return lambda channel: session.open(path, method, json=body | {"channel": channel})


@cases("channel", ["whatsapp", "SMS", "email", "", "x" * 33, 5])
def test_another_channel_than_sms_is_refused_and_sends_no_sms(ask, channel, outbox, database):
    assert_error(ask(channel), 400, "validation_failed", details="channel: must be sms")
    assert (outbox.sent(), database.count("users"), database.count("outbox")) == ([], 1, 0)


@pytest.mark.parametrize("channel", ["sms", None])
def test_sms_is_the_channel_of_every_service(ask, channel):
    assert ask(channel).status_code in (200, 201)
