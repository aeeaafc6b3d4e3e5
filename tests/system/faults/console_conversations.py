"""Acts of the console, with the state that they need."""

import secrets
from collections.abc import Callable
from typing import Any

from auth.web import forms
from tests.support.factors import App, set_up
from tests.support.openid import allow, insert_public_client
from tests.support.users import register
from tests.system.faults.clients import ADMIN
from tests.system.faults.conversations import CAROL, Ask, Prepare, Stage


def _operator(stage: Stage) -> tuple[App, Callable[..., Any]]:
    """Return the authenticator app of an administrator, and what submits forms in their browser."""
    operator = register(stage.client, ADMIN, CAROL, "admin").sign_in()
    stage.rows.run("UPDATE sessions SET code_given_at = now() WHERE id = %(id)s", id=operator.id)
    codes, session = set_up(operator)
    cookie = secrets.token_urlsafe(32)
    stage.rows.run(
        "INSERT INTO browser_sessions (token_hash, user_id, session_id) SELECT sha256(convert_to(%(cookie)s, 'UTF8')), user_id, id FROM sessions WHERE id = %(id)s",
        cookie=cookie,
        id=session.id,
    )

    def submit(path: str, **fields: str) -> Any:
        form = {"form_token": forms.token_of(cookie), **fields}
        return stage.client.post(f"/console/{path}", data=form, headers={"Cookie": f"latchkey={cookie}"})

    return codes, submit


def _ban(stage: Stage) -> Ask:
    session, (_, submit) = stage.session(), _operator(stage)
    return lambda: submit(f"users/{session.user['id']}/ban", ban_duration="24h")


def _remove_factor(stage: Stage) -> Ask:
    (app, session), (codes, submit) = set_up(stage.session()), _operator(stage)
    path = f"users/{session.user['id']}/factors/{app.id}/remove"
    return lambda: submit(path, factor_code=codes.code())


def _remove_grant(stage: Stage) -> Ask:
    session, (_, submit) = stage.session(), _operator(stage)
    client_id = insert_public_client(stage.rows)
    allow(stage.rows, session.user["id"], client_id)
    return lambda: submit(f"users/{session.user['id']}/applications/{client_id}/remove")


def _change_application(stage: Stage) -> Ask:
    codes, submit = _operator(stage)
    client_id = insert_public_client(stage.rows)
    form = {"client_name": "New", "token_endpoint_auth_method": "none", "require_pkce": "yes"}
    form |= {"redirect_uris": "https://app.example.com/", "refresh_token": "yes"}
    form |= {"id_token_signed_response_alg": "RS256"}
    path = f"applications/{client_id}/change"
    return lambda: submit(path, factor_code=codes.code(), **form)


def _redeliver(stage: Stage) -> Ask:
    _, submit = _operator(stage)
    path = stage.delivery().removeprefix("/admin/")
    return lambda: submit(f"{path}/redeliver")


REQUESTS: dict[str, Prepare] = {
    "console, ban": _ban,
    "console, remove a factor": _remove_factor,
    "console, remove an application of a user": _remove_grant,
    "console, change an application": _change_application,
    "console, send an event again": _redeliver,
}
