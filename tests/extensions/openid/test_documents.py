"""Clients whose id is the URL of a document, which is fetched for users who have signed in."""

from urllib.parse import urlsplit

import pytest

from auth.core.tokens import client_ids
from auth.delivery import janitor
from auth.extensions.openid import documents
from auth.web.context import EXTENSION
from tests.support.answers import DIALECT, assert_error
from tests.support.cases import cases
from tests.support.documents import CALLBACK, DOCUMENT, HOST, PUBLIC_ADDRESS, URL, opened_page
from tests.support.openid import Client, claims_of
from tests.support.openid_flow import Application, allow
from tests.support.pages import Visitor, words

pytest_plugins = ["tests.support.document_fixtures"]


@pytest.fixture
def agent(application_of):
    return Application(application_of.test_client(), Client(URL, None, "none"), CALLBACK)


def test_document_is_fetched_for_a_user_who_signed_in_and_gets_tokens(
    web, agent, visitor, application_of, database
):
    stranger = opened_page(Visitor(application_of))
    assert (urlsplit(stranger.url).path, web.fetches, database.count("oauth_clients")) == ("/sign-in", 0, 0)
    assert "client_id%3Dhttps" in stranger.url
    text = words(agent.begin(visitor))
    assert text.index(HOST) < text.index("Agent Smith")
    assert (URL in text.replace(" ", ""), web.connected, web.transactions) == (
        True,
        [(PUBLIC_ADDRESS, 443)],
        [0],
    )
    tokens = agent.redeem(agent.returned(allow(visitor))["code"], resource="").json
    refreshed = agent.refresh(tokens["refresh_token"]).json
    for answer in (tokens, refreshed):
        claims = claims_of(answer["access_token"])
        assert (claims["client_id"], claims["aud"].endswith("/oauth/userinfo")) == (URL, True)
        assert agent.userinfo(answer["access_token"]).status_code == 200
        assert claims_of(answer["id_token"])["aud"] == URL
    # Neither tokens nor later requests fetch the document, and the user is not asked again.
    assert "code" in agent.returned(agent.begin(visitor))
    assert "code" in agent.returned(agent.begin(visitor, prompt="none", id_token_hint=refreshed["id_token"]))
    assert "code" in agent.returned(agent.begin(visitor, prompt="none"))
    assert (web.fetches, database.value("SELECT metadata_url FROM oauth_clients")) == (1, URL)
    id = database.value("SELECT id::text FROM oauth_clients")
    assert opened_page(visitor, id).status == 400
    assert Client(id, None, "none").refresh(agent.http, refreshed["refresh_token"]).status_code == 401
    page = agent.begin(visitor, resource=URL)
    assert (page.status, "error=invalid_target" in page.text) == (400, True)


def test_client_of_a_document_has_the_same_uuid_in_both_answers_of_the_dialect(
    web, make_app, visitor, alice, bob
):
    """supabase-swift reads no URL as an id, and a client is removed by the id that its user was shown."""
    asks_elsewhere = {"AUTH_OAUTH_CONSENT_URL": "https://app.example.com/consent"}
    app = make_app(AUTH_OAUTH_CLIENT_DOCUMENTS=HOST, **asks_elsewhere)
    _own, _, id = opened_page(Visitor(app).with_session_of(alice)).url.partition("authorization_id=")
    client, authorization = app.test_client(), f"/oauth/authorizations/{id}"
    headers = alice.open_session().authorization
    plain = client.get(authorization, headers=headers).json["client"]
    shown = client.get(authorization, headers=headers | DIALECT).json["client"]
    assert (plain["id"], plain["logo_uri"]) == (URL, "")
    assert shown == {"id": client_ids.row_id(URL), "name": "Agent Smith", "uri": URL}
    consent = client.post(f"{authorization}/consent", json={"action": "approve"}, headers=headers | DIALECT)
    assert consent.status_code == 200
    (grant,) = client.get("/user/oauth/grants", headers=headers | DIALECT).json
    assert grant["client"] == shown
    path = f"/user/oauth/grants?client_id={shown['id']}"
    other = bob.open_session().authorization
    assert_error(client.delete(path, headers=other), 404, "oauth_consent_not_found")
    assert client.delete(path, headers=headers | DIALECT).status_code == 204


def test_changed_redirects_and_those_of_the_device_ask_again(web, agent, visitor, database):
    loopback = {"redirect_uri": "http://127.0.0.1:5000/callback"}
    for _ in range(2):
        assert urlsplit(opened_page(visitor, **loopback).url).path == "/oauth/consent"
    agent.code(visitor)
    expire = "UPDATE oauth_clients SET fetched_until = now()"
    database.run(expire)
    web.serve(DOCUMENT | {"redirect_uris": DOCUMENT["redirect_uris"][:1], "new": [1]})
    assert (urlsplit(agent.begin(visitor).url).path, web.fetches) == ("/oauth/consent", 2)
    allow(visitor)
    assert "code" in agent.returned(agent.begin(visitor))
    assert opened_page(visitor, **loopback).status == 400
    # A document that cannot be fetched any more counts for nothing.
    database.run(expire)
    web.target.status = 404
    assert opened_page(visitor).status == 400


