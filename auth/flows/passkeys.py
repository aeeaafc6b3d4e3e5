"""Passkeys: registering them, signing in with them, and removing them."""

from typing import Any

from auth.context import latchkey
from auth.factors import authenticators
from auth.factors.webauthn import WRONG_SIGNATURE
from auth.flows import assertions, conversion, removal, targets
from auth.flows.factors import end_other_sessions
from auth.flows.reauthentication import add, give_proof, lock_caller
from auth.flows.reauthentication import remove as removing
from auth.flows.token_response import open_session, raise_session
from auth.flows.undo import tell
from auth.web import audit, g, guard
from auth.web.errors import ApiError, found
from sql import Transaction


def require_enabled() -> None:
    """Raises `ApiError` if passkeys are disabled."""
    if not latchkey.settings.passkeys_enabled:
        raise ApiError("passkey_disabled")


def begin_registration(known: Any, body: dict[str, Any]) -> dict[str, Any]:
    """Return a challenge and the options for a new passkey of the caller, who needs a proof."""
    given = give_proof(known, body, add("passkey"))
    with latchkey.db.transaction() as tx:
        caller = lock_caller(tx, add("passkey"), given=given)
        excluded = _credentials(tx, caller.id)
        challenge, options = latchkey.relying_party.creation_options(
            caller.id, assertions.name_of(caller), excluded, is_passkey=True
        )
        owner = {"user_id": caller.id, "session_id": g.caller.session_id}
        row = assertions.write_challenge(tx, "passkey_registration", challenge, **owner)
    return {"challenge_id": row.id, "options": options, "expires_at": row.expires_at}


def finish_registration(known: Any, body: dict[str, Any]) -> str:
    """Add the passkey that answers a challenge of this session, and return it as JSON."""
    owner = {"user_id": guard.caller_id(), "session_id": g.caller.session_id}
    challenge = assertions.spend_challenge(body["challenge_id"], "passkey_registration", **owner)
    created = assertions.verify_creation(body["credential"], challenge, assertions.PASSKEY)
    name = authenticators.name_of(created.aaguid)
    with latchkey.db.transaction() as tx:
        # `begin_registration` has asked for the proof, unless the user was anonymous then.
        caller = lock_caller(tx, add("passkey"), given=None if known.is_anonymous else "begun")
        _credentials(tx, caller.id)
        if not caller.is_anonymous:
            end_other_sessions(tx, caller.id)
        tell(tx, caller, "passkey_added", g.caller.session_id)
        row = tx.one("write_passkey", user_id=caller.id, friendly_name=name, **created.columns)
        if caller.is_anonymous:
            conversion.finish_by_passkey(tx, caller.id, g.caller.session_id)
        audit.record(tx, caller.id, caller.email, ["passkey_added"], ["user.updated"], passkey=name)
    return row.object


def sign_in(body: dict[str, Any]) -> Any:
    """Open a session for the user of a passkey, at `aal2`, and return its row. Raises `ApiError`."""
    passkey, assertion = assertions.verify_passkey_assertion(body)
    with latchkey.db.transaction() as tx:
        user = tx.one("lock_user", user_id=passkey.user_id)
        refusal = ApiError("user_banned") if user and user.is_banned else None
        refusal = refusal or _refusal(tx, user, passkey, assertion)
        if refusal is None:
            session = _open_session(tx, user, passkey)
    if refusal:
        raise refusal
    return session


def prove(body: dict[str, Any], *, added_before: Any = None) -> tuple[str, Any]:
    """Record a passkey of the caller as a proof, and raise the session. Return the time and its row."""
    guard.live_caller()
    passkey, assertion = assertions.verify_passkey_assertion(body)
    if passkey.user_id != guard.caller_id():
        raise assertions.failed(WRONG_SIGNATURE)
    assertions.require_older(passkey, added_before)
    with latchkey.db.transaction() as tx:
        caller = lock_caller(tx)
        refusal = _refusal(tx, caller, passkey, assertion)
        if refusal is None:
            session = raise_session(tx, g.caller.session_id, "webauthn", passkey.id)
            details = {"method": "webauthn", "passkey": passkey.friendly_name}
            audit.record(tx, caller.id, caller.email, ["reauthenticated"], [], **details)
    if refusal:
        raise refusal
    return caller.moment, session


def rename(passkey_id: str, name: str) -> str:
    """Give one of the caller's passkeys another name, and return it as JSON."""
    with latchkey.db.transaction() as tx:
        caller = lock_caller(tx)
        ids = {"user_id": caller.id, "passkey_id": passkey_id}
        old = found(tx.one("select_passkey", **ids), "webauthn_credential_not_found")
        row = tx.one("rename_passkey", friendly_name=name, **ids)
        names = {"passkey": name, "old_passkey": old.friendly_name}
        audit.record(tx, caller.id, caller.email, ["passkey_renamed"], ["user.updated"], **names)
    return row.object


def remove(known: Any, passkey_id: str, body: dict[str, Any]) -> None:
    """Remove one of the caller's passkeys, but not the last way to sign in."""
    act = removing("passkey", passkey_id)
    given = give_proof(known, body, act)
    with latchkey.db.transaction() as tx:
        caller = lock_caller(tx, act, given=given)
        _remove(tx, caller, passkey_id, g.caller.session_id)
        removal.check_remaining(tx, caller.id)


def remove_any(user_id: str, passkey_id: str) -> None:
    """Remove a passkey of any user."""
    with targets.act() as tx:
        user = targets.lock(tx, user_id)
        _remove(tx, user, passkey_id, None)
        tx.run("forget_first_factor", user_id=user.id)


def _credentials(tx: Transaction, user_id: str) -> list[Any]:
    """Return the rows of a user's credentials. Raises `ApiError` if there may not be one more passkey."""
    rows = tx.all("list_credentials", user_id=user_id)
    passkeys = [row for row in rows if row.factor_type == assertions.PASSKEY]
    if len(passkeys) >= latchkey.settings.mfa_max_enrolled_factors:
        raise ApiError("too_many_passkeys")
    return rows


def _refusal(tx: Transaction, user: Any, passkey: Any, assertion: Any) -> ApiError | None:
    # The user or the passkey may have been deleted since the lookup.
    if user is None or tx.one("select_passkey", user_id=user.id, passkey_id=passkey.id) is None:
        return assertions.failed(WRONG_SIGNATURE)
    return assertions.use(tx, passkey, assertion, user.email)


def _open_session(tx: Transaction, user: Any, passkey: Any) -> Any:
    opened = open_session(tx, user.id, "webauthn")
    session = raise_session(tx, opened.session_id, "webauthn", passkey.id)
    details = {"method": "webauthn", "session_id": session.session_id, "passkey": passkey.friendly_name}
    audit.record(tx, user.id, user.email, ["signed_in"], ["auth.login"], **details)
    return session


def _remove(tx: Transaction, user: Any, passkey_id: str, session_id: str | None) -> None:
    known = tx.one("select_passkey", user_id=user.id, passkey_id=passkey_id)
    passkey = found(known, "webauthn_credential_not_found")
    tell(tx, user, "passkey_removed", session_id, restored_factor=passkey_id)
    tx.run("remove_passkey", user_id=user.id, passkey_id=passkey_id)
    details = {"old_passkey": passkey.friendly_name}
    audit.record(tx, user.id, user.email, ["passkey_removed"], ["user.updated"], **details)
