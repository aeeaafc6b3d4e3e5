"""A request for each operation that uses the database, with the state that it needs."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx

from tests.faults.clients import ADMIN
from tests.support import links
from tests.support.cast import (
    PASSWORD,
    Person,
    Session,
    refresh,
    register,
    sign_in,
    sign_up_anonymously,
)
from tests.support.fake_provider import Apple, FakeProvider
from tests.support.links import PHONE, VERIFIER, WITH_CHALLENGE, Outbox
from tests.support.rows import Rows

Ask = Callable[[], Any]
ALICE, NEW = "alice@example.com", "new@example.com"
_ACTION = re.compile(r'action="([^"]*)"')
_INPUT = re.compile(r'name="(\w+)" value="([^"]*)"')
# Operations that use no database, or ask it once a second at most; and callbacks of built-in providers, which
# share the view of the own callbacks.
WITHOUT = {
    "callback",
    "callback_by_form",
    "health",
    "welcome",
    "get_settings",
    "docs",
    "openapi",
    "jwks",
    "oauth_metadata",
    "sso",
    "static",
}


@dataclass
class Stage:
    """The service under test and the data behind it, for preparing requests."""

    client: Any
    rows: Rows
    outbox: Outbox
    google: FakeProvider
    apple: Apple

    def alice(self, **changes: str) -> Person:
        person = register(self.client, ADMIN, ALICE)
        if changes:
            self.client.put(f"/admin/users/{person.id}", json=changes, headers=ADMIN)
        return person

    def session(self) -> Session:
        return self.alice().sign_in()

    def visitor(self) -> Session:
        return sign_up_anonymously(self.client)

    def message(self, type: str) -> Any:
        return links.send(type, self.client, ADMIN, self.outbox)

    def code(self) -> str:
        """Return the authorization code of a link with a code_challenge."""
        self.alice()
        self.client.post("/magiclink", json={"email": ALICE, **WITH_CHALLENGE})
        return links.query(links.follow(self.client, "magiclink", self.outbox.last(ALICE).token))["code"]

    def flow(self) -> str:
        """Return the query of the page that links an identity."""
        url = self.session().get("/user/identities/authorize?provider=google").json["url"]
        return urlsplit(url).query


def back_from(client: Any, provider: FakeProvider) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return the path and parameters of a provider's redirect, and the browser's cookie."""
    begun = client.get(f"/authorize?provider={provider.name}")
    assert begun.status_code == 302, begun.get_data(as_text=True)
    answer = httpx.get(begun.location, trust_env=False, timeout=20)
    sent = urlsplit(answer.headers.get("Location") or _ACTION.findall(html.unescape(answer.text))[0])
    back = links._single(sent.query) if sent.query else dict(_INPUT.findall(html.unescape(answer.text)))
    return sent.path, back, {"Cookie": begun.headers["Set-Cookie"].partition(";")[0]}


def _admin(path: str, method: str = "post", **body: Any) -> Callable[[Stage], Ask]:
    """Request something about Alice as an administrator."""

    def prepare(stage: Stage) -> Ask:
        known = stage.alice()
        how: dict[str, Any] = {"json": body} if body else {}
        return lambda: getattr(stage.client, method)(path.format(id=known.id), headers=ADMIN, **how)

    return prepare


def _caller(act: Callable[[Session], Any]) -> Callable[[Stage], Ask]:
    """Request something as Alice."""

    def prepare(stage: Stage) -> Ask:
        session = stage.session()
        return lambda: act(session)

    return prepare


def _public(path: str, **body: Any) -> Callable[[Stage], Ask]:
    """Send a request without credentials while Alice exists."""

    def prepare(stage: Stage) -> Ask:
        stage.alice()
        return lambda: stage.client.post(path, json=body)

    return prepare


def _new(path: str, **body: Any) -> Callable[[Stage], Ask]:
    """Send a request without credentials to an empty database."""
    return lambda stage: lambda: stage.client.post(path, json=body)


def _visitor(act: Callable[[Session], Any]) -> Callable[[Stage], Ask]:
    """Request something as an anonymous user."""

    def prepare(stage: Stage) -> Ask:
        session = stage.visitor()
        return lambda: act(session)

    return prepare


def _first_email(stage: Stage) -> Ask:
    stage.visitor().put("/user", json={"email": NEW})
    token = stage.outbox.last(NEW).token
    return lambda: links.hand_in(stage.client, "email_change", token)


def _first_identity(stage: Stage) -> Ask:
    session = stage.visitor()
    body = {"provider": "google", "id_token": stage.google.id_token(), "link_identity": True}
    return lambda: session.post("/token?grant_type=id_token", json=body)


