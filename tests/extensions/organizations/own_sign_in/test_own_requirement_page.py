"""The page that requires the organization's own sign-in: it says whom that shuts out and why, why an owner can't press
yet, and what lifting changes.
"""

import json
import re
from random import Random, SystemRandom

import pytest

from tests.support.own_providers import DOMAIN, PATH
from tests.support.pages import Visitor, words
from tests.support.users import Person

PAGE = f"{PATH}/sign-in/requirement"
PRIMARY = re.compile(r'<a class="button" href="[./]*([^"]+)">')
MOVES, SIGNS_IN = "Move to your company’s sign\u2011in", "Sign in with your company"
CANNOT = "This account can’t do that at the moment"


@pytest.fixture
def add(acme, database):
    """Return a function that adds a member by SQL, and returns the id."""

    def add(email, *, is_proved=True, role="authenticated", identity=None, organization="acme"):
        id = database.value(
            """INSERT INTO users (email, email_proved, email_confirmed_at, role, admin_since, made_by)
               VALUES (%(email)s, %(is_proved)s, now(), %(role)s, CASE %(role)s WHEN 'admin' THEN now() END,
                       'administrator') RETURNING id::text""",
            email=email,
            is_proved=is_proved,
            role=role,
        )
        database.run(
            "INSERT INTO memberships (user_id, organization_id, role, added_by)"
            " SELECT %(id)s, id, 'member', 'administrator' FROM organizations WHERE slug = %(organization)s",
            id=id,
            organization=organization,
        )
        if identity:
            database.run(
                "INSERT INTO identities (user_id, provider, subject, identity_data)"
                " VALUES (%(id)s, %(provider)s, %(id)s, '{}')",
                id=id,
                provider=f"sso:{identity}",
            )
        return id

    return add


def test_owner_reads_who_does_not_sign_in_this_way_and_who_cannot(on, add, provider, database):
    add(f"linked@{DOMAIN}", identity=provider)
    add(f"new@{DOMAIN}")
    add("contractor@other.example")
    add(f"unproved@{DOMAIN}", is_proved=False)
    add(f"operator@{DOMAIN}", role="admin")
    text = words(on.visit(PAGE))
    for sentence in (
        "4 of 6 members don’t sign in this way yet. 3 can’t: the reasons are next to their names.",
        "Sessions that your identity provider didn’t open lose access to Acme at once.",
        "Acme asks you to sign in with your company’s account.",
        "Members who can’t sign in this way stay out, and are told to ask an owner.",
        "Your own session keeps access: your identity provider opened it.",
        "contractor@other.example address at another domain unproved@example.com address not confirmed"
        " operator@example.com must sign in another way new@example.com Require",
    ):
        assert sentence in text
    for email in (f"linked@{DOMAIN}", "alice@example.com"):
        assert email not in text
    on.press("requirement")
    assert "All members now need to sign in with your identity provider." in words(on.page)
    assert database.value("SELECT needs_own_provider FROM organizations")


def test_owner_in_another_session_reads_why_and_comes_back_after_the_sign_in(
    on, alice, browse, customers, database
):
    visitor = browse(alice)
    page = visitor.visit(PAGE)
    assert "Sign in with your identity provider yourself before you require it of others" in words(page)
    assert {form.action.rpartition("/")[2] for form in page.forms} == {"preferences"}
    assert PRIMARY.findall(page.text) == ["account/company?next=organizations%2Facme%2Fsign-in%2Frequirement"]
    visitor.visit(visitor.link_to("account/company?next="))
    visitor.press("account/company")
    assert visitor.page.url.partition("?")[0].endswith(PAGE)
    visitor.press("requirement")
    assert database.value("SELECT needs_own_provider FROM organizations")


def test_form_of_an_owner_in_another_session_requires_nothing_and_says_why(on, alice, browse, database):
    visitor = browse(alice)
    visitor.visit("/account/organizations/new")
    page = visitor.send(PAGE, own_provider="true")
    assert page.status == 403
    assert "Sign in with the organization’s identity provider first" in words(page)
    assert [link.partition("?")[0] for link in PRIMARY.findall(page.text)] == ["account/company"]
    assert not database.value("SELECT needs_own_provider FROM organizations")


def test_owner_whose_address_is_elsewhere_reads_who_can_require_it(on, alice, browse, database):
    database.run("UPDATE users SET email = 'alice@other.example' WHERE id = %(id)s", id=alice.id)
    page = browse(alice).visit(PAGE)
    assert "Only an owner who signs in with your identity provider can require it." in words(page)
    assert {form.action.rpartition("/")[2] for form in page.forms} == {"preferences"}
    assert PRIMARY.findall(page.text) == []
    assert "alice@other.example You address at another domain" in words(page)


