"""The Tuesday of Olivia, an owner of Umbrella, which has 502 members."""

import pytest

from auth.html.page import LANGUAGES
from tests.support.browser import fill, open_menu
from tests.system.browser.pages.test_organization_stories import set_up_app
from tests.system.browser.pages.test_owner_stories import press_until
from tests.system.days.conftest import AUTHORIZATION, PASSWORD

pytest_plugins = ["tests.support.browser_fixtures"]

OLIVIA, NOAH, LENA = (f"{name}@umbrella.example" for name in ("olivia", "noah", "lena"))
NAMES = {OLIVIA: "Olivia Okafor", NOAH: "Noah Fuchs"}
EMPLOYEES = """
WITH made AS (
  INSERT INTO users (email, email_proved, made_by, user_metadata)
  SELECT 'employee' || n || '@umbrella.example', true, 'administrator', jsonb_build_object('name', 'Employee ' || n)
    FROM generate_series(100, 599) AS n RETURNING id, email
)
INSERT INTO memberships (user_id, organization_id, role, added_by, created_at)
SELECT made.id, o.id, 'member', 'administrator', now() + substr(email, 9, 3)::integer * interval '1 second'
  FROM made, organizations AS o
"""
HEIGHT = "document.documentElement.scrollHeight"
# What is cut off at the left, or within an element that hides what does not fit. The logo and its name may be.
CUT_OFF = """
[...document.querySelectorAll("main *")].filter((each) => {
  if (!each.checkVisibility() || each.matches(".unseen, .brand, .brand *, input, textarea, select")) return false;
  const hides = getComputedStyle(each).overflow !== "visible";
  return each.getBoundingClientRect().left < 0
    || hides && (each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1);
}).map((each) => each.outerHTML.slice(0, 200))
"""
LAST_WEEK = """
UPDATE memberships SET created_at = created_at - interval '6 days';
UPDATE audit_log SET at = at - interval '6 days';
UPDATE organization_invitations SET created_at = created_at - interval '6 days', expires_at = date_trunc('day', now(), 'UTC') + interval '2 days - 1 second'
"""


@pytest.fixture
def umbrella(site, origin, database, post):
    """Return the URL of the organization's page, as it was in the morning."""
    people = {}
    for email, name in NAMES.items():
        body = {"email": email, "password": PASSWORD, "email_confirm": True, "user_metadata": {"name": name}}
        response = site.post("/admin/users", json=body, headers=AUTHORIZATION)
        assert response.status_code == 200, response.data
        people[email] = response.json["id"]
    organization = {"name": "Umbrella", "slug": "umbrella"}
    assert site.post("/organizations", json=organization, headers=AUTHORIZATION).status_code == 201
    for email, role in ((OLIVIA, "owner"), (NOAH, "member")):
        path = f"/organizations/umbrella/members/{people[email]}"
        assert site.put(path, json={"role": role}, headers=AUTHORIZATION).status_code == 200
    database.run(EMPLOYEES)
    session = site.post("/token?grant_type=password", json={"email": OLIVIA, "password": PASSWORD}).json
    invited = site.post(
        "/organizations/umbrella/invitations",
        json={"email": LENA, "role": "member"},
        headers={"Authorization": f"Bearer {session['access_token']}"},
    )
    assert invited.status_code == 201, invited.data
    post.read(LENA, "Invitation to Umbrella")
    database.run(LAST_WEEK)
    post.clear()
    return f"{origin}/account/organizations/umbrella"


