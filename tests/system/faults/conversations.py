"""A request for each operation that uses the database, with the state that it needs."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx

from tests.support import links
from tests.support.api_keys import bearer as of_key
from tests.support.api_keys import make_key, token_of, use
from tests.support.devices import make_television
from tests.support.fake_provider import Apple, FakeProvider
from tests.support.links import PHONE, VERIFIER, WITH_CHALLENGE, Outbox
from tests.support.openid import (
    GRANT_TYPES,
    Client,
    allow,
    authorize_path,
    bearer,
    granted_code,
    insert_client,
    insert_public_client,
    make_client,
)
from tests.support.tables import Rows
from tests.support.users import PASSWORD, Person, Session, register, sign_in, sign_up_anonymously
from tests.system.faults.clients import ADMIN

Ask = Callable[[], Any]
Prepare = Callable[["Stage"], Ask]
ALICE, NEW, CAROL = "alice@example.com", "new@example.com", "carol@example.com"
OAUTH_CLIENT = {"redirect_uris": ["https://app.example.com/callback"]}
HOOK = {"url": "http://127.0.0.1:9/events"}
_ACTION = re.compile(r'action="([^"]*)"')
_INPUT = re.compile(r'name="(\w+)" value="([^"]*)"')
# Operations that use no database, ask it once a second at most, or read one row to show it; and callbacks of
# built-in providers, which share the view of the own callbacks.
WITHOUT = {"callback", "callback_by_form", "health", "welcome", "get_settings", "docs", "guide", "show_done"}
WITHOUT |= {
    "openapi",
    "jwks",
    "openid_configuration",
    "oauth_metadata",
    "metadata_of_path",
    "oauth_metadata_of_path",
}
WITHOUT |= {"logout_by_form", "make_challenge", "static"}
# In several transactions: what a cut leaves is disabled, and is deleted at the next try.
WITHOUT |= {"delete_provider"}


@dataclass
class Stage:
    """The service under test and the data behind it, for preparing requests."""

    client: Any
    rows: Rows
    outbox: Outbox
    google: FakeProvider
    apple: Apple

    def alice(self) -> Person:
        return register(self.client, ADMIN, ALICE)

    def session(self) -> Session:
        return self.alice().sign_in()

    def visitor(self) -> Session:
        return sign_up_anonymously(self.client)

    def link(self) -> str:
        """Return the token of a link with a code_challenge."""
        self.alice()
        self.client.post("/magiclink", json={"email": ALICE, **WITH_CHALLENGE})
        return self.outbox.last(ALICE).token

    def flow(self) -> str:
        """Return the query of the page that links an identity."""
        url = self.session().get("/user/identities/authorize?provider=google").json["url"]
        return urlsplit(url).query

    def webhook(self) -> str:
        return f"/admin/webhooks/{self.client.post('/admin/webhooks', json=HOOK, headers=ADMIN).json['id']}"

    def oauth_client(self) -> str:
        made = self.client.post("/admin/oauth/clients", json=OAUTH_CLIENT, headers=ADMIN).json
        return f"/admin/oauth/clients/{made['client_id']}"

    def key_of_id_tokens(self) -> str:
        """Make what the first client makes, and return the beginning of all paths."""
        self.oauth_client()
        return ""

    def delivery(self) -> str:
        """Return the path of an event that was sent."""
        path = self.webhook()
        event = self.client.post(f"{path}/test", json={}, headers=ADMIN).json["id"]
        self.rows.run("UPDATE outbox SET outcome = 'sent', finished_at = now() WHERE channel = 'webhook'")
        return f"{path}/deliveries/{event}"


def back_from(client: Any, provider: FakeProvider) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return the path and parameters of a provider's redirect, and the browser's cookie."""
    begun = client.get(f"/authorize?provider={provider.name}")
    assert begun.status_code == 302, begun.get_data(as_text=True)
    answer = httpx.get(begun.location, trust_env=False, timeout=20)
    sent = urlsplit(answer.headers.get("Location") or _ACTION.findall(html.unescape(answer.text))[0])
    back = links.single(sent.query) if sent.query else dict(_INPUT.findall(html.unescape(answer.text)))
    return sent.path, back, {"Cookie": begun.headers["Set-Cookie"].partition(";")[0]}


def _nobody(method: str, path: str, **body: Any) -> Prepare:
    """Send a request without credentials to an empty database."""
    return lambda stage: partial(stage.client.open, path, method, json=body or None)


def _public(method: str, path: str, **body: Any) -> Prepare:
    """Send a request without credentials while Alice exists."""

    def prepare(stage: Stage) -> Ask:
        stage.alice()
        return _nobody(method, path, **body)(stage)

    return prepare


