"""Consent for one resource (RFC 8707) does not count for another one."""

import html
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from auth.core.tokens import client_ids
from tests.support.cases import cases
from tests.support.documents import CALLBACK, HOST, URL
from tests.support.openid import RESOURCE, USERINFO, Client, answer, assert_refused, claims_of, make_client
from tests.support.openid_flow import Application, allow, make_application
from tests.support.pages import Visitor, words
from tests.support.server import at_once

OTHER = "https://payroll.example.com/mcp"


@pytest.fixture
def make_agent(make_app, database):
    """Return a client with a metadata document, as it is in the database once that has been fetched."""

    def make(**settings: str) -> Application:
        app = make_app(AUTH_OAUTH_CLIENT_DOCUMENTS=HOST, **settings)
        own = {"id": client_ids.row_id(URL), "metadata_url": URL, "fetched_until": "infinity"}
        make_client(database, CALLBACK, token_endpoint_auth_method="none", is_dynamic=True, **own)
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
    said = words(page)
    is_named = f"It gets access to {resource} ." in said if resource else "It gets access to" not in said
    return page.status == 200 and urlsplit(page.url).path == "/oauth/consent" and is_named


def silent(agent, visitor, **changes):
    """Return the error of a request without a page, or None if it brings a code."""
    page = agent.begin(visitor, prompt="none", **changes)
    # A page links the answer with an error to a client that anyone may have registered.
    linked = re.search(rf'href="({re.escape(agent.redirect_uri)}\?[^"]+)"', page.text)
    told = answer(html.unescape(linked[1]) if linked else page.url, agent.redirect_uri)
    assert ("code" in told) != ("error" in told), told
    return told.get("error")


def audience(tokens):
    return claims_of(tokens["access_token"])["aud"]


def opened_for(database):
    rows = database.all("SELECT resource FROM sessions WHERE grant_id IS NOT NULL ORDER BY created_at")
    return [row.resource for row in rows]


@cases(
    ("allowed", "asked"),
    [
        (None, OTHER),
        (RESOURCE, OTHER),
        (RESOURCE, RESOURCE.removesuffix("/")),
        (RESOURCE, f"{RESOURCE}admin"),
        (RESOURCE, "https://API.example.com/"),
    ],
)
def test_resource_that_the_user_was_not_asked_about_is_asked_for_once(
    agent, visitor, database, allowed, asked
):
    database.run("DELETE FROM oauth_grants")
    assert audience(agent.tokens(visitor, resource=allowed)) == (allowed or USERINFO)
    assert silent(agent, visitor, resource=asked) == "consent_required"
    assert asks(agent.begin(visitor, resource=asked), asked)
    assert opened_for(database) == [allowed]
    assert audience(agent.redeem(agent.returned(allow(visitor))["code"]).json) == asked
    for resource in (allowed, asked, None):
        assert silent(agent, visitor, resource=resource) is None
        assert "code" in agent.returned(agent.begin(visitor, resource=resource))
    assert database.value("SELECT scopes FROM oauth_grants") == ["openid", "email"]


def test_refused_resource_is_asked_for_again(agent, visitor, database):
    agent.tokens(visitor, resource=RESOURCE)
    agent.begin(visitor, resource=OTHER)
    assert agent.returned(visitor.submit(action="deny"))["error"] == "access_denied"
    assert silent(agent, visitor, resource=OTHER) == "consent_required"
    assert opened_for(database) == [RESOURCE]


def test_prompt_asks_about_a_resource_that_is_allowed_and_allows_no_other(agent, visitor):
    agent.tokens(visitor, resource=RESOURCE)
    assert asks(agent.begin(visitor, resource=RESOURCE, prompt="consent"), RESOURCE)
    assert "code" in agent.returned(allow(visitor))
    assert silent(agent, visitor, resource=OTHER) == "consent_required"