def sign_in(page, origin, email):
    page.open(f"{origin}/sign-in")
    page.wait_for("Sign in to Nimbus")
    fill(page, email=email, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("Your account")


def open_organization(page):
    page.wait_for("Your account")
    page.click("Open Umbrella")
    page.wait_for("Members 50")


def find_noah(page, word):
    fill(page, q=word)
    page.click("Search")
    page.wait_for("Clear search")
    page.wait_for("Noah Fuchs")
    assert "Members 502" in page.text
    assert "Employee" not in page.text
    assert page.run("document.documentElement.scrollWidth <= innerWidth")


def give_a_role_that_nobody_has(page):
    open_menu(page, "Noah Fuchs")
    page.click("Change role Noah Fuchs")
    page.wait_for("Role of Noah Fuchs")
    page.run("document.querySelector('#role').value = ''")
    fill(page, other_role="Billing")
    page.click("Save")
    page.wait_for("Use up to 32 lowercase letters")
    fill(page, other_role="billing")
    page.click("Save")
    page.wait_for("The role has been saved.")


def invite_six(page, post):
    assert press_until(page, "Invite") <= 5
    page.press("Enter")
    page.wait_for("Invite people to Umbrella")
    typed = f"ana@example.com, ben@example.com; {NOAH}\ncleo@example.com dan@example.com erik.example.com"
    fill(page, emails=typed)
    page.click("Send invitations")
    page.wait_for("erik.example.com isn’t an email address. Nothing has been sent.")
    # What she typed is still there.
    assert page.run("document.querySelector('#emails').value") == typed
    fill(page, emails=typed.replace("erik.", "erik@"))
    page.click("Send invitations")
    page.wait_for(
        "Invited: ana@example.com, ben@example.com, cleo@example.com, dan@example.com, erik@example.com"
    )
    assert "This invitation wasn’t sent:" in page.text
    assert f"{NOAH}: This person is already a member." in page.text
    assert page.run("document.querySelector('#emails').value") == NOAH
    for name in ("ana", "ben", "cleo", "dan", "erik"):
        assert post.read(f"{name}@example.com", "Invitation to Umbrella").link
    page.click("Back to Umbrella")


def send_again(page, post):
    page.wait_for("6 of 100 open")
    rows = page.run("[...document.querySelectorAll('#invitations li')].map((each) => each.innerText)")
    assert [LENA in row and "expires tomorrow" in row for row in rows] == [True, *[False] * 5]
    open_menu(page, LENA)
    page.click(f"Send again {LENA}")
    page.wait_for("The invitation is valid for seven more days.")
    assert "expires tomorrow" not in page.text
    return post.read(LENA, "Invitation to Umbrella").link


def join(phone, link, post):
    phone.open(link)
    phone.wait_for("to see your invitation")
    fill(phone, email=LENA)
    phone.click("Send me a code instead")
    phone.wait_for("You’ll see your invitation next.")
    fill(phone, code=post.read(LENA, "Sign in to Nimbus").code)
    phone.click("Continue")
    phone.wait_for("Join Umbrella as member?")
    phone.click("Join")
    phone.wait_for("You’re now a member of Umbrella")


def require_a_second_step(page, umbrella):
    page.click("Require Two-step verification")
    page.wait_for("You need a second step yourself before you can require it of others.")
    assert "503 of 503 members don’t have a second step yet." in page.text
    page.click("Set up a second step")
    set_up_app(page)
    page.wait_for("502 of 503 members don’t have a second step yet.")
    assert "They lose access to Umbrella at once, until they add one. Their accounts stay." in page.text
    assert "Their account page says: “Umbrella asks for a second step.”" in page.text
    assert names_of(page)[0] == "Noah Fuchs"
    assert len(names_of(page)) == 10
    page.click("Show all 502")
    page.wait_for("1\N{EN DASH}50 of 502")
    assert names_of(page)[0] == "Noah Fuchs"
    assert "Olivia Okafor" not in page.text
    page.click("Back to the requirement")
    page.wait_for("Require two\u2011step verification at Umbrella?")
    page.click("Require")
    page.wait_for("Two-step verification is now required for all members.")
    # All but one of fifty rows say what is missing, beside the name, and the page is no higher than before.
    page.resize(375, 740)
    assert page.run(f"{HEIGHT} - document.querySelector('#invitations').offsetHeight") < 4500
    page.resize(1280, 900)
    page.click("Members without a second step")
    page.wait_for("502 of 503 members don’t have a second step yet.")
    page.open(umbrella)
    page.wait_for("History")


def names_of(page):
    return page.run("[...document.querySelectorAll('main .items strong')].map((each) => each.innerText)")


def come_back_with_a_second_step(phone, origin, umbrella):
    """Read, as Noah, why the organization is closed on the account page and on its own, and set up a second step."""
    sign_in(phone, origin, NOAH)
    assert "Umbrella asks for a second step." in phone.text
    phone.open(umbrella)
    phone.wait_for("You don’t have access to Umbrella yet")
    assert "Umbrella asks for a second step." in phone.text
    phone.click("Complete the second step")
    set_up_app(phone)
    phone.wait_for("Members 503")
    assert OLIVIA not in phone.text


def read_the_history(page):
    page.click("History")
    page.wait_for("History of Umbrella")
    days = page.run(
        "[...document.querySelectorAll('main section')].map("
        "(day) => [...day.querySelectorAll('.what')].map((entry) => entry.innerText))"
    )
    today, last_week = days
    for sentence in (
        "Olivia Okafor changed the role of Noah Fuchs from member to billing.",
        "Olivia Okafor invited erik@example.com as member.",
        f"Olivia Okafor invited {LENA} as member.",
        f"{LENA} accepted the invitation and joined as member.",
        "Olivia Okafor required two-step verification for all members.",
    ):
        assert sentence in today, today
    assert last_week == [
        f"Olivia Okafor invited {LENA} as member.",
        "The operator of Nimbus added Noah Fuchs as member.",
        "The operator of Nimbus added Olivia Okafor as owner.",
        "The operator of Nimbus created the organization.",
    ]


def test_tuesday_of_an_owner(page, phone, origin, umbrella, post, database):
    page.resize(375, 740)
    sign_in(page, origin, OLIVIA)
    open_organization(page)
    find_noah(page, "noah")
    page.resize(1280, 900)
    find_noah(page, "fuchs")
    give_a_role_that_nobody_has(page)
    invite_six(page, post)
    link = send_again(page, post)
    join(phone, link, post)
    phone.forget()
    page.reload()
    page.wait_for("Members 503")
    require_a_second_step(page, umbrella)
    come_back_with_a_second_step(phone, origin, umbrella)
    read_the_history(page)
    roles = database.all("SELECT role, count(*) FROM memberships GROUP BY role ORDER BY role")
    assert [tuple(each) for each in roles] == [("billing", 1), ("member", 501), ("owner", 1)]
    assert database.count("organization_invitations") == 5


@pytest.mark.parametrize("language", LANGUAGES)
def test_her_pages_are_whole_on_a_phone_at_twice_the_size(page, origin, umbrella, database, language):
    sign_in(page, origin, OLIVIA)
    noah = database.value("SELECT id::text FROM users WHERE email = %(email)s", email=NOAH)
    another_role = "document.querySelector('#role').value = ''"
    open_menus = "document.querySelectorAll('.menu').forEach((each) => { each.name = ''; each.open = true; })"
    page.speak(language)
    page.resize(375, 740)
    for path, prepares in (
        ("?q=fuchs", open_menus),
        (f"/members/{noah}", another_role),
        (f"/members/{noah}/remove", ""),
        ("/invite", f"document.querySelector('#emails').value = {f'{NOAH} '!r}.repeat(9); {another_role}"),
        ("/requirement", ""),
        ("/requirement/members", ""),
        ("/history?days=7", ""),
        ("/end", ""),
    ):
        page.open(umbrella + path)
        page.run(f"document.documentElement.style.fontSize = '32px'; {prepares}")
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), path
        assert page.run(CUT_OFF) == [], path
