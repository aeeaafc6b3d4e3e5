"""AUTH_OAUTH_API_SCOPES: scopes that an API has named, which agents ask for with its resource."""

import json
from urllib.parse import urlsplit

import pytest

from tests.support.devices import begin as begin_device
from tests.support.devices import make_television
from tests.support.openid import (
    USERINFO,
    Client,
    answer,
    assert_refused,
    authorize_path,
    claims_of,
    insert_client,
)
from tests.support.openid_flow import Application, allow, make_application
from tests.support.pages import Visitor, words

NOTES, PAY = "https://notes.example.com", "https://pay.example.com/mcp"
SETTING = json.dumps({NOTES: "notes:read notes:write <b>", PAY: "pay"})
CALLBACK = "https://agent.example/callback"


@pytest.fixture
def http(make_app):
    settings = {"AUTH_OAUTH_API_SCOPES": SETTING, "AUTH_OAUTH_DYNAMIC_REGISTRATION": "true"}
    return make_app(**settings).test_client()


@pytest.fixture
def agent(http) -> Application:
    """An agent that registers itself, and asks for what an API has named."""
    body = {"client_name": "Agent", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"}
    id = http.post("/oauth/clients/register", json=body | {"scope": "notes:read"}).json["client_id"]
    return Application(http, Client(id, None, "none"), CALLBACK)


@pytest.fixture
def visitor(http, alice) -> Visitor:
    return Visitor(http.application).with_session_of(alice)


def test_agent_that_asks_only_for_scopes_of_an_api_is_allowed_them_by_its_user(http, agent, visitor, alice):
    page = agent.begin(visitor, scope="notes:read", resource=f"{NOTES}/")
    assert (page.status, urlsplit(page.url).path) == (200, "/oauth/consent")
    text = words(page)
    assert f"It gets access to {NOTES} . notes:read" in text
    assert "See your account ID" in text
    assert ("notes:write" in text, "email" in text.partition("wants to")[2].partition("Next")[0]) == (
        False,
        False,
    )
    tokens = agent.redeem(agent.returned(allow(visitor))["code"], resource=f"{NOTES}/").json
    claims = claims_of(tokens["access_token"])
    assert (tokens["scope"], claims["scope"], claims["aud"]) == ("notes:read", "notes:read", NOTES)
    assert (claims["sub"], "id_token" in tokens) == (alice.id, False)
    # The token reads nothing here.
    assert_refused(agent.userinfo(tokens["access_token"]), "insufficient_scope", 403)
    refreshed = agent.refresh(tokens["refresh_token"], resource=NOTES, scope="notes:read notes:admin").json
    assert claims_of(refreshed["access_token"])["scope"] == "notes:read"


@pytest.mark.parametrize(
    ("request_", "granted"),
    [
        (
            {"scope": "notes:write openid notes:read pay", "resource": NOTES},
            f"openid notes:read notes:write @ {NOTES}",
        ),
        ({"scope": "notes:read pay", "resource": PAY}, f"pay @ {PAY}"),
        ({"scope": "openid notes:read"}, f"openid @ {USERINFO}"),
        (
            {"scope": "openid notes:read", "resource": "https://other.example"},
            "openid @ https://other.example",
        ),
        ({"scope": "openid notes:read", "resource": f"{NOTES}/v2"}, f"openid @ {NOTES}/v2"),
        ({"scope": "notes:read"}, None),
        ({"scope": "notes:read", "resource": PAY}, None),
        ({"scope": "notes", "resource": NOTES}, None),
    ],
)
def test_scope_is_that_of_the_resource_in_the_request(agent, visitor, request_, granted):
    if granted is None:
        page = agent.begin(visitor, **request_)
        assert (page.status, f"{CALLBACK}?error=invalid_scope" in page.text) == (400, True)
        return
    tokens = agent.tokens(visitor, **request_)
    assert f"{tokens['scope']} @ {claims_of(tokens['access_token'])['aud']}" == granted


def test_device_shows_the_scopes_of_an_api_and_gets_them_for_its_resource(http, database, visitor):
    television = make_television(database, resources=[NOTES, PAY])
    device = begin_device(http, television, scope="notes:read pay", resource=f"{NOTES}/")
    text = words(device.enter(visitor))
    assert ("See your account ID" in text, "notes:read" in text, " pay " in text) == (True, True, False)
    visitor.press("device/consent", action="approve")
    tokens = device.poll(resource=NOTES).json
    assert f"{tokens['scope']} @ {claims_of(tokens['access_token'])['aud']}" == f"notes:read @ {NOTES}"


def test_more_scopes_of_the_api_ask_again(http, database, visitor):
    wiki = make_application(http, database, name="Wiki", resources=[NOTES], redirect_uris=[CALLBACK])
    wiki.tokens(visitor, scope="notes:read", resource=NOTES)
    assert "code" in wiki.returned(wiki.begin(visitor, scope="notes:read", resource=NOTES, prompt="none"))
    more = {"scope": "notes:read notes:write", "resource": NOTES}
    assert wiki.returned(wiki.begin(visitor, **more, prompt="none"))["error"] == "consent_required"


@pytest.mark.parametrize("skip_consent", [False, True])
def test_scope_of_one_api_is_not_that_of_another_with_the_same_name(make_app, database, alice, skip_consent):
    setting = json.dumps({NOTES: "read write", PAY: "read"})
    http = make_app(AUTH_OAUTH_API_SCOPES=setting).test_client()
    visitor = Visitor(http.application).with_session_of(alice)
    wiki = make_application(
        http,
        database,
        name="Wiki",
        resources=[NOTES, PAY],
        redirect_uris=[CALLBACK],
        skip_consent=skip_consent,
    )

    def silent(resource, scope="openid read"):
        answered = wiki.returned(wiki.begin(visitor, scope=scope, resource=resource, prompt="none"))
        return answered.get("error", "code")

    wiki.tokens(visitor, scope="openid read", resource=NOTES)
    assert (silent(NOTES), silent(f"{NOTES}/")) == ("code", "code")
    if skip_consent:
        assert silent(PAY) == "code"
        assert database.count("audit_log", "action = 'grant_added'") == 1
        return
    assert silent(PAY) == "consent_required"
    # What is about the user is allowed once, for all resources of the application.
    assert silent(PAY, "openid") == "code"
    assert f"It gets access to {PAY} . read" in words(wiki.begin(visitor, scope="openid read", resource=PAY))
    wiki.redeem(wiki.returned(allow(visitor))["code"])
    assert (silent(NOTES), silent(PAY)) == ("code", "code")
    added = "SELECT details ->> 'resource' FROM audit_log WHERE action = 'grant_added' ORDER BY at"
    assert database.all(added) == [(NOTES,), (PAY,)]


@pytest.mark.parametrize(
    ("scopes", "granted"),
    [
        ([], "openid notes:read"),
        (["openid", "notes:read"], "openid notes:read"),
        (["openid"], "openid"),
        (["notes:write"], None),
    ],
)
def test_scopes_of_a_client_bound_those_of_apis_too(http, database, scopes, granted):
    client_id = insert_client(database, CALLBACK, scopes=scopes, resources=[NOTES])
    path = authorize_path(client_id, redirect_uri=CALLBACK, scope="openid notes:read", resource=NOTES)
    location = http.get(path).location
    if granted is None:
        assert answer(location, CALLBACK)["error"] == "invalid_scope"
    else:
        assert database.value("SELECT array_to_string(scopes, ' ') FROM oauth_requests") == granted


def test_scope_that_the_operator_takes_away_is_in_no_further_token(make_app, agent, visitor):
    both = agent.tokens(visitor, scope="openid notes:read", resource=NOTES)
    alone = agent.tokens(visitor, scope="notes:read", resource=NOTES)
    later = make_app(AUTH_OAUTH_DYNAMIC_REGISTRATION="true").test_client()
    refreshed = agent.client.refresh(later, both["refresh_token"])
    assert (refreshed.status_code, refreshed.json["scope"]) == (200, "openid")
    assert_refused(agent.client.refresh(later, alone["refresh_token"]), "invalid_scope")


def test_scopes_of_apis_are_in_the_metadata_and_on_the_account_page(http, agent, visitor):
    metadata = http.get("/.well-known/oauth-authorization-server").json
    assert metadata["scopes_supported"][-4:] == ["notes:read", "notes:write", "<b>", "pay"]
    page = agent.begin(visitor, scope="notes:read <b>", resource=NOTES)
    assert "&lt;b&gt;" in page.text
    agent.redeem(agent.returned(allow(visitor))["code"])
    account = visitor.visit("/account")
    assert "notes:read" in words(account)
    assert "<b>" not in account.text.partition("<main")[2]
