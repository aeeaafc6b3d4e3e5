"""Whole stories of administrators in Chromium, and all pages of the console with axe-core."""

import os
from collections.abc import Iterator

import pytest

from tests.extensions.console.test_console_routes import FRAME, Console
from tests.support import security_keys
from tests.support.answers import NO_ID
from tests.support.browser import Browser, fill
from tests.support.factors import App, set_up
from tests.support.pictures import take_overview
from tests.support.users import PASSWORD, Session
from tests.system.browser.pages.test_accessibility import CUT_OFF, SCREENS, problems
from tests.system.browser.pages.test_stories import signed_in_with_new_passkey

pytest_plugins = ["tests.support.browser_fixtures"]

# Cells whose text cannot be read whole.
_CUT_CELLS = "[...document.querySelectorAll('td')].filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.innerText)"
_COUNT_OF_PRIMARY = "document.querySelectorAll('main :is(button, a.button):not(.other, .text)').length"
# Long values, and values that end at a certain time, in every list and on every page.
LONG_ADDRESS = "a" * 64 + "@a-long-name-of-a-department.of-a-longer-name-of-a-company.example"
LONG = """
UPDATE users SET email = %(address)s, banned_until = now() + interval '1 day' WHERE role <> 'admin';
UPDATE outbox SET last_error = %(error)s;
UPDATE webhooks SET failing_since = now(), retry_at = now() + interval '1 hour', previous_secret = '',
  previous_secret_expires_at = now() + interval '1 hour';
UPDATE identity_providers SET enabled = false, name = left(repeat('Acme Corporation ', 6), 80),
  issuer = 'https://login.a-long-name-of-a-department.example/realms/' || repeat('a', 80);
INSERT INTO identity_provider_domains SELECT 'a-long-name-of-a-department-' || n || '.example', id
  FROM identity_providers, generate_series(1, 9) AS n;
UPDATE oauth_clients SET previous_secret_hash = '', previous_secret_expires_at = now() + interval '1 hour';
"""
# The provider is that of an organization, with entries of the log that name both.
OF_AN_ORGANIZATION = """
UPDATE identity_providers SET enabled = false, organization_id = %(organization)s, is_on = true, tried_at = now(),
  name = left(repeat('Acme Corporation ', 6), 80);
UPDATE organizations SET needs_own_provider = true, name = left(repeat('Acme Holding ', 8), 100);
INSERT INTO identities (id, user_id, provider, subject, identity_data)
SELECT gen_random_uuid(), %(user)s, 'sso:' || id, 'alice', '{}' FROM identity_providers;
INSERT INTO audit_log (action, user_id, actor, actor_id, details)
SELECT action, CASE WHEN action = 'identity_linked' THEN %(user)s::uuid END, 'user', %(user)s,
       jsonb_build_object('provider', 'sso:' || p.id, 'provider_id', p.id,
                          'organization', jsonb_build_object('id', o.id, 'slug', o.slug))
  FROM identity_providers AS p, organizations AS o,
       unnest('{provider_added, provider_enabled, identity_linked}'::text[]) AS action;
"""
GIVE_CODE = "UPDATE sessions SET code_given_at = now()"


# Extensions with pages of the console.
EXTENSIONS = {"AUTH_SSO": "true", "AUTH_ORGANIZATIONS": "users"}


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return EXTENSIONS


@pytest.fixture
def app(make_app):
    return make_app(**EXTENSIONS)


@pytest.fixture
def passkey(page, origin, carol, authenticator, database) -> None:
    """Carol's passkey, with which she is signed in; as if she had given a code of her mailbox."""
    signed_in_with_new_passkey(page, origin, carol, prepare=lambda: database.run(GIVE_CODE))


@pytest.fixture
def owner(site, carol, database) -> tuple[App, Session]:
    """Carol's authenticator app, and her session with it."""
    session = carol.sign_in(client=site)
    database.run(GIVE_CODE)
    return set_up(session)


@pytest.fixture
def key(page, origin, owner, carol) -> Iterator[str]:
    """Carol's security key, with which she is signed in on the console."""
    added = page.add_authenticator(is_key=True)
    security_keys.enrol_in_browser(page, origin, owner[1], "Blue key")
    sign_in(page, f"{origin}/console", carol)
    page.click("Blue key")
    page.wait_for("Overview")
    yield added
    page.remove_authenticator(added)