def _admin(method: str, path: str, below: Callable[[Stage], str] | None = None, **body: Any) -> Prepare:
    """Request something as an administrator: about Alice, or below a path that is made."""

    def prepare(stage: Stage) -> Ask:
        target = below(stage) + path if below else path.format(id=stage.alice().id)
        return partial(stage.client.open, target, method, headers=ADMIN, json=body or None)

    return prepare


def by_caller(
    method: str, path: str, who: Callable[[Stage], Session] = Stage.session, **body: Any
) -> Prepare:
    """Request something as Alice, or as another caller."""
    return lambda stage: partial(getattr(who(stage), method.lower()), path, json=body or None)


def _first_email(stage: Stage) -> Ask:
    stage.visitor().put("/user", json={"email": NEW})
    return partial(links.hand_in, stage.client, "email_change", stage.outbox.last(NEW).token)


def _first_identity(stage: Stage) -> Ask:
    body = {"provider": "google", "id_token": stage.google.id_token(), "link_identity": True}
    return partial(stage.visitor().post, "/token?grant_type=id_token", json=body)


def _login_admin(stage: Stage) -> Ask:
    register(stage.client, ADMIN, CAROL, "admin")
    return _nobody("POST", "/login-admin", email=CAROL, password=PASSWORD)(stage)


def _exchange(stage: Stage) -> Ask:
    code = links.query(links.follow(stage.client, "magiclink", stage.link()))["code"]
    return _nobody("POST", "/token?grant_type=pkce", auth_code=code, code_verifier=VERIFIER)(stage)


def _of_application(ask: Callable[[Any, Client, dict[str, Any]], Any]) -> Prepare:
    """Ask as an application that has tokens of Alice."""

    def prepare(stage: Stage) -> Ask:
        application = make_client(stage.rows, grant_types=[*GRANT_TYPES, "client_credentials"])
        code = granted_code(stage.rows, application, stage.session())
        tokens = application.redeem(stage.client, code).json
        return partial(ask, stage.client, application, tokens)

    return prepare


def _redeem(stage: Stage) -> Ask:
    application, session = make_client(stage.rows), stage.session()
    codes = [granted_code(stage.rows, application, session) for _ in range(2)]
    # The first one makes the key of ID tokens, which the process keeps.
    application.redeem(stage.client, codes[0])
    return partial(application.redeem, stage.client, codes[1])


def _by_code(type: str) -> Prepare:
    def prepare(stage: Stage) -> Ask:
        sent = links.send(type, stage.client, ADMIN, stage.outbox)
        return partial(links.type_in, stage.client, type, sent.to, sent.code)

    return prepare


def _by_link(type: str, how: Callable = links.hand_in) -> Prepare:
    return lambda stage: partial(
        how, stage.client, type, links.send(type, stage.client, ADMIN, stage.outbox).token
    )


def _resend(stage: Stage) -> Ask:
    links.send("signup", stage.client, ADMIN, stage.outbox)
    return _nobody("POST", "/resend", type="signup", email="dave@example.com")(stage)


def _end_session(stage: Stage) -> Ask:
    session = stage.session()
    assert sign_in(stage.client, ALICE).status_code == 200
    return partial(session.delete, f"/sessions/{session.id}")


def _withdraw(stage: Stage) -> Ask:
    session, client_id = stage.session(), insert_public_client(stage.rows)
    allow(stage.rows, session.user["id"], client_id)
    return partial(session.delete, f"/user/oauth/grants?client_id={client_id}")


def _with_key(ask: Callable[[Stage, Session, str, str], Ask]) -> Prepare:
    """Ask with a session, and the id and the secret of an API key."""

    def prepare(stage: Stage) -> Ask:
        session = stage.session()
        return ask(stage, session, *make_key(session))

    return prepare


def _unlink(stage: Stage) -> Ask:
    alice = stage.alice()
    _callback(stage)()
    session = alice.sign_in()
    google = next(identity for identity in session.user["identities"] if identity["provider"] == "google")
    return partial(session.delete, f"/user/identities/{google['id']}")


def _begin_authorization(stage: Stage) -> Ask:
    return partial(stage.client.get, authorize_path(insert_client(stage.rows)))


def _begin_authorization_by_form(stage: Stage) -> Ask:
    path, _, query = authorize_path(insert_client(stage.rows)).partition("?")
    return partial(stage.client.post, path, data=dict(parse_qsl(query)))


def _decide_authorization(stage: Stage) -> Ask:
    return _authorization(stage)[0]


