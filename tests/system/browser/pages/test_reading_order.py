"""What a screen reader says, in order: Chromium's accessibility tree of the most common pages."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.browser import fill
from tests.support.openid import authorize_path, insert_client
from tests.support.page_tour import ALICE, WRONG
from tests.support.relying_parties import sign_in
from tests.support.users import register

pytest_plugins = ["tests.support.browser_fixtures"]

# A screen reader says the role and the name of each of these; of other elements, it says the texts.
_NAMED = {
    *("heading", "link", "button", "textbox", "checkbox"),
    *("DisclosureTriangle", "DisclosureTriangleGrouped"),
}
_ANNOUNCED = {"alert", "status"}

Node = dict[str, Any]


@pytest.fixture(scope="module")
def host() -> str:
    return "localhost"


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {"AUTH_ORGANIZATIONS": "users"}


@pytest.fixture
def heard(page):
    """Return a function for what is said before the footer: texts, and the role, name and state of the rest."""

    def heard() -> list[str]:
        nodes = page.accessibility_tree()
        return list(_spoken(nodes[0], {node["nodeId"]: node for node in nodes}))

    return heard


def _spoken(node: Node, nodes: dict[str, Node]) -> Iterator[str]:
    role, name = _value(node, "role"), " ".join(_value(node, "name").split())
    if role == "contentinfo":
        return
    if node["ignored"] or role not in _NAMED | _ANNOUNCED | {"StaticText"}:
        for child in node["childIds"]:
            yield from _spoken(nodes[child], nodes)
    elif role in _ANNOUNCED:
        yield f"{role}: {' '.join(_texts(node, nodes))}"
    elif role == "StaticText":
        yield name
    else:
        yield f"{role}: {name}{_state(node)}"


def _texts(node: Node, nodes: dict[str, Node]) -> Iterator[str]:
    if _value(node, "role") == "StaticText":
        yield _value(node, "name").strip()
    else:
        for child in node["childIds"]:
            yield from _texts(nodes[child], nodes)


def _state(node: Node) -> str:
    properties = {each["name"]: each["value"].get("value") for each in node.get("properties", ())}
    marks = [mark for mark in ("invalid", "focused") if properties.get(mark) in (True, "true")]
    description = _value(node, "description")
    return "".join(f", {each}" for each in (*marks, *([f"({description})"] if description else [])))


def _value(node: Node, member: str) -> str:
    return node.get(member, {}).get("value", "")


def test_error_of_the_sign_in_is_said_with_its_field_and_below_it(page, origin, heard, site, service_role):
    register(site, service_role, ALICE)
    page.open(f"{origin}/sign-in")
    page.wait(lambda: page.run("document.activeElement.matches('input')"))
    assert heard() == [
        "Acme",
        "heading: Sign in to Acme",
        "button: Sign in with a passkey",
        "or",
        "Email or phone",
        "textbox: Email or phone, focused",
        "Password",
        "textbox: Password",
        "button: Show, (Password)",
        "button: Sign in",
        "button: Forgot password?",
        "button: Send me a code instead",
        "New here?",
        "link: Create an account",
    ]
    fill(page, email=ALICE, password=WRONG)
    page.click("Sign in")
    page.wait_for("match. Try again")
    page.wait(lambda: page.run("document.activeElement.matches('input')"))
    problem = "That email and password don’t match. Try again or reset your password."
    assert heard()[7] == f"textbox: Password, invalid, focused, ({problem})"
    assert heard()[9] == f"alert: {problem}"


def test_sign_in_names_the_application_and_consent_names_the_account_before_the_scopes(
    page, origin, heard, site, service_role, database, application
):
    alice = register(site, service_role, ALICE)
    client_id = insert_client(database, application, name="Grafana")
    page.open(origin + authorize_path(client_id, redirect_uri=application, scope="openid email groups"))
    assert heard()[1:4] == ["heading: Sign in to Acme", "to continue to", "Grafana"]
    sign_in(page, alice)
    page.wait_for("Grafana wants to:")
    assert heard() == [
        "Acme",
        "heading: Sign in to Grafana",
        *("You’re signed in as", ALICE, ". Not you?"),
        "button: Use another account",
        *("Grafana", "wants to:"),
        "See your email address",
        "See your groups",
        *("Next, you’ll be taken to an app on this device:", urlsplit(application).netloc, "."),
        "button: Allow",
        "button: Cancel",
        "Access ends when you sign out, remove it in your account, or don’t use it for 30 days.",
    ]


def test_page_of_an_organization_says_how_many_members_it_has_and_names_the_menu_of_each_row(
    page, origin, heard, site, service_role, database
):
    alice = register(site, service_role, ALICE)
    page.open(f"{origin}/sign-in")
    sign_in(page, alice)
    page.wait_for("Your account")
    database.run(
        """INSERT INTO organizations (id, slug, name) SELECT id, 'initech', 'Initech' FROM users;
           INSERT INTO memberships (user_id, organization_id, role, added_by) SELECT id, id, 'owner', 'founder' FROM users;
           INSERT INTO organization_invitations (id, organization_id, email, role, expires_at)
           SELECT id, id, 'dave@example.com', 'member', date_trunc('day', now(), 'UTC') + interval '2 days - 1 second'
             FROM users"""
    )
    page.open(f"{origin}/account/organizations/initech")
    assert heard()[:17] == [
        "Acme",
        "heading: Initech",
        "link: Invitations",
        "link: Settings",
        "link: History",
        "heading: Members 1",
        "link: Invite",
        ALICE,
        "You",
        "Owner",
        f"DisclosureTriangleGrouped: Actions for {ALICE}",
        "heading: Invitations",
        "1 of 100 open",
        "dave@example.com",
        "Member ·",
        "expires tomorrow",
        "DisclosureTriangleGrouped: Actions for dave@example.com",
    ]
