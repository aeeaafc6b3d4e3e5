"""Consent for one resource (RFC 8707) does not count for another one."""

import html
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from auth.core.tokens import client_ids
from tests.support.cases import cases
from tests.support.documents import CALLBACK, HOST, URL
from tests.support.openid import RESOURCE, USERINFO, Client, answer, claims_of, make_client
from tests.support.openid_flow import Application, allow
from tests.support.pages import Visitor, words

OTHER = "https://payroll.example.com/mcp"


@pytest.fixture
def make_agent(make_app, database):
    """Return a client whose metadata document has been fetched."""

    def make(**settings: str) -> Application:
        app = make_app(AUTH_OAUTH_CLIENT_DOCUMENTS=HOST, **settings)
        columns = {"id": client_ids.row_id(URL), "metadata_url": URL, "fetched_until": "infinity"}
        make_client(database, CALLBACK, token_endpoint_auth_method="none", is_dynamic=True, **columns)
        return Application(app.test_client(), Client(URL, None, "none"), CALLBACK)

    return make


@pytest.fixture
def agent(make_agent):
    return make_agent()


@pytest.fixture
def visitor(agent, alice):
    return Visitor(agent.http.application).with_session_of(alice)


def asks(page, resource=None):
    """Whether the page asks for consent, and names the resource."""
    text = words(page)
    is_named = f"It gets access to {resource} ." in text if resource else "It gets access to" not in text
    return page.status == 200 and urlsplit(page.url).path == "/oauth/consent" and is_named


def error_without_page(agent, visitor, **changes):
    """Return the error of a request without a page, or None if it brings a code."""
    page = agent.begin(visitor, prompt="none", **changes)
    # A page links the answer with an error to a client that anyone may have registered.
    link = re.search(rf'href="({re.escape(agent.redirect_uri)}\?[^"]+)"', page.text)
    members = answer(html.unescape(link[1]) if link else page.url, agent.redirect_uri)
    assert ("code" in members) != ("error" in members), members
    return members.get("error")


def audience(tokens):
    return claims_of(tokens["access_token"])["aud"]


def resources_of_sessions(database):
    rows = database.all("SELECT resource FROM sessions WHERE grant_id IS NOT NULL ORDER BY created_at")
    return [row.resource for row in rows]


@cases(
    ("first", "second"),
    [
        (None, OTHER),
        (RESOURCE, OTHER),
        (RESOURCE, f"{RESOURCE}admin"),
        (RESOURCE, "https://API.example.com/"),
    ],
)
def test_resource_that_the_user_was_not_asked_about_is_asked_for_once(
    agent, visitor, database, first, second
):
    database.run("DELETE FROM oauth_grants")
    assert audience(agent.tokens(visitor, resource=first)) == (first or USERINFO)
    assert error_without_page(agent, visitor, resource=second) == "consent_required"
    assert asks(agent.begin(visitor, resource=second), second)
    assert resources_of_sessions(database) == [first]
    assert audience(agent.redeem(agent.returned(allow(visitor))["code"]).json) == second
    for resource in (first, second, None):
        assert error_without_page(agent, visitor, resource=resource) is None
        assert "code" in agent.returned(agent.begin(visitor, resource=resource))
    assert database.value("SELECT scopes FROM oauth_grants") == ["openid", "email"]


def test_wider_scopes_for_one_resource_are_not_wider_for_another(agent, visitor):
    agent.tokens(visitor, resource=RESOURCE)
    agent.tokens(visitor, resource=OTHER, scope="openid email groups")
    agent.tokens(visitor, scope="openid email phone")
    assert error_without_page(agent, visitor, resource=OTHER, scope="openid groups") is None
    for scope in ("openid groups", "openid phone"):
        assert error_without_page(agent, visitor, resource=RESOURCE, scope=scope) == "consent_required"
    assert asks(agent.begin(visitor, resource=RESOURCE, scope="openid phone"), RESOURCE)
    agent.redeem(agent.returned(allow(visitor))["code"])
    # The resource has what its consents name together.
    assert error_without_page(agent, visitor, resource=RESOURCE, scope="openid email phone") is None
    assert (
        error_without_page(agent, visitor, resource=RESOURCE, scope="openid email groups")
        == "consent_required"
    )


@pytest.mark.parametrize("asked", [RESOURCE, RESOURCE.removesuffix("/")])
def test_consent_for_a_host_is_for_its_root(agent, visitor, database, asked):
    """An empty path is "/" (RFC 3986, section 6.2.3), and the audience is what the agent has asked for."""
    assert audience(agent.tokens(visitor, resource=RESOURCE)) == RESOURCE
    assert error_without_page(agent, visitor, resource=asked) is None
    tokens = agent.tokens(visitor, resource=asked)
    refreshed = agent.refresh(tokens["refresh_token"], resource=RESOURCE).json
    assert {audience(tokens), audience(refreshed)} == {asked}


def test_consent_counts_once_the_client_has_its_tokens(agent, visitor):
    agent.tokens(visitor)
    code = agent.code(visitor, resource=OTHER)
    assert error_without_page(agent, visitor, resource=OTHER) == "consent_required"
    agent.redeem(code)
    assert error_without_page(agent, visitor, resource=OTHER) is None


def test_consent_to_a_changed_document_allows_its_scopes_alone(agent, visitor, database):
    agent.tokens(visitor, scope="openid email groups")
    database.run("UPDATE oauth_clients SET updated_at = now()")
    assert error_without_page(agent, visitor, scope="openid") == "consent_required"
    agent.tokens(visitor, scope="openid")
    assert error_without_page(agent, visitor, scope="openid") is None
    for scope in ("openid groups", "openid email", "email"):
        assert error_without_page(agent, visitor, scope=scope) == "consent_required"
    agent.tokens(visitor, scope="openid email")
    # Without another change, consents add up.
    assert error_without_page(agent, visitor, scope="openid email") is None
    assert database.value("SELECT scopes FROM oauth_grants") == ["openid", "email"]


def test_consent_page_of_the_application_is_told_the_resource(make_agent, alice, database):
    agent = make_agent(AUTH_OAUTH_CONSENT_URL="https://app.example.com/consent")
    app = agent.http.application
    visitor, session = Visitor(app), alice.open_session(app.test_client())

    def begin(resource):
        """Begin a request, and return its path with the object that the page reads."""
        url = agent.begin(visitor, resource=resource).url
        path = f"/oauth/authorizations/{parse_qs(urlsplit(url).query)['authorization_id'][0]}"
        return path, session.get(path).json

    for resource in (None, RESOURCE, OTHER):
        path, request = begin(resource)
        assert (request["client"]["id"], request["resource"]) == (URL, resource)
        url = session.post(f"{path}/consent", json={"action": "approve"}).json["redirect_url"]
        agent.redeem(answer(visitor.visit(url).url, CALLBACK)["code"])
    assert resources_of_sessions(database) == [None, RESOURCE, OTHER]
    statement = (
        "SELECT details ->> 'resource' AS resource FROM audit_log WHERE action = 'grant_added' ORDER BY at"
    )
    assert [row.resource for row in database.all(statement)] == [None, RESOURCE, OTHER]
    for resource in (None, RESOURCE, OTHER):
        assert begin(resource)[1].keys() == {"redirect_url"}
