"""The owner of 502 members on a Tuesday, in a real browser."""

import pytest

from auth.html.page import LANGUAGES
from tests.support.browser import fill, open_menu
from tests.system.browser.pages.test_stories import signed_in

pytest_plugins = ["tests.support.browser_fixtures"]

UMBRELLA = """
INSERT INTO organizations (id, slug, name) SELECT id, 'umbrella', 'Umbrella' FROM users LIMIT 1;
INSERT INTO memberships (user_id, organization_id, role, added_by, created_at)
SELECT u.id, o.id, 'owner', 'founder', now() - interval '1 day' FROM users AS u, organizations AS o;
WITH made AS (
  INSERT INTO users (email, email_proved, made_by, user_metadata)
  SELECT 'employee' || n || '@umbrella.example', true, 'administrator', jsonb_build_object('name', 'Employee ' || n)
    FROM generate_series(100, 600) AS n RETURNING id
)
INSERT INTO memberships (user_id, organization_id, role, added_by)
SELECT made.id, o.id, 'member', 'administrator' FROM made, organizations AS o
"""
# The invitation is the second of two, and expires tomorrow.
INVITED = """
INSERT INTO organization_invitations (id, organization_id, email, role, expires_at)
SELECT gen_random_uuid(), id, n || '-late@umbrella.example', 'member',
       date_trunc('day', now(), 'UTC') + interval '1 day' * (n + 1) - interval '1 second'
  FROM organizations, generate_series(1, 2) AS n
"""
FOCUSED = """(document.activeElement.innerText || document.activeElement.getAttribute('aria-label') || '')
  .replace(/\\s+/g, ' ')"""
_LARGE = "document.documentElement.style.fontSize = '32px'"
_OPEN_MENU = "document.querySelector('.menu').open = true"


@pytest.fixture(scope="module")
def settings(mailing: dict[str, str]) -> dict[str, str]:
    return {**mailing, "AUTH_ORGANIZATIONS": "users"}


@pytest.fixture
def umbrella(page, origin, alice, database):
    """Return the URL of an organization with 502 members, one of whose owners is signed in."""
    signed_in(page, origin, alice)
    database.run(UMBRELLA)
    page.open(f"{origin}/account/organizations/umbrella")
    page.wait_for("Members 50")
    return f"{origin}/account/organizations/umbrella"


def press_until(page, name):
    """Press Tab until an element with this text has the focus, and return how often."""
    for number in range(1, 12):
        page.press("Tab")
        if name in page.run(FOCUSED):
            return number
    raise AssertionError(
        f"the keyboard does not reach {name}: {page.run('document.activeElement.outerHTML')}"
    )


def test_invite_is_five_presses_of_the_tab_key_away(page, umbrella):
    assert press_until(page, "Invite") <= 5
    page.press("Enter")
    page.wait_for("Invite people to Umbrella")


def test_owner_finds_a_member_and_opens_the_menu_of_the_row_by_keyboard(page, umbrella, database):
    page.without_script()
    page.open(umbrella)
    press_until(page, "Search members")
    page.type("employee 345")
    page.press("Enter")
    page.wait_for("employee345@umbrella.example")
    assert "Employee 346" not in page.text
    press_until(page, "Actions for Employee 345")
    page.press("Enter")
    page.press("Tab")
    assert page.run(FOCUSED) == "Change role Employee 345"
    page.press("Tab")
    page.press("Enter")
    page.wait_for("Remove Employee 345 from Umbrella?")
    page.click("Remove")
    page.wait_for("The member has been removed.")
    assert "Members 501" in page.text
    assert database.count("memberships") == 501


def test_owner_pages_through_a_search_and_clears_it(page, umbrella):
    fill(page, q="employee")
    page.click("Search")
    page.wait_for("1\N{EN DASH}50 of 501")
    page.click("Next")
    page.wait_for("51\N{EN DASH}100 of 501")
    assert page.url.endswith("?q=employee&page=2")
    page.click("Previous")
    page.wait_for("1\N{EN DASH}50 of 501")
    page.click("Clear search")
    page.wait_for("1\N{EN DASH}50 of 502")


def test_another_menu_closes_the_first(page, umbrella):
    for number in (3, 5):
        page.click_on(f"document.querySelectorAll('.menu summary')[{number}]")
        page.wait(lambda number=number: page.run(f"document.querySelectorAll('.menu')[{number}].open"))
    assert page.run("document.querySelectorAll('.menu[open]').length") == 1


def test_owner_invites_several_with_a_new_role_sends_again_and_reads_the_history(
    page, umbrella, post, database
):
    database.run(INVITED)
    page.click("Invite")
    page.wait_for("Invite people to Umbrella")
    # Only a choice of *Another role…* needs the field.
    assert not page.run("document.querySelector('#other_role').checkVisibility()")
    page.run("document.querySelector('#role').value = ''")
    page.wait(lambda: page.run("document.querySelector('#other_role').checkVisibility()"))
    fill(page, emails="eve@example.com, employee345@umbrella.example", other_role="billing")
    page.click("Send invitations")
    page.wait_for("Invited: eve@example.com")
    assert "employee345@umbrella.example: This person is already a member." in page.text
    page.click("Back to Umbrella")
    page.wait_for("3 of 100 open")
    assert post.read("eve@example.com", "Invitation to Umbrella").link
    rows = page.run(
        "[...document.querySelectorAll('#invitations li')].map((row) => row.querySelector('time').innerText)"
    )
    assert rows == ["expires tomorrow", "expires in 2 days", "expires in 7 days"]
    open_menu(page, "1-late@umbrella.example")
    page.click("Send again 1-late@umbrella.example")
    page.wait_for("The invitation is valid for seven more days.")
    assert post.read("1-late@umbrella.example", "Invitation to Umbrella").link
    page.click("History")
    page.wait_for("History of Umbrella")
    assert "alice@example.com invited eve@example.com as billing." in page.text
    assert "alice@example.com invited 1-late@umbrella.example as member." in page.text
    page.click("Last 7 days")
    page.wait(lambda: page.url.endswith("?days=7"))
    assert "invited eve@example.com" in page.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_of_500_members_fit_a_phone_at_twice_the_size(page, umbrella, database, language):
    database.run(INVITED)
    page.speak(language)
    page.resize(375, 740)
    for path, prepares in (
        ("", _OPEN_MENU),
        ("/invite", "document.querySelector('#role').value = ''"),
        ("/history", ""),
    ):
        page.open(umbrella + path)
        page.run(f"{_LARGE}; {prepares}")
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), path


def test_page_of_500_members_is_half_as_high_as_with_two_buttons_a_row(page, umbrella):
    page.resize(375, 740)
    assert page.run("document.documentElement.scrollHeight") < 4500  # 8,375 before
    size = page.run("fetch(location).then((answer) => answer.text()).then((text) => new Blob([text]).size)")
    assert size < 42_000  # 44,687 before
