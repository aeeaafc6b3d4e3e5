"""Undoing a change, and what was added since, by the link in its notice."""

from typing import Any

from auth import addresses
from auth.context import latchkey
from auth.tokens import one_time
from auth.web import audit
from sql import Transaction


def undo(tx: Transaction, spent: Any, token_hash: bytes | None) -> None:
    """Undo a change by its spent link. Raises `UniqueViolation` if another user has proved the address."""
    target, restored = spent.target, spent.restores or {}
    factor = restored if restored.get("provider") == "factor" else None
    restored = {} if factor else restored
    kept = "email" if addresses.is_email(target) else "phone"
    user = tx.one("lock_user", user_id=spent.user_id)
    is_changed = target != getattr(user, kept) or restored.get("provider") == kept
    added = list_undone(token_hash, tx)
    replaced = {kept} if is_changed else set()
    tx.run(
        "remove_ways_to_sign_in",
        user_id=user.id,
        ids=[way.id for way in added],
        providers=list(replaced | ({restored["provider"]} if restored else set())),
    )
    tx.run("remove_factors", user_id=user.id, ids=[way.id for way in added])
    since = {"session_id": spent.session_id, "moment": spent.created_at}
    tx.run("void_recovery_codes_since", user_id=user.id, **since)
    if factor:
        tx.run("restore_factor", user_id=user.id, factor=factor)
    tx.run("forget_first_factor", user_id=user.id)
    if restored and _restores_identity(tx, user.id, restored, kept):
        tx.run("restore_identity", user_id=user.id, identity=restored)
    if is_changed:
        _free(tx, target, user.id)
        tx.run(f"change_{kept}", user_id=user.id, is_proved=True, **{kept: target})
        if restored.get("provider") != kept:
            tx.run("write_address_identity", user_id=user.id, provider=kept, address=target)
    tx.run("void_password", user_id=user.id)
    tx.run("end_user_sessions", user_id=user.id, kept_session_id=None, reason="change_undone")
    tx.run("void_tokens", user_id=user.id)
    tx.run("forget_mail_proofs", user_id=user.id)
    tx.run("void_undo_links", user_id=user.id, moment=spent.created_at)
    email = target if kept == "email" else tx.one("lock_user", user_id=user.id).email
    removed = [f"{way.type} {way.label}".strip() for way in added]
    audit.record(tx, user.id, email, ["change_undone"], ["user.updated"], removed=removed)


def list_undone(token_hash: bytes | None, db: Any = None) -> Any:
    """Return what undoing by a link removes, in the order in which it was added."""
    return (db or latchkey.db).all("list_undone", token_hash=token_hash, purposes=list(one_time.UNDO))


def _restores_identity(tx: Transaction, user_id: str, restored: dict[str, Any], kept: str) -> bool:
    """Give a removed phone back, unless another user has proved it since."""
    if restored["provider"] != "phone" or kept == "phone":
        return True
    phone = restored["identity_data"]["phone"]
    _free(tx, phone, user_id)
    if tx.one("select_taken_address", email=None, phone=phone, user_id=user_id):
        return False
    tx.run("change_phone", user_id=user_id, phone=phone, is_proved=True)
    return True


def _free(tx: Transaction, address: str, owner_id: str) -> None:
    """Take an address from a user who has not proved it."""
    tx.run("delete_unused_holder", address=address, owner_id=owner_id)
    holder = tx.one("select_unproved_holder", address=address, owner_id=owner_id)
    if holder:
        kind = "email" if addresses.is_email(address) else "phone"
        tx.run("remove_ways_to_sign_in", user_id=holder.id, ids=[], providers=[kind])
        email = None if kind == "email" else holder.email
        audit.record(tx, holder.id, email, [f"{kind}_changed"], ["user.updated"], old_address=address)