def _authorization(stage: Stage) -> tuple[Ask, dict[str, str]]:
    """Return the approval of a request that Alice has seen, and the cookie of its browser."""
    begun, session = _begin_authorization(stage)(), stage.session()
    path = f"/oauth/authorizations/{begun.headers['Location'].partition('authorization_id=')[2]}"
    assert session.get(path).status_code == 200
    cookie = {"Cookie": begun.headers["Set-Cookie"].partition(";")[0]}
    return partial(session.post, f"{path}/consent", json={"action": "approve"}), cookie


def _get_authorization(stage: Stage) -> Ask:
    url = _begin_authorization(stage)().headers["Location"]
    return partial(stage.session().get, f"/oauth/authorizations/{url.partition('authorization_id=')[2]}")


def _continue_authorization(stage: Stage) -> Ask:
    approve, cookie = _authorization(stage)
    query = urlsplit(approve().json["redirect_url"]).query
    return partial(stage.client.get, f"/oauth/continue?{query}", headers=cookie)


def _begin_linking(stage: Stage) -> Ask:
    form = links.single(stage.flow()) | links.own_form(stage.client)
    return partial(stage.client.post, "/link-identity", data=form)


def _callback(stage: Stage) -> Ask:
    path, back, cookie = back_from(stage.client, stage.google)
    return partial(stage.client.get, f"{path}?{urlencode(back)}", headers=cookie)


def _callback_by_form(stage: Stage) -> Ask:
    path, back, cookie = back_from(stage.client, stage.apple)
    return partial(stage.client.post, path, data=back, headers=cookie)


