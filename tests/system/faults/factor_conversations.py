"""A request for each operation on factors, passkeys and recovery codes, with the state that it needs."""

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from tests.support.authenticator import Authenticator
from tests.support.factors import challenge, enrol, raised
from tests.support.passkeys import assertion, register_response, sign_in
from tests.support.users import Session
from tests.system.faults.clients import ADMIN
from tests.system.faults.conversations import Ask, Prepare, Stage, by_caller


def _authenticator(stage: Stage) -> Authenticator:
    metadata = stage.client.get("/.well-known/oauth-authorization-server").json
    base = urlsplit(metadata["jwks_uri"])
    return Authenticator(f"{base.scheme}://{base.netloc}")


def _registration(stage: Stage) -> Ask:
    session = stage.session()
    begun = session.post("/passkeys/registration/options", json={}).json
    credential = _authenticator(stage).create(begun["options"])
    body = {"challenge_id": begun["challenge_id"], "credential": credential}
    return partial(session.post, "/passkeys/registration/verify", json=body)


def _with_passkey(stage: Stage) -> tuple[Authenticator, Session]:
    authenticator = _authenticator(stage)
    assert register_response(stage.session(), authenticator).status_code == 200
    return authenticator, sign_in(stage.client, authenticator)


def _sign_in(stage: Stage) -> Ask:
    body = assertion(stage.client, _with_passkey(stage)[0])
    return partial(stage.client.post, "/passkeys/authentication/verify", json=body)


def _prove(stage: Stage) -> Ask:
    authenticator, session = _with_passkey(stage)
    return partial(session.post, "/reauthenticate", json=assertion(stage.client, authenticator))


def _passkey(act: Callable[[Session, str], Any]) -> Prepare:
    """Request something about a passkey, by its id."""

    def prepare(stage: Stage) -> Ask:
        _, session = _with_passkey(stage)
        return partial(act, session, session.get("/passkeys").json[0]["id"])

    return prepare


def _app(act: Callable[[Session, Any, dict[str, str]], Any]) -> Prepare:
    """Request something about an authenticator app that is not verified yet."""

    def prepare(stage: Stage) -> Ask:
        app = enrol(session := stage.session())
        return partial(act, session, app, {"challenge_id": challenge(session, app), "code": app.code()})

    return prepare


def _raised(act: Callable[[Session, Any], Any]) -> Prepare:
    """Request something at `aal2`, with an authenticator app."""

    def prepare(stage: Stage) -> Ask:
        app = enrol(session := stage.session())
        return partial(act, raised(session, app), app)

    return prepare


def _codes(act: Callable[[Session, str], Any]) -> Prepare:
    """Request something of a user with recovery codes, of which one is given."""

    def prepare(stage: Stage) -> Ask:
        session = stage.session()
        session = raised(session, enrol(session))
        return partial(act, session, session.post("/recovery_codes").json["codes"][0])

    return prepare


CODES = "/factors/recovery-codes"


def _any(session: Session, method: str, path: str, **options: Any) -> Any:
    """Request something about a user as an administrator."""
    return session.client.open(f"/admin/users/{session.user['id']}/{path}", method, headers=ADMIN, **options)


REQUESTS: dict[str, Prepare] = {
    "begin_passkey_registration": by_caller("POST", "/passkeys/registration/options", friendly_name="Laptop"),
    "finish_passkey_registration": _registration,
    "begin_passkey_sign_in": lambda stage: partial(
        stage.client.post, "/passkeys/authentication/options", json={}
    ),
    "finish_passkey_sign_in": _sign_in,
    "confirm_reauthentication, passkey": _prove,
    "list_passkeys": _passkey(lambda session, _id: session.get("/passkeys")),
    "rename_passkey": _passkey(
        lambda session, id: session.patch(f"/passkeys/{id}", json={"friendly_name": "Laptop"})
    ),
    "delete_passkey": _passkey(lambda session, id: session.delete(f"/passkeys/{id}")),
    "list_any_passkeys": _passkey(lambda session, _id: _any(session, "GET", "passkeys")),
    "delete_any_passkey": _passkey(lambda session, id: _any(session, "DELETE", f"passkeys/{id}")),
    "enrol_factor": by_caller("POST", "/factors", factor_type="totp"),
    "challenge_factor": _app(lambda session, app, _body: session.post(f"/factors/{app.id}/challenge")),
    "verify_factor": _app(lambda session, app, body: session.post(f"/factors/{app.id}/verify", json=body)),
    "delete_factor": _raised(lambda session, app: session.delete(f"/factors/{app.id}")),
    "list_any_factors": _raised(lambda session, _app: _any(session, "GET", "factors")),
    "rename_any_factor": _raised(
        lambda session, app: _any(session, "PUT", f"factors/{app.id}", json={"friendly_name": "Phone"})
    ),
    "delete_any_factor": _raised(lambda session, app: _any(session, "DELETE", f"factors/{app.id}")),
    "create_recovery_codes": _raised(lambda session, _app: session.post("/recovery_codes")),
    "get_recovery_codes": _raised(lambda session, _app: session.get("/recovery_codes")),
    "verify_recovery_code": _codes(
        lambda session, code: session.post("/recovery_codes/verify", json={"code": code})
    ),
    "generate_recovery_codes": _raised(lambda session, _app: session.post(CODES)),
    "get_recovery_code_status": _codes(lambda session, _code: session.get(CODES)),
    "regenerate_recovery_codes": _codes(lambda session, _code: session.post(f"{CODES}/regenerate")),
    "remove_recovery_codes": _codes(lambda session, _code: session.delete(CODES)),
    "redeem_recovery_code": _codes(
        lambda session, code: session.post(f"{CODES}/verify", json={"code": code})
    ),
}
