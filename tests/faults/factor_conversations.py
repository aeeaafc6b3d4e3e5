"""A request for each operation on factors, passkeys and recovery codes, with the state that it needs."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from tests.faults.clients import ADMIN
from tests.faults.conversations import Ask, Stage
from tests.support.authenticator import Authenticator
from tests.support.cast import Session
from tests.support.factors import App, challenge, enrol, raised
from tests.support.passkeys import assertion, register_response, sign_in


def _authenticator(stage: Stage) -> Authenticator:
    metadata = stage.client.get("/.well-known/oauth-authorization-server").json
    base = urlsplit(metadata["authorization_endpoint"])
    return Authenticator(f"{base.scheme}://{base.netloc}")


def _registration(stage: Stage) -> Ask:
    session, authenticator = stage.session(), _authenticator(stage)
    begun = session.post("/passkeys/registration/options", json={}).json
    credential = authenticator.create(begun["options"])
    body = {"challenge_id": begun["challenge_id"], "credential": credential}
    return lambda: session.post("/passkeys/registration/verify", json=body)


def _with_passkey(stage: Stage) -> tuple[Authenticator, Session]:
    authenticator = _authenticator(stage)
    assert register_response(stage.session(), authenticator).status_code == 200
    return authenticator, sign_in(stage.client, authenticator)


def _sign_in(stage: Stage) -> Ask:
    body = assertion(stage.client, _with_passkey(stage)[0])
    return lambda: stage.client.post("/passkeys/authentication/verify", json=body)


def _prove(stage: Stage) -> Ask:
    authenticator, session = _with_passkey(stage)
    body = assertion(stage.client, authenticator)
    return lambda: session.post("/reauthenticate", json=body)


def _passkey(act: Callable[[Session, str], Any]) -> Callable[[Stage], Ask]:
    def prepare(stage: Stage) -> Ask:
        _, session = _with_passkey(stage)
        path = f"/passkeys/{session.get('/passkeys').json[0]['id']}"
        return lambda: act(session, path)

    return prepare


def _any_passkey(act: Callable[[Any, str, str], Any]) -> Callable[[Stage], Ask]:
    def prepare(stage: Stage) -> Ask:
        _, session = _with_passkey(stage)
        path, id = f"/admin/users/{session.user['id']}/passkeys", session.get("/passkeys").json[0]["id"]
        return lambda: act(stage.client, path, id)

    return prepare


def _app(act: Callable[[Session, Any], Any]) -> Callable[[Stage], Ask]:
    """Request something about an authenticator app that is not verified yet."""

    def prepare(stage: Stage) -> Ask:
        session = stage.session()
        app = enrol(session)
        challenge_id = challenge(session, app)
        body = {"challenge_id": challenge_id, "code": app.code()}
        return lambda: act(session, (app, body))

    return prepare


def _set_up(stage: Stage) -> tuple[App, Session]:
    session = stage.session()
    app = enrol(session)
    return app, raised(session, app)


def _raised(act: Callable[[Session, Any], Any]) -> Callable[[Stage], Ask]:
    """Request something at `aal2`, with an authenticator app."""

    def prepare(stage: Stage) -> Ask:
        app, session = _set_up(stage)
        return lambda: act(session, app)

    return prepare


def _recovery_code(stage: Stage) -> Ask:
    _, session = _set_up(stage)
    code = session.post("/recovery_codes").json["codes"][0]
    return lambda: session.post("/recovery_codes/verify", json={"code": code})


def _any_factor(act: Callable[[Any, str, str], Any]) -> Callable[[Stage], Ask]:
    def prepare(stage: Stage) -> Ask:
        app, session = _set_up(stage)
        path = f"/admin/users/{session.user['id']}/factors"
        return lambda: act(stage.client, path, app.id)

    return prepare


def _caller(act: Callable[[Session], Any]) -> Callable[[Stage], Ask]:
    def prepare(stage: Stage) -> Ask:
        session = stage.session()
        return lambda: act(session)

    return prepare


REQUESTS: dict[str, Callable[[Stage], Ask]] = {
    "begin_passkey_registration": _caller(
        lambda session: session.post("/passkeys/registration/options", json={})
    ),
    "finish_passkey_registration": _registration,
    "begin_passkey_sign_in": lambda stage: (
        lambda: stage.client.post("/passkeys/authentication/options", json={})
    ),
    "finish_passkey_sign_in": _sign_in,
    "confirm_reauthentication, passkey": _prove,
    "list_passkeys": _passkey(lambda session, _path: session.get("/passkeys")),
    "rename_passkey": _passkey(lambda session, path: session.patch(path, json={"friendly_name": "Laptop"})),
    "delete_passkey": _passkey(lambda session, path: session.delete(path)),
    "list_any_passkeys": _any_passkey(lambda client, path, _id: client.get(path, headers=ADMIN)),
    "delete_any_passkey": _any_passkey(lambda client, path, id: client.delete(f"{path}/{id}", headers=ADMIN)),
    "enrol_factor": _caller(lambda session: session.post("/factors", json={"factor_type": "totp"})),
    "challenge_factor": _app(lambda session, known: session.post(f"/factors/{known[0].id}/challenge")),
    "verify_factor": _app(
        lambda session, known: session.post(f"/factors/{known[0].id}/verify", json=known[1])
    ),
    "delete_factor": _raised(lambda session, app: session.delete(f"/factors/{app.id}")),
    "list_any_factors": _any_factor(lambda client, path, _id: client.get(path, headers=ADMIN)),
    "delete_any_factor": _any_factor(lambda client, path, id: client.delete(f"{path}/{id}", headers=ADMIN)),
    "create_recovery_codes": _raised(lambda session, _app: session.post("/recovery_codes")),
    "get_recovery_codes": _raised(lambda session, _app: session.get("/recovery_codes")),
    "verify_recovery_code": _recovery_code,
}
