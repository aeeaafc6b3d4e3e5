"""The events and audit log rows of each request: exactly these, and none when it is refused or rolled back."""

import pytest
from openapi_schema_validator import OAS30ReadValidator

from tests.support import links, openid, passkeys
from tests.support.answers import A_TIMESTAMP, A_UUID
from tests.support.api_keys import make_key, use
from tests.support.authenticator import Authenticator
from tests.support.contract import description, resolved, routes
from tests.support.effects import EFFECTS, Scenario, effect
from tests.support.factors import challenge, enrol, set_up
from tests.support.users import PASSWORD, register

pytest_plugins = ["tests.support.oauth_fixtures"]

NEW_PASSWORD = "New-Horse-2"
CLIENT = {"redirect_uris": ["https://app.example.com/callback"]}
ALICE, BOB, CAROL, DAVE, NEW = (f"{name}@example.com" for name in ("alice", "bob", "carol", "dave", "new"))
# Routes that ask a name server or a provider, tested in extensions/organizations/own_sign_in/test_own_providers.py.
TESTED_ELSEWHERE = {
    ("post", "/organizations/{name}/domains/{domain}"),
    ("post", "/organizations/{name}/providers"),
}
OWN_PROVIDER = """
WITH domain AS (
  INSERT INTO organization_domains (organization_id, domain, token, proved_at, checked_at)
  SELECT id, 'acme.example', 'x', now(), now() FROM organizations
)
INSERT INTO identity_providers (id, identifier, name, issuer, client_id, client_secret, enabled, organization_id, disabled_at)
SELECT gen_random_uuid(), 'custom:acme', 'Acme', 'https://login.acme.example', 'x', 'x', false, id, to_timestamp(0)
  FROM organizations
RETURNING id::text
"""
# Routes that change nothing about a user.
WITHOUT_EVENTS = {
    ("post", f"/{path}")
    for path in (
        *("introspect", "link-identity", "oauth/authorize", "oauth/logout", "oauth/userinfo", "sso"),
        *("oauth/device_authorization", "organizations/{name}/domains"),
    )
}


@pytest.fixture
def scenario(service, service_role, outbox, database, google):
    google.person = {"sub": "alice-at-google", "email": ALICE, "email_verified": True}
    return Scenario(service, service.client, service_role, outbox, database, google)


# Callers: their headers, and the ids of what they have.
def by_anyone(scenario):
    return {}, {}


def by_alice(scenario):
    ids = {"session_id": scenario.session().id}
    ids["identity_id"] = scenario.database.value("SELECT id FROM identities")
    return scenario.session().authorization, ids


def by_alice_with_an_app(scenario):
    app, session = set_up(scenario.session())
    return session.authorization, {"factor_id": app.id}


def by_alice_with_recovery_codes(scenario):
    app, session = set_up(scenario.session())
    assert session.post("/factors/recovery-codes", json={}).status_code == 200
    return session.authorization, {"factor_id": app.id}


def by_alice_with_a_passkey(scenario):
    authenticator, passkey = passkeys.register(scenario.session())
    return passkeys.sign_in(scenario.client, authenticator).authorization, {"passkey_id": passkey["id"]}


def by_alice_with_google(scenario):
    assert scenario.alice.id
    coming_back(scenario)()
    google = scenario.database.value("SELECT id FROM identities WHERE provider = 'google'")
    return scenario.session().authorization, {"identity_id": google}


def by_alice_with_an_application(scenario):
    client_id = openid.insert_public_client(scenario.database)
    openid.allow(scenario.database, scenario.alice.id, client_id)
    return scenario.session().authorization, {"client_id": client_id}


def by_alice_with_a_key(scenario):
    return scenario.session().authorization, {"api_key_id": make_key(scenario.session())[0]}


def by_alice_for_an_application(scenario):
    session, path = scenario.session(), openid.authorize_path(openid.insert_client(scenario.database))
    url = scenario.client.get(path).headers["Location"]
    authorization_id = url.partition("authorization_id=")[2]
    assert session.get(f"/oauth/authorizations/{authorization_id}").status_code == 200
    return session.authorization, {"authorization_id": authorization_id}


