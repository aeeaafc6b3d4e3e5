"""Typed and pasted addresses, numbers and codes, on pages, in the console and in the API."""

import re

import pytest

from tests.support.cases import cases
from tests.support.factors import set_up
from tests.support.links import PHONE, SITE
from tests.support.pages import Visitor, words
from tests.support.users import DAVE, PASSWORD

# A telephone's keyboard adds a space, a copied contact direction marks, a web page a word joiner.
AROUND = [" {} ", "{}\u00a0", "\u202a{}\u202c", "\u200e{}\u2060", "\ufeff{}\u3000"]
NUMBERS = [
    "\u202a+49 170 123-4567\u202c",
    "+\u0664\u0669 \u0661\u0667\u0660 \u0661\u0662\u0663\u0664\u0665\u0666\u0667",
    "\uff0b\uff14\uff19 \uff08\uff11\uff17\uff10\uff09 \uff11\uff12\uff13\uff14\uff15\uff16\uff17",
    "+49\u00a0170\u2011123\u20114567",
    "+49 170/1234567",
]


def other_spellings(code: str) -> list[str]:
    """Return a code as keyboards and messages write it."""
    return [
        f"{code[:3]} {code[3:]}",
        f" {code[:3]}\u2013{code[3:]}\n",
        f"\u2066{code}\u2069",
        f"{code[:3]}\u200b{code[3:]}",
        *("".join(chr(zero + int(digit)) for digit in code) for zero in (0x0660, 0x06F0, 0xFF10, 0x0966)),
    ]


@pytest.mark.usefixtures("alice")
class TestAddresses:
    @cases("typed", [*(around.format("Alice@example.com") for around in AROUND), *NUMBERS])
    def test_sign_in_takes_what_keyboards_add_and_numbers_in_any_script(self, app, database, typed):
        database.run("UPDATE users SET phone = %(phone)s, phone_confirmed_at = now()", phone=PHONE)
        visitor = Visitor(app)
        visitor.visit("/sign-in")
        assert visitor.submit(email=typed, password=PASSWORD).url == f"{SITE}/account"

    @cases("path", ["sign-up", "sign-in/code", "sign-in/address", "forgot-password"])
    def test_every_page_for_an_address_reads_it_alike(self, visitor, path):
        visitor.visit(f"/{path.partition('/')[0]}")
        fields = {"password": PASSWORD} if path == "sign-up" else {}
        visitor.press(path, email=f"\u200f{DAVE} ", **fields)
        assert re.search(f'value="{DAVE}"|>{DAVE}</bdi>', visitor.page.text)

    @cases("typed", ["ali\u200bce@example.com", "ali ce@example.com", "alice@exam\u2060ple.com", "\u200b"])
    def test_email_with_something_inside_is_refused(self, app, database, typed):
        visitor, before = Visitor(app), database.count("users")
        visitor.visit("/sign-up")
        page = visitor.press("sign-up", email=typed, password=PASSWORD)
        assert (page.status, "Enter an email address" in words(page)) == (400, True), words(page)
        assert database.count("users") == before


def test_page_takes_every_spelling_of_a_code(app, alice, outbox):
    for number in range(len(other_spellings("123456"))):
        visitor = Visitor(app)
        visitor.visit("/sign-in")
        visitor.press("sign-in/code", email="alice@example.com")
        typed = other_spellings(outbox.last("alice@example.com").code)[number]
        assert visitor.press("sign-in/verify", code=typed).url == f"{SITE}/account", repr(typed)


def test_codes_of_an_app_and_recovery_codes_are_read_alike(client, alice):
    app, session = set_up(alice.open_session())
    codes = session.post("/factors/recovery-codes", json={"factor_code": other_spellings(app.code(1))[4]})
    assert codes.status_code == 200, codes.text
    full_width = "".join(chr(ord(char) + 0xFEE0) for char in codes.json["codes"][0])
    second_session = alice.open_session()
    response = second_session.post(
        "/factors/recovery-codes/verify", json={"code": f"\u2066{full_width}\u2069"}
    )
    assert response.status_code == 200, response.text
