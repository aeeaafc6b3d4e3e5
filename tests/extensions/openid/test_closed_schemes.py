"""Nothing leads to redirect URIs whose scheme the operator removed from AUTH_OAUTH_REDIRECT_SCHEMES."""

import time
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from tests.support.answers import assert_error
from tests.support.openid import authorize_path, insert_client, insert_public_client
from tests.support.pages import Visitor, words

EDITOR = "cursor://anysphere.cursor-mcp/oauth/callback"
CLOSED = {"AUTH_OAUTH_REDIRECT_SCHEMES": "vscode"}
PROBLEM = "redirect_uri: its scheme must have a dot or be in AUTH_OAUTH_REDIRECT_SCHEMES"


@pytest.fixture
def closed_app(make_app):
    return make_app(**CLOSED)


@pytest.fixture
def client_id(database) -> str:
    """A client that registered itself while its scheme was allowed."""
    return insert_public_client(database, EDITOR, is_dynamic=True, post_logout_redirect_uris=[EDITOR])


def moved(visitor: Visitor, app) -> Visitor:
    """Return the browser at the service with the new settings."""
    other = Visitor(app)
    other.cookies, other.page = visitor.cookies, visitor.page
    return other


@pytest.mark.parametrize("parameters", [{}, {"prompt": "none"}, {"scope": "x" * 3000}])
def test_request_is_refused_without_a_redirect(client, closed_app, client_id, database, parameters):
    path = authorize_path(client_id, redirect_uri=EDITOR, **parameters)
    assert client.get(path).status_code == 302
    before = database.count("oauth_requests")
    response = closed_app.test_client().get(path)
    assert_error(response, 400, "validation_failed", details=PROBLEM)
    assert ("Location" in response.headers, database.count("oauth_requests")) == (False, before)


def test_client_of_an_administrator_and_other_schemes_stay(closed_app, database):
    uri = "com.example.app:/callback"
    for id, redirect_uri in (
        (insert_public_client(database, EDITOR), EDITOR),
        (insert_public_client(database, uri, is_dynamic=True), uri),
    ):
        response = closed_app.test_client().get(authorize_path(id, redirect_uri=redirect_uri))
        assert (response.status_code, urlsplit(response.location).path) == (302, "/oauth/consent")


@pytest.mark.parametrize("action", ["approve", "deny"])
def test_consent_page_that_is_open_already_leads_to_no_closed_scheme(
    app, closed_app, alice, client_id, database, action
):
    visitor = Visitor(app).with_session_of(alice)
    visitor.visit(authorize_path(client_id, redirect_uri=EDITOR))
    page = moved(visitor, closed_app).press("oauth/consent", action=action)
    assert (page.status, EDITOR in page.text) == (404, False)
    assert database.count("oauth_grants") == database.count("oauth_requests", "code_hash IS NOT NULL") == 0


def test_sign_out_leads_to_no_closed_scheme(app, closed_app, parts, alice, client_id):
    parts.openid_keys.make_first()
    claims = {"sub": alice.id, "aud": client_id, "auth_time": 0}
    hint = parts.client_tokens.id_token(claims, issued_at=int(time.time()), algorithm="RS256")
    path = f"/oauth/logout?{urlencode({'post_logout_redirect_uri': EDITOR, 'id_token_hint': hint})}"
    pages = [Visitor(each).with_session_of(alice).visit(path) for each in (app, closed_app)]
    assert [page.url == EDITOR for page in pages] == [True, False]
    assert "We can’t send you back to the application, because its return address isn’t registered." in words(
        pages[1]
    )


def test_client_is_blocked_though_the_settings_refuse_its_scheme_and_not_unblocked(
    closed_app, client_id, database, service_role
):
    http, path = closed_app.test_client(), f"/admin/oauth/clients/{client_id}"
    blocked = http.put(path, json={"is_blocked": True}, headers=service_role)
    assert blocked.status_code == 200, blocked.text
    assert database.value("SELECT is_blocked FROM oauth_clients")
    for changes in ({"is_blocked": False}, {"is_blocked": True, "client_name": "Other"}):
        assert http.put(path, json=changes, headers=service_role).status_code == 400
    assert database.one("SELECT is_blocked, name FROM oauth_clients") == (True, "Grafana")


@pytest.mark.parametrize("trust", ["skip_consent", "introspects_sessions"])
def test_client_loses_trust_though_the_settings_refuse_its_resource_and_does_not_get_it_back(
    make_app, database, service_role, trust
):
    resource = "https://api.example.com"
    columns: Any = {"resources": [resource], trust: True}
    id = insert_client(database, **columns)
    http, path = make_app(AUTH_JWT_AUDIENCE=resource).test_client(), f"/admin/oauth/clients/{id}"
    response = http.put(path, json={trust: False}, headers=service_role)
    assert (response.status_code, response.json.get(trust)) == (200, False), response.text
    assert http.put(path, json={trust: True}, headers=service_role).status_code == 400
    assert database.value(f"SELECT {trust} FROM oauth_clients") is False