def by_the_service_role(scenario):
    return scenario.service_role, {}


def by_the_service_role_about_factors(scenario):
    app, session = set_up(scenario.session())
    _, passkey = passkeys.register(session)
    return scenario.service_role, {"factor_id": app.id, "passkey_id": passkey["id"]}


def by_the_service_role_about_a_client(scenario):
    client = scenario.administer("POST", "/admin/oauth/clients", CLIENT).json
    return scenario.service_role, {"client_id": client["client_id"]}


def requests(caller, *rows):
    """Register stories of requests by a caller: route, body, events and acts of each."""

    def add_story(route, body, events, acts):
        @effect(route.partition("?")[0], events, acts)
        def send(scenario):
            webhook_id = scenario.database.value("SELECT id FROM webhooks")
            ids_of_fixtures = {"user_id": scenario.alice.id, "webhook_id": webhook_id}
            headers, ids = caller(scenario)
            for email, role in ((BOB, None), (CAROL, "admin")):
                register(scenario.client, scenario.service_role, email, role)
            method, path = route.format_map(ids_of_fixtures | ids).split()
            return lambda: scenario.client.open(path, method=method.upper(), json=body, headers=headers)

        send.__name__ = f"{caller.__name__}: {route}"

    for row in rows:
        add_story(*row)


