from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from flask import g

from auth import addresses
from auth.context import latchkey
from auth.flows import conversion, factors, outgoing, removal
from auth.flows.reauthentication import lock_caller, needed, reauthenticate
from auth.flows.undo import tell, tell_of_identity
from auth.passwords.policy import check_strength
from auth.web import audit, guard
from auth.web.errors import ApiError
from auth.web.levels import Level
from sql import Transaction

_NO_LINK: Mapping[str, str | None] = MappingProxyType({"redirect_to": None, "code_challenge": None})
_SENSITIVE = ("new_email", "new_phone", "password_hash")


def change_user(body: dict[str, Any], link: Mapping[str, str | None] = _NO_LINK) -> Any:
    """Apply a `UserChange` body to the caller. `link` has the columns of the link that confirms an email."""
    outgoing.check_channel(body.get("email"), body.get("phone"))
    change, known, authentication = _check(body)
    adds_first = not authentication.get("needs_proof") and bool(change["new_email"] or change["new_phone"])
    first = _addresses_at_once(known, change)
    added = [address for address in (change["new_email"], change["new_phone"]) if address]
    with latchkey.db.transaction() as tx:
        if first or (added and not known.is_anonymous):
            _refuse_taken(tx, change | first)
        for address in added:
            outgoing.take_quota(tx, address)
        caller = lock_caller(tx, **authentication)
        if adds_first and not conversion.is_without_address(caller):
            # Another request has confirmed the first address.
            raise needed()
        removed = _remove(tx, caller, known, body) if known else []
        if change["password_hash"]:
            _end_other_access(tx, caller, known.password_hash)
        if first:
            conversion.set_addresses(tx, caller, first["new_email"], first["new_phone"])
        user = tx.one("change_user", user_id=caller.id, **change)
        for address in added:
            _send_confirmation(tx, caller, address, link)
        if change["password_hash"] and caller.email and "email" not in removed:
            outgoing.notify(tx, caller.id, caller.email, "password_changed")
        _record(tx, caller, change, removed)
    return user


def delete_caller(body: dict[str, Any]) -> str:
    """Delete the caller, and return the time in ISO 8601; `body` reauthenticates. Raises `ApiError`."""
    reauthenticated = bool(body) and reauthenticate(guard.live_caller(), body)
    with latchkey.db.transaction() as tx:
        caller = lock_caller(tx, reauthenticated)
        if tx.one("select_is_last_administrator", user_id=caller.id).is_last:
            raise ApiError("last_administrator")
        row = tx.one("delete_user", user_id=caller.id)
    return row.moment


def _check(body: dict[str, Any]) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Return the parameters of `change_user`, the caller's row, and the parameters of `lock_caller`."""
    change = {"user_metadata": body.get("data")} | dict.fromkeys(_SENSITIVE)
    email, phone, password = body.get("email"), body.get("phone"), body.get("password")
    removes = bool(body.get("remove")) or any(body.get(kind, kind) is None for kind in removal.ADDRESSES)
    if not email and not phone and password is None and not removes:
        return change, None, {"reauthenticated": True}
    # A recovery by mail gives `aal1`, and must be able to remove what a thief added.
    guard.require(Level.SESSION if _sensitive(body) == {"remove"} else Level.AAL2)
    known = guard.live_caller()
    change["new_email"] = None if email == known.email else email
    change["new_phone"] = None if phone == known.phone else phone
    changes_address = bool(change["new_email"] or change["new_phone"] or removal.wanted(body, known))
    confirms_at_once = changes_address and latchkey.settings.autoconfirm
    if password is not None and known.is_anonymous and not confirms_at_once:
        raise ApiError("anonymous.validation_failed", "password: set it once an email or phone is confirmed")
    needs_proof = bool(body.get("remove")) or (
        # Without an address the user could not get a code for the first one.
        changes_address and not conversion.is_without_address(known)
    )
    if password is None:
        reauthenticated = not needs_proof or reauthenticate(known, body, needs_proof=True)
        return change, known, {"reauthenticated": reauthenticated, "needs_proof": needs_proof}
    check_strength(latchkey.settings, password, [known.email, known.phone])
    # A request that the queue refuses must not have spent its code.
    with latchkey.passwords.queue():
        # Comes first, or an old session could guess the current password by `same_password`.
        reauthenticated = reauthenticate(known, body, needs_proof=needs_proof)
        if known.password_hash is not None and latchkey.passwords.check(password, known.password_hash):
            raise ApiError("same_password", "password: must differ from the current one")
        change["password_hash"] = latchkey.passwords.hash(password)
    return change, known, {"reauthenticated": reauthenticated, "needs_proof": needs_proof}


