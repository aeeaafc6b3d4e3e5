"""Every page that shows a provider, with each built-in provider and one that is not, alone and together."""

import re
from typing import Any

import pytest

from auth.core.settings.presets import PRESETS
from auth.core.text import names
from auth.core.tokens import one_time
from tests.support.cases import cases
from tests.support.links import path
from tests.support.pages import Visitor, words
from tests.support.users import NEW_PASSWORD

CUSTOM = "okta"
ALL = [*PRESETS, CUSTOM]
each_choice = cases("chosen", [[name] for name in ALL] + [ALL])
# A customer's provider, and one that has been removed from the settings.
OTHERS = {"sso:6f1c3f0e-5a4b-4c2d-9e8f-0a1b2c3d4e5f": "SSO", "former": "former"}
# A mark of our own in SVG, or the first letter of the title.
MARK = r'<svg class="mark" [^>]*>.+?</svg>|<span class="mark initial" aria-hidden="true">[A-Z]</span>'


@pytest.fixture
def app_with(make_app):
    def app_with(chosen: list[str]) -> Any:
        values = {"CLIENT_ID": "id", "CLIENT_SECRET": "secret"}
        settings = {
            f"AUTH_PROVIDER_{name.upper()}_{key}": value for name in chosen for key, value in values.items()
        }
        if CUSTOM in chosen:
            settings["AUTH_PROVIDER_OKTA_ISSUER"] = "https://okta.example.com"
        return make_app(AUTH_SSO="true", **settings)

    return app_with


@pytest.fixture
def identities(alice, database) -> dict[str, str]:
    """The ids of Alice's identities, of every provider."""
    for provider in [*ALL, *OTHERS]:
        database.run(
            "INSERT INTO identities (user_id, provider, subject, identity_data)"
            ' VALUES (%(id)s, %(provider)s, \'alice\', \'{"sub": "alice", "name": "Alice"}\')',
            id=alice.id,
            provider=provider,
        )
    return {row.provider: row.id for row in database.all("SELECT provider, id FROM identities")}


@pytest.fixture
def link(alice, identities, outbox) -> str:
    """The link of a notice to Alice."""
    assert alice.sign_in().put("/user", json={"password": NEW_PASSWORD}).status_code == 200
    return path("undo", outbox.last(alice.email, "password_changed").token)


def titles(chosen: list[str]) -> list[str]:
    found_titles = [names.provider(name, {}) for name in chosen]
    assert all(found_titles)
    return [title for title in found_titles if title]


def marks(html: str) -> int:
    return len(re.findall(MARK, html))


@each_choice
@cases("url", ["/sign-in", "/sign-up"])
def test_visitor_may_sign_in_with_each_provider(app_with, chosen, url):
    visitor = Visitor(app_with(chosen))
    for last_used in ("", chosen[0]):
        visitor.plant("latchkey_last_used", last_used)
        page = visitor.visit(url)
        assert page.status == 200
        links = re.findall(r'<a class="button other provider-.+?</a>', page.text)
        assert len(links) == len(chosen)
        for link in links:
            assert re.search(rf">(?:{MARK})", link), link
        for title in titles(chosen):
            assert f"Continue with {title}" in page.text


@each_choice
def test_account_connects_each_provider(app_with, bob, chosen):
    page = Visitor(app_with(chosen)).with_session_of(bob).visit("/account")
    assert page.status == 200
    for title in titles(chosen):
        assert re.search(rf'<button class="add">(?:{MARK})Connect {title}</button>', page.text)


@each_choice
def test_account_shows_confirms_and_removes_each_identity(app_with, alice, identities, chosen):
    visitor = Visitor(app_with(chosen)).with_session_of(alice)
    account, confirm = visitor.visit("/account"), visitor.visit("/account/confirm")
    changes = visitor.visit("/account/changes")
    assert (account.status, confirm.status, changes.status) == (200, 200, 200)
    for name, title in zip(chosen, titles(chosen), strict=True):
        assert re.search(rf'<div class="what">(?:{MARK})<strong>{title}</strong>', account.text)
        assert re.search(rf">(?:{MARK})Continue with {title}</a>", confirm.text)
        assert title in words(changes)
        removal = visitor.visit(f"/account/remove?kind=identity&id={identities[name]}")
        assert (removal.status, title in words(removal)) == (200, True)


@each_choice
def test_linking_asks_for_each_provider(app_with, alice, identities, database, chosen):
    session = alice.open_session()
    for name, title in zip(chosen, titles(chosen), strict=True):
        token = one_time.new_token()
        database.run(
            "INSERT INTO oauth_flows (id, state_hash, provider, secrets, user_id, session_id, expires_at)"
            " VALUES (gen_random_uuid(), %(hash)s, %(name)s, '', %(id)s, %(session)s, now() + interval '1 hour')",
            hash=one_time.hash_token(token),
            name=name,
            id=alice.id,
            session=session.id,
        )
        page = Visitor(app_with(chosen)).visit(f"/link-identity?flow={token}")
        assert (page.status, f"<h1>Connect {title}" in page.text) == (200, True)


@each_choice
def test_link_of_a_notice_names_each_recent_identity(app_with, link, chosen):
    page = Visitor(app_with(chosen)).visit(link)
    assert page.status == 200
    for title in titles([*ALL, *OTHERS]):
        assert title in words(page)


@each_choice
def test_console_names_each_provider(app_with, carol, alice, identities, chosen):
    operator = Visitor(app_with(chosen)).with_session_of(carol)
    user = operator.visit(f"/console/users/{alice.id}")
    for page in ("", "/users", "/settings", "/audit", "/messages", "/providers", "/applications"):
        assert operator.visit(f"/console{page}").status == 200, page
    users = operator.visit("/console/users")
    # No provider has the identity of SSO any more.
    others = [title for title in OTHERS.values() if title != "SSO"]
    for title in [*titles(ALL), *others, "a deleted provider"]:
        assert (title in words(user), title in words(users)) == (True, True), title
    for name, title in zip(chosen, titles(chosen), strict=True):
        assert f'<option value="{name}">{title}</option>' in users.text
        assert alice.email in words(operator.visit(f"/console/users?provider={name}"))
        settings = words(operator.visit("/console/settings")).replace(" ", "")
        assert f"AUTH_PROVIDER_{name.upper()}_CLIENT_ID" in settings
