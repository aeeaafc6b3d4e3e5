"""Acts of the console, with the state that they need."""

from tests.support.factors import set_up
from tests.support.openid import allow, insert_public_client
from tests.system.faults.conversations import Ask, Prepare, Stage
from tests.system.faults.page_conversations import operator


def _ban(stage: Stage) -> Ask:
    session, (_, own) = stage.session(), operator(stage)
    return lambda: own.submit(f"console/users/{session.user['id']}/ban", ban_duration="24h")


def _remove_factor(stage: Stage) -> Ask:
    (app, session), (codes, own) = set_up(stage.session()), operator(stage)
    path = f"console/users/{session.user['id']}/factors/{app.id}/remove"
    return lambda: own.submit(path, factor_code=codes.code())


def _remove_grant(stage: Stage) -> Ask:
    session, (_, own) = stage.session(), operator(stage)
    client_id = insert_public_client(stage.rows)
    allow(stage.rows, session.user["id"], client_id)
    return lambda: own.submit(f"console/users/{session.user['id']}/applications/{client_id}/remove")


def _change_application(stage: Stage) -> Ask:
    codes, own = operator(stage)
    client_id = insert_public_client(stage.rows)
    form = {"client_name": "New", "token_endpoint_auth_method": "none", "require_pkce": "yes"}
    form |= {"redirect_uris": "https://app.example.com/", "refresh_token": "yes"}
    form |= {"id_token_signed_response_alg": "RS256"}
    path = f"console/applications/{client_id}/change"
    return lambda: own.submit(path, factor_code=codes.code(), **form)


def _redeliver(stage: Stage) -> Ask:
    _, own = operator(stage)
    path = stage.delivery().removeprefix("/admin/")
    return lambda: own.submit(f"console/{path}/redeliver")


REQUESTS: dict[str, Prepare] = {
    "console, ban": _ban,
    "console, remove a factor": _remove_factor,
    "console, remove an application of a user": _remove_grant,
    "console, change an application": _change_application,
    "console, send an event again": _redeliver,
}
