"""Removing what a user can sign in with: an address, an identity, or what was added recently."""

from typing import Any

from auth import addresses
from auth.account import api_keys, factors
from auth.context import latchkey
from auth.messages.outgoing import notice_address, tell, tell_of_identity
from auth.openid import grants
from auth.sign_in.reauthentication import Act, lock_caller, needed, proof_needed, remove
from auth.web import audit, g, guard
from auth.web.errors import ApiError
from sql import Transaction, queries

ADDRESSES = ("email", "phone")
_FACTORS = ("totp", "webauthn", "passkey")
# Days for which an addition is recent.
_RECENT = 7


def list_recent(db: Any, user_id: str) -> list[dict[str, Any]]:
    """Return `recent_changes`: what was added to a user in the last seven days, oldest first."""
    return [row._asdict() for row in queries.list_added(db, user_id=user_id, days=_RECENT)]


def wanted(body: dict[str, Any], user: Any) -> list[str]:
    """Return the kinds of addresses that a body removes with null."""
    return [kind for kind in ADDRESSES if kind in body and body[kind] is None and getattr(user, kind)]


def acts_of(kinds: list[str], ids: list[str]) -> list[Act]:
    """Return the removals of addresses by kind, and of recent additions by id."""
    return [remove(kind) for kind in kinds] + [remove(None, id) for id in ids]


def removed_providers(tx: Transaction, user_id: str, kinds: list[str], ids: list[str]) -> list[str]:
    """Return the providers of the addresses and recent additions to remove. Raises `ApiError`."""
    recent = {change["id"] for change in list_recent(tx, user_id)} if ids else set()
    if not recent.issuperset(ids):
        raise ApiError("validation_failed", "remove: must be ids of recent_changes")
    rows = queries.list_ways_to_sign_in(tx, user_id=user_id, ids=ids) if ids else []
    return sorted({*kinds, *(row.provider for row in rows)})


def take_away(
    tx: Transaction, caller: Any, kinds: list[str], ids: list[str], *, is_told: bool = True
) -> list[str]:
    """Remove addresses and recent additions of a caller whom `lock_caller` has allowed it, and end the other
    sessions, unless there are grants and API keys only. Returns the providers. Raises `ApiError`.
    """
    if not kinds and not ids:
        return []
    session_id = g.caller.session_id
    providers = removed_providers(tx, caller.id, kinds, ids)
    recent = list_recent(tx, caller.id)
    factor_ids = [way["id"] for way in recent if way["type"] in _FACTORS and way["id"] in ids]
    told = _as_told(tx, caller, [kind for kind in ADDRESSES if kind in providers])
    for provider in providers if is_told else ():
        if provider in ADDRESSES:
            tell(tx, told, f"{provider}_changed", session_id, restored=provider)
        else:
            tell_of_identity(tx, told, "identity_unlinked", provider, session_id)
    factors.remove_recent(tx, told, factor_ids, is_told=is_told)
    grants.remove(tx, told, ids=ids)
    api_keys.remove_of(tx, told, ids, is_told=is_told)
    if is_told and not providers and not factor_ids:
        return []
    queries.remove_ways_to_sign_in(tx, user_id=caller.id, ids=[], providers=providers)
    check_remaining(tx, caller.id)
    # An attacker who added the removed credential may have signed in with it.
    reason = "way_to_sign_in_removed" if is_told else "change_undone"
    queries.end_access(tx, user_id=caller.id, session_id=session_id, reason=reason)
    queries.void_tokens(tx, user_id=caller.id)
    return providers


def _as_told(tx: Transaction, caller: Any, kinds: list[str]) -> Any:
    """Void the undo links to recent addresses that are removed, and return the caller as `tell` needs it.

    If notices went to such an address, they go to the one from before: a link would bring the other back.
    """
    told = caller
    for address in [getattr(caller, kind) for kind in kinds]:
        row = queries.void_links_to_recent_address(tx, user_id=caller.id, address=address)
        if row and address == notice_address(caller):
            nothing = {"email": None, "email_proved": False, "phone": None, "phone_proved": False}
            kind = addresses.kind_of(row.target)
            told = caller._replace(**nothing | {kind: row.target, f"{kind}_proved": True})
    return told


def may_take_back() -> bool:
    """Whether something was added without a notice to the caller, so that `take_back` removes it."""
    return queries.select_may_take_back(latchkey.db, user_id=guard.caller_id()).may


def take_back() -> None:
    """Undo what was added after the passkey or provider that has just proved the session."""
    with latchkey.db.transaction() as tx:
        caller = lock_caller(tx)
        # Nothing if a notice of it could be mailed.
        added = queries.list_taken_back(tx, user_id=caller.id, session_id=g.caller.session_id)
        if not added:
            raise needed("older.reauthentication_needed")
        ids = [way.id for way in added]
        lock_caller(tx, *acts_of([], ids))
        # No notice: it would go to an address that is undone.
        take_away(tx, caller, [], ids, is_told=False)
        queries.void_recovery_codes_since(tx, user_id=caller.id, session_id=None, moment=caller.moment)
        queries.set_password(tx, user_id=caller.id, password_hash=None)
        queries.void_undo_links(tx, user_id=caller.id, moment=None)
        removed = [f"{way.type} {way.label}".strip() for way in added]
        audit.record(tx, caller.id, None, ["change_undone"], ["user.updated"], removed=removed)


def has_recent_factor(user_id: str) -> bool:
    """Whether a factor or passkey of the last seven days may be a thief's."""
    return any(change["type"] in _FACTORS for change in list_recent(latchkey.db, user_id))


def may_remove_recent(user_id: str) -> bool:
    """Whether the caller may remove at least one recent addition."""
    recent = list_recent(latchkey.db, user_id)
    return may_take_back() or any(_may_remove(change["id"]) for change in recent)


def _may_remove(id: str) -> bool:
    try:
        proof_needed(remove(None, id))
    except ApiError:
        return False
    return True


def check_remaining(tx: Transaction, user_id: str, *, password_counts: bool = False) -> None:
    """Raises `ApiError` if a locked user could not sign in, with `password_counts` by an unproved address."""
    settings = latchkey.settings
    enabled = {
        "email": settings.email_enabled,
        "phone": settings.offers_phone,
        "passkey": settings.passkeys_enabled,
        "password": password_counts,
    }
    usable = [*latchkey.providers, *(name for name, is_enabled in enabled.items() if is_enabled)]
    if not queries.select_can_sign_in(tx, user_id=user_id, usable=usable).can_sign_in:
        raise ApiError("removal.single_identity_not_deletable")