def test_consent_to_a_document_that_has_changed_meanwhile_counts_for_nothing(
    web, agent, visitor, application_of, database, bob
):
    agent.begin(visitor)
    database.run("UPDATE oauth_clients SET fetched_until = now()")
    web.serve(DOCUMENT | {"redirect_uris": [CALLBACK, f"{CALLBACK}/new"]})
    agent.begin(Visitor(application_of).with_session_of(bob))
    assert (allow(visitor).status, database.count("oauth_grants")) == (404, 0)
    assert urlsplit(agent.begin(visitor).url).path == "/oauth/consent"


def test_consent_to_a_changed_document_is_for_the_host_that_its_page_showed(web, agent, visitor, database):
    elsewhere = Application(agent.http, agent.client, "https://elsewhere.example/callback")
    document = DOCUMENT | {"redirect_uris": [CALLBACK, elsewhere.redirect_uri]}
    web.serve(document)
    for application in (agent, elsewhere):
        application.code(visitor)
        assert "code" in application.returned(application.begin(visitor, prompt="none"))
    database.run("UPDATE oauth_clients SET fetched_until = now()")
    web.serve(document | {"client_name": "Agent Brown"})
    agent.code(visitor)
    assert "code" in agent.returned(agent.begin(visitor, prompt="none"))
    assert "code=" not in elsewhere.begin(visitor, prompt="none").url
    assert urlsplit(elsewhere.begin(visitor).url).path == "/oauth/consent"


UNUSABLE = [
    (DOCUMENT | {"client_id": f"{URL}/"}, "client_id"),
    ({name: value for name, value in DOCUMENT.items() if name != "client_id"}, "client_id"),
    (DOCUMENT | {"client_name": ""}, "client_name"),
    (DOCUMENT | {"client_name": "\u200b"}, "client_name"),
    (DOCUMENT | {"redirect_uris": [f"{CALLBACK}/{number}" for number in range(11)]}, "redirect_uris"),
    (DOCUMENT | {"redirect_uris": ["intent://scan/"]}, "redirect_uri"),
    (DOCUMENT | {"redirect_uris": "https://agent.example/"}, "redirect_uris"),
    (DOCUMENT | {"token_endpoint_auth_method": "private_key_jwt"}, "token_endpoint_auth_method"),
    (DOCUMENT | {"more": "x" * 16_384}, "16 KiB"),
    (b"[" * 16_000, "nested"),
    (b"[]", "JSON object"),
    (b"", "client_id"),
    (b"\xff\xfe", "UTF-8"),
    (b'{"client_id": NaN}', "NaN"),
    (b'{"client_id": 1, "client_id": 2}', "repeat"),
]


def why_refused(visitor, database, **parameters):
    """Return the problem that the user's history names for a refused request, which writes nothing else."""
    page = opened_page(visitor, **parameters)
    assert (page.status, database.count("oauth_clients")) == (400, 0)
    problem = database.value(
        "SELECT details ->> 'problem' FROM audit_log WHERE action = 'application_refused' ORDER BY at DESC LIMIT 1"
    )
    database.run("DELETE FROM audit_log")
    return problem


@pytest.fixture
def patient(make_app, alice):
    """A browser of the user, without limits."""
    app = make_app(AUTH_OAUTH_CLIENT_DOCUMENTS="*", AUTH_RATE_LIMITS_ENABLED="false")
    return Visitor(app).with_session_of(alice)


@cases("number", range(len(UNUSABLE)))
def test_unusable_document_is_refused_and_not_kept(web, patient, database, number):
    document, problem = UNUSABLE[number]
    web.serve(document)
    assert problem in why_refused(patient, database)


@cases(
    ("status", "headers"),
    [
        (200, {"Content-Type": "text/html"}),
        (200, {"Content-Type": "text/json"}),
        (200, {"Content-Type": "application/jsonx"}),
        (301, {"Location": f"https://{HOST}/other.json"}),
        (302, {"Location": "https://127.0.0.1/"}),
        (404, {}),
        (206, {}),
        (500, {}),
    ],
)
def test_other_answers_than_a_document_are_refused_and_no_redirect_is_followed(
    web, patient, database, status, headers
):
    web.serve(DOCUMENT, **headers)
    web.target.status, before = status, web.fetches
    assert "instead of 200 application/json" in why_refused(patient, database)
    assert web.fetches == before + 1


@cases("behaviour", ["close", "hang", "drip", "drip body", "endless"])
def test_server_that_misbehaves_is_refused_in_time(web, patient, database, behaviour, monkeypatch):
    monkeypatch.setattr(documents, "_SECONDS", 0.5)
    web.target.behaviour = behaviour
    assert why_refused(patient, database)


