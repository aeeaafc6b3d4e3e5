"""A request for each kind of conversation with the database, with the state that it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.support import links
from tests.support.api_keys import make_key, use
from tests.support.devices import make_television
from tests.support.factors import App, challenge, enrol, raised
from tests.support.fake_provider import FakeProvider
from tests.support.links import VERIFIER, WITH_CHALLENGE, Outbox
from tests.support.openid import (
    Client,
    authorize_path,
    granted_code,
    insert_client,
    make_client,
)
from tests.support.tables import Rows
from tests.support.users import PASSWORD, Person, Session, register, sign_in, sign_up_anonymously
from tests.system.faults.clients import ADMIN

Ask = Callable[[], Any]
Prepare = Callable[["Stage"], Ask]
ALICE, NEW = "alice@example.com", "new@example.com"
OAUTH_CLIENT = {"redirect_uris": ["https://app.example.com/callback"]}


@dataclass
class Stage:
    """The service under test and the data behind it, for preparing requests."""

    client: Any
    rows: Rows
    outbox: Outbox
    google: FakeProvider

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

    def oauth_client(self) -> str:
        made = self.client.post("/admin/oauth/clients", json=OAUTH_CLIENT, headers=ADMIN).json
        return f"/admin/oauth/clients/{made['client_id']}"


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


def _exchange(stage: Stage) -> Ask:
    code = links.query(links.follow(stage.client, "magiclink", stage.link()))["code"]
    return _nobody("POST", "/token?grant_type=pkce", auth_code=code, code_verifier=VERIFIER)(stage)


def _of_application(ask: Callable[[Any, Client, dict[str, Any]], Any]) -> Prepare:
    """Ask as an application that has tokens of Alice."""

    def prepare(stage: Stage) -> Ask:
        application = make_client(stage.rows)
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


def _end_session(stage: Stage) -> Ask:
    session = stage.session()
    assert sign_in(stage.client, ALICE).status_code == 200
    return partial(session.delete, f"/sessions/{session.id}")


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


def _decide_authorization(stage: Stage) -> Ask:
    return _authorization(stage)[0]


def _authorization(stage: Stage) -> tuple[Ask, dict[str, str]]:
    """Return the approval of a request that Alice has seen, and the cookie of its browser."""
    begun, session = _begin_authorization(stage)(), stage.session()
    path = f"/oauth/authorizations/{begun.headers['Location'].partition('authorization_id=')[2]}"
    assert session.get(path).status_code == 200
    cookie = {"Cookie": begun.headers["Set-Cookie"].partition(";")[0]}
    return partial(session.post, f"{path}/consent", json={"action": "approve"}), cookie


def _continue_authorization(stage: Stage) -> Ask:
    approve, cookie = _authorization(stage)
    query = urlsplit(approve().json["redirect_url"]).query
    return partial(stage.client.get, f"/oauth/continue?{query}", headers=cookie)


def _callback(stage: Stage) -> Ask:
    """Bring the provider's redirect back, with the browser's cookie."""
    begun = stage.client.get("/authorize?provider=google")
    assert begun.status_code == 302, begun.get_data(as_text=True)
    back = urlsplit(httpx.get(begun.location, trust_env=False, timeout=20).headers["Location"])
    cookie = {"Cookie": begun.headers["Set-Cookie"].partition(";")[0]}
    return partial(stage.client.get, f"{back.path}?{back.query}", headers=cookie)


def _verify_factor(stage: Stage) -> Ask:
    app = enrol(session := stage.session())
    body = {"challenge_id": challenge(session, app), "code": app.code()}
    return partial(session.post, f"/factors/{app.id}/verify", json=body)


def _raised(act: Callable[[Session, App], Any]) -> Prepare:
    """Request something at `aal2`, with an authenticator app."""

    def prepare(stage: Stage) -> Ask:
        app = enrol(session := stage.session())
        return partial(act, raised(session, app), app)

    return prepare


# One for each kind of conversation, by its operationId in openapi.yaml and a variant.
REQUESTS: dict[str, Prepare] = {
    # Reads.
    "get_user": by_caller("GET", "/user"),
    "list_users": _admin("GET", "/admin/users"),
    # Sign-ups and messages.
    "signup": _nobody("POST", "/signup", email=NEW, password=PASSWORD),
    "signup, address taken": _public("POST", "/signup", email=ALICE, password=PASSWORD),
    "signup, anonymous": _nobody("POST", "/signup", data={}),
    "magiclink": _public("POST", "/magiclink", email=ALICE),
    "magiclink, new user": _nobody("POST", "/magiclink", email=NEW),
    "reauthenticate": by_caller("GET", "/reauthenticate"),
    "invite": _admin("POST", "/admin/invite", email=NEW),
    "generate_link, recovery": _admin("POST", "/admin/generate_link", type="recovery", email=ALICE),
    # Links and codes.
    **{f"verify, {type}": _by_link(type) for type in ("signup", "recovery", "email_change")},
    "verify, email_change of an anonymous user": _first_email,
    "verify, sms by code": _by_code("sms"),
    "verify, form": _by_link("magiclink", links.press),
    "verify_link": _by_link("magiclink", links.follow),
    "verify_link, for a code": lambda stage: partial(links.follow, stage.client, "magiclink", stage.link()),
    # Sign-ins.
    "token, password": _public("POST", "/token?grant_type=password", email=ALICE, password=PASSWORD),
    "token, refresh_token": lambda stage: stage.session().refresh,
    "token, pkce": _exchange,
    "token, id_token": lambda stage: _nobody(
        "POST", "/token?grant_type=id_token", provider="google", id_token=stage.google.id_token()
    )(stage),
    "token, api_key": _with_key(lambda stage, _, __, key: partial(use, stage.client, key)),
    "own_callback": _callback,
    # Changes of the caller.
    "update_user, data": by_caller("PUT", "/user", data={"n": 1}),
    "update_user, password": by_caller("PUT", "/user", password="Another-Horse-1"),
    "update_user, email": by_caller("PUT", "/user", email=NEW),
    "update_user, email of an anonymous user": by_caller("PUT", "/user", Stage.visitor, email=NEW),
    "confirm_reauthentication": by_caller("POST", "/reauthenticate", current_password=PASSWORD),
    "delete_identity": _unlink,
    "add_api_key": by_caller("POST", "/user/api_keys", name="CI"),
    "verify_factor": _verify_factor,
    "delete_factor": _raised(lambda session, app: session.delete(f"/factors/{app.id}")),
    "create_recovery_codes": _raised(lambda session, _app: session.post("/recovery_codes")),
    "logout": by_caller("POST", "/logout"),
    "delete_session": _end_session,
    "delete_user": by_caller("DELETE", "/user"),
    # Applications.
    "begin_authorization": _begin_authorization,
    "decide_authorization": _decide_authorization,
    "continue_authorization": _continue_authorization,
    "oauth_token, code": _redeem,
    "oauth_token, refresh": _of_application(
        lambda client, application, tokens: application.refresh(client, tokens["refresh_token"])
    ),
    "authorize_device": lambda stage: partial(
        make_television(stage.rows).post, stage.client, "/oauth/device_authorization"
    ),
    "revoke": _of_application(
        lambda client, application, tokens: application.post(
            client, "/oauth/revoke", token=tokens["access_token"]
        )
    ),
    "delete_client": _admin("DELETE", "", Stage.oauth_client),
    # Of operators.
    "create_user": _admin("POST", "/admin/users", email=NEW, password=PASSWORD),
    "update_any_user, ban": _admin("PUT", "/admin/users/{id}", ban_duration="24h"),
}