def _login_admin(stage: Stage) -> Ask:
    register(stage.client, ADMIN, "carol@example.com", "admin")
    return lambda: stage.client.post(
        "/login-admin", json={"email": "carol@example.com", "password": PASSWORD}
    )


def _exchange(stage: Stage) -> Ask:
    code = stage.code()
    return lambda: stage.client.post(
        "/token?grant_type=pkce", json={"auth_code": code, "code_verifier": VERIFIER}
    )


def _id_token(stage: Stage) -> Ask:
    token = stage.google.id_token()
    return lambda: stage.client.post(
        "/token?grant_type=id_token", json={"provider": "google", "id_token": token}
    )


def _verify_by_code(type: str) -> Callable[[Stage], Ask]:
    def prepare(stage: Stage) -> Ask:
        sent = stage.message(type)
        return lambda: links.type_in(stage.client, type, sent.to, sent.code)

    return prepare


def _verify_by_link(type: str, how: Callable) -> Callable[[Stage], Ask]:
    def prepare(stage: Stage) -> Ask:
        sent = stage.message(type)
        return lambda: how(stage.client, type, sent.token)

    return prepare


def _follow_for_code(stage: Stage) -> Ask:
    stage.alice()
    stage.client.post("/magiclink", json={"email": ALICE, **WITH_CHALLENGE})
    token = stage.outbox.last(ALICE).token
    return lambda: links.follow(stage.client, "magiclink", token)


def _resend(stage: Stage) -> Ask:
    stage.message("signup")
    return lambda: stage.client.post("/resend", json={"type": "signup", "email": "dave@example.com"})


def _end_session(stage: Stage) -> Ask:
    session, other = stage.session(), sign_in(stage.client, ALICE)
    assert other.status_code == 200
    return lambda: session.delete(f"/sessions/{session.id}")


def _unlink(stage: Stage) -> Ask:
    alice = stage.alice()
    path, back, cookie = back_from(stage.client, stage.google)
    stage.client.get(f"{path}?{urlencode(back)}", headers=cookie)
    session = alice.sign_in()
    google = next(identity for identity in session.user["identities"] if identity["provider"] == "google")
    return lambda: session.delete(f"/user/identities/{google['id']}")


def _linking_page(stage: Stage) -> Ask:
    query = stage.flow()
    return lambda: stage.client.get(f"/link-identity?{query}")


def _begin_linking(stage: Stage) -> Ask:
    query = stage.flow()
    form = links._single(query) | links.own_form(stage.client)
    return lambda: stage.client.post("/link-identity", data=form)


def _callback(stage: Stage) -> Ask:
    path, back, cookie = back_from(stage.client, stage.google)
    return lambda: stage.client.get(f"{path}?{urlencode(back)}", headers=cookie)


def _callback_by_form(stage: Stage) -> Ask:
    path, back, cookie = back_from(stage.client, stage.apple)
    return lambda: stage.client.post(path, data=back, headers=cookie)


def _webhook(act: Callable[[Any, str], Any]) -> Callable[[Stage], Ask]:
    """Request something about an existing webhook."""

    def prepare(stage: Stage) -> Ask:
        body = {"url": "http://127.0.0.1:9/events"}
        id = stage.client.post("/admin/webhooks", json=body, headers=ADMIN).json["id"]
        return lambda: act(stage.client, f"/admin/webhooks/{id}")

    return prepare


def _redeliver(stage: Stage) -> Ask:
    id = stage.client.post("/admin/webhooks", json={"url": "http://127.0.0.1:9/events"}, headers=ADMIN).json[
        "id"
    ]
    event = stage.client.post(f"/admin/webhooks/{id}/test", json={}, headers=ADMIN).json["id"]
    stage.rows.run("UPDATE outbox SET outcome = 'sent', finished_at = now() WHERE channel = 'webhook'")
    return lambda: stage.client.post(f"/admin/webhooks/{id}/deliveries/{event}/redeliver", headers=ADMIN)