def _sensitive(body: dict[str, Any]) -> set[str]:
    return body.keys() - {"current_password", "nonce", "factor_code", "redirect_to"}


def _addresses_at_once(known: Any, change: dict[str, Any]) -> dict[str, Any]:
    """Take the addresses from a change that `AUTH_AUTOCONFIRM` gives an anonymous user without a message."""
    first = {name: change[name] for name in ("new_email", "new_phone")}
    if not any(first.values()) or not known.is_anonymous or not latchkey.settings.autoconfirm:
        return {}
    change |= dict.fromkeys(first)
    return first


def _refuse_taken(tx: Transaction, change: dict[str, Any]) -> None:
    # An address that is taken later is refused when it is confirmed.
    wanted = {"email": change["new_email"], "phone": change["new_phone"]}
    taken = tx.one("select_taken_address", user_id=guard.caller_id(), **wanted)
    if taken:
        raise ApiError("email_exists" if taken.is_email else "phone_exists")


def _remove(tx: Transaction, caller: Any, known: Any, body: dict[str, Any]) -> list[str]:
    """Remove addresses and recent additions, and return their providers. Raises `ApiError`."""
    session_id = g.caller.session_id
    # Only the addresses for which `_check` has asked for a proof.
    kinds, ids = removal.wanted(body, known), [way.lower() for way in body.get("remove", [])]
    if ids and not removal.may_remove_recent(tx, caller.id):
        raise ApiError("insufficient_aal")
    providers = removal.removed_providers(tx, caller.id, kinds, ids) if kinds or ids else []
    factor_ids = removal.recent_factors(tx, caller.id, ids) if ids else []
    if not providers and not factor_ids:
        return []
    for provider in providers:
        if provider in removal.ADDRESSES:
            tell(tx, caller, f"{provider}_changed", session_id, restored=provider)
        else:
            tell_of_identity(tx, caller, "identity_unlinked", provider, session_id)
    factors.remove_recent(tx, caller, factor_ids)
    removal.remove(tx, caller.id, providers)
    removal.check_remaining(tx, caller.id)
    # An attacker who added the removed credential may have signed in with it.
    reason = "way_to_sign_in_removed"
    tx.run("end_user_sessions", user_id=caller.id, kept_session_id=session_id, reason=reason)
    tx.run("void_tokens", user_id=caller.id)
    return providers


def _end_other_access(tx: Transaction, caller: Any, checked_password_hash: str | None) -> None:
    # Another request has changed the password that this one was checked against.
    if caller.password_hash != checked_password_hash:
        raise ApiError("session_not_found")
    kept = g.caller.session_id
    tx.run("end_user_sessions", user_id=caller.id, kept_session_id=kept, reason="password_changed")
    tx.run("void_tokens", user_id=caller.id)


def _send_confirmation(tx: Transaction, caller: Any, address: str, link: Mapping[str, str | None]) -> None:
    is_email = addresses.is_email(address)
    columns = link if is_email else {}
    if conversion.is_without_address(caller):
        conversion.request_address(tx, caller, address, columns)
        return
    purpose, message = "email_change" if is_email else "phone_change", outgoing.Message(address)
    message.write_token(tx, caller.id, purpose, session_id=g.caller.session_id, **columns)
    message.write(tx, caller.id, purpose, redirect_to=columns.get("redirect_to"))


def _record(tx: Transaction, caller: Any, change: dict[str, Any], removed: list[str]) -> None:
    acts = [
        "user_changed" if change["user_metadata"] is not None else None,
        "password_changed" if change["password_hash"] else None,
        "email_change_requested" if change["new_email"] else None,
        "phone_change_requested" if change["new_phone"] else None,
        "email_removed" if "email" in removed else None,
        "phone_removed" if "phone" in removed else None,
    ]
    details = {"new_email": change["new_email"], "new_phone": change["new_phone"]}
    details |= {f"old_{kind}": getattr(caller, kind) for kind in removal.ADDRESSES if kind in removed}
    email = None if "email" in removed else caller.email
    audit.record(tx, caller.id, email, acts, ["user.updated"], **details)
    for provider in set(removed).difference(removal.ADDRESSES):
        audit.record(tx, caller.id, email, ["identity_unlinked"], [], provider=provider)
