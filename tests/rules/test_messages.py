"""Messages to an address (rules 23, 24 and 31), a sentence and an example each."""

from dataclasses import replace
from typing import Any

from auth.rules import links, messages
from tests.rules.facts import ALICE, ANONYMOUS, BANNED, CAROL, DAY, MINUTE, NOW, NUMBER, UNUSED
from tests.support.cases import cases


@cases(
    ("sentence", "purpose", "user", "holder", "is_due"),
    [
        ("No code is sent to a confirmed address.", "signup", ALICE, None, False),
        ("A number that is not confirmed gets its code.", "sms_signup", ALICE, None, True),
        ("No banned user gets a link.", "magiclink", BANNED, None, False),
        ("Nor an address that another user has.", "email_change", ALICE, CAROL, False),
        ("Nor a number.", "phone_change", ALICE, CAROL, False),
        ("But one whose holder gives way.", "email_change", ALICE, UNUSED, True),
    ],
)
def test_link_is_still_due(sentence, purpose, user, holder, is_due):
    assert links.is_due(purpose, user, holder) is is_due


@cases(
    ("sentence", "purpose", "user", "is_offered"),
    [
        ("An unused sign-up can be declined.", "signup", UNUSED, True),
        ("A user cannot.", "signup", ALICE, False),
        ("Nor what a message made.", "signup", replace(UNUSED, made_by="message"), False),
        ("The first address of a user can.", "email_change", ANONYMOUS, True),
        ("Another link cannot.", "magiclink", ANONYMOUS, False),
    ],
)
def test_link_can_be_declined(sentence, purpose, user, is_offered):
    assert links.can_be_declined(purpose, user) is is_offered


@cases(
    ("has_email", "has_phone", "offers_phone", "address"),
    [
        (True, True, True, ALICE.email),
        (False, True, True, NUMBER),
        (False, True, False, None),
        (False, False, True, None),
    ],
)
def test_notice_goes_to_the_address_that_was_proved_the_email_first(
    has_email, has_phone, offers_phone, address
):
    user = replace(ALICE, email_proved=has_email, phone=NUMBER, phone_proved=has_phone)
    assert messages.address_of_notices(user, offers_phone=offers_phone) == address


@cases(
    ("sentence", "owner", "kind", "facts", "message"),
    [
        ("A new address gets its link or code.", UNUSED, "phone", {"is_new"}, "signup"),
        ("So does one with an unused sign-up.", UNUSED, "phone", {"is_hidden"}, "signup"),
        ("An owner is told.", ALICE, "email", {"is_hidden"}, "signup_attempt"),
        ("By mail alone.", ALICE, "phone", {"is_hidden"}, "none"),
        ("Where the answer hides it.", ALICE, "email", {}, "none"),
        ("Nobody is told whose user is gone.", None, "email", {"is_hidden"}, "none"),
    ],
)
def test_address_that_somebody_signs_up_with_gets_a_message(sentence, owner, kind, facts, message):
    flags = {name: name in facts for name in ("is_new", "is_hidden")}
    assert messages.message_of_sign_up(owner, kind, **flags) == message


@cases(
    ("is_mail", "is_taken", "message"),
    [
        (True, False, "email_change"),
        (True, True, "signup_attempt"),
        (False, False, "phone_change"),
        (False, True, "none"),
    ],
)
def test_first_address_gets_a_message(is_mail, is_taken, message):
    assert messages.message_of_first_address(is_mail=is_mail, is_taken=is_taken) == message


@cases(
    ("sentence", "previous", "is_mail", "due_at"),
    [
        ("The first notice leaves at once.", None, True, NOW),
        ("The next mail ten minutes after it.", NOW - MINUTE, True, NOW + 9 * MINUTE),
        ("The next SMS an hour.", NOW - MINUTE, False, NOW + 59 * MINUTE),
        ("No message is due in the past.", NOW - DAY, True, NOW),
    ],
)
def test_notice_is_due(sentence, previous, is_mail, due_at):
    assert messages.due_at(previous, is_mail=is_mail, now=NOW) == due_at


@cases(
    ("sentence", "of_network", "most", "is_proved", "left", "is_beyond"),
    [
        ("A network has a tenth.", 2, 20, False, 1, False),
        ("And no more.", 3, 20, False, 1, True),
        ("Of a small total, one.", 1, 4, False, 1, False),
        ("An owner gets more.", 3, 20, True, 1, False),
        ("Until the windows are used up.", 3, 20, True, -1, True),
        ("The service role key has no network.", None, 20, False, 1, False),
    ],
)
def test_network_is_beyond_its_tenth(sentence, of_network, most, is_proved, left, is_beyond):
    facts = {"is_proved": is_proved, "recipient_left": left}
    assert messages.is_beyond_tenth(of_network, most, **facts) is is_beyond


@cases(
    ("sentence", "channel", "total", "facts", "stop"),
    [
        ("The last message of a total is sent.", "mail", 20, {}, None),
        ("The total stops mail to strangers.", "mail", 21, {}, "total"),
        ("It stops none to an owner.", "mail", 21, {"is_proved": True}, None),
        ("Three quarters stop SMS to strangers.", "sms", 16, {}, "total"),
        ("All of them those to an owner.", "sms", 21, {"is_proved": True}, "total"),
        ("A recipient's windows stop either.", "mail", 1, {"recipient_left": -1}, "recipient"),
        ("So does a network's tenth.", "mail", 1, {"is_beyond": True}, "tenth"),
    ],
)
def test_message_is_stopped(sentence, channel, total, facts, stop):
    values: dict[str, Any] = {"is_beyond": False, "is_proved": False, "recipient_left": 1} | facts
    assert messages.what_stops_message(channel, total, 20, **values) == stop