# By the operationId of openapi.yaml and a variant.
REQUESTS: dict[str, Callable[[Stage], Ask]] = {
    "signup": _new("/signup", email=NEW, password=PASSWORD),
    "signup, address taken": _public("/signup", email=ALICE, password=PASSWORD),
    "signup, anonymous": _new("/signup", data={}),
    "token, password": _public("/token?grant_type=password", email=ALICE, password=PASSWORD),
    "token, refresh_token": _caller(lambda session: refresh(session.client, session.refresh_token)),
    "token, pkce": _exchange,
    "token, id_token": _id_token,
    "token, link_identity of an anonymous user": _first_identity,
    "login_admin": _login_admin,
    "magiclink": _public("/magiclink", email=ALICE),
    "magiclink, new user": _new("/magiclink", email=NEW),
    "otp": _new("/otp", phone=PHONE),
    "recover": _public("/recover", email=ALICE),
    "resend": _resend,
    "verify, signup": _verify_by_link("signup", links.hand_in),
    "verify, invite": _verify_by_link("invite", links.hand_in),
    "verify, magiclink": _verify_by_link("magiclink", links.hand_in),
    "verify, recovery": _verify_by_link("recovery", links.hand_in),
    "verify, email_change": _verify_by_link("email_change", links.hand_in),
    "verify, email_change of an anonymous user": _first_email,
    "verify, sms by code": _verify_by_code("sms"),
    "verify, phone_change by code": _verify_by_code("phone_change"),
    "verify, email by code": _verify_by_code("email"),
    "verify, form": _verify_by_link("magiclink", links.press),
    "verify_link": _verify_by_link("magiclink", links.follow),
    "verify_link, for a code": _follow_for_code,
    "authorize": lambda stage: lambda: stage.client.get("/authorize?provider=google"),
    "own_callback": _callback,
    "own_callback_by_form": _callback_by_form,
    "authorize_identity": _caller(lambda session: session.get("/user/identities/authorize?provider=google")),
    "linking_page": _linking_page,
    "begin_linking": _begin_linking,
    "delete_identity": _unlink,
    "get_user": _caller(lambda session: session.get("/user")),
    "update_user, data": _caller(lambda session: session.put("/user", json={"data": {"n": 1}})),
    "update_user, password": _caller(
        lambda session: session.put("/user", json={"password": "Another-Horse-1"})
    ),
    "update_user, email": _caller(lambda session: session.put("/user", json={"email": NEW})),
    "update_user, email of an anonymous user": _visitor(
        lambda session: session.put("/user", json={"email": NEW})
    ),
    "update_user, phone": _caller(lambda session: session.put("/user", json={"phone": PHONE})),
    "reauthenticate": _caller(lambda session: session.get("/reauthenticate")),
    "get_recent_changes": _caller(lambda session: session.get("/user/recent_changes")),
    "confirm_reauthentication": _caller(
        lambda session: session.post("/reauthenticate", json={"current_password": PASSWORD})
    ),
    "delete_user": _caller(lambda session: session.delete("/user")),
    "logout": _caller(lambda session: session.post("/logout")),
    "list_sessions": _caller(lambda session: session.get("/sessions")),
    "delete_session": _end_session,
    "introspect": _caller(
        lambda session: session.client.post(
            "/introspect", json={"token": session.access_token}, headers=ADMIN
        )
    ),
    "list_users": _admin("/admin/users", "get"),
    "create_user": _admin("/admin/users", email=NEW, password=PASSWORD),
    "get_any_user": _admin("/admin/users/{id}", "get"),
    "update_any_user, ban": _admin("/admin/users/{id}", "put", ban_duration="24h"),
    "update_any_user, password": _admin("/admin/users/{id}", "put", password="Another-Horse-1"),
    "delete_any_user": _admin("/admin/users/{id}", "delete"),
    "logout_any_user": _admin("/admin/users/{id}/logout"),
    "generate_link, signup": _admin("/admin/generate_link", type="signup", email=NEW, password=PASSWORD),
    "generate_link, recovery": _admin("/admin/generate_link", type="recovery", email=ALICE),
    "invite": _admin("/admin/invite", email=NEW),
    "invite_by_short_path": _admin("/invite", email=NEW),
    "list_recent_changes": _admin("/admin/users/{id}/recent_changes", "get"),
    "get_timeline": _admin("/admin/users/{id}/timeline", "get"),
    "list_audit": _admin("/admin/audit", "get"),
    "create_webhook": _admin("/admin/webhooks", url="http://127.0.0.1:9/events"),
    "list_webhooks": _admin("/admin/webhooks", "get"),
    "get_webhook": _webhook(lambda client, path: client.get(path, headers=ADMIN)),
    "update_webhook": _webhook(lambda client, path: client.put(path, json={"disabled": True}, headers=ADMIN)),
    "delete_webhook": _webhook(lambda client, path: client.delete(path, headers=ADMIN)),
    "list_deliveries": _webhook(lambda client, path: client.get(f"{path}/deliveries", headers=ADMIN)),
    "redeliver_event": _redeliver,
    "test_webhook": _webhook(lambda client, path: client.post(f"{path}/test", json={}, headers=ADMIN)),
    "list_dev_inbox": lambda stage: lambda: stage.client.get("/dev/inbox"),
    "get_dev_inbox_message": lambda stage: (
        lambda: stage.client.get("/dev/inbox/00000000-0000-4000-8000-000000000000")
    ),
}