requests(
    by_anyone,
    ("post /signup", {"email": DAVE, "password": PASSWORD}, "user.created", "user_created"),
    ("post /signup", {"phone": links.PHONE, "password": PASSWORD}, "user.created", "user_created"),
    ("post /signup", {"email": ALICE, "password": PASSWORD}, "", ""),
    ("post /token?grant_type=password", {"email": ALICE, "password": PASSWORD}, "auth.login", "signed_in"),
    ("post /token?grant_type=password", {"email": ALICE, "password": "Wrong-Horse-1"}, "", ""),
    ("post /login-admin", {"email": CAROL, "password": PASSWORD}, "auth.login", "signed_in"),
    ("post /login-admin", {"email": ALICE, "password": PASSWORD}, "", ""),
    ("post /magiclink", {"email": DAVE}, "user.created", "user_created message_requested"),
    ("post /magiclink", {"email": ALICE}, "", "message_requested"),
    ("post /magiclink", {"email": DAVE, "create_user": False}, "", "message_requested"),
    ("post /otp", {"phone": links.PHONE}, "user.created", "user_created message_requested"),
    ("post /recover", {"email": ALICE}, "", "message_requested"),
    ("post /passkeys/authentication/options", {}, "", ""),
)
requests(
    by_alice,
    ("get /reauthenticate", None, "", "message_requested"),
    ("post /reauthenticate", {"current_password": PASSWORD}, "", "reauthenticated"),
    ("put /user", {"data": {"name": "Alice"}}, "user.updated", "user_changed"),
    (
        "put /user",
        {"data": {}, "password": NEW_PASSWORD, "email": NEW, "phone": links.PHONE},
        "user.updated",
        "password_changed email_change_requested phone_change_requested user_changed",
    ),
    ("put /user", {"email": BOB, "data": {"name": "Alice"}}, "", ""),
    ("delete /user", None, "user.deleted", "user_deleted"),
    ("delete /user/identities/{identity_id}", None, "", ""),
    ("delete /sessions/{session_id}", None, "auth.logout", "session_ended"),
    ("post /factors", {"factor_type": "totp"}, "", ""),
    ("post /passkeys/registration/options", {}, "", ""),
    ("post /user/api_keys", {"name": "CI"}, "", "api_key_added"),
)
requests(
    by_alice_with_an_application,
    ("delete /user/oauth/grants?client_id={client_id}", None, "", "grant_removed"),
)
requests(by_alice_with_a_key, ("delete /user/api_keys/{api_key_id}", None, "", "api_key_removed"))
requests(
    by_alice_with_an_app,
    ("post /factors/{factor_id}/challenge", {}, "", ""),
    ("delete /factors/{factor_id}", None, "user.updated", "factor_removed"),
    ("post /factors/recovery-codes", {}, "", "recovery_codes_created"),
)
requests(
    by_alice_with_recovery_codes,
    ("post /factors/recovery-codes/regenerate", {}, "", "recovery_codes_created"),
    ("delete /factors/recovery-codes", None, "", "recovery_codes_removed"),
)
requests(
    by_alice_with_a_passkey,
    ("patch /passkeys/{passkey_id}", {"friendly_name": "Laptop"}, "user.updated", "passkey_renamed"),
    ("delete /passkeys/{passkey_id}", None, "user.updated", "passkey_removed"),
)
requests(
    by_alice_with_google,
    ("delete /user/identities/{identity_id}", None, "user.updated", "identity_unlinked"),
)
requests(
    by_the_service_role,
    ("post /admin/users", {"email": DAVE, "password": PASSWORD}, "user.created", "user_created"),
    ("post /admin/users", {"email": ALICE}, "", ""),
    ("put /admin/users/{user_id}", {"app_metadata": {"plan": "gold"}}, "user.updated", "user_changed"),
    (
        "put /admin/users/{user_id}",
        {"password": NEW_PASSWORD, "email": NEW, "phone": links.OTHER_PHONE}
        | {"phone_confirm": True, "role": "admin", "ban_duration": "1h"},
        "user.updated",
        "password_changed email_changed email_unconfirmed phone_changed phone_confirmed role_changed banned",
    ),
    ("delete /admin/users/{user_id}", {}, "user.deleted", "user_deleted"),
    ("post /admin/users/{user_id}/logout", {}, "auth.logout", "signed_out"),
    (
        "post /admin/generate_link",
        {"type": "signup", "email": DAVE, "password": PASSWORD},
        "user.created",
        "user_created link_generated",
    ),
    ("post /admin/generate_link", {"type": "magiclink", "email": ALICE}, "", "link_generated"),
    ("post /admin/generate_link", {"type": "magiclink", "email": DAVE}, "", ""),
    ("post /invite", {"email": ALICE}, "", ""),
    ("post /admin/webhooks", {"url": "https://127.0.0.1/"}, "", "webhook_created"),
    (
        "put /admin/webhooks/{webhook_id}",
        {"description": "Ours", "rotate_secret": True, "disabled": True},
        "",
        "webhook_changed webhook_secret_rotated webhook_disabled",
    ),
    ("delete /admin/webhooks/{webhook_id}", {}, "", "webhook_deleted"),
    ("post /admin/webhooks/{webhook_id}/test", {}, "user.updated", "webhook_tested"),
)
FACTOR, WORK = "/admin/users/{user_id}/factors/{factor_id}", {"friendly_name": "Work"}
requests(
    by_the_service_role_about_factors,
    (f"put {FACTOR}", WORK, "user.updated", "factor_renamed"),
    (f"delete {FACTOR}", {}, "user.updated", "factor_removed"),
    ("delete /admin/users/{user_id}/passkeys/{passkey_id}", {}, "user.updated", "passkey_removed"),
)
requests(
    by_alice_for_an_application,
    ("post /oauth/authorizations/{authorization_id}/consent", {"action": "approve"}, "", "grant_added"),
    ("post /oauth/authorizations/{authorization_id}/consent", {"action": "deny"}, "", ""),
)
requests(
    by_the_service_role_about_a_client,
    ("post /admin/oauth/clients", CLIENT, "", "client_created"),
    ("put /admin/oauth/clients/{client_id}", {"client_name": "Wiki"}, "", "client_changed"),
    ("post /admin/oauth/clients/{client_id}/regenerate_secret", {}, "", "client_secret_replaced"),
    ("delete /admin/oauth/clients/{client_id}/previous_secret", None, "", ""),
    ("delete /admin/oauth/clients/{client_id}", None, "", "client_deleted"),
    ("post /oauth/clients/register", CLIENT, "", ""),
)


