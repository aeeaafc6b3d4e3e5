"""The events and audit log rows of each request: exactly these, and none when it is refused or rolled back."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.delivery import factor_stories  # noqa: F401
from tests.support.answers import A_TIMESTAMP, A_UUID
from tests.support.cast import PASSWORD, refresh, register
from tests.support.links import (
    CHALLENGE,
    OTHER_PHONE,
    PHONE,
    VERIFIER,
    WITH_CHALLENGE,
    follow,
    hand_in,
    press,
    type_in,
)
from tests.support.links import query as query_of
from tests.support.stories import STORIES, World, story
from tests.test_contract import routes

pytest_plugins = ["tests.support.oauth_fixtures"]

NEW_PASSWORD = "New-Horse-2"
# Routes that change nothing about a user.
WITHOUT_EVENTS = {("post", "/introspect"), ("post", "/link-identity"), ("post", "/sso")}


@pytest.fixture
def world(service, service_role, outbox, database, google) -> World:
    google.person = {"sub": "alice-at-google", "email": "alice@example.com", "email_verified": True}
    return World(service, service.client, service_role, outbox, database, google)


def dave(**more: Any) -> dict[str, Any]:
    return {"email": "dave@example.com", "password": PASSWORD, **more}


@story("post /signup", "user.created", "user_created")
def signing_up(world: World) -> Callable[[], Any]:
    return lambda: world.client.post("/signup", json=dave())


@story("post /signup", "user.created", "user_created")
def signing_up_by_phone(world: World) -> Callable[[], Any]:
    return lambda: world.client.post("/signup", json={"phone": PHONE, "password": PASSWORD})


@story("post /signup", "", "message_requested")
def signing_up_again(world: World) -> Callable[[], Any]:
    world.client.post("/signup", json=dave())
    world.database.run("DELETE FROM failure_counts")
    return lambda: world.client.post("/signup", json=dave())


@story("post /signup", "", "")
def signing_up_with_a_taken_address(world: World) -> Callable[[], Any]:
    email = world.alice.email
    return lambda: world.client.post("/signup", json={"email": email, "password": PASSWORD})


@story("post /token", "auth.login", "signed_in")
def signing_in(world: World) -> Callable[[], Any]:
    return world.alice.try_to_sign_in


@story("post /token", "", "")
def signing_in_with_a_wrong_password(world: World) -> Callable[[], Any]:
    alice = world.alice
    return lambda: alice.try_to_sign_in("Wrong-Horse-1")


@story("post /token", "", "")
def refreshing(world: World) -> Callable[[], Any]:
    return world.session().refresh


@story("post /token", "", "")
def refreshing_twice(world: World) -> Callable[[], Any]:
    session = world.session()
    session.refresh()
    return session.refresh


@story("post /token", "", "refresh_token_repeated")
def refreshing_twice_from_elsewhere(world: World) -> Callable[[], Any]:
    session = world.session()
    session.refresh()
    return lambda: world.client.post(
        "/token?grant_type=refresh_token",
        json={"refresh_token": session.refresh_token},
        environ_overrides={"REMOTE_ADDR": "192.0.2.66"},
    )


@story("post /token", "", "refresh_token_reused")
def using_a_stolen_refresh_token(world: World) -> Callable[[], Any]:
    session = world.session()
    refresh(world.client, session.refreshed().refresh_token)
    return session.refresh


@story("post /token", "auth.login", "signed_in")
def exchanging_a_code(world: World) -> Callable[[], Any]:
    return exchange(world)


@story("post /token", "", "authorization_code_reused")
def exchanging_a_code_again(world: World) -> Callable[[], Any]:
    exchanged = exchange(world)
    exchanged()
    return exchanged


def exchange(world: World) -> Callable[[], Any]:
    email = world.alice.email
    world.client.post("/magiclink", json={"email": email, **WITH_CHALLENGE})
    code = query_of(follow(world.client, "magiclink", world.outbox.last(email, "magiclink").token))["code"]
    return lambda: world.client.post(
        "/token?grant_type=pkce", json={"auth_code": code, "code_verifier": VERIFIER}
    )


@story("post /login-admin", "auth.login", "signed_in")
def signing_in_as_an_administrator(world: World) -> Callable[[], Any]:
    carol = register(world.client, world.service_role, "carol@example.com", "admin")
    return lambda: world.client.post("/login-admin", json={"email": carol.email, "password": PASSWORD})


@story("post /login-admin", "", "")
def signing_in_as_an_administrator_without_the_role(world: World) -> Callable[[], Any]:
    email = world.alice.email
    return lambda: world.client.post("/login-admin", json={"email": email, "password": PASSWORD})


@story("post /magiclink", "user.created", "user_created message_requested")
def requesting_a_link_for_a_new_address(world: World) -> Callable[[], Any]:
    return lambda: world.client.post("/magiclink", json={"email": "dave@example.com"})


@story("post /magiclink", "", "message_requested")
def requesting_a_link(world: World) -> Callable[[], Any]:
    email = world.alice.email
    return lambda: world.client.post("/magiclink", json={"email": email})


@story("post /magiclink", "", "message_requested")
def requesting_a_link_for_an_unknown_address(world: World) -> Callable[[], Any]:
    return lambda: world.client.post("/magiclink", json={"email": "nobody@example.com", "create_user": False})


@story("post /otp", "user.created", "user_created message_requested")
def requesting_a_code_for_a_new_address(world: World) -> Callable[[], Any]:
    return lambda: world.client.post("/otp", json={"phone": PHONE})


@story("post /recover", "", "message_requested")
def recovering(world: World) -> Callable[[], Any]:
    email = world.alice.email
    return lambda: world.client.post("/recover", json={"email": email})


@story("post /resend", "", "message_requested")
def requesting_another_link_of_a_sign_up(world: World) -> Callable[[], Any]:
    world.client.post("/signup", json=dave())
    return lambda: world.client.post("/resend", json={"type": "signup", "email": "dave@example.com"})


@story("get /reauthenticate", "", "message_requested")
def requesting_a_code_to_reauthenticate(world: World) -> Callable[[], Any]:
    session = world.session()
    return lambda: session.get("/reauthenticate")


@story("post /reauthenticate", "", "reauthenticated")
def reauthenticating_with_the_password(world: World) -> Callable[[], Any]:
    session = world.session()
    return lambda: session.post("/reauthenticate", json={"current_password": PASSWORD})


@story("post /reauthenticate", "", "reauthenticated")
def reauthenticating_with_a_code(world: World) -> Callable[[], Any]:
    session = world.session()
    session.get("/reauthenticate")
    nonce = world.outbox.last("alice@example.com", "reauthentication").code
    return lambda: session.post("/reauthenticate", json={"nonce": nonce})


@story("get /verify", "user.updated auth.login", "email_confirmed signed_in")
def following_the_link_of_a_sign_up(world: World) -> Callable[[], Any]:
    token = world.sent("signup").token
    return lambda: follow(world.client, "signup", token)


@story("get /verify", "auth.login", "signed_in")
def following_a_magic_link(world: World) -> Callable[[], Any]:
    token = world.sent("magiclink").token
    return lambda: follow(world.client, "magiclink", token)


@story("get /verify", "user.updated", "email_confirmed")
def following_a_link_for_a_code(world: World) -> Callable[[], Any]:
    world.client.post("/signup", json=dave(**WITH_CHALLENGE))
    token = world.outbox.last("dave@example.com", "signup").token
    return lambda: follow(world.client, "signup", token)


@story("get /verify", "user.updated", "email_changed")
def following_the_link_of_a_new_address(world: World) -> Callable[[], Any]:
    token = world.sent("email_change").token
    return lambda: follow(world.client, "email_change", token)


@story("get /verify", "user.updated", "change_undone")
def following_the_undo_link(world: World) -> Callable[[], Any]:
    hand_in(world.client, "email_change", world.sent("email_change").token)
    token = world.outbox.last("erin@example.com", "email_changed").token
    return lambda: follow(world.client, "undo", token)


@story("get /verify", "", "")
def following_a_link_again(world: World) -> Callable[[], Any]:
    token = world.sent("magiclink").token
    follow(world.client, "magiclink", token)
    return lambda: follow(world.client, "magiclink", token)


@story("post /verify", "user.updated auth.login", "phone_confirmed signed_in")
def verifying_the_code_of_an_sms(world: World) -> Callable[[], Any]:
    sent = world.sent("sms")
    return lambda: type_in(world.client, "sms", sent.to, sent.code)


@story("post /verify", "user.updated auth.login", "phone_changed signed_in")
def verifying_the_code_of_a_new_phone(world: World) -> Callable[[], Any]:
    sent = world.sent("phone_change")
    return lambda: type_in(world.client, "phone_change", sent.to, sent.code)


@story("post /verify", "user.updated auth.login", "email_confirmed signed_in")
def accepting_an_invitation(world: World) -> Callable[[], Any]:
    token = world.sent("invite").token
    return lambda: hand_in(world.client, "invite", token)


@story("post /verify", "user.updated auth.login", "password_changed signed_in")
def recovering_with_a_password_chosen_by_an_administrator(world: World) -> Callable[[], Any]:
    body = {"type": "recovery", "email": world.alice.email, "password": NEW_PASSWORD}
    token = world.administer("POST", "/admin/generate_link", body).json["hashed_token"]
    return lambda: hand_in(world.client, "recovery", token)


@story("post /verify", "user.deleted", "user_deleted")
def declining_a_sign_up(world: World) -> Callable[[], Any]:
    token = world.sent("signup").token
    return lambda: press(world.client, "signup", token, action="decline")


@story("post /verify", "", "")
def verifying_a_wrong_code(world: World) -> Callable[[], Any]:
    sent = world.sent("magiclink")
    return lambda: type_in(world.client, "magiclink", sent.to, sent.wrong_code)


@story("put /user", "user.updated", "user_changed")
def changing_metadata(world: World) -> Callable[[], Any]:
    session = world.session()
    return lambda: session.put("/user", json={"data": {"name": "Alice"}})


@story(
    "put /user", "user.updated", "password_changed email_change_requested phone_change_requested user_changed"
)
def changing_everything(world: World) -> Callable[[], Any]:
    session = world.session()
    body = {"data": {}, "password": NEW_PASSWORD, "email": "new@example.com", "phone": PHONE}
    return lambda: session.put("/user", json=body)


@story("put /user", "", "")
def changing_to_a_taken_address(world: World) -> Callable[[], Any]:
    session = world.session()
    register(world.client, world.service_role, "bob@example.com")
    return lambda: session.put("/user", json={"email": "bob@example.com", "data": {"name": "Alice"}})


@story("put /user", "user.updated", "reauthenticated password_changed")
def changing_the_password_with_a_code(world: World) -> Callable[[], Any]:
    session = world.session()
    world.database.run("UPDATE sessions SET created_at = created_at - interval '2 days'")
    session.get("/reauthenticate")
    nonce = world.outbox.last("alice@example.com", "reauthentication").code
    return lambda: session.put("/user", json={"password": NEW_PASSWORD, "nonce": nonce})


@story("put /user", "", "")
def changing_the_password_in_an_old_session(world: World) -> Callable[[], Any]:
    session = world.session()
    world.database.run("UPDATE sessions SET created_at = created_at - interval '2 days'")
    return lambda: session.put("/user", json={"password": NEW_PASSWORD})


@story("delete /user", "user.deleted", "user_deleted")
def deleting_the_own_account(world: World) -> Callable[[], Any]:
    session = world.session()
    return lambda: session.delete("/user")


@story("post /logout", "auth.logout", "signed_out")
def logging_out(world: World) -> Callable[[], Any]:
    session = world.session()
    world.session()
    return lambda: session.post("/logout")


@story("post /logout", "", "")
def logging_out_twice(world: World) -> Callable[[], Any]:
    session = world.session()
    session.post("/logout")
    return lambda: session.post("/logout")


@story("delete /sessions/{session_id}", "auth.logout", "session_ended")
def ending_a_session(world: World) -> Callable[[], Any]:
    session, other = world.session(), world.session()
    return lambda: session.delete(f"/sessions/{other.id}")


@story("delete /sessions/{session_id}", "", "")
def ending_a_session_of_another_user(world: World) -> Callable[[], Any]:
    session = world.session()
    other = register(world.client, world.service_role, "bob@example.com").sign_in()
    return lambda: session.delete(f"/sessions/{other.id}")


@story("post /admin/users", "user.created", "user_created")
def creating_a_user(world: World) -> Callable[[], Any]:
    return lambda: world.administer("POST", "/admin/users", dave())


@story("post /admin/users", "", "")
def creating_an_existing_user(world: World) -> Callable[[], Any]:
    email = world.alice.email
    return lambda: world.administer("POST", "/admin/users", {"email": email})


@story("put /admin/users/{user_id}", "user.updated", "user_changed")
def changing_the_metadata_of_a_user(world: World) -> Callable[[], Any]:
    return world.change_alice(app_metadata={"plan": "gold"})


@story(
    "put /admin/users/{user_id}",
    "user.updated",
    "password_changed email_changed email_unconfirmed phone_changed phone_confirmed role_changed banned",
)
def changing_every_member_of_a_user(world: World) -> Callable[[], Any]:
    return world.change_alice(
        password=NEW_PASSWORD,
        email="new@example.com",
        phone=OTHER_PHONE,
        phone_confirm=True,
        role="admin",
        ban_duration="1h",
    )


@story("put /admin/users/{user_id}", "user.updated", "unbanned")
def lifting_a_ban(world: World) -> Callable[[], Any]:
    world.change_alice(ban_duration="permanent")()
    return world.change_alice(ban_duration=None)


@story("put /admin/users/{user_id}", "", "")
def changing_an_unknown_user(world: World) -> Callable[[], Any]:
    return lambda: world.administer(
        "PUT", "/admin/users/00000000-0000-0000-0000-000000000000", {"role": "admin"}
    )


@story("delete /admin/users/{user_id}", "user.deleted", "user_deleted")
def deleting_a_user(world: World) -> Callable[[], Any]:
    path = f"/admin/users/{world.alice.id}"
    return lambda: world.administer("DELETE", path)


@story("delete /admin/users/{user_id}", "", "")
def deleting_an_unknown_user(world: World) -> Callable[[], Any]:
    return lambda: world.administer("DELETE", "/admin/users/00000000-0000-0000-0000-000000000000")


@story("post /admin/users/{user_id}/logout", "auth.logout", "signed_out")
def logging_a_user_out(world: World) -> Callable[[], Any]:
    path = f"/admin/users/{world.alice.id}/logout"
    return lambda: world.administer("POST", path)


@story("post /admin/generate_link", "user.created", "user_created link_generated")
def generating_a_link_for_a_new_user(world: World) -> Callable[[], Any]:
    return lambda: world.administer("POST", "/admin/generate_link", dave(type="signup"))


@story("post /admin/generate_link", "", "link_generated")
def generating_a_link(world: World) -> Callable[[], Any]:
    email = world.alice.email
    return lambda: world.administer("POST", "/admin/generate_link", {"type": "magiclink", "email": email})


@story("post /admin/generate_link", "", "")
def generating_a_link_for_an_unknown_user(world: World) -> Callable[[], Any]:
    return lambda: world.administer(
        "POST", "/admin/generate_link", {"type": "magiclink", "email": "nobody@example.com"}
    )


@story("post /admin/invite", "user.created", "user_created invited")
def inviting(world: World) -> Callable[[], Any]:
    return lambda: world.administer("POST", "/admin/invite", {"email": "dave@example.com"})


@story("post /admin/invite", "", "invited")
def inviting_again(world: World) -> Callable[[], Any]:
    world.sent("invite")
    return lambda: world.administer("POST", "/admin/invite", {"email": "dave@example.com"})


@story("post /invite", "", "")
def inviting_a_user(world: World) -> Callable[[], Any]:
    email = world.alice.email
    return lambda: world.administer("POST", "/invite", {"email": email})


def webhook(world: World, path: str = "") -> str:
    return f"/admin/webhooks/{world.database.value('SELECT id FROM webhooks')}{path}"


@story("post /admin/webhooks", "", "webhook_created")
def registering_a_webhook(world: World) -> Callable[[], Any]:
    return lambda: world.administer("POST", "/admin/webhooks", {"url": "https://127.0.0.1/"})


@story("put /admin/webhooks/{webhook_id}", "", "webhook_changed webhook_secret_rotated webhook_disabled")
def changing_a_webhook(world: World) -> Callable[[], Any]:
    path = webhook(world)
    return lambda: world.administer(
        "PUT", path, {"description": "Ours", "rotate_secret": True, "disabled": True}
    )


@story("put /admin/webhooks/{webhook_id}", "", "webhook_enabled")
def enabling_a_webhook(world: World) -> Callable[[], Any]:
    path = webhook(world)
    world.administer("PUT", path, {"disabled": True})
    return lambda: world.administer("PUT", path, {"disabled": False})


@story("delete /admin/webhooks/{webhook_id}", "", "webhook_deleted")
def deleting_a_webhook(world: World) -> Callable[[], Any]:
    path = webhook(world)
    return lambda: world.administer("DELETE", path)


@story("post /admin/webhooks/{webhook_id}/test", "user.updated", "webhook_tested")
def sending_a_test_event(world: World) -> Callable[[], Any]:
    path = webhook(world, "/test")
    return lambda: world.administer("POST", path)


@story(
    "post /admin/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver", "auth.login", "event_redelivered"
)
def redelivering_an_event(world: World) -> Callable[[], Any]:
    world.session()
    delivery = world.database.value(
        "UPDATE outbox SET outcome = 'sent', finished_at = now() WHERE kind = 'auth.login' RETURNING id"
    )
    path = webhook(world, f"/deliveries/{delivery}/redeliver")
    return lambda: world.administer("POST", path)


def coming_back(world: World, **query: str) -> Callable[[], Any]:
    """Return the visit of a browser that a provider redirects back."""
    browser = world.service.browser()
    url = world.service.return_url(browser, "google", **query)
    return lambda: browser.visit(url)


@story("get /callback", "user.created auth.login", "user_created signed_in")
def signing_in_with_a_provider_as_a_new_user(world: World) -> Callable[[], Any]:
    return coming_back(world)


@story("get /callback", "auth.login", "signed_in")
def signing_in_with_a_provider(world: World) -> Callable[[], Any]:
    coming_back(world)()
    return coming_back(world)


@story("get /callback", "user.updated auth.login", "identity_linked signed_in")
def signing_in_with_a_provider_that_knows_the_address(world: World) -> Callable[[], Any]:
    assert world.alice.id
    return coming_back(world)


@story("get /callback", "user.updated auth.login", "email_confirmed identity_linked signed_in")
def signing_in_with_a_provider_that_proves_the_address(world: World) -> Callable[[], Any]:
    world.client.post("/signup", json={"email": "alice@example.com", "password": PASSWORD})
    return coming_back(world)


@story("get /callback", "user.created", "user_created")
def signing_in_with_a_provider_for_a_code(world: World) -> Callable[[], Any]:
    return coming_back(world, code_challenge=CHALLENGE, code_challenge_method="s256")


@story("get /callback", "", "")
def signing_in_with_a_provider_as_a_banned_user(world: World) -> Callable[[], Any]:
    world.change_alice(ban_duration="1h")()
    return coming_back(world)


@story("delete /user/identities/{identity_id}", "user.updated", "identity_unlinked")
def unlinking_an_identity(world: World) -> Callable[[], Any]:
    assert world.alice.id
    coming_back(world)()
    identity = world.database.one("SELECT id FROM identities WHERE provider = 'google'").id
    session = world.session()
    return lambda: session.delete(f"/user/identities/{identity}")


@story("delete /user/identities/{identity_id}", "", "")
def unlinking_an_address(world: World) -> Callable[[], Any]:
    session = world.session()
    identity = world.database.one("SELECT id FROM identities").id
    return lambda: session.delete(f"/user/identities/{identity}")


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_request_writes_exactly_these_events_and_acts(story, world):
    act = story.prepare(world)
    world.forget()

    act()

    assert (world.events(), world.acts()) == (story.events, story.acts)


def test_every_changing_route_has_a_story(app):
    changing = {
        (method, path)
        for method, path, _ in routes(app)
        if method != "get" and not path.endswith("/callback")
    }

    assert changing - {story.route for story in STORIES} == WITHOUT_EVENTS


def test_event_is_written_once_per_webhook_with_one_id(world, database):
    alice = world.alice
    database.run(
        "INSERT INTO webhooks (id, url, events, secret) VALUES (gen_random_uuid(), 'https://other.example.com/', '{auth.login}', '')"
    )
    world.forget()
    alice.sign_in()

    rows = database.all("SELECT kind, recipient, variables, user_id FROM outbox WHERE channel = 'webhook'")
    assert {row.recipient for row in rows} == {str(row.id) for row in database.all("SELECT id FROM webhooks")}
    assert all(
        (row.kind, row.user_id, row.variables)
        == (
            "auth.login",
            alice.id,
            {
                "event_id": A_UUID,
                "timestamp": A_TIMESTAMP,
                "data": {"user": {"id": alice.id, "email": alice.email}},
            },
        )
        for row in rows
    )
    assert len({row.variables["event_id"] for row in rows}) == 1


def test_webhook_gets_only_chosen_events_and_none_while_disabled(world, database):
    alice = world.alice
    database.run("UPDATE webhooks SET events = '{user.deleted}'")
    world.forget()
    alice.sign_in()
    assert world.events() == []

    database.run("UPDATE webhooks SET events = '{auth.login}', disabled_at = now(), disabled_reason = 'gone'")
    alice.sign_in()
    assert world.events() == []


def test_rollback_leaves_neither_an_event_nor_an_act(world, database):
    session = world.session()
    world.forget()
    # The notice is written last.
    database.run("ALTER TABLE outbox ADD CONSTRAINT no_notices CHECK (kind <> 'password_changed') NOT VALID")
    try:
        assert session.put("/user", json={"password": NEW_PASSWORD}).status_code == 500
    finally:
        database.run("ALTER TABLE outbox DROP CONSTRAINT no_notices")

    assert (world.events(), world.acts()) == ([], [])
    assert world.alice.try_to_sign_in().status_code == 200
