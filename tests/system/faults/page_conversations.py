"""Requests of pages whose acts are in several transactions or follow a redirect, with the state that they need."""

import secrets
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from auth.web.html import forms
from tests.support import links
from tests.support.devices import begin, make_television
from tests.support.factors import App, set_up
from tests.support.users import Session, register
from tests.system.faults.clients import ADMIN
from tests.system.faults.conversations import ALICE, CAROL, NEW, Ask, Prepare, Stage


@dataclass
class Browser:
    """A browser that is signed in."""

    client: Any
    cookie: str

    def visit(self, path: str) -> Any:
        return self.client.get(f"/{path}", headers=self._headers)

    def submit(self, path: str, **fields: str) -> Any:
        form = {"form_token": forms.token_of(self.cookie), **fields}
        return self.client.post(f"/{path}", data=form, headers=self._headers)

    @property
    def _headers(self) -> dict[str, str]:
        return {"Cookie": f"latchkey={self.cookie}"}


def browser(stage: Stage, session: Session) -> Browser:
    """Return a browser with this session."""
    cookie = secrets.token_urlsafe(32)
    stage.rows.run(
        "INSERT INTO browser_sessions (token_hash, user_id, session_id) SELECT sha256(convert_to(%(cookie)s, 'UTF8')), user_id, id FROM sessions WHERE id = %(id)s",
        cookie=cookie,
        id=session.id,
    )
    return Browser(stage.client, cookie)


def operator(stage: Stage) -> tuple[App, Browser]:
    """Return the authenticator app of an administrator, and their browser."""
    begun = register(stage.client, ADMIN, CAROL, "admin").sign_in()
    stage.rows.run("UPDATE sessions SET code_given_at = now() WHERE id = %(id)s", id=begun.id)
    codes, session = set_up(begun)
    return codes, browser(stage, session)


def _device(stage: Stage) -> tuple[Browser, Ask]:
    """Return a browser of Alice, and what enters the code of a device in it."""
    device = begin(stage.client, make_television(stage.rows))
    own = browser(stage, stage.session())
    return own, partial(own.submit, "device", user_code=device.codes["user_code"])


def _decide_device(action: str) -> Prepare:
    def prepare(stage: Stage) -> Ask:
        own, enter = _device(stage)
        query = urlsplit(_redirect(enter())).query
        return partial(own.submit, "device/consent", action=action, **dict(parse_qsl(query)))

    return prepare


def _undo(stage: Stage) -> Ask:
    stage.session().put("/user", json={"email": NEW})
    links.hand_in(stage.client, "email_change", stage.outbox.last(NEW).token)
    return partial(links.follow, stage.client, "undo", stage.outbox.last(ALICE, "email_changed").token)


def _bulk(act: str, **fields: str) -> Prepare:
    """Work on an act on Alice and another user that was confirmed."""

    def prepare(stage: Stage) -> Ask:
        codes, own = operator(stage)
        alice = stage.session()
        other = register(stage.client, ADMIN, "bob@example.com")
        ids = f"{alice.user['id']},{other.id}"
        begun = own.submit(f"console/users/chosen/{act}", ids=ids, factor_code=codes.code(), **fields)
        return _working(own, begun)

    return prepare


def _invite_list(stage: Stage) -> Ask:
    _, own = operator(stage)
    stage.alice()
    begun = own.submit("console/users/invite-list", emails=f"{NEW}\n{ALICE}", groups="")
    return _working(own, begun)


def _working(own: Browser, begun: Any) -> Ask:
    path = urlsplit(_redirect(begun)).path.lstrip("/")

    def work() -> Any:
        answer = own.submit(path)
        assert "2 of 2 done" in own.visit(path).get_data(as_text=True)
        return answer

    return work


def _redirect(answer: Any) -> Any:
    assert answer.status_code == 303, answer.get_data(as_text=True)
    return answer.location


REQUESTS: dict[str, Prepare] = {
    "device, enter the code": lambda stage: _device(stage)[1],
    "device, approve": _decide_device("approve"),
    "device, deny": _decide_device("deny"),
    "undo": _undo,
    "console, bulk ban": _bulk("ban", ban_duration="24h"),
    "console, bulk sign-out": _bulk("end-sessions"),
    "console, bulk deletion": _bulk("delete"),
    "console, invite a list": _invite_list,
}
