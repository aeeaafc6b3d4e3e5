"""What a screen reader says, in order: Chromium's accessibility tree of the pages that everybody meets."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support import factors
from tests.support.browser import fill
from tests.support.openid import authorize_path, insert_client
from tests.support.page_tour import ALICE, DAVE, WRONG
from tests.support.relying_parties import sign_in
from tests.support.users import PASSWORD, register

pytest_plugins = ["tests.support.browser_fixtures"]

# Each is said at once, with its name. Of all others, the texts are said.
_NAMED = {"heading", "link", "button", "textbox", "checkbox", "DisclosureTriangle"}
_ANNOUNCED = {"alert", "status"}

Node = dict[str, Any]


@pytest.fixture(scope="module")
def host() -> str:
    return "localhost"


@pytest.fixture
def heard(page):
    """Return what is said before the footer: texts, and the role, name and state of the rest."""

    def heard() -> list[str]:
        nodes = page.accessibility_tree()
        return list(_said(nodes[0], {node["nodeId"]: node for node in nodes}))

    return heard


def _said(node: Node, nodes: dict[str, Node]) -> Iterator[str]:
    role, name = _value(node, "role"), " ".join(_value(node, "name").split())
    if role == "contentinfo":
        return
    if node["ignored"] or role not in _NAMED | _ANNOUNCED | {"StaticText"}:
        for child in node["childIds"]:
            yield from _said(nodes[child], nodes)
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


def test_sign_in_says_what_was_wrong_before_the_form_and_with_the_field(
    page, here, heard, site, service_role
):
    register(site, service_role, ALICE)
    page.open(f"{here}/sign-in")
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
    problem = "That email and password don’t match. Try again or reset your password."
    assert heard()[1:8] == [
        "heading: Sign in to Acme",
        f"alert: {problem}",
        "button: Sign in with a passkey",
        "or",
        "Email or phone",
        "textbox: Email or phone",
        "Password",
    ]
    assert heard()[8] == f"textbox: Password, invalid, focused, ({problem})"


def test_sign_up_says_the_rules_of_passwords_with_the_field_and_where_the_code_is(page, here, heard):
    page.open(f"{here}/sign-up")
    rules = ["At least 8 characters", "A lowercase letter", "An uppercase letter", "A number", "A symbol"]
    assert heard() == [
        "Acme",
        "heading: Create your account",
        "Email or phone",
        "textbox: Email or phone, focused",
        "Password",
        f"textbox: Password, ({' '.join(rules)})",
        "button: Show, (Password)",
        *rules,
        "button: Create account",
        "Already have an account?",
        "link: Sign in",
    ]
    fill(page, email=DAVE, password=PASSWORD)
    page.click("Create account")
    page.wait_for("Check your inbox")
    assert heard() == [
        "Acme",
        "heading: Check your inbox",
        "We emailed you a code. Enter it to confirm your email.",
        DAVE,
        f"link: Change, ({DAVE})",
        "Six-digit code",
        "textbox: Six-digit code, focused",
        "button: Continue",
        "button: Send a new code",
        "link: I’ve opened the link",
        "Didn’t get it? Check your spam folder and the address. The link in the email works too.",
        "link: Back to sign in",
    ]


def test_second_step_says_which_code_and_what_else_there_is(page, here, heard, site, service_role):
    alice = register(site, service_role, ALICE)
    factors.set_up(alice.sign_in(client=site), "Phone")
    page.open(f"{here}/sign-in")
    sign_in(page, alice)
    page.wait_for("One more step")
    assert heard() == [
        "Acme",
        "heading: One more step",
        "Enter the code from your authenticator app.",
        "Six-digit code",
        "textbox: Six-digit code, focused",
        "button: Continue",
        "DisclosureTriangle: Lost access?",
        "Didn’t set this up?",
        "link: Forgot your password?",
        "button: Use another account",
    ]


def test_sign_in_names_the_application_and_consent_the_account_before_what_it_gives(
    page, here, heard, site, service_role, database, application
):
    alice = register(site, service_role, ALICE)
    client_id = insert_client(database, application, name="Grafana")
    page.open(here + authorize_path(client_id, redirect_uri=application, scope="openid email groups"))
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
        "It keeps access until you sign out here, remove it in your account, or don’t use it for 30 days.",
        "button: Allow",
        "button: Cancel",
    ]


def test_account_says_the_state_of_each_item_and_names_it_in_its_act(page, here, heard, site, service_role):
    alice = register(site, service_role, ALICE)
    alice.sign_in(client=site)
    page.open(f"{here}/sign-in")
    sign_in(page, alice)
    page.wait_for("Your account")
    assert heard() == [
        "Acme",
        "button: Sign out",
        "heading: Your account",
        "heading: Profile",
        *("Name", "Not set", "link: Edit Name"),
        *("Email", ALICE, "link: Change Email"),
        *("Phone", "Not set", "link: Add Phone"),
        "heading: Security",
        *("Password", "Set", "link: Change Password"),
        *("Two-step verification", "Off"),
        "Add an authenticator app or a passkey, so that a stolen password isn’t enough to sign in.",
        "link: Add an authenticator app",
        "link: Add a passkey",
        *("Recent changes", "No recent changes", "link: Show Recent changes"),
        "heading: Devices",
        *("Sign out everywhere else", "If you don’t recognize one, change your password too."),
        "button: Sign out All other devices",
        *("Chrome on Linux", "This device", "127.0.0.1 ·", "just now"),
        *("Python", "127.0.0.1 ·", "just now", "button: Sign out Python"),
        "heading: Your data",
        *("Download your data", "Get a copy of your data", "link: Download Download your data"),
        "Delete your account",
        "Permanently delete your account and all its data",
        "link: Delete Delete your account",
    ]