def by_link(client, message):
    return links.follow(client, message.kind, message.token)


def by_code(client, message):
    return links.type_in(client, message.kind, message.to, message.code)


def by_wrong_code(client, message):
    return links.type_in(client, message.kind, message.to, message.wrong_code)


def by_hash(client, message):
    return links.hand_in(client, message.kind, message.token)


def by_declining(client, message):
    return links.press(client, message.kind, message.token, action="decline")


def add_message_story(route, use, kind, events, acts):
    """Register the story of a link or code."""

    @effect(route, events, acts)
    def send(scenario):
        message = scenario.sent(kind)
        return lambda: use(scenario.client, message)

    send.__name__ = f"{use.__name__} of {kind}"


add_message_story("get /verify", by_link, "signup", "user.updated auth.login", "email_confirmed signed_in")
add_message_story("get /verify", by_link, "email_change", "user.updated", "email_changed")
add_message_story("post /verify", by_code, "sms", "user.updated auth.login", "phone_confirmed signed_in")
add_message_story(
    "post /verify", by_code, "phone_change", "user.updated auth.login", "phone_changed signed_in"
)
add_message_story("post /verify", by_hash, "invite", "user.updated auth.login", "email_confirmed signed_in")
add_message_story("post /verify", by_declining, "signup", "user.deleted", "user_deleted")
add_message_story("post /verify", by_wrong_code, "magiclink", "", "")


def sent_twice(route, events, acts, repeated):
    """Register a story, and another in which its request is sent again, with these acts and no events."""

    def add_both(prepare):
        @effect(route, "", repeated)
        def send_again(scenario):
            send = prepare(scenario)
            send()
            scenario.database.run("DELETE FROM failure_counts")
            return send

        send_again.__name__ = f"{prepare.__name__}_again"
        return effect(route, events, acts)(prepare)

    return add_both


@sent_twice("post /signup", "user.created", "user_created", "message_requested")
def signing_up_with_a_challenge(scenario):
    body = {"email": DAVE, "password": PASSWORD, **links.WITH_CHALLENGE}
    return lambda: scenario.client.post("/signup", json=body)


@sent_twice("post /token", "", "", "")
def refreshing(scenario):
    return scenario.session().refresh


@sent_twice("post /token", "auth.login", "signed_in", "authorization_code_reused")
def exchanging_a_code(scenario):
    scenario.client.post("/magiclink", json={"email": scenario.alice.email, **links.WITH_CHALLENGE})
    opened = links.follow(scenario.client, "magiclink", scenario.outbox.last(kind="magiclink").token)
    body = {"auth_code": links.query(opened)["code"], "code_verifier": links.VERIFIER}
    return lambda: scenario.client.post("/token?grant_type=pkce", json=body)


@sent_twice("post /oauth/token", "auth.login", "signed_in", "authorization_code_reused")
def redeeming_the_code_of_an_application(scenario):
    application = openid.make_client(scenario.database)
    code = openid.granted_code(scenario.database, application, scenario.session())
    return lambda: application.redeem(scenario.client, code)


@sent_twice("post /oauth/token", "", "", "")
def refreshing_the_session_of_an_application(scenario):
    application = openid.make_client(scenario.database)
    tokens = openid.tokens_of(scenario.client, scenario.database, application, scenario.alice)
    return lambda: application.refresh(scenario.client, tokens["refresh_token"])


@sent_twice("post /oauth/revoke", "auth.logout", "session_ended", "")
def revoking_the_token_of_an_application(scenario):
    application = openid.make_client(scenario.database)
    tokens = openid.tokens_of(scenario.client, scenario.database, application, scenario.alice)
    return lambda: application.post(scenario.client, "/oauth/revoke", token=tokens["access_token"])