def test_owner_without_a_provider_that_is_on_is_led_to_set_one_up(sign_in, alice, browse):
    page = browse(alice).visit(PAGE)
    assert "An identity provider must be on, with a domain, before you can require it." in words(page)
    assert PRIMARY.findall(page.text) == [f"{PATH[1:]}/sign-in"]
    assert {form.action.rpartition("/")[2] for form in page.forms} == {"preferences"}


@pytest.mark.parametrize("role", ["admin", "member", None])
@pytest.mark.parametrize("path", [PAGE, f"{PAGE}/members"])
def test_page_and_list_are_for_owners(acme, join, bob, browse, role, path):
    if role:
        join(bob, acme, role)
    page = browse(bob).visit(path)
    assert page.status == 404
    assert "alice@example.com" not in page.text


def test_lifting_says_who_gets_access_again(on, add, database):
    add("contractor@other.example")
    database.run("UPDATE organizations SET needs_own_provider = true")
    text = words(on.visit(PAGE))
    assert "Members will have access however they sign in." in text
    assert "1 of 2 members doesn’t sign in this way yet." in text
    assert "They get access to Acme again at once." in text
    assert "Your identity provider stays on, and signs in everyone at its domains." in text
    on.press("requirement")
    assert "Members can sign in another way again." in words(on.page)
    assert not database.value("SELECT needs_own_provider FROM organizations")


def test_list_shows_all_by_pages_those_who_cannot_first(on, add):
    members = [add(f"m{n}@{DOMAIN}") and f"m{n}@{DOMAIN}" for n in range(52)]
    add("last@other.example")
    on.visit(PAGE)
    on.visit(on.link_to(f"{PAGE[1:]}/members"))
    expected = ["last@other.example", *members]
    for shown in (expected[:50], expected[50:]):
        text = f"{words(on.page)} "
        assert [each for each in expected if f"{each} " in text] == shown
        if shown == expected[:50]:
            on.visit(f"{PAGE}/members?page=2")
    assert "51\N{EN DASH}53 of 53 Previous" in words(on.page)
    assert "Next" not in words(on.page)
    # Some have been removed since.
    assert "51\N{EN DASH}53 of 53" in words(on.visit(f"{PAGE}/members?page=9"))


def test_page_names_those_whom_the_requirement_shuts_out_and_nobody_else(
    on, add, provider, sign_in, customers, client, acme, database
):
    """Compares the list with what the pages say to each member, about random addresses, roles and identities."""
    seed = SystemRandom().randrange(1 << 32)
    random = Random(seed)
    # A provider of the organization that is off, and one of another.
    off = sign_in.connect(customers.globex, domains=[]).json["id"]
    database.run("INSERT INTO identity_provider_domains VALUES ('off.example', %(off)s)", off=off)
    database.run("INSERT INTO organizations (id, slug, name) VALUES (gen_random_uuid(), 'globex', 'Globex')")
    database.run(
        """INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret, enabled, is_on,
                                           organization_id)
           SELECT gen_random_uuid(), 'custom:theirs', 'Theirs', 'https://theirs.example', 'x', 'x', false, true, id
             FROM organizations WHERE slug = 'globex';
           INSERT INTO identity_provider_domains
           SELECT 'theirs.example', id FROM identity_providers WHERE identifier = 'custom:theirs'"""
    )
    members = {}
    for number in range(30):
        domain = random.choice([DOMAIN, DOMAIN, DOMAIN, "off.example", "theirs.example", "other.example"])
        email = f"m{number}@{domain}"
        members[email] = add(
            email,
            is_proved=random.random() < 0.8,
            role=random.choice(["authenticated"] * 5 + ["admin"]),
            identity=random.choice([None, provider, provider, off]),
        )
    text = words(on.visit(f"{PAGE}/members"))
    listed = {email: "can" for email in members if f"{email} " in f"{text} "}
    listed |= {email: "cannot" for email in listed if re.search(rf"{email} (address|must)", text)}
    database.run("UPDATE organizations SET needs_own_provider = true WHERE slug = 'acme'")
    for email, id in members.items():
        visitor = Visitor(client.application).with_session_of(Person(client, id, email))
        account = words(visitor.visit("/account"))
        assert "Acme asks you to sign in with your company’s account." in account
        company = words(visitor.visit("/account/company"))
        kind = "cannot" if CANNOT in account else "can" if MOVES in company else None
        assert kind is not None or SIGNS_IN in company
        assert listed.get(email) == kind, (seed, email)
        if kind is None:
            # The provider signs in whom the page does not name, and then the membership counts.
            amr = [{"method": "oauth", "provider": f"sso:{provider}", "timestamp": 0}]
            database.run(
                "UPDATE sessions SET amr = %(amr)s WHERE user_id = %(id)s", amr=json.dumps(amr), id=id
            )
            assert "asks you to sign in" not in words(visitor.visit("/account"))