def test_wider_scopes_for_one_resource_are_not_wider_for_another(agent, visitor):
    agent.tokens(visitor, resource=RESOURCE)
    agent.tokens(visitor, resource=OTHER, scope="openid email groups")
    agent.tokens(visitor, scope="openid email phone")
    assert silent(agent, visitor, resource=OTHER, scope="openid groups") is None
    for scope in ("openid groups", "openid phone"):
        assert silent(agent, visitor, resource=RESOURCE, scope=scope) == "consent_required"
    assert asks(agent.begin(visitor, resource=RESOURCE, scope="openid phone"), RESOURCE)
    agent.redeem(agent.returned(allow(visitor))["code"])
    # The resource has what its consents name together.
    assert silent(agent, visitor, resource=RESOURCE, scope="openid email phone") is None
    assert silent(agent, visitor, resource=RESOURCE, scope="openid email groups") == "consent_required"


def test_two_requests_in_progress_are_decided_each(agent, visitor, database):
    first = agent.begin(visitor, resource=RESOURCE)
    agent.begin(visitor, resource=OTHER)
    assert agent.redeem(agent.returned(allow(visitor))["code"]).status_code == 200
    assert asks(visitor.visit(first.url), RESOURCE)
    assert opened_for(database) == [OTHER]
    assert audience(agent.redeem(agent.returned(allow(visitor))["code"]).json) == RESOURCE


def test_consent_counts_once_the_client_has_its_tokens(agent, visitor):
    agent.tokens(visitor)
    code = agent.code(visitor, resource=OTHER)
    assert silent(agent, visitor, resource=OTHER) == "consent_required"
    agent.redeem(code)
    assert silent(agent, visitor, resource=OTHER) is None


def test_tokens_are_for_the_resource_that_was_asked_about(agent, visitor):
    for allowed in (None, RESOURCE):
        code = agent.code(visitor, resource=allowed)
        assert_refused(agent.redeem(code, resource=OTHER), "invalid_target")
        tokens = agent.redeem(code).json
        again = agent.refresh(tokens["refresh_token"], resource=OTHER).json
        assert audience(again) == (allowed or USERINFO)
        assert silent(agent, visitor, resource=OTHER) == "consent_required"


def test_resource_stays_allowed_after_the_session_and_goes_with_the_grant(agent, visitor, alice):
    tokens = agent.tokens(visitor, resource=RESOURCE)
    agent.client.post(agent.http, "/oauth/revoke", token=tokens["refresh_token"])
    assert_refused(agent.refresh(tokens["refresh_token"]), "invalid_grant")
    assert silent(agent, visitor, resource=RESOURCE) is None
    row_id = client_ids.row_id(URL)
    removed = alice.open_session(agent.http).delete(f"/user/oauth/grants?client_id={row_id}")
    assert removed.status_code == 204, removed.text
    assert silent(agent, visitor, resource=RESOURCE) == "consent_required"
    agent.tokens(visitor, resource=OTHER)
    assert silent(agent, visitor, resource=RESOURCE) == "consent_required"


def test_consent_to_a_changed_document_allows_its_resource_alone(agent, visitor, database):
    for resource in (RESOURCE, OTHER):
        agent.tokens(visitor, resource=resource)
    database.run("UPDATE oauth_clients SET updated_at = now()")
    for asked in (None, RESOURCE, OTHER):
        assert silent(agent, visitor, resource=asked) == "consent_required"
    agent.tokens(visitor, resource=RESOURCE)
    assert silent(agent, visitor, resource=RESOURCE) is None
    assert silent(agent, visitor, resource=OTHER) == "consent_required"


def test_consent_to_a_changed_document_allows_its_scopes_alone(agent, visitor, database):
    agent.tokens(visitor, scope="openid email groups")
    database.run("UPDATE oauth_clients SET updated_at = now()")
    assert silent(agent, visitor, scope="openid") == "consent_required"
    agent.tokens(visitor, scope="openid")
    assert silent(agent, visitor, scope="openid") is None
    for scope in ("openid groups", "openid email", "email"):
        assert silent(agent, visitor, scope=scope) == "consent_required"
    agent.tokens(visitor, scope="openid email")
    # Without another change, consents add up.
    assert silent(agent, visitor, scope="openid email") is None
    assert database.value("SELECT scopes FROM oauth_grants") == ["openid", "email"]