@sent_twice("post /admin/invite", "user.created", "user_created invited", "invited")
def inviting(scenario):
    return lambda: scenario.administer("POST", "/admin/invite", {"email": DAVE})


@sent_twice("get /verify", "auth.login", "signed_in", "")
def following_a_magic_link(scenario):
    token = scenario.sent("magiclink").token
    return lambda: links.follow(scenario.client, "magiclink", token)


@sent_twice("post /logout", "auth.logout", "signed_out", "")
def logging_out(scenario):
    session = scenario.session()
    return lambda: session.post("/logout")


@sent_twice("get /callback", "user.created auth.login", "user_created signed_in", "")
def signing_in_with_a_provider_as_a_new_user(scenario):
    return coming_back(scenario)


@effect("get /callback", "auth.login", "signed_in")
def signing_in_with_a_provider_again(scenario):
    coming_back(scenario)()
    return coming_back(scenario)


@effect("post /resend", "", "message_requested")
def requesting_another_link_of_a_sign_up(scenario):
    signing_up_with_a_challenge(scenario)()
    return lambda: scenario.client.post("/resend", json={"type": "signup", "email": DAVE})


@effect("put /admin/webhooks/{webhook_id}", "", "webhook_enabled")
def enabling_a_webhook(scenario):
    path = f"/admin/webhooks/{scenario.database.value('SELECT id FROM webhooks')}"
    scenario.administer("PUT", path, {"disabled": True})
    return lambda: scenario.administer("PUT", path, {"disabled": False})


@effect("post /token", "", "refresh_token_repeated")
def refreshing_twice_from_elsewhere(scenario):
    session = scenario.session()
    session.refresh()
    return lambda: scenario.client.post(
        "/token?grant_type=refresh_token",
        json={"refresh_token": session.refresh_token},
        environ_overrides={"REMOTE_ADDR": "192.0.2.66"},
    )


@effect("post /token", "", "refresh_answer_lost")
def refreshing_again_after_a_lost_response(scenario):
    session = scenario.session()
    session.refresh()
    scenario.database.run("UPDATE sessions SET refreshed_at = refreshed_at - interval '2 minutes'")
    return session.refresh


@effect("post /token", "", "refresh_token_reused")
def using_a_stolen_refresh_token(scenario):
    session = scenario.session()
    newer = session.refreshed()
    scenario.database.run("UPDATE sessions SET refreshed_at = refreshed_at - interval '2 minutes'")
    newer.refresh()
    return session.refresh


@effect("get /verify", "user.updated", "change_undone")
def following_the_undo_link(scenario):
    links.hand_in(scenario.client, "email_change", scenario.sent("email_change").token)
    token = scenario.outbox.last("erin@example.com", "email_changed").token
    return lambda: links.follow(scenario.client, "undo", token)


@effect("post /verify", "user.updated auth.login", "password_changed signed_in")
def recovering_with_a_password_chosen_by_an_administrator(scenario):
    body = {"type": "recovery", "email": scenario.alice.email, "password": NEW_PASSWORD}
    token = scenario.administer("POST", "/admin/generate_link", body).json["hashed_token"]
    return lambda: links.hand_in(scenario.client, "recovery", token)


@effect("put /admin/users/{user_id}", "user.updated", "unbanned")
def lifting_a_ban(scenario):
    scenario.change_alice(ban_duration="permanent")()
    return scenario.change_alice(ban_duration=None)


REDELIVERY = "/admin/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver"


@effect(f"post {REDELIVERY}", "auth.login", "event_redelivered")
def redelivering_an_event(scenario):
    scenario.session()
    finish = "UPDATE outbox SET outcome = 'sent', finished_at = now() WHERE kind = 'auth.login'"
    delivery = scenario.database.one(f"{finish} RETURNING id AS delivery_id, recipient AS webhook_id")
    return lambda: scenario.administer("POST", REDELIVERY.format_map(delivery._asdict()))


