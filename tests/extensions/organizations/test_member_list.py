"""The members on the page of an organization: their number, search, pages, and the acts of each row."""

import re
from urllib.parse import urlencode

import pytest

from tests.support.pages import unsigned, words

PATH = "/account/organizations/acme"
MORE = """
WITH made AS (
  INSERT INTO users (email, email_proved, made_by, user_metadata)
  SELECT 'person-' || n || '@example.com', true, 'administrator', jsonb_build_object('name', 'Person ' || n)
    FROM generate_series(100, 99 + %(number)s) AS n RETURNING id
)
INSERT INTO memberships (user_id, organization_id, role, added_by)
SELECT made.id, o.id, 'member', 'administrator' FROM made, organizations AS o
"""


@pytest.fixture
def at_acme(acme, alice, browse, database):
    """Return Alice's browser, at the page of Acme, with a number of further members."""

    def at_acme(number):
        database.run(MORE, number=number)
        visitor = browse(alice)
        visitor.visit(PATH)
        return visitor

    return at_acme


def search(visitor, q):
    """Send the form of the search, as a browser does."""
    form = next(form for form in visitor.page.forms if "q" in form.fields)
    assert form.method == "GET"
    return visitor.click(f"{form.action}?{urlencode({'q': q})}")


def test_organization_of_ten_has_neither_a_search_nor_pages(at_acme):
    visitor = at_acme(9)
    assert "Members 10 Invite" in words(visitor.page)
    assert 'type="search"' not in visitor.page.text
    assert "Next" not in words(visitor.page)


def test_search_shows_those_who_match_and_keeps_the_number_of_members(at_acme):
    visitor = at_acme(60)
    search(visitor, "person 15")
    text = words(visitor.page)
    assert visitor.page.url.endswith(f"{PATH}?q=person+15")
    assert "Members 61 Invite" in text
    assert 'value="person 15"' in visitor.page.text
    assert text.count("Change role") == text.count("person-15") == 10
    assert "alice@example.com" not in text


def test_search_is_kept_from_page_to_page(at_acme):
    visitor = at_acme(60)
    search(visitor, "person")
    assert "1\N{EN DASH}50 of 60" in words(visitor.page)
    visitor.visit(visitor.link_to("?q=person&page=2"))
    assert "51\N{EN DASH}60 of 60 Previous" in words(visitor.page)
    visitor.visit(visitor.link_to("?q=person&page=1"))
    assert "1\N{EN DASH}50 of 60 Next" in words(visitor.page)


def test_number_of_members_is_written_as_the_language_does(at_acme):
    visitor = at_acme(1059)
    assert "Members 1,060 Invite" in words(visitor.page)
    assert "1,051\N{EN DASH}1,060 of 1,060" in words(visitor.visit(f"{PATH}?page=22"))
    visitor.visit(f"{PATH}?page=22")
    visitor.press("preferences", language="de")
    assert "1.051\N{EN DASH}1.060 von 1.060" in words(visitor.visit(f"{PATH}?page=22"))


@pytest.mark.parametrize(
    ("act", "query"),
    [("", "?q=person&page=2"), ("/remove", "?page=2"), ("", "?q=person+15"), ("/remove", "")],
)
def test_changed_or_removed_member_leads_back_to_the_same_place_of_the_list(at_acme, act, query):
    visitor = at_acme(60)
    page = visitor.visit(f"{PATH}{query}")
    (id, *_) = re.findall("/members/([0-9a-f-]+)/remove", page.text)
    visitor.visit(visitor.link_to(f"{PATH[1:]}/members/{id}{act}{query}"))
    assert visitor.link_to(f"{PATH[1:]}{query}").endswith(PATH + query)
    visitor.press(f"{id}{act}{query}", **({} if act else {"role": "admin"}))
    done = "done=member_removed" if act else "done=member_changed"
    assert unsigned(visitor.page).endswith(f"{PATH}{query}{'&' if query else '?'}{done}")


def test_search_says_how_many_match(at_acme):
    visitor = at_acme(60)
    search(visitor, "person 15")
    assert "10 results Clear search" in words(visitor.page)
    search(visitor, "person 159")
    assert "1 result Clear search" in words(visitor.page)


def test_search_without_a_match_says_so_and_is_cleared(at_acme):
    visitor = at_acme(11)
    search(visitor, '<b>"nobody"')
    assert 'No member matches “<b>"nobody"”. Clear search' in words(visitor.page)
    assert "<b>" not in visitor.page.text
    visitor.visit(visitor.link("Clear search"))
    assert "Person 100" in words(visitor.page)


