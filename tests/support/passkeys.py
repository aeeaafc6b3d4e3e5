"""The ceremonies of passkeys, with a software authenticator."""

from typing import Any

from tests.support.authenticator import Authenticator
from tests.support.users import Session, session_of


def register_response(session: Any, authenticator: Authenticator, **changes: Any) -> Any:
    """Register a passkey, with `changes` of an attacker, and return the response."""
    options = session.prepared().post("/passkeys/registration/options", json={})
    assert options.status_code == 200, options.text
    body = options.json
    credential = authenticator.create(body["options"], **changes)
    return session.post(
        "/passkeys/registration/verify", json={"challenge_id": body["challenge_id"], "credential": credential}
    )


def register(session: Any, **attributes: Any) -> tuple[Authenticator, dict[str, Any]]:
    """Register a passkey, and return it with its authenticator."""
    authenticator = Authenticator(**attributes)
    response = register_response(session, authenticator)
    assert response.status_code == 200, response.text
    return authenticator, response.json


def assertion(client: Any, authenticator: Authenticator, **changes: Any) -> dict[str, Any]:
    """Return the body of a request that signs in."""
    body = client.post("/passkeys/authentication/options", json={}).json
    return {
        "challenge_id": body["challenge_id"],
        "credential": authenticator.get(body["options"], **changes),
    }


def sign_in_response(client: Any, authenticator: Authenticator, **changes: Any) -> Any:
    return client.post("/passkeys/authentication/verify", json=assertion(client, authenticator, **changes))


def sign_in(client: Any, authenticator: Authenticator, **changes: Any) -> Session:
    return session_of(client, sign_in_response(client, authenticator, **changes))


def begin_unasked(session: Any) -> dict[str, Any]:
    """Return the challenge and options with which a browser may make a passkey by itself."""
    response = session.post("/passkeys/registration/options", json={"mediation": "conditional"})
    assert response.status_code == 200, response.text
    return response.json


def make_unasked(session: Any, **attributes: Any) -> tuple[Authenticator, dict[str, Any]]:
    """Have the browser make a passkey by itself, and return it with its authenticator: nobody was present."""
    authenticator, begun = Authenticator(**attributes), begin_unasked(session)
    credential = authenticator.create(begun["options"], is_present=False, is_verified=False)
    body = {"challenge_id": begun["challenge_id"], "credential": credential}
    response = session.post("/passkeys/registration/verify", json=body)
    assert response.status_code == 200, response.text
    return authenticator, response.json
