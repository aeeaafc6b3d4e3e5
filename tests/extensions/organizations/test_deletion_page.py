"""The page that deletes an organization: it says what ends, and takes the organization's name."""

import pytest

from tests.support.pages import words

PATH = "/account/organizations/acme"
LONG = "Ein sehr langer Name einer Organisation " * 2 + "mit genau hundert B."


@pytest.fixture
def visitor(acme, alice, browse):
    return browse(alice)


def test_page_says_what_ends_and_how_many_lose_access(visitor, acme, join, bob, invite):
    assert "You lose access at once. There are no other members." in words(visitor.visit(f"{PATH}/end"))
    join(bob, acme)
    invite("new@example.com")
    text = words(visitor.visit(f"{PATH}/end"))
    for sentence in (
        "Delete Acme ?",
        "This can’t be undone.",
        "Both members lose access at once.",
        "1 open invitation ends.",
        "Applications that are used for this organization lose access.",
        "The members’ accounts stay.",
        "Type the name to confirm",
    ):
        assert sentence in text
    assert "Single sign" not in text


@pytest.mark.parametrize("typed", ["", " ", "Acme Inc.", "acm", "Delete Acme", "Acme\u200b!", "/acme"])
def test_another_name_deletes_nothing_and_marks_the_field(visitor, database, typed):
    visitor.visit(f"{PATH}/end")
    page = visitor.press("end", confirmation=typed)
    assert page.status == 400
    assert "This isn’t the organization’s name. Copy it from above." in words(page)
    assert 'aria-invalid="true"' in page.text.partition('name="confirmation"')[2].partition(">")[0]
    assert database.count("organizations", "ended_at IS NULL") == 1
    assert database.count("audit_log", "action = 'organization_ended'") == 0


def test_page_and_form_take_a_fresh_proof(visitor, database):
    visitor.visit(f"{PATH}/end")
    database.run("UPDATE sessions SET created_at = created_at - interval '20 minutes'")
    assert "Confirm it’s you" in words(visitor.press("end", confirmation="Acme"))
    assert "Confirm it’s you" in words(visitor.visit(f"{PATH}/end"))
    assert database.count("organizations", "ended_at IS NULL") == 1


def test_form_without_the_name_deletes_nothing(visitor, database):
    visitor.visit(f"{PATH}/end")
    assert visitor.send(f"{PATH}/end").status == 400
    assert database.count("organizations", "ended_at IS NULL") == 1


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("Acme", "  acme "),
        ("Müller & Söhne", "Mu\u0308ller & So\u0308hne"),
        ("Straße", "STRASSE"),
        ("שלום בע״מ", "שלום בע״מ"),
        ("شركة النور", "شركة النور"),
        ("👩‍👩‍👧 Families", "👩‍👩‍👧 Families"),
        ("全角 \uff21\uff22\uff23", "全角 ABC"),
        ("Two  spaces", "two spaces"),
        ("\uff2f\u2019Brien", "o\u2019brien"),
        (LONG, LONG),
    ],
)
def test_name_is_copied_or_typed(visitor, database, name, typed):
    visitor.visit(f"{PATH}/name")
    visitor.press("name", name=name)
    assert database.value("SELECT name FROM organizations") == name.strip()
    page = visitor.visit(f"{PATH}/end")
    copied = page.text.partition('data-copy="')[2].partition('"')[0]
    assert copied.replace("&amp;", "&") == " ".join(name.split())
    page = visitor.press("end", confirmation=typed)
    assert "The organization has been deleted." in words(page)
    assert database.count("organizations", "ended_at IS NULL") == 0


def test_short_name_stands_for_a_name_that_nobody_sees(visitor, database):
    database.run("UPDATE organizations SET name = U&'\\3164'")
    visitor.visit(f"{PATH}/end")
    assert visitor.press("end", confirmation="").status == 400
    assert "The organization has been deleted." in words(visitor.press("end", confirmation="acme"))


@pytest.mark.parametrize("role", ["admin", "member", None])
def test_name_deletes_nothing_for_others(acme, join, bob, browse, database, role):
    if role:
        join(bob, acme, role)
    visitor = browse(bob)
    visitor.visit("/account/organizations/new")
    for typed in ("Acme", "wrong"):
        page = visitor.send(f"{PATH}/end", confirmation=typed)
        assert page.status == 404
        assert "Acme" not in words(page)
        visitor.visit("/account/organizations/new")
    assert database.count("organizations", "ended_at IS NULL") == 1
