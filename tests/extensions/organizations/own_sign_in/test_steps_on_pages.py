"""Every page on which a member reads that an organization asks for another sign-in or a second step: it has the button."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.contract import page_routes
from tests.support.openid_flow import make_application
from tests.support.own_providers import DOMAIN, PATH
from tests.support.pages import Visitor, words

PRIMARY = re.compile(r'<a class="button" href="[./]*([^"]+)">')
# What a member may do, and what is no page of an organization, whatever it requires.
FREE = {"/account/organizations/new", "/account/organizations/{slug}/leave"}
REQUIREMENTS = {
    "second step": ("level = 'aal2'", "Acme asks for a second step.", "second-step"),
    "sign-in": (
        "needs_own_provider = true",
        "Acme asks you to sign in with your company’s account.",
        "account/company",
    ),
    "sign-in of others": (
        "needs_own_provider = true",
        "This account can’t do that at the moment: ask one of the organization’s owners.",
        None,
    ),
    "recent sign-in": ("max_age = '15 minutes'", "Acme asks you to sign in again.", "account/confirm"),
}

# What the organization's own pages say instead of a sentence.
TITLES = {
    "Acme asks you to sign in again.": (
        "Sign in again to open Acme",
        "Acme limits how long a sign\u2011in counts. You’re still signed in everywhere else.",
    )
}


@pytest.fixture(params=REQUIREMENTS)
def requirement(request, on, alice, database):
    """Acme requires something of its owner Alice, who signed in with her password an hour ago: the sentence, and the page."""
    columns, sentence, step = REQUIREMENTS[request.param]
    database.run(f"UPDATE organizations SET {columns}")
    if step is None:
        database.run("UPDATE users SET email = 'alice@other.example' WHERE id = %(id)s", id=alice.id)
    return sentence, step


@pytest.fixture
def visitor(service, alice, database):
    visitor = Visitor(service.app).with_session_of(alice)
    database.run("UPDATE sessions SET created_at = created_at - interval '1 hour'")
    return visitor


def assert_leads_to(page, step, back):
    """The page has one primary button, to the page of the step, which comes back. Without a step, it is the account."""
    (primary,) = PRIMARY.findall(page.text)
    url = urlsplit(primary)
    if step:
        assert (url.path, parse_qs(url.query)) == (step, {"next": [back]})
    else:
        assert primary == "account#organizations"


def test_every_page_of_an_organization_leads_to_what_it_asks_for(
    requirement, service, visitor, provider, bob, database
):
    sentence, step = requirement
    ids = {"slug": "acme", "user_id": bob.id, "member_id": bob.id, "domain": DOMAIN, "provider": provider}
    ids |= {"at": "other", "act": "test", "invitation_id": bob.id}
    doors = [
        (method, path)
        for method, path, view in page_routes(service.app)
        if path.startswith("/account/organizations/") and path not in FREE
    ]
    assert len(doors) >= 30
    before = database.everything("organizations", "memberships", "identity_providers", "organization_domains")
    for method, path in doors:
        path = path.format(**ids)
        visitor.visit("/account/organizations/new")
        page = visitor.visit(path) if method == "get" else visitor.send(path)
        assert (page.status, page.url.partition("?")[0]) == (403, visitor.origin + path), (method, path)
        text = words(page)
        for each in TITLES.get(sentence, ("You don’t have access to Acme yet", sentence)):
            assert each in text, (method, path)
        assert "That didn’t work" not in text
        assert_leads_to(page, step, path.removeprefix("/account/"))
    after = database.everything("organizations", "memberships", "identity_providers", "organization_domains")
    assert after == before


def test_account_leads_to_what_the_organization_asks_for(requirement, visitor):
    sentence, step = requirement
    page = visitor.visit("/account")
    assert sentence in words(page)
    assert (f"{step}?next=organizations%2Facme" in page.text) is (step is not None)


def test_page_of_an_invitation_leads_a_member_to_what_the_organization_asks_for(requirement, visitor):
    sentence, step = requirement
    page = visitor.visit("/organizations/acme/join")
    assert sentence in words(page)
    link = f'class="button" href="../../{step}?next=organizations%2Facme%2Fjoin"'
    assert (link in page.text) is (step is not None)


def test_page_of_consent_leads_to_what_the_organization_asks_for(
    requirement, service, visitor, client, database
):
    sentence, step = requirement
    application = make_application(client, database, name="Wiki")
    page = application.begin(visitor, scope="openid organization:acme")
    assert sentence in words(page)
    assert (f'class="button" href="../{step}?next=' in page.text) is (step is not None)


def test_page_of_a_step_comes_back_where_the_member_was(on, visitor, database):
    database.run("UPDATE organizations SET needs_own_provider = true")
    visitor.visit(f"{PATH}/invite")
    visitor.visit(visitor.link_to("account/company"))
    page = visitor.press("account/company")
    assert page.url.partition("?")[0].endswith(f"{PATH}/invite")
    assert "Invite" in words(page)


def test_refusal_on_a_page_is_in_the_log(on, visitor, alice, database):
    database.run("UPDATE organizations SET needs_own_provider = true")
    visitor.visit("/account/organizations/new")
    assert visitor.send(f"{PATH}/name", name="Other").status == 403
    row = database.one(
        "SELECT reason, user_id::text FROM audit_log WHERE action = 'change_refused' ORDER BY at DESC LIMIT 1"
    )
    assert row == ("organization_sign_in_needed", alice.id)


def test_program_still_gets_the_error_as_json(on, visitor, provider, client, database):
    database.run("UPDATE organizations SET needs_own_provider = true")
    response = visitor.client.get(
        PATH,
        headers={"Accept": "application/json", "Cookie": f"latchkey={visitor.session_cookie.value}"},
    )
    assert response.status_code == 403
    assert response.json["error_code"] == "organization_sign_in_needed"
    assert response.json["providers"] == [f"sso:{provider}"]


def test_stranger_reads_nothing_of_what_the_organization_asks_for(requirement, service, bob):
    visitor = Visitor(service.app).with_session_of(bob)
    page = visitor.visit(PATH)
    assert page.status == 404
    assert "Acme" not in words(page)