def sign_in(page: Browser, url: str, person) -> None:
    page.open(url)
    fill(page, email=person.email, password=PASSWORD)
    page.click("Sign in")
    page.wait_for("One more step")


def press(page: Browser, title: str, button: str, outcome: str) -> None:
    """Choose an action of the present page's menu, confirm it with a button, and wait for the outcome."""
    choose(page, title)
    page.click(button)
    page.wait_for(outcome)


def choose(page: Browser, title: str) -> None:
    page.run("document.querySelector('.menu').open = true")
    page.click(title)
    page.wait_for("Cancel")


def test_pages_and_confirmations_are_accessible_and_fit_the_screen(
    page, origin, passkey, axe, app, ids, database
):
    console = Console(app, ids, database)
    database.run(LONG, address=LONG_ADDRESS, error="connection reset by peer " * 20)

    def check(name: str) -> None:
        for width, height, dark in SCREENS:
            page.resize(width, height, dark=dark)
            assert problems(page) == [], (name, width)
            assert page.run("document.documentElement.scrollWidth <= innerWidth"), (name, width)
            assert page.run(_CUT_CELLS) == [], (name, width)
            assert page.run(CUT_OFF) == [], (name, width)
            assert page.run(_COUNT_OF_PRIMARY) <= 1, name

    for path in {*console.pages, *console.forms} - {FRAME}:
        page.open(origin + path)
        # An action on many users submits itself until it is done.
        page.wait(lambda: page.run("!document.querySelector('[data-continue]')"))
        check(path)
    for path in ("users?status=x", "users?q=nobody", f"applications/{NO_ID}", "messages?to=nobody"):
        page.open(f"{origin}/console/{path}")
        check(path)
    page.open(f"{origin}/console/users")
    bar = "document.querySelector('form#chosen').checkVisibility()"
    assert not page.run(bar)
    page.run("document.querySelector('[name=id]').click()")
    assert page.run(bar)
    check("a chosen user")
    page.open(f"{origin}/console/applications/new")
    fill(page, client_name="Grafana", redirect_uris="grafana.example.com")
    page.click("Add an application")
    page.wait_for("can’t be used")
    page.wait(lambda: page.run("document.activeElement.name") == "redirect_uris")
    check("a wrong application")
    fill(page, redirect_uris="https://grafana.example.com/")
    page.click("Add an application")
    page.wait_for("Copy the secret now")
    check("a secret")
    if "PICTURES" in os.environ:
        take_overview(page, origin, database)


def test_pages_about_an_organizations_provider_are_accessible_and_fit_the_screen(
    page, origin, passkey, axe, ids, database
):
    organization, provider = ids["organization_id"], ids["provider_id"]
    database.run(OF_AN_ORGANIZATION, organization=organization, user=ids["user_id"])
    for path in (
        f"providers/{provider}", f"providers/{provider}/disable", f"organizations/{organization}",
        f"audit?organization={organization}", "audit?organization=nobody", f"users/{ids['user_id']}", "providers",
    ):  # fmt: skip
        page.open(f"{origin}/console/{path}")
        for width, height, dark in SCREENS:
            page.resize(width, height, dark=dark)
            assert problems(page) == [], (path, width)
            assert page.run("document.documentElement.scrollWidth <= innerWidth"), (path, width)
            assert page.run(CUT_OFF) == [], (path, width)


def test_menu_of_acts_is_a_button_like_the_one_beside_it(page, origin, passkey, ids):
    page.resize(1280, 900)
    page.open(f"{origin}/console/organizations/{ids['organization_id']}")
    button, menu = page.run(
        "[...document.querySelectorAll('.title .acts > .button, .title .menu summary')]"
        ".map((each) => [each.innerText, each.offsetHeight, each.scrollHeight <= each.clientHeight])"
    )
    assert button == ["Invite a member", 36, True]
    assert menu == ["More", 36, True]


@pytest.mark.parametrize(("path", "height"), [("console/users", 36), ("docs", 40)])
def test_fields_keep_the_height_of_the_controls_beside_them(page, origin, passkey, path, height):
    page.resize(1280, 900)
    page.open(f"{origin}/{path}")
    fields = "[...document.querySelectorAll('input:not([type=hidden], [type=checkbox]), select')]"
    heights = page.run(f"{fields}.filter((each) => each.checkVisibility()).map((each) => each.offsetHeight)")
    assert {*heights} == {height}


