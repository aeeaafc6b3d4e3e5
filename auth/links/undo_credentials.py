"""Passkeys and security keys as the factor that undoing a change requires."""

from dataclasses import dataclass
from typing import Any

from auth.context import latchkey
from auth.factors.webauthn import Assertion
from auth.sign_in import passkeys
from auth.tokens import one_time
from auth.web.errors import ApiError
from sql import Transaction


@dataclass(frozen=True)
class Answer:
    """A verified assertion, and the row of its credential."""

    credential: Any
    assertion: Assertion


def challenge(token: str) -> dict[str, Any] | None:
    """Return a challenge for the user of a link, with options, or None if the user has no credential."""
    known = _credentials(token)
    if not known:
        return None
    # The link proves the mailbox, so presence is enough, for passkeys too.
    sent, options = latchkey.relying_party.request_options(known, is_passkey=False)
    row = passkeys.write_challenge(latchkey.db, passkeys.SECURITY_KEY, sent, user_id=known[0].user_id)
    return {"challenge_id": row.id, "options": options}


def verify(token: str, sent: dict[str, Any]) -> Answer:
    """Spend the challenge, and verify the response to it. Raises `ApiError`."""
    known = {bytes(row.credential_id): row for row in _credentials(token)}
    if not known:
        raise ApiError("undo.insufficient_aal")
    owner = {"user_id": next(iter(known.values())).user_id}
    challenge = passkeys.spend_challenge(sent["challenge_id"], passkeys.SECURITY_KEY, **owner)
    return Answer(*passkeys.check(sent["credential"], challenge, known.get, is_passkey=False))


def use(tx: Transaction, user_id: str, answer: Answer) -> ApiError | None:
    """Store the counter, or return why the credential is refused. The caller raises that afterwards."""
    user = tx.one("lock_user", user_id=user_id)
    if not answer.credential.is_removed:
        return passkeys.use(tx, answer.credential, answer.assertion, user.email)
    counter, before = answer.assertion.new_sign_count, answer.credential.sign_count
    return None if counter > before or counter == before == 0 else passkeys.counter_fell()


def _credentials(token: str) -> list[Any]:
    columns = {"token_hash": one_time.hash_token(token), "purposes": list(one_time.UNDO)}
    return latchkey.db.all("list_asked_credentials", **columns)