def test_consent_of_one_user_counts_for_no_other(agent, visitor, bob):
    agent.tokens(visitor, resource=OTHER)
    other = Visitor(agent.http.application).with_session_of(bob)
    agent.tokens(other, resource=RESOURCE)
    assert silent(agent, other, resource=OTHER) == "consent_required"


class OwnPage:
    """A consent page of the application, which asks for a user's requests by the API."""

    def __init__(self, agent, person):
        self.agent, self.visitor = agent, Visitor(agent.http.application)
        self.session = person.open_session(agent.http.application.test_client())

    def begin(self, resource):
        """Begin a request, and return its path with what the page is told."""
        url = self.agent.begin(self.visitor, resource=resource).url
        path = f"/oauth/authorizations/{parse_qs(urlsplit(url).query)['authorization_id'][0]}"
        return path, self.session.get(path).json

    def approve(self, path):
        return self.session.post(f"{path}/consent", json={"action": "approve"}).json["redirect_url"]


def test_consent_page_of_the_application_is_told_the_resource(make_agent, alice, database):
    page = OwnPage(make_agent(AUTH_OAUTH_CONSENT_URL="https://app.example.com/consent"), alice)
    for resource in (None, RESOURCE, OTHER):
        path, told = page.begin(resource)
        assert told == {
            "authorization_id": path.rpartition("/")[2],
            "redirect_uri": CALLBACK,
            "client": {"id": URL, "name": "Grafana", "uri": "", "logo_uri": ""},
            "user": {"id": alice.id, "email": alice.email},
            "scope": "openid email",
            "resource": resource,
        }
        back = page.visitor.visit(page.approve(path))
        page.agent.redeem(answer(back.url, CALLBACK)["code"])
    assert opened_for(database) == [None, RESOURCE, OTHER]
    noted = (
        "SELECT details ->> 'resource' AS resource FROM audit_log WHERE action = 'grant_added' ORDER BY at"
    )
    assert [row.resource for row in database.all(noted)] == [None, RESOURCE, OTHER]
    for resource in (None, RESOURCE, OTHER):
        assert page.begin(resource)[1].keys() == {"redirect_url"}


def test_approvals_at_once_allow_each_its_own_resource(make_agent, alice, database):
    agent = make_agent(AUTH_OAUTH_CONSENT_URL="https://app.example.com/consent")
    pages = [OwnPage(agent, alice) for _ in range(4)]
    resources = [f"{RESOURCE}{number}" for number in range(4)]
    begun = [page.begin(resource) for page, resource in zip(pages, resources, strict=True)]
    assert [told["resource"] for _path, told in begun] == resources
    urls = at_once(4, lambda number: pages[number].approve(begun[number][0]))
    visited = [page.visitor.visit(url).url for page, url in zip(pages, urls, strict=True)]
    tokens = [agent.redeem(answer(url, CALLBACK)["code"]).json for url in visited]
    assert ([audience(each) for each in tokens], database.count("oauth_grants")) == (resources, 1)
    assert "authorization_id" in pages[0].begin(OTHER)[1]


def test_client_that_registered_itself_is_asked_about_each_time(client, app, database, alice):
    application, visitor = (
        make_application(client, database, is_dynamic=True),
        Visitor(app).with_session_of(alice),
    )
    application.tokens(visitor, resource=RESOURCE)
    for resource in (RESOURCE, OTHER):
        assert asks(application.begin(visitor, resource=resource), resource)


def test_resources_that_an_administrator_gave_a_client_are_allowed_together(client, app, database, alice):
    application = make_application(client, database, resources=[RESOURCE, OTHER])
    visitor = Visitor(app).with_session_of(alice)
    application.tokens(visitor, resource=RESOURCE)
    for resource in (RESOURCE, OTHER, None):
        assert silent(application, visitor, resource=resource) is None
    beyond = application.returned(application.begin(visitor, resource=f"{OTHER}/x"))
    assert beyond["error"] == "invalid_target"