def coming_back(scenario, **query):
    """Return the visit of a browser that a provider redirects back."""
    browser = scenario.service.browser()
    url = scenario.service.return_url(browser, "google", **query)
    return lambda: browser.visit(url)


@effect("get /callback", "user.updated auth.login", "identity_linked signed_in")
def signing_in_with_a_provider_that_knows_the_address(scenario):
    assert scenario.alice.id
    return coming_back(scenario)


@effect("get /callback", "user.updated auth.login", "email_confirmed identity_linked signed_in")
def signing_in_with_a_provider_that_proves_the_address(scenario):
    scenario.client.post("/signup", json={"email": "alice@example.com", "password": PASSWORD})
    return coming_back(scenario)


@effect("post /factors/{factor_id}/verify", "user.updated", "factor_added")
def verifying_a_factor_for_the_first_time(scenario):
    session = scenario.session()
    app = enrol(session)
    body = {"challenge_id": challenge(session, app), "code": app.code()}
    return lambda: session.post(f"/factors/{app.id}/verify", json=body)


@effect("post /factors/{factor_id}/verify", "", "factor_verified")
def verifying_a_factor_again(scenario):
    app, session = set_up(scenario.session())
    body = {"challenge_id": challenge(session, app), "code": app.code()}
    return lambda: session.post(f"/factors/{app.id}/verify", json=body)


@effect("post /factors/recovery-codes/verify", "", "recovery_code_used")
def using_a_recovery_code(scenario):
    _, session = set_up(scenario.session())
    code = session.post("/factors/recovery-codes", json={}).json["codes"][0]
    return lambda: session.post("/factors/recovery-codes/verify", json={"code": code})


@effect("post /passkeys/registration/verify", "user.updated", "passkey_added")
def registering_a_passkey(scenario):
    session = scenario.session()
    return lambda: passkeys.register_response(session, Authenticator())


@effect("post /token", "", "api_key_used")
def exchanging_an_api_key(scenario):
    _, key = make_key(scenario.session())
    return lambda: use(scenario.client, key)


@effect("post /passkeys/registration/verify", "user.updated", "passkey_added")
def letting_a_browser_make_a_passkey(scenario):
    session = scenario.session()
    begun, authenticator = passkeys.begin_unasked(session), Authenticator()
    credential = authenticator.create(begun["options"], is_present=False, is_verified=False)
    body = {"challenge_id": begun["challenge_id"], "credential": credential}
    return lambda: session.post("/passkeys/registration/verify", json=body)


@effect("post /passkeys/authentication/verify", "user.updated auth.login", "passkey_verified signed_in")
def using_it_for_the_first_time(scenario):
    authenticator, _ = passkeys.make_unasked(scenario.session())
    return lambda: passkeys.sign_in_response(scenario.client, authenticator)


@effect("post /passkeys/authentication/verify", "auth.login", "signed_in")
def signing_in_by_a_passkey(scenario):
    authenticator, _ = passkeys.register(scenario.session())
    return lambda: passkeys.sign_in_response(scenario.client, authenticator)


def add_customers_provider(scenario):
    google = scenario.google
    body = {"identifier": "custom:acme", "provider_type": "oidc", "name": "Acme", "domains": ["acme.example"]}
    body |= {"issuer": google.url, "client_id": google.client_id, "client_secret": google.client_secret}
    return scenario.administer("POST", "/admin/custom-providers", body)


@effect("post /admin/custom-providers", "", "provider_added")
def adding_a_customers_provider(scenario):
    return lambda: add_customers_provider(scenario)


@effect("put /admin/custom-providers/{identifier}", "", "provider_changed provider_disabled")
def changing_a_customers_provider(scenario):
    path = f"/admin/custom-providers/{add_customers_provider(scenario).json['identifier']}"
    return lambda: scenario.administer("PUT", path, {"name": "Acme Inc.", "enabled": False})


@effect("delete /admin/custom-providers/{identifier}", "", "provider_deleted provider_disabled")
def deleting_a_customers_provider(scenario):
    path = f"/admin/custom-providers/{add_customers_provider(scenario).json['identifier']}"
    return lambda: scenario.administer("DELETE", path)