def find(console: Browser, search: str) -> None:
    """Search for users with only the keyboard."""
    console.press("/")
    console.wait(lambda: console.run("document.activeElement.id") == "search")
    console.type(search)
    console.press("Enter")
    console.wait_for("starts with")


def test_passkey_changes_and_deletes_a_user(page, origin, passkey, alice, bob, database):
    page.open(f"{origin}/console/users/{alice.id}/addresses")
    fill(page, email=bob.email)
    page.click("Change addresses")
    page.wait_for("Another user has this email address.")
    # The refused form has a new challenge, and what was typed.
    assert page.run("document.querySelector('[name=email]').value") == bob.email
    fill(page, email="new@example.com")
    page.click("Change addresses")
    page.wait_for("Addresses saved.")
    press(page, "Delete", "Delete", "This user was deleted.")
    assert database.count("users", "id = %(id)s", id=alice.id) == 0


def test_security_key_makes_changes_and_deletes_a_webhook(page, origin, key, target, database):
    page.open(f"{origin}/console/webhooks/new")
    # The browser asks for the missing field before it asks for the key.
    page.click("Use Blue key")
    page.wait(lambda: page.run("document.activeElement.name") == "url")
    fill(page, url=f"{target.url}/hooks", description="Billing")
    page.run("for (const box of document.querySelectorAll('[type=checkbox]')) box.checked = false")
    page.click("Use Blue key")
    page.wait_for("Choose at least one event.")
    assert page.run("document.querySelector('[name=description]').value") == "Billing"
    page.run("document.querySelector('[name=user_created]').checked = true")
    page.click("Use Blue key")
    page.wait_for("Copy the secret now")
    webhook = database.one("SELECT id, events, description FROM webhooks")
    assert (webhook.events, webhook.description) == (["user.created"], "Billing")
    page.open(f"{origin}/console/webhooks/{webhook.id}")
    press(page, "Create a new secret", "Use Blue key", "Copy the secret now")
    page.open(f"{origin}/console/webhooks/{webhook.id}")
    press(page, "Delete", "Use Blue key", "Webhook deleted.")
    assert database.count("webhooks") == 0


def test_ban_of_twenty_users_goes_on_by_itself_but_not_after_its_page_was_left(
    console, origin, alice, database
):
    database.run(
        "INSERT INTO users (email, made_by) SELECT n || '@spam.example', 'signup' FROM generate_series(1, 20) AS n"
    )
    find(console, "@spam.example")
    ticked = "document.querySelectorAll('[name=id]:checked').length"
    console.run("document.querySelector('thead input').click()")
    assert console.run(ticked) == 20
    console.run("document.querySelector('[name=id]').click()")
    assert console.run("document.querySelector('thead input').indeterminate")
    console.run("document.querySelector('thead input').click()")
    assert console.run(ticked) == 20
    console.click("Ban")
    console.wait_for("Bans 20 users")
    console.click("Ban these users")
    console.wait_for("20 users banned")
    banned = "banned_until > now() AND email LIKE '%%@spam.example'"
    assert database.count("users", "banned_until > now()") == database.count("users", banned) == 20
    # Its page was left, so it must not go on without the administrator.
    console.open(f"{origin}/console/users")
    database.run("UPDATE bulk_acts SET position = 1")
    console.go(-1)
    console.wait_for("1 of 20 done.")
    assert console.run("document.querySelector('form button.danger').innerText") == "Continue"


@pytest.mark.parametrize("width", [320, 375, 890, 910, 1280])
def test_long_host_is_shortened_and_pushes_nothing_to_another_line(page, console, width):
    page.resize(width, 700, mobile=width < 900)
    places = """(() => {
      const [brand, badge, menu, search] = [".brand", "header .badge", ".sections", ".search"]
        .map((each) => document.querySelector(`.console ${each}`).getBoundingClientRect());
      const middle = (box) => Math.round(box.top + box.height / 2);
      const beside = innerWidth < 900 ? menu : search;
      return [brand, badge, beside].map(middle).concat(beside.right <= innerWidth, badge.width);
    })()"""
    page.run("document.querySelector('header .badge').textContent = 'id.example'")
    brand, badge, beside, fits, short = page.run(places)
    page.run(
        "document.querySelector('header .badge').textContent = 'login.staging.a-long-name.example.com:8443'"
    )
    brand, badge, beside, fits, long = page.run(places)
    assert (badge, beside, fits) == (brand, brand, True)
    assert long > 30
    assert width < 400 or long > short
