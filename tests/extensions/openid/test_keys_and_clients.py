"""A key with the scope `clients` gets nothing of users who are not asked: those who have allowed an application, and all
users of one that skips the consent.
"""

import pytest

from auth.web.context import EXTENSION
from tests.support.admin_keys import make_admin_key
from tests.support.answers import assert_error
from tests.support.openid import Client, make_client
from tests.support.openid_flow import Application, make_application
from tests.support.pages import Visitor

FOREIGN = "https://evil.example/callback"
PAYMENTS = "https://payments.example"


@pytest.fixture
def change(client, parts):
    """Change an application with a key."""
    key = make_admin_key(parts, "clients")

    def change(application, **body):
        path = f"/admin/oauth/clients/{application.client.id}"
        return client.put(path, json=body, headers=key.headers)

    return change


def assert_kept(answer, name):
    assert_error(answer, 403, "insufficient_permissions", details=f"{name}: must be as before")


@pytest.mark.parametrize("name", ["alice", "carol"])
def test_key_gets_no_silent_code_of_a_user_who_has_allowed_the_application(
    client, database, change, request, name
):
    application = make_application(client, database, name="Wiki")
    visitor = Visitor(client.application).with_session_of(request.getfixturevalue(name))
    application.tokens(visitor, scope="openid email")
    assert_kept(change(application, redirect_uris=[application.redirect_uri, FOREIGN]), "redirect_uris")
    assert_kept(change(application, redirect_uris=[FOREIGN], skip_consent=False), "redirect_uris")
    page = Application(client, application.client, FOREIGN).begin(
        visitor, scope="openid email", prompt="none"
    )
    assert "code=" not in page.url


@pytest.mark.parametrize("skip_consent", [True, False])
def test_key_gives_an_application_that_does_not_ask_no_further_resource(
    client, database, change, alice, skip_consent
):
    application = make_application(client, database, name="Wiki", skip_consent=skip_consent)
    visitor = Visitor(client.application).with_session_of(alice)
    application.tokens(visitor, scope="openid")
    assert_kept(change(application, resources=[PAYMENTS]), "resources")
    page = application.begin(visitor, scope="openid", prompt="none", resource=PAYMENTS)
    assert "code=" not in page.url


def test_key_opens_an_application_that_skips_the_consent_to_no_other_users(client, database, change, alice):
    application = make_application(
        client, database, name="Wiki", skip_consent=True, allowed_roles=["staff"], scopes=["openid"]
    )
    assert_kept(change(application, allowed_roles=[]), "allowed_roles")
    assert_kept(change(application, scopes=[]), "scopes")
    visitor = Visitor(client.application).with_session_of(alice)
    page = application.begin(visitor, scope="openid", prompt="none")
    assert "code=" not in page.url


def test_key_gives_an_application_that_skips_the_consent_no_other_members(make_app, database, service_role):
    client = make_app(AUTH_ORGANIZATIONS="admins").test_client()
    database.run("INSERT INTO organizations (id, slug, name) VALUES (gen_random_uuid(), 'acme', 'Acme')")
    application = make_application(client, database, name="Wiki", skip_consent=True)
    path = f"/admin/oauth/clients/{application.client.id}"
    assert client.put(path, json={"organization_id": "acme"}, headers=service_role).status_code == 200
    key = make_admin_key(client.application.extensions[EXTENSION], "clients")
    response = client.put(path, json={"organization_id": None}, headers=key.headers)
    assert_kept(response, "organization_id")


def test_key_does_not_unblock_an_application(client, database, change, service_role, alice):
    application = make_application(client, database, name="Wiki")
    path = f"/admin/oauth/clients/{application.client.id}"
    assert client.put(path, json={"is_blocked": True}, headers=service_role).status_code == 200
    for more in ({}, {"client_name": "Notes"}):
        assert_kept(change(application, is_blocked=False, **more), "is_blocked")
    assert change(application, client_name="Notes", is_blocked=True).json["is_blocked"] is True
    page = application.begin(Visitor(client.application).with_session_of(alice), scope="openid")
    assert "code=" not in page.url
    assert client.put(path, json={"is_blocked": False}, headers=service_role).json["is_blocked"] is False
    assert change(application, is_blocked=True).status_code == 200