def found_acme(session):
    return session.post("/organizations", json={"name": "Acme", "slug": "acme"})


def acme_of(session):
    """Return the path of an organization that a session's user owns."""
    response = found_acme(session)
    assert response.status_code == 201, response.text
    return f"/organizations/{response.json['id']}"


def invited_by_acme(scenario):
    """Return the owner's session, the path of the organization, and the session and the invitation of Bob."""
    owner = scenario.session()
    path = acme_of(owner)
    bob = register(scenario.client, scenario.service_role, BOB)
    response = owner.post(f"{path}/invitations", json={"email": BOB, "role": "member"})
    return owner, path, bob.open_session(scenario.client), response.json["id"]


def member_of_acme(scenario):
    owner, path, session, invitation = invited_by_acme(scenario)
    assert session.post(f"/user/invitations/{invitation}").status_code == 200
    return owner, f"{path}/members/{session.user['id']}"


@effect(
    "post /organizations", "organization.created membership.created", "organization_created membership_added"
)
def founding_an_organization(scenario):
    session = scenario.session()
    return lambda: found_acme(session)


@effect("put /organizations/{name}", "organization.updated", "organization_changed")
def renaming_an_organization(scenario):
    session = scenario.session()
    path = acme_of(session)
    return lambda: session.put(path, json={"name": "Acme Inc."})


@effect("delete /organizations/{name}", "organization.deleted", "organization_ended")
def ending_an_organization(scenario):
    session = scenario.session()
    path = acme_of(session)
    return lambda: session.delete(path, json={})


@effect("put /organizations/{name}/members/{user_id}", "membership.updated", "membership_changed")
def changing_the_role_of_a_member(scenario):
    owner, path = member_of_acme(scenario)
    return lambda: owner.put(path, json={"role": "billing"})


@effect("delete /organizations/{name}/members/{user_id}", "membership.deleted", "membership_removed")
def removing_a_member(scenario):
    owner, path = member_of_acme(scenario)
    return lambda: owner.delete(path)


@effect("post /organizations/{name}/invitations", "", "member_invited")
def inviting_a_member(scenario):
    session = scenario.session()
    path = acme_of(session)
    return lambda: session.post(f"{path}/invitations", json={"email": BOB, "role": "member"})


@effect("delete /organizations/{name}/invitations/{invitation_id}", "", "invitation_withdrawn")
def withdrawing_an_invitation(scenario):
    owner, path, _, invitation = invited_by_acme(scenario)
    return lambda: owner.delete(f"{path}/invitations/{invitation}")


@effect("post /user/invitations/{invitation_id}", "membership.created", "membership_added")
def joining_an_organization(scenario):
    _, _, session, invitation = invited_by_acme(scenario)
    return lambda: session.post(f"/user/invitations/{invitation}")


@effect("delete /user/invitations/{invitation_id}", "", "invitation_declined")
def declining_an_invitation(scenario):
    _, _, session, invitation = invited_by_acme(scenario)
    return lambda: session.delete(f"/user/invitations/{invitation}")


def sign_in_of_acme(scenario):
    """Return the owner's session, the path of the organization, and the id of its provider, which is off."""
    owner = scenario.session()
    path = acme_of(owner)
    id = scenario.database.value(OWN_PROVIDER)
    return owner, path, id


@effect("delete /organizations/{name}/domains/{domain}", "", "domain_lost")
def giving_a_domain_up(scenario):
    owner, path, _ = sign_in_of_acme(scenario)
    return lambda: owner.delete(f"{path}/domains/acme.example")


@effect("put /organizations/{name}/providers/{provider}", "", "provider_changed")
def changing_the_own_provider(scenario):
    owner, path, id = sign_in_of_acme(scenario)
    return lambda: owner.put(f"{path}/providers/{id}", json={"name": "Acme Inc."})


