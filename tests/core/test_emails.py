"""The canonical form of emails and phone numbers, by which users are stored and found."""

import socket

import pytest

from auth.core.addresses import (
    InvalidAddress,
    canonical_email,
    canonical_phone,
    is_possible_phone,
    spaced_phone,
)
from tests.support.answers import assert_error
from tests.support.cases import cases
from tests.support.users import PASSWORD, sign_in


@cases(
    ("spelling", "canonical"),
    [
        ("Alice@Example.COM", "alice@example.com"),
        ("a.l.i.c.e+tag@sub.example.co.uk", "a.l.i.c.e+tag@sub.example.co.uk"),
        ("o'brien!#$%&*/=?^_`{|}~-@example.com", "o'brien!#$%&*/=?^_`{|}~-@example.com"),
        ("alice@BÜCHER.example", "alice@xn--bcher-kva.example"),
        ("ÄLICE@example.com", "älice@example.com"),
        ("用户@例子.广告", "用户@xn--fsqu00a.xn--4rr70v"),
        ("1@printer.local", "1@printer.local"),
    ],
)
def test_email_has_one_canonical_form(spelling, canonical):
    assert canonical_email(spelling) == canonical
    assert canonical_email(canonical) == canonical


PARTS = (
    "alice alice@ @example.com alice@@example.com alice@example alice@example..com alice@.example.com"
    " alice@example.com. .alice@example.com alice.@example.com al..ice@example.com alice@-example.com"
    ' alice@exa_mple.com alice@[127.0.0.1] alice@127.0.0.1 "alice"@example.com alice(comment)@example.com'
    " alice@example.com,bob@example.com alice@xn--a.example"
)
SPACES = (
    *("", '"a b"@example.com', "Alice <alice@example.com>", " alice@example.com", "alice @example.com"),
    *("alice@exam ple.com", "alice@example.com\n", "alice@example.com\r\nBcc: bob@example.com"),
)
LONG = (
    "alice@" + "x" * 64 + ".com",
    "alice@" + "x." * 130 + "com",
    "\u0301\u0327" * 500_000 + "@example.com",
)
CONFUSABLE = (
    *("\uff41lice@example.com", "ﬁona@example.com", "alice@\uff45xample.com", "\u212a@example.com"),
    *("e\u0301@example.com", "a\u200blice@example.com", "a\u202elice@example.com", "alice\ufe0f@example.com"),
    *("\u1160alice@example.com", "alice\u3164@example.com", "a\u034flice@example.com"),
    "alice\U000e0100@example.com",
)


@cases("spelling", [*PARTS.split(), *SPACES, *LONG, *CONFUSABLE])
def test_invalid_or_confusable_email_is_refused(spelling):
    with pytest.raises(InvalidAddress):
        canonical_email(spelling)


@cases(
    ("spelling", "canonical"),
    [
        ("+1 (555) 010-0000", "+15550100000"),
        ("+49.170.123.45.67", "+491701234567"),
        ("+44 007418 223344", "+447418223344"),
        ("+49 (0) 0170 1234567", "+491701234567"),
        ("+39 (06) 12345678", "+390612345678"),
        ("+225 07 01 23 45 67", "+2250701234567"),
        ("+[1]5550100000", "+15550100000"),
    ],
)
def test_phone_number_has_one_canonical_form(spelling, canonical):
    assert canonical_phone(spelling) == canonical
    assert canonical_phone(canonical) == canonical


NUMBERS = (
    "+ 491701234567 00491701234567 +0491701234567 +123456 +1234567890123456 ++491701234567 +49/170/1234567"
)
ODD_NUMBERS = ("", "+49 170 CALL-ME", "+49\t1701234567", "+491701234567\n")
ARABIC_DIGITS = "+\u0664\u0669\u0661\u0667\u0660\u0661\u0662\u0663\u0664"


@cases(
    ("numbers", "is_possible"),
    [
        ("+999000000000 +123456789012345 +1234567 +1005550100000 +5215512345678", False),
        ("+491701234567 +15550100000 +525512345678 +390612345678", True),
    ],
)
def test_number_that_no_country_has_is_impossible(numbers, is_possible):
    assert {is_possible_phone(number) for number in numbers.split()} == {is_possible}


@cases("spelling", [*NUMBERS.split(), *ODD_NUMBERS, ARABIC_DIGITS])
def test_invalid_phone_number_is_refused(spelling):
    with pytest.raises(InvalidAddress):
        canonical_phone(spelling)


def test_other_spellings_are_the_same_user(client, service_role, monkeypatch):
    """Their domain is not looked up."""

    def refuse(*_arguments, **_options):
        raise AssertionError("a name was looked up")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    body = {"email": "dave@bücher.example", "password": PASSWORD, "email_confirm": True}
    assert client.post("/admin/users", json=body, headers=service_role).status_code == 200
    for spelling in ("Dave@Bücher.example", "DAVE@xn--bcher-kva.example", "dave@BÜCHER.EXAMPLE"):
        response = client.post("/admin/users", json={"email": spelling}, headers=service_role)
        assert_error(response, 409, "email_exists")
        assert sign_in(client, spelling).json["user"]["email"] == "dave@xn--bcher-kva.example"


@cases(
    ("number", "spaced"),
    [
        ("+491701234567", "+49 170 123 4567"),
        ("+35312345678", "+353 123 456 78"),
        ("+1abc", "+1abc"),
        ("a@example.com", "a@example.com"),
    ],
)
def test_phone_is_shown_in_groups(number, spaced):
    assert spaced_phone(number) == spaced
