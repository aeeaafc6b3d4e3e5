"""The page that requires a second step: it says whom that shuts out, why an owner can't press yet, and what lifting
changes.
"""

from random import Random, SystemRandom

import pytest

from tests.support.factors import set_up
from tests.support.pages import Visitor, unsigned, words
from tests.support.users import PASSWORD, Person

PATH = "/account/organizations/acme"
PAGE = f"{PATH}/requirement"
ASKS = "Acme asks for a second step."
# A key of a verified passkey or app, or of one that nobody has verified.
FACTORS = {
    "none": None,
    "app": "'totp', now(), '', NULL, NULL, NULL",
    "passkey": "'passkey', now(), NULL, gen_random_uuid()::text::bytea, 'key', 0",
    "unverified": "'totp', NULL, '', NULL, NULL, NULL",
}


@pytest.fixture
def crowd(acme, database):
    """Return a function that adds members by SQL, and returns their ids and addresses in the order of joining."""

    def crowd(total):
        rows = database.all(
            """WITH made AS (INSERT INTO users (email, email_proved, made_by)
                 SELECT 'm' || n || '@example.com', true, 'administrator' FROM generate_series(1, %(total)s) AS n
                 RETURNING id, email)
               INSERT INTO memberships (user_id, organization_id, role, added_by, created_at)
               SELECT made.id, o.id, 'member', 'administrator',
                      now() + substr(split_part(made.email, '@', 1), 2)::int * interval '1 second'
                 FROM made, organizations AS o
               RETURNING user_id::text, (SELECT email FROM made WHERE made.id = user_id) AS email, created_at""",
            total=total,
        )
        return sorted(rows, key=lambda row: row.created_at)

    return crowd


@pytest.fixture
def raised(acme, owner, alice, browse, database):
    """Alice's browser, in which she has given her second step."""
    set_up(owner)
    visitor = browse(alice)
    database.run("UPDATE sessions SET aal = 'aal2', factor_proved_at = now()")
    return visitor


def test_owner_reads_who_lacks_a_second_step_and_what_happens_to_them(raised, crowd, database):
    crowd(1)
    text = words(raised.visit(PAGE))
    for sentence in (
        "Require two\u2011step verification at Acme ?",
        "1 of 2 members doesn’t have a second step yet.",
        "They lose access to Acme at once, until they add one. Their accounts stay.",
        f"Their account page says: “ {ASKS}”",
        "Members without a second step m1@example.com",
    ):
        assert sentence in text
    assert "alice@example.com" not in text
    raised.press("requirement")
    assert "Two-step verification is now required for all members." in words(raised.page)
    assert database.value("SELECT level FROM organizations") == "aal2"


def test_owner_without_a_second_step_reads_why_and_comes_back_once_it_is_set_up(
    acme, join, bob, alice, browse, database
):
    join(bob, acme)
    visitor = browse(alice)
    page = visitor.visit(PAGE)
    assert page.status == 200
    assert "You need a second step yourself before you can require it of others." in words(page)
    assert "2 of 2 members don’t have a second step yet." in words(page)
    assert {form.action.rpartition("/")[2] for form in page.forms} == {"preferences"}
    visitor.visit(visitor.link_to("second-step?next=organizations%2Facme%2Frequirement"))
    assert unsigned(visitor.page).endswith("/account/two-step?next=organizations%2Facme%2Frequirement")
    assert database.value("SELECT level FROM organizations") == "aal1"


def test_form_of_an_owner_without_a_second_step_requires_nothing(acme, alice, browse, database):
    visitor = browse(alice)
    visitor.visit("/account/organizations/new")
    visitor.send(PAGE, aal="aal2")
    assert unsigned(visitor.page).endswith("/account/two-step?next=organizations%2Facme%2Frequirement")
    assert database.value("SELECT level FROM organizations") == "aal1"


def test_owner_at_a_service_without_second_steps_reads_that_none_can_be_required(make_app, acme, alice):
    app = make_app(AUTH_ORGANIZATIONS="users", AUTH_MFA_ENABLED="false", AUTH_PASSKEYS_ENABLED="false")
    visitor = Visitor(app).with_session_of(alice)
    text = words(visitor.visit(PAGE))
    assert "This service doesn’t offer a second step, so an organization can’t require one." in text
    assert "second-step" not in visitor.page.text
    assert {form.action.rpartition("/")[2] for form in visitor.page.forms} == {"preferences"}


