"""Security keys of people, as second factors."""

import json
from typing import Any

from tests.support.answers import A_UUID, assert_ok
from tests.support.authenticator import Authenticator
from tests.support.browser import Browser
from tests.support.users import Session, session_of

SITE = {"rpId": "localhost", "rpOrigins": ["http://localhost:8000"]}


def enrol(session: Session, name: str = "Key") -> str:
    response = session.post("/factors", json={"factor_type": "webauthn", "friendly_name": name})
    assert_ok(response, {"id": A_UUID, "type": "webauthn", "friendly_name": name})
    return response.json["id"]


def answer(session: Session, factor_id: str, authenticator: Authenticator, **changes: Any) -> dict[str, Any]:
    """Return the body that answers a new challenge, as the JavaScript client sends it."""
    challenge = session.post(
        f"/factors/{factor_id}/challenge", json={"factorId": factor_id, "webauthn": SITE}
    )
    assert challenge.status_code == 200, challenge.text
    kind = challenge.json["webauthn"]["type"]
    options = challenge.json["webauthn"]["credential_options"]["publicKey"]
    response = (authenticator.create if kind == "create" else authenticator.get)(options, **changes)
    return {
        "challenge_id": challenge.json["id"],
        "webauthn": {"type": kind, "credential_response": response, **SITE},
    }


def verify(session: Session, factor_id: str, authenticator: Authenticator, **changes: Any) -> Any:
    body = answer(session, factor_id, authenticator, **changes)
    return session.post(f"/factors/{factor_id}/verify", json=body)


def set_up(session: Session) -> tuple[Authenticator, str, Session]:
    """Enrol a key that does not verify its user, and return it with its id and the raised session."""
    key, factor_id = Authenticator(is_verified=False), enrol(session)
    return key, factor_id, session_of(session.client, verify(session, factor_id, key))


def enrol_in_browser(page: Browser, origin: str, session: Session, name: str) -> None:
    """Enrol the browser's authenticator by the API, as an application does."""
    factor_id = enrol(session, name)
    origins = {"rpId": "localhost", "rpOrigins": [origin]}
    challenge = session.post(
        f"/factors/{factor_id}/challenge", json={"factorId": factor_id, "webauthn": origins}
    )
    options = json.dumps(challenge.json["webauthn"]["credential_options"]["publicKey"])
    page.open(f"{origin}/sign-in")
    credential = page.run(
        "navigator.credentials.create({ publicKey:"
        f" PublicKeyCredential.parseCreationOptionsFromJSON({options}) }}).then((made) => made.toJSON())"
    )
    answer = {"type": "create", "credential_response": credential, **origins}
    body = {"challenge_id": challenge.json["id"], "webauthn": answer}
    assert session.post(f"/factors/{factor_id}/verify", json=body).status_code == 200