def test_key_changes_what_users_are_asked_about(client, database, change, alice):
    application = make_application(client, database, name="Wiki", resources=[PAYMENTS])
    assert change(application, redirect_uris=[FOREIGN], allowed_roles=["staff"]).status_code == 200
    assert change(application, redirect_uris=[application.redirect_uri], allowed_roles=[]).status_code == 200
    application.tokens(Visitor(client.application).with_session_of(alice), scope="openid")
    assert change(application, resources=[], allowed_roles=["staff"], client_name="Notes").status_code == 200


def test_service_role_key_moves_an_application_that_users_have_allowed(client, database, service_role, alice):
    application = make_application(client, database, name="Wiki")
    application.tokens(Visitor(client.application).with_session_of(alice), scope="openid")
    path = f"/admin/oauth/clients/{application.client.id}"
    response = client.put(path, json={"redirect_uris": [FOREIGN]}, headers=service_role)
    assert response.status_code == 200


def test_key_gets_no_secret_of_an_application_that_acts_on_its_own(client, database, parts, service_role):
    """Its holder would call the APIs of that application in its name."""
    service = make_client(database, grant_types=["client_credentials"], scopes=["pay"], resources=[PAYMENTS])
    path, key = f"/admin/oauth/clients/{service.id}", make_admin_key(parts, "clients")
    before = database.everything("oauth_clients")
    for body in ({}, {"overlap": True}):
        answer = client.post(f"{path}/regenerate_secret", json=body, headers=key.headers)
        details = "grant_types: must not have client_credentials"
        assert_error(answer, 403, "insufficient_permissions", details=details)
    assert database.everything("oauth_clients") == before
    form = {"grant_type": "client_credentials", "resource": PAYMENTS}
    assert service.post(client, "/oauth/token", **form).status_code == 200
    replaced = client.post(f"{path}/regenerate_secret", json={}, headers=service_role).json["client_secret"]
    assert Client(service.id, replaced).post(client, "/oauth/token", **form).status_code == 200


def test_key_makes_no_application_that_acts_on_its_own(client, database, parts, change):
    key = make_admin_key(parts, "clients", name="another")
    acting = ["authorization_code", "client_credentials"]
    details = "grant_types: must not have client_credentials"
    body = {"redirect_uris": [FOREIGN], "grant_types": acting, "scopes": ["pay"], "resources": [PAYMENTS]}
    answer = client.post("/admin/oauth/clients", json=body, headers=key.headers)
    assert_error(answer, 403, "insufficient_permissions", details=details)
    assert database.count("oauth_clients") == 0
    wiki = make_application(client, database, name="Wiki")
    assert_error(change(wiki, grant_types=acting), 403, "insufficient_permissions", details=details)
    # One that an operator made keeps it.
    service = make_application(client, database, name="Service", grant_types=acting)
    assert change(service, client_name="Payments").status_code == 200


def test_key_waits_for_no_operator_to_get_tokens_of_an_application_that_acts_on_its_own(
    client, database, parts, change, service_role
):
    """It would take the grant away, replace the secret, and be in when the operator mends the application."""
    grants = ["authorization_code", "client_credentials"]
    service = make_application(client, database, name="Pay", grant_types=grants, scopes=["pay"])
    path = f"/admin/oauth/clients/{service.client.id}"
    answer = change(service, grant_types=["authorization_code"])
    details = "grant_types: must keep client_credentials"
    assert_error(answer, 403, "insufficient_permissions", details=details)
    key = make_admin_key(parts, "clients", name="another")
    answer = client.post(f"{path}/regenerate_secret", json={}, headers=key.headers)
    assert answer.status_code == 403
    assert client.get(path, headers=service_role).json["grant_types"] == grants
    # It may stop the application in another way.
    assert change(service, is_blocked=True).status_code == 200


@pytest.mark.parametrize(
    ("name", "more"), [("scopes", ["pay", "refund"]), ("scopes", []), ("resources", [PAYMENTS, FOREIGN])]
)
def test_key_widens_no_application_that_acts_on_its_own(client, database, change, name, more):
    """Who has the key and the secret of a small service would call the APIs of others by it."""
    grants = ["client_credentials"]
    service = make_application(
        client, database, name="Pay", grant_types=grants, scopes=["pay"], resources=[PAYMENTS]
    )
    assert_kept(change(service, **{name: more}), name)
    form = {"grant_type": "client_credentials"}
    for sent in ({"scope": "refund"}, {"resource": FOREIGN}):
        assert service.client.post(client, "/oauth/token", **form | sent).status_code == 400
    assert change(service, resources=[]).status_code == 200
