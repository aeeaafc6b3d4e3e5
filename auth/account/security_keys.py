"""Security keys: WebAuthn as a second factor."""

from dataclasses import dataclass, field
from typing import Any

from auth.context import latchkey
from auth.factors.webauthn import WRONG_SIGNATURE, Assertion
from auth.sign_in import passkeys
from auth.web import g, guard
from auth.web.errors import ApiError
from sql import Transaction


@dataclass(frozen=True)
class Answer:
    """A verified response: the columns of a new credential, or an assertion of a registered one."""

    columns: dict[str, Any] = field(default_factory=dict)
    credential: Any = None
    assertion: Assertion | None = None


def check_site(sent: dict[str, Any]) -> None:
    """Compare the relying party that a client names with the service's. Raises `ApiError`."""
    site = latchkey.relying_party
    if sent.get("rpId", site.id) != site.id:
        raise ApiError("validation_failed", f"webauthn.rpId: must be {site.id}")
    if not set(sent.get("rpOrigins", [])).issubset(site.origins):
        raise ApiError("validation_failed", f"webauthn.rpOrigins: must be among {', '.join(site.origins)}")


def options(tx: Transaction, caller: Any, factor: Any) -> tuple[bytes, dict[str, Any]]:
    """Return a challenge for a factor, and the member of the response that has its options."""
    site, known = latchkey.relying_party, tx.all("list_credentials", user_id=caller.id)
    if factor.is_verified:
        own = [row for row in known if row.id == factor.id]
        challenge, public_key = site.request_options(own, is_passkey=False)
    else:
        name = passkeys.name_of(caller)
        challenge, public_key = site.creation_options(caller.id, name, known, is_passkey=False)
    kind = "request" if factor.is_verified else "create"
    return challenge, {"webauthn": {"type": kind, "credential_options": {"publicKey": public_key}}}


def verify(factor: Any, challenge_id: str, sent: dict[str, Any]) -> Answer:
    """Spend the challenge, and verify the response to it. Raises `ApiError`."""
    wanted = "request" if factor.is_verified else "create"
    if sent["type"] != wanted:
        raise ApiError("validation_failed", f"webauthn.type: must be {wanted}")
    owner = {"user_id": guard.caller_id(), "session_id": g.caller.session_id, "factor_id": factor.id}
    challenge = passkeys.spend_challenge(challenge_id, passkeys.SECURITY_KEY, **owner)
    response = sent["credential_response"]
    if not factor.is_verified:
        return Answer(columns=passkeys.verify_creation(response, challenge, passkeys.SECURITY_KEY))
    credential, assertion = passkeys.verify(response, challenge, passkeys.SECURITY_KEY)
    if credential.id != factor.id:
        raise passkeys.failed(WRONG_SIGNATURE)
    return Answer(credential=credential, assertion=assertion)