def test_lifting_says_who_gets_access_again(raised, crowd, database):
    crowd(1)
    database.run("UPDATE organizations SET level = 'aal2'")
    text = words(raised.visit(PAGE))
    assert "Members will have access without a second step." in text
    assert "1 of 2 members doesn’t have a second step yet. They get access to Acme again at once." in text
    assert "Members who have a second step keep it, and still use it to sign in." in text
    raised.press("requirement")
    assert "Two-step verification is no longer required." in words(raised.page)
    assert database.value("SELECT level FROM organizations") == "aal1"


def test_page_shows_ten_names_and_a_list_shows_all_by_pages(raised, crowd):
    members = [each.email for each in crowd(112)]
    text = words(raised.visit(PAGE))
    assert "112 of 113 members don’t have a second step yet." in text
    assert [each for each in members if f"{each} " in f"{text} "] == members[:10]
    raised.visit(raised.link_to(f"{PAGE[1:]}/members"))
    found = []
    for number in (2, 3, None):
        found.append([each for each in members if f"{each} " in f"{words(raised.page)} "])
        if number:
            raised.visit(f"{PAGE}/members?page={number}")
    assert found == [members[:50], members[50:100], members[100:]]
    assert "101\N{EN DASH}112 of 112 Previous" in words(raised.page)


def test_page_looks_at_a_bounded_number_of_members_and_says_so(raised, crowd, monkeypatch):
    monkeypatch.setattr("auth.extensions.organizations.pages.shut_out.MOST_MEMBERS", 20)
    crowd(30)
    assert "Of the 10,000 members who joined first, 19 don’t have a second step yet." in words(
        raised.visit(PAGE)
    )


@pytest.mark.parametrize("role", ["admin", "member", None])
@pytest.mark.parametrize("path", [PAGE, f"{PAGE}/members"])
def test_list_is_for_owners(acme, join, bob, browse, role, path):
    if role:
        join(bob, acme, role)
    assert browse(bob).visit(path).status == 404


def test_page_names_those_whom_the_requirement_shuts_out_and_nobody_else(raised, crowd, client, database):
    seed = SystemRandom().randrange(1 << 32)
    random = Random(seed)
    members = crowd(24)
    for member in members:
        if columns := FACTORS[random.choice(list(FACTORS))]:
            database.run(
                "INSERT INTO factors (id, user_id, factor_type, verified_at, secret, credential_id, public_key,"
                f" sign_count) VALUES (gen_random_uuid(), %(id)s, {columns})",
                id=member.user_id,
            )
    text = f"{words(raised.visit(f'{PAGE}/members'))} "
    named = {each.email for each in members if f"{each.email} " in text}
    database.run("UPDATE organizations SET level = 'aal2'")
    asked = set()
    for member in members:
        visitor = Visitor(client.application).with_session_of(Person(client, member.user_id, member.email))
        database.run(
            "UPDATE sessions AS s SET aal = 'aal2' WHERE EXISTS"
            " (SELECT FROM factors AS f WHERE f.user_id = s.user_id AND f.verified_at IS NOT NULL)"
        )
        page = words(visitor.visit("/account"))
        assert "Acme" in page
        if ASKS in page:
            asked.add(member.email)
    assert asked == named, seed


def test_member_is_asked_for_a_second_step_on_the_account_page_and_may_leave(
    acme, join, bob, browse, database
):
    join(bob, acme)
    database.run("UPDATE organizations SET level = 'aal2'")
    visitor = browse(bob)
    visitor.visit("/account")
    assert ASKS in words(visitor.page)
    visitor.visit(visitor.link_to("second-step?next=organizations%2Facme"))
    assert "Two-step verification" in words(visitor.page)
    visitor.visit(f"{PATH}/leave")
    visitor.press("leave")
    assert database.count("memberships") == 1


def test_proof_before_the_requirement_comes_back_to_its_page(raised, database):
    database.run(
        "UPDATE sessions SET created_at = created_at - interval '20 minutes', factor_proved_at = NULL,"
        " reauthenticated_at = NULL"
    )
    raised.visit(PAGE)
    assert "next=organizations%2Facme%2Frequirement" in raised.page.url
    assert PASSWORD not in raised.page.text