# By the operationId of openapi.yaml and a variant.
REQUESTS: dict[str, Prepare] = {
    "signup": _nobody("POST", "/signup", email=NEW, password=PASSWORD),
    "signup, address taken": _public("POST", "/signup", email=ALICE, password=PASSWORD),
    "signup, anonymous": _nobody("POST", "/signup", data={}),
    "token, password": _public("POST", "/token?grant_type=password", email=ALICE, password=PASSWORD),
    "token, refresh_token": lambda stage: stage.session().refresh,
    "token, pkce": _exchange,
    "token, id_token": lambda stage: _nobody(
        "POST", "/token?grant_type=id_token", provider="google", id_token=stage.google.id_token()
    )(stage),
    "token, link_identity of an anonymous user": _first_identity,
    "login_admin": _login_admin,
    "magiclink": _public("POST", "/magiclink", email=ALICE),
    "magiclink, new user": _nobody("POST", "/magiclink", email=NEW),
    "otp": _nobody("POST", "/otp", phone=PHONE),
    "recover": _public("POST", "/recover", email=ALICE),
    "resend": _resend,
    **{
        f"verify, {type}": _by_link(type)
        for type in ("signup", "invite", "magiclink", "recovery", "email_change")
    },
    "verify, email_change of an anonymous user": _first_email,
    **{f"verify, {type} by code": _by_code(type) for type in ("sms", "phone_change", "email")},
    "verify, form": _by_link("magiclink", links.press),
    "verify_link": _by_link("magiclink", links.follow),
    "verify_link, for a code": lambda stage: partial(links.follow, stage.client, "magiclink", stage.link()),
    "authorize": _nobody("GET", "/authorize?provider=google"),
    "own_callback": _callback,
    "own_callback_by_form": _callback_by_form,
    "begin_authorization": _begin_authorization,
    "begin_authorization_by_form": _begin_authorization_by_form,
    "get_authorization": _get_authorization,
    "decide_authorization": _decide_authorization,
    "continue_authorization": _continue_authorization,
    "authorize_identity": by_caller("GET", "/user/identities/authorize?provider=google"),
    "linking_page": lambda stage: partial(stage.client.get, f"/link-identity?{stage.flow()}"),
    "begin_linking": _begin_linking,
    "delete_identity": _unlink,
    "list_grants": by_caller("GET", "/user/oauth/grants"),
    "delete_grant": _withdraw,
    "add_api_key": by_caller("POST", "/user/api_keys", name="CI"),
    "list_api_keys": by_caller("GET", "/user/api_keys"),
    "delete_api_key": _with_key(lambda _, session, id, __: partial(session.delete, f"/user/api_keys/{id}")),
    "token, api_key": _with_key(lambda stage, _, __, key: partial(use, stage.client, key)),
    "get_user, of an API key": _with_key(
        lambda stage, _, __, key: partial(stage.client.get, "/user", **of_key(token_of(stage.client, key)))
    ),
    "get_user": by_caller("GET", "/user"),
    "update_user, data": by_caller("PUT", "/user", data={"n": 1}),
    "update_user, password": by_caller("PUT", "/user", password="Another-Horse-1"),
    "update_user, email": by_caller("PUT", "/user", email=NEW),
    "update_user, email of an anonymous user": by_caller("PUT", "/user", Stage.visitor, email=NEW),
    "update_user, phone": by_caller("PUT", "/user", phone=PHONE),
    "reauthenticate": by_caller("GET", "/reauthenticate"),
    "get_recent_changes": by_caller("GET", "/user/recent_changes"),
    "confirm_reauthentication": by_caller("POST", "/reauthenticate", current_password=PASSWORD),
    "delete_user": by_caller("DELETE", "/user"),
    "logout": by_caller("POST", "/logout"),
    "list_sessions": by_caller("GET", "/sessions"),
    "delete_session": _end_session,
    "introspect": lambda stage: partial(
        stage.client.post, "/introspect", json={"token": stage.session().access_token}, headers=ADMIN
    ),
    "oauth_token, code": _redeem,
    "oauth_token, refresh": _of_application(
        lambda client, application, tokens: application.refresh(client, tokens["refresh_token"])
    ),
    "oauth_token, client_credentials": _of_application(
        lambda client, application, _: application.post(
            client, "/oauth/token", grant_type="client_credentials"
        )
    ),
    "authorize_device": lambda stage: partial(
        make_television(stage.rows).post, stage.client, "/oauth/device_authorization"
    ),
    "userinfo": _of_application(
        lambda client, _, tokens: client.get("/oauth/userinfo", headers=bearer(tokens["access_token"]))
    ),
    "userinfo_by_form": _of_application(
        lambda client, _, tokens: client.post("/oauth/userinfo", headers=bearer(tokens["access_token"]))
    ),
    "revoke": _of_application(
        lambda client, application, tokens: application.post(
            client, "/oauth/revoke", token=tokens["access_token"]
        )
    ),
    "list_users": _admin("GET", "/admin/users"),
    "create_user": _admin("POST", "/admin/users", email=NEW, password=PASSWORD),
    "get_any_user": _admin("GET", "/admin/users/{id}"),
    "update_any_user, ban": _admin("PUT", "/admin/users/{id}", ban_duration="24h"),
    "update_any_user, password": _admin("PUT", "/admin/users/{id}", password="Another-Horse-1"),
    "delete_any_user": _admin("DELETE", "/admin/users/{id}"),
    "logout_any_user": _admin("POST", "/admin/users/{id}/logout"),
    "generate_link, signup": _admin(
        "POST", "/admin/generate_link", type="signup", email=NEW, password=PASSWORD
    ),
    "generate_link, recovery": _admin("POST", "/admin/generate_link", type="recovery", email=ALICE),
    "invite": _admin("POST", "/admin/invite", email=NEW),
    "invite_by_short_path": _admin("POST", "/invite", email=NEW),
    "list_recent_changes": _admin("GET", "/admin/users/{id}/recent_changes"),
    "get_timeline": _admin("GET", "/admin/users/{id}/timeline"),
    "list_audit": _admin("GET", "/admin/audit"),
    "create_webhook": _admin("POST", "/admin/webhooks", url=HOOK["url"]),
    "list_webhooks": _admin("GET", "/admin/webhooks"),
    "get_webhook": _admin("GET", "", Stage.webhook),
    "update_webhook": _admin("PUT", "", Stage.webhook, disabled=True),
    "delete_webhook": _admin("DELETE", "", Stage.webhook),
    "list_deliveries": _admin("GET", "/deliveries", Stage.webhook),
    "redeliver_event": _admin("POST", "/redeliver", Stage.delivery),
    "test_webhook": _admin("POST", "/test", Stage.webhook, event="user.created"),
    "create_client": _admin("POST", "/admin/oauth/clients", Stage.key_of_id_tokens, **OAUTH_CLIENT),
    "list_clients": _admin("GET", "/admin/oauth/clients"),
    "get_client": _admin("GET", "", Stage.oauth_client),
    "update_client": _admin("PUT", "", Stage.oauth_client, client_name="A"),
    "delete_client": _admin("DELETE", "", Stage.oauth_client),
    "regenerate_secret": _admin("POST", "/regenerate_secret", Stage.oauth_client),
    "delete_previous_secret": _admin("DELETE", "/previous_secret", Stage.oauth_client),
    "register_client": _admin("POST", "/oauth/clients/register", Stage.key_of_id_tokens, **OAUTH_CLIENT),
    "list_dev_inbox": _admin("GET", "/dev/inbox"),
    "get_dev_inbox_message": _admin("GET", "/dev/inbox/00000000-0000-4000-8000-000000000000"),
}