def test_document_may_prefer_another_authentication_and_name_its_type(web, patient):
    methods = {"token_endpoint_auth_methods_supported": ["private_key_jwt", "none"]}
    web.serve(
        DOCUMENT | methods | {"token_endpoint_auth_method": "private_key_jwt"},
        **{"Content-Type": "application/client+json; charset=utf-8"},
    )
    assert urlsplit(opened_page(patient).url).path == "/oauth/consent"


OTHER_URLS = f"""
https://{HOST} https://{HOST}/ http://{HOST}/x https://{HOST}:443/x https://{HOST}:8443/x
https://user@{HOST}/x https://user:x@{HOST}/x https://{HOST}/x# https://{HOST}/x?y https://{HOST}/./x
https://{HOST}/a/../x https://{HOST}/%2e%2e/x https://{HOST}/..;/x https://{HOST}/a\\x https://{HOST}./x
https://{HOST.upper()}/x https://localhost/x https://127.0.0.1/x https://2130706433/x https://0x7f.1/x
https://[::1]/x https:/{HOST}/x HTTPS://{HOST}/x https:///x https://\u0430gent.example/x
https://agent\u3002example/x https://{HOST}/\u00e4
"""


@cases("url", [*OTHER_URLS.split(), f"https://{HOST}/ x"])
def test_other_urls_are_no_client_ids(web, patient, database, url):
    assert opened_page(patient, url).status == 400
    assert (web.looked_up, database.count("oauth_clients")) == ([], 0)


@cases("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00:ec2::254", "64:ff9b::7f00:1"])
def test_private_address_is_never_connected_to(web, patient, database, address):
    web.addresses = [address]
    assert "its address is refused" in why_refused(patient, database)
    assert (web.connected, web.fetches) == ([], 0)


def test_other_hosts_are_refused_without_a_look_up(web, visitor, database):
    assert opened_page(visitor, "https://evil.agent.example/x").status == 400
    assert (web.looked_up, database.count("oauth_clients")) == ([], 0)


def test_network_has_ten_fetches(web, make_app, alice):
    app = make_app(AUTH_OAUTH_CLIENT_DOCUMENTS="*", AUTH_RATE_LIMITS_ENABLED="true")
    visitor = Visitor(app).with_session_of(alice)
    statuses = [opened_page(visitor, f"{URL}/{number}").status for number in range(11)]
    assert (statuses, web.fetches) == ([400] * 10 + [429], 10)


def test_silent_request_of_a_stranger_fetches_nothing(web, application_of):
    assert (opened_page(Visitor(application_of), prompt="none").status, web.fetches) == (400, 0)


def test_blocked_document_signs_nobody_in_until_it_is_unblocked(web, agent, visitor, service_role, database):
    tokens = agent.tokens(visitor)
    path = f"/admin/oauth/clients/{database.value('SELECT id FROM oauth_clients')}"
    agent.begin(visitor, prompt="consent")
    response = agent.http.put(path, json={"is_blocked": True}, headers=service_role)
    assert (response.status_code, response.json["is_blocked"]) == (200, True)
    assert agent.refresh(tokens["refresh_token"]).status_code == 401
    assert agent.userinfo(tokens["access_token"]).status_code == 401
    assert allow(visitor).status == 404
    database.run("UPDATE oauth_clients SET fetched_until = now()")
    assert (opened_page(visitor).status, web.fetches) == (400, 1)
    agent.http.put(path, json={"is_blocked": False}, headers=service_role)
    assert agent.refresh(tokens["refresh_token"]).status_code == 400
    assert "code" in agent.authorized(visitor)


@cases("hosts", ["other.example", f"sub.{HOST}", ""])
def test_host_that_leaves_the_setting_ends_its_clients_for_good(
    web, agent, visitor, application_of, make_app, database, hosts
):
    tokens, code = agent.tokens(visitor), agent.code(visitor)
    app = make_app(**({"AUTH_OAUTH_CLIENT_DOCUMENTS": hosts} if hosts else {}))
    other = Application(app.test_client(), Client(URL, None, "none"), CALLBACK)
    assert other.userinfo(tokens["access_token"]).status_code == 401
    assert other.refresh(tokens["refresh_token"]).status_code == 401
    assert other.redeem(code).status_code == 401
    parts = app.extensions[EXTENSION]
    janitor.keep_house(parts.settings, parts.db, parts.sealer)
    # The host comes back.
    assert agent.userinfo(tokens["access_token"]).status_code == 401
    response = agent.refresh(tokens["refresh_token"])
    assert (response.status_code, response.json["error"]) == (400, "invalid_grant")
    assert agent.redeem(code).status_code == 400
    end_reasons = "SELECT DISTINCT end_reason FROM sessions WHERE grant_id IS NOT NULL"
    assert database.value(end_reasons) == "access_lost"
    assert agent.userinfo(agent.tokens(visitor)["access_token"]).status_code == 200


def test_metadata_say_that_documents_are_supported(application_of):
    metadata = application_of.test_client().get("/.well-known/openid-configuration").json
    assert metadata["client_id_metadata_document_supported"] is True