@pytest.mark.parametrize(
    ("query", "shown"), [("page=99", "?page=2"), ("q=person&page=99", "?q=person&page=2")]
)
def test_page_beyond_the_last_one_is_the_last_one(at_acme, query, shown):
    visitor = at_acme(60)
    page = visitor.visit(f"{PATH}?{query}")
    assert page.status == 200
    assert page.url.endswith(PATH + shown)
    assert "Previous" in words(page)


def test_member_searches_too_and_sees_no_acts_and_no_addresses(at_acme, acme, join, bob, browse):
    at_acme(12)
    join(bob, acme)
    visitor = browse(bob)
    visitor.visit(PATH)
    search(visitor, "person 10")
    text = words(visitor.page)
    assert "Person 105" in text
    assert "@example.com" not in text
    assert not any(word in text for word in ("Invite", "Change role", "Remove", "of 100 open", "History"))
    assert '<details class="menu"' not in visitor.page.text


@pytest.mark.parametrize("name", ["alice@example.com", "\u200b"])
def test_name_that_is_an_address_or_invisible_is_not_shown(
    acme, join, bob, mallory, browse, alice, database, name
):
    join(bob, acme)
    join(mallory, acme)
    database.run(
        "UPDATE users SET user_metadata = jsonb_build_object('name', %(name)s::text) WHERE id = %(id)s",
        name=name,
        id=bob.id,
    )
    text = words(browse(alice).visit(PATH))
    assert "alice@example.com You Owner" in text
    assert "bob@example.com Member Actions for bob@example.com" in text
    text = words(browse(mallory).visit(PATH))
    assert "Unnamed Owner Unnamed Member Unnamed You Member" in text
    assert "Unnamed application" not in text
    assert "alice@example.com" not in text


def test_row_of_a_member_has_one_menu_which_names_the_member(at_acme):
    page = at_acme(2).page
    assert page.text.count('<details class="menu"') == 3
    for name in ("Person 100", "Person 101"):
        assert f"Actions for {name} Change role {name} Remove {name}" in words(page)
    assert "Actions for alice@example.com Change role alice@example.com Person" in words(page)


def test_admin_finds_no_menu_at_an_owner(acme, join, bob, browse):
    join(bob, acme, "admin")
    text = words(browse(bob).visit(PATH))
    assert "Actions for bob@example.com" not in text
    assert "Actions for alice@example.com" not in text


@pytest.mark.parametrize("page", ["", "/remove"])
def test_admin_opens_no_page_about_an_owner_or_another_admin(acme, join, alice, bob, mallory, browse, page):
    join(bob, acme, "admin")
    join(mallory, acme, "admin")
    visitor = browse(bob)
    for person in (alice, mallory):
        answer = visitor.visit(f"{PATH}/members/{person.id}{page}")
        assert answer.status == 404
        assert person.email not in answer.text


def test_page_of_a_role_says_what_a_change_does(acme, join, bob, mallory, alice, browse):
    join(bob, acme, "admin")
    join(mallory, acme)
    visitor = browse(alice)
    takes_effect, loses = (
        "A new role takes effect in applications within an hour.",
        "Lowering the role withdraws the open invitations that bob@example.com sent.",
    )
    text = words(visitor.visit(f"{PATH}/members/{bob.id}"))
    assert takes_effect in text
    assert loses in text
    text = words(visitor.visit(f"{PATH}/members/{mallory.id}"))
    assert takes_effect in text
    assert "loses" not in text


def test_removal_speaks_of_invitations_only_for_members_who_could_send_them(
    acme, join, bob, mallory, alice, browse
):
    join(bob, acme, "admin")
    join(mallory, acme)
    visitor = browse(alice)
    assert "Invitations they sent for Acme end." in words(visitor.visit(f"{PATH}/members/{bob.id}/remove"))
    text = words(visitor.visit(f"{PATH}/members/{mallory.id}/remove"))
    assert "Applications that they use as a member of Acme lose access." in text
    assert "Invitations" not in text


def test_notice_and_search_leave_the_page_whole(at_acme):
    visitor = at_acme(11)
    visitor.visit(f"{PATH}/name")
    visitor.press("name", name="Acme Inc.")
    assert unsigned(visitor.page).endswith("?done=organization_renamed#settings")
    assert "Members 12" in words(visitor.page)