@effect("delete /organizations/{name}/providers/{provider}", "", "provider_deleted")
def deleting_the_own_provider(scenario):
    owner, path, id = sign_in_of_acme(scenario)
    return lambda: owner.delete(f"{path}/providers/{id}", json={})


@pytest.mark.parametrize("story", EFFECTS, ids=str)
def test_request_writes_exactly_these_events_and_acts(story, scenario):
    send = story.prepare(scenario)
    scenario.forget()
    send()
    assert (scenario.events(), scenario.acts()) == (story.events, story.acts)


def test_every_changing_route_has_a_story(whole_app):
    changing = {
        route[:2] for route in routes(whole_app) if route[0] != "get" and not route[1].endswith("/callback")
    }
    assert changing - {effect.route for effect in EFFECTS} == WITHOUT_EVENTS | TESTED_ELSEWHERE


def test_event_is_written_once_per_webhook_with_one_id(scenario, database):
    alice = scenario.alice
    other = "gen_random_uuid(), 'https://other.example.com/', '{auth.login}', ''"
    database.run(f"INSERT INTO webhooks (id, url, events, secret) VALUES ({other})")
    scenario.forget()
    alice.sign_in()
    rows = database.all("SELECT kind, recipient, variables, user_id FROM outbox WHERE channel = 'webhook'")
    assert {row.recipient for row in rows} == {str(row.id) for row in database.all("SELECT id FROM webhooks")}
    user = {"id": alice.id, "email": alice.email}
    event = {"event_id": A_UUID, "timestamp": A_TIMESTAMP, "data": {"user": user}}
    for row in rows:
        assert (row.kind, row.user_id, row.variables) == ("auth.login", alice.id, event)
        assert row.variables["event_id"] == rows[0].variables["event_id"]


def test_event_of_an_organization_names_it_and_that_of_a_membership_the_role_and_the_user_too(
    scenario, database, service_role
):
    session = scenario.session()
    scenario.forget()
    path = acme_of(session)
    acme = {"id": path.rpartition("/")[2], "slug": "acme"}
    by_phone = "INSERT INTO users (phone, made_by) VALUES (%(phone)s, 'import') RETURNING id::text"
    phone_user_id = database.value(by_phone, phone=links.PHONE)
    response = scenario.client.put(
        f"{path}/members/{phone_user_id}", json={"role": "billing"}, headers=service_role
    )
    assert response.status_code in (200, 201), response.text
    session.delete(path, json={})
    rows = database.all(
        "SELECT kind, variables->'data' AS data FROM outbox"
        " WHERE channel = 'webhook' AND kind ~ '^(organization|membership)' ORDER BY created_at"
    )
    alice = {"id": scenario.alice.id, "email": ALICE}
    expected = [
        ("membership.created", {"organization": acme, "role": "owner", "user": alice}),
        (
            "membership.created",
            {"organization": acme, "role": "billing", "user": {"id": phone_user_id, "email": None}},
        ),
        ("organization.created", {"organization": acme}),
        ("organization.deleted", {"organization": acme}),
    ]
    assert sorted(((row.kind, row.data) for row in rows), key=str) == sorted(expected, key=str)
    contract = OAS30ReadValidator(resolved(description()["components"]["schemas"]["WebhookEvent"]))
    for kind, data in expected:
        contract.validate({"event": kind, "timestamp": "2026-01-31T12:00:00.000000Z", "data": data})


def test_rollback_leaves_neither_an_event_nor_an_act(scenario, database):
    session = scenario.session()
    scenario.forget()
    # The notice is written last.
    database.run("ALTER TABLE outbox ADD CONSTRAINT no_notices CHECK (kind <> 'password_changed') NOT VALID")
    try:
        assert session.put("/user", json={"password": NEW_PASSWORD}).status_code == 500
    finally:
        database.run("ALTER TABLE outbox DROP CONSTRAINT no_notices")
    assert (scenario.events(), scenario.acts()) == ([], [])
    assert scenario.alice.try_to_sign_in().status_code == 200
