"""Text at 200 percent (WCAG 1.4.4): on a phone, in every language, nothing is cut off or runs under something else."""

import json

import pytest

from auth.html.page import LANGUAGES
from tests.support.openid import authorize_path, insert_public_client
from tests.system.browser.pages.test_stories import signed_in

pytest_plugins = ["tests.support.browser_fixtures"]

# An organization with a provider that is on, a domain without its record, and an invitation.
_INITECH = """
INSERT INTO organizations (id, slug, name) SELECT id, 'initech', 'Initech Consulting' FROM users LIMIT 1;
INSERT INTO memberships (user_id, organization_id, role, added_by)
SELECT u.id, o.id, 'owner', 'founder' FROM users AS u, organizations AS o;
INSERT INTO organization_domains (organization_id, domain, token, proved_at, checked_at, missing_since)
SELECT id, 'initech-consulting.example', md5(slug), now(), now(), now() FROM organizations;
INSERT INTO organization_invitations (id, organization_id, email, role, expires_at)
SELECT id, id, 'a.long.address@subdomain.example.com', 'member', now() + interval '1 day' FROM organizations;
INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret, enabled, disabled_at,
  organization_id, is_on, tried_at)
SELECT id, 'custom:initech', 'Initech', 'https://login.initech.example', 'x', 'x', false, now(), id, true, now()
  FROM organizations
"""

_API, _SCOPES = "https://mcp.example.com/mcp", ["notes:read", "notes:" + "write_" * 9]

_LARGE = "document.documentElement.style.fontSize = '32px'"
# The most lines that a rule of the password takes; whether its field has room for the button that shows it; and whether
# each field is as high as a line.
_MOST_LINES_OF_A_RULE = """
Math.max(...[...document.querySelectorAll(".rules li")].map(
  rule => rule.getBoundingClientRect().height / parseFloat(getComputedStyle(rule).lineHeight)))
"""
_HAS_ROOM_FOR_BUTTON = """
[...document.querySelectorAll(".reveal")].every(field => {
  const input = field.querySelector("input"), button = field.querySelector("button");
  return parseFloat(getComputedStyle(input).paddingRight) >= button.getBoundingClientRect().width - 1;
})
"""
_FIELDS_HOLD_A_LINE = """
[...document.querySelectorAll("input:not([type=hidden])")].every(
  field => field.clientHeight >= parseFloat(getComputedStyle(field).lineHeight || 0))
"""


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    scopes = json.dumps({_API: " ".join(_SCOPES)})
    return {"AUTH_ORGANIZATIONS": "users", "AUTH_SSO": "true", "AUTH_OAUTH_API_SCOPES": scopes}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("path", ["sign-up", "sign-in"])
def test_page_can_be_read_and_filled_in_at_twice_the_size(page, origin, language, path):
    page.speak(language)
    page.resize(375, 740)
    page.open(f"{origin}/{path}")
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    page.run(_LARGE)
    if path == "sign-up":
        assert page.run(_MOST_LINES_OF_A_RULE) <= 3.1
    assert page.run(_HAS_ROOM_FOR_BUTTON)
    page.run("document.querySelector('.reveal button').click()")
    assert page.run(_HAS_ROOM_FOR_BUTTON)
    assert page.run(_FIELDS_HOLD_A_LINE)
    assert page.run("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_of_an_organization_fit_a_phone_at_twice_the_size(page, origin, alice, database, language):
    signed_in(page, origin, alice)
    database.run(_INITECH)
    page.speak(language)
    page.resize(375, 740)
    initech = "account/organizations/initech"
    own_pages = [
        f"{initech}/{each}"
        for each in ("sign-in", "requirement", "requirement/age", "sign-in/requirement", "end")
    ]
    for path in ("account", initech, *own_pages):
        page.open(f"{origin}/{path}")
        page.run(_LARGE)
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), path


@pytest.mark.parametrize("language", LANGUAGES)
def test_page_of_consent_to_an_api_fits_a_phone_at_twice_the_size(page, origin, alice, database, language):
    signed_in(page, origin, alice)
    page.speak(language)
    page.resize(375, 740)
    agent = insert_public_client(database, is_dynamic=True, name="Notes")
    page.open(origin + authorize_path(agent, scope=" ".join(_SCOPES), resource=_API))
    page.run(_LARGE)
    assert all(scope in page.text for scope in _SCOPES)
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
