"""POST /oauth/token decides about an organization as the request did, whichever grant asks."""

from typing import Any

import pytest

from tests.support.openid import claims_of
from tests.support.openid_flow import allow, make_application
from tests.support.pages import words
from tests.support.token_grants import CALLBACK, ORDER, Situation

USERS = ORDER[:-1]
REFUSED = "invalid_grant"


@pytest.fixture
def situation(client, database, bob, service_role, browser, join, acme) -> Situation:
    columns = {
        "redirect_uris": [CALLBACK],
        "grant_types": [*ORDER],
        "scopes": ["openid", "organization", "read"],
    }
    wiki = make_application(client, database, name="Wiki", **columns)
    join(bob, acme)
    return Situation(client, wiki, browser(bob), bob, service_role, wiki.client)


def outcome(response: Any) -> Any:
    """Return the error of a response, or its scope with the short name of the organization in its token."""
    if response.status_code != 200:
        return response.json["error"]
    claims = claims_of(response.json["access_token"])
    return response.json["scope"], claims.get("organization", {}).get("slug")


def test_named_organization_is_no_scope_of_an_api(situation):
    wiki, visitor = situation.application, situation.visitor
    page = wiki.begin(visitor, scope="openid organization:acme")
    assert (page.status, "organization:acme" in words(page)) == (200, False)
    assert wiki.redeem(wiki.returned(allow(visitor))["code"]).status_code == 200
    account = words(visitor.visit("/account"))
    assert ("Wiki" in account, "organization:acme" in account) == (True, False)


@pytest.mark.parametrize("scope", ["openid organization", "openid organization:acme"])
@pytest.mark.parametrize("grant", USERS)
class TestScope:
    def test_token_is_for_the_organization_of_the_request(self, situation, grant, scope):
        assert outcome(situation.prepared(grant, scope=scope)()) == (scope, "acme")

    def test_organization_that_was_dropped_since_is_in_no_token(self, situation, grant, scope):
        ask = situation.prepared(grant, scope=scope)
        situation.change("PUT", "/admin/oauth/clients/{client}", {"scopes": ["openid", "read"]})
        assert outcome(ask()) == ("openid", None)

    def test_member_who_is_removed_gets_no_token(self, situation, grant, scope, acme):
        ask = situation.prepared(grant, scope=scope)
        situation.change("DELETE", f"{acme}/members/{{user}}")
        assert outcome(ask()) == REFUSED

    def test_ended_organization_gives_no_token(self, situation, grant, scope, acme):
        ask = situation.prepared(grant, scope=scope)
        situation.change("DELETE", acme)
        # The code waits, and the session has ended.
        assert outcome(ask()) == (REFUSED if grant == "refresh_token" else "access_denied")

    def test_client_for_members_of_another_one_gives_no_token(self, situation, grant, scope, beta):
        ask = situation.prepared(grant, scope=scope)
        change = {"organization_id": beta.rpartition("/")[2]}
        situation.change("PUT", "/admin/oauth/clients/{client}", change)
        assert outcome(ask()) == REFUSED


@pytest.mark.parametrize(
    ("scope", "answer"),
    [
        ("openid", ("openid", None)),
        ("organization:acme", ("organization:acme", "acme")),
        ("openid organization:acme admin", ("openid organization:acme", "acme")),
        # The user chose none, and this one not.
        ("organization", "invalid_scope"),
        ("organization:beta", "invalid_scope"),
        ("organization:acme organization:beta", "invalid_scope"),
        ("organization:", "invalid_scope"),
        ("organizations", "invalid_scope"),
    ],
)
def test_refresh_names_no_other_organization(situation, beta, scope, answer):
    ask = situation.prepared("refresh_token", scope="openid organization:acme")
    assert outcome(ask(scope=scope)) == answer
    assert outcome(ask()) == ("openid organization:acme", "acme")


@pytest.mark.parametrize("scope", ["organization", "organization:acme", "organizations"])
def test_client_itself_is_in_no_organization(situation, scope):
    answer = situation.prepared("client_credentials")(scope=scope)
    expected = ("organization", None) if scope == "organization" else "invalid_scope"
    assert outcome(answer) == expected
