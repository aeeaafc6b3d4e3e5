"""Removing what a user can sign in with: an address, or an identity."""

from typing import Any

from flask import g

from auth.context import latchkey
from auth.web.errors import ApiError
from sql import Database, Transaction

ADDRESSES = ("email", "phone")
_FACTORS = ("totp", "webauthn", "passkey")
# Days for which an addition is recent.
_RECENT = 7


def list_recent(db: Any, user_id: str) -> list[dict[str, Any]]:
    """Return `recent_changes`: what was added to a user in the last seven days, oldest first."""
    return [row._asdict() for row in db.all("list_added", user_id=user_id, days=_RECENT)]


def wanted(body: dict[str, Any], user: Any) -> list[str]:
    """Return the kinds of addresses that a body removes with null."""
    return [kind for kind in ADDRESSES if kind in body and body[kind] is None and getattr(user, kind)]


def removed_providers(tx: Transaction, user_id: str, kinds: list[str], ids: list[str]) -> list[str]:
    """Return the providers of the addresses and recent additions to remove. Raises `ApiError`."""
    recent = {change["id"] for change in list_recent(tx, user_id)} if ids else set()
    if not recent.issuperset(ids):
        raise ApiError("validation_failed", "remove: must be ids of recent_changes")
    rows = tx.all("list_ways_to_sign_in", user_id=user_id, ids=ids) if ids else []
    return sorted({*kinds, *(row.provider for row in rows)})


def recent_factors(tx: Transaction, user_id: str, ids: list[str]) -> list[str]:
    """Return which of the ids are of factors or passkeys."""
    return [way["id"] for way in list_recent(tx, user_id) if way["id"] in ids and way["type"] in _FACTORS]


def may_remove_recent(db: Database | Transaction, user_id: str) -> bool:
    """Whether the caller's level is enough to remove recent additions."""
    session = {"session_id": g.caller.session_id, "caller_aal": g.caller.aal}
    return db.one("select_may_remove_recent", user_id=user_id, **session).may


def remove(tx: Transaction, user_id: str, providers: list[str]) -> None:
    """Remove addresses and identities by their providers."""
    tx.run("remove_ways_to_sign_in", user_id=user_id, ids=[], providers=providers)


def check_remaining(tx: Transaction, user_id: str) -> None:
    """Check that a user whose row is locked can still sign in. Raises `ApiError`."""
    if not can_sign_in(tx, user_id):
        raise ApiError("removal.single_identity_not_deletable")


def can_sign_in(db: Database | Transaction, user_id: str) -> bool:
    settings = latchkey.settings
    enabled = {
        "email": settings.email_enabled,
        "phone": settings.offers_phone,
        "passkey": settings.passkeys_enabled,
    }
    usable = [*latchkey.providers, *(name for name, is_enabled in enabled.items() if is_enabled)]
    return db.one("select_can_sign_in", user_id=user_id, usable=usable).can_sign_in
