"""Undoing a change, and what was added since, by the link in its notice.

It takes a factor if the user had one before the change: a lost mailbox must not beat a factor.
"""

from typing import Any

from auth import addresses
from auth.context import latchkey
from auth.factors.webauthn import Assertion
from auth.sign_in import factor_codes, passkeys
from auth.tokens import one_time
from auth.web import audit
from auth.web.errors import ApiError, found
from sql import Transaction, queries

# The row of a passkey or security key, and its verified assertion.
Answer = tuple[Any, Assertion]


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
    return passkeys.check(sent["credential"], challenge, known.get, is_passkey=False)


def _credentials(token: str) -> list[Any]:
    return queries.list_asked_credentials(
        latchkey.db, token_hash=one_time.hash_token(token), purposes=list(one_time.UNDO)
    )


def refusal(
    tx: Transaction, link: dict[str, Any], factor_code: str, answer: Answer | None
) -> ApiError | None:
    """Check the factor that a link asks for, and lock the users whom undoing concerns. `link` has its
    `token_hash` and `purposes`.

    The caller raises the error after the transaction, which counts the attempt.
    """
    asked = queries.select_asked_factor(tx, **link)
    refused = None
    if asked and answer:
        refused = _use(tx, asked.user_id, *answer)
    elif asked and not factor_codes.proves_owner(tx, asked, factor_code):
        refused = ApiError("undo.insufficient_aal")
    if refused is None:
        queries.lock_users_of_undo(tx, token_hash=link["token_hash"])
    return refused


def _use(tx: Transaction, user_id: str, credential: Any, assertion: Assertion) -> ApiError | None:
    """Store the counter, or return why the credential is refused."""
    user = found(queries.lock_user(tx, user_id=user_id), "user_not_found")
    if not credential.is_removed:
        return passkeys.use(tx, credential, assertion, user.email)
    counter, before = assertion.new_sign_count, credential.sign_count
    return None if counter > before or counter == before == 0 else passkeys.counter_fell()


def undo(tx: Transaction, spent: Any, token_hash: bytes | None) -> None:
    """Undo a change by its spent link. Raises `UniqueViolation` if another user has proved the address."""
    target, restored = spent.target, spent.restores or {}
    factor = None
    if restored.get("provider") == "factor":
        factor, restored = restored, {}
    kept = addresses.kind_of(target)
    user = found(queries.lock_user(tx, user_id=spent.user_id), "user_not_found")
    is_changed = target != getattr(user, kept) or restored.get("provider") == kept
    added = list_undone(token_hash, tx)
    replaced = {kept} if is_changed else set()
    queries.remove_ways_to_sign_in(
        tx,
        user_id=user.id,
        ids=[way.id for way in added],
        providers=list(replaced | ({restored["provider"]} if restored else set())),
    )
    queries.remove_factors(tx, user_id=user.id, ids=[way.id for way in added])
    since = {"session_id": spent.session_id, "moment": spent.created_at}
    queries.void_recovery_codes_since(tx, user_id=user.id, **since)
    if factor:
        queries.restore_factor(tx, user_id=user.id, factor=factor)
    queries.forget_first_factor(tx, user_id=user.id)
    if restored:
        _restore_identity(tx, user.id, restored, kept)
    if is_changed:
        _free(tx, target, user.id)
        _give_back(tx, user.id, target)
    queries.set_password(tx, user_id=user.id, password_hash=None)
    queries.end_access(tx, user_id=user.id, session_id=None, reason="change_undone")
    queries.void_tokens(tx, user_id=user.id)
    queries.forget_mail_proofs(tx, user_id=user.id)
    queries.void_undo_links(tx, user_id=user.id, moment=spent.created_at)
    if kept == "email":
        email: str | None = target
    else:
        email = found(queries.lock_user(tx, user_id=user.id), "user_not_found").email
    removed = [f"{way.type} {way.label}".strip() for way in added]
    audit.record(tx, user.id, email, ["change_undone"], ["user.updated"], removed=removed)


def list_undone(token_hash: bytes | None, db: Any = None) -> "list[queries.ListUndone]":
    """Return what undoing by a link removes, in the order in which it was added."""
    return queries.list_undone(db or latchkey.db, token_hash=token_hash, purposes=list(one_time.UNDO))


def _restore_identity(tx: Transaction, user_id: str, restored: dict[str, Any], kept: str) -> None:
    """Give a removed identity back; that of a phone unless another user has proved it since."""
    is_phone = restored["provider"] == "phone" and kept != "phone"
    phone = restored["identity_data"]["phone"] if is_phone else None
    if phone:
        _free(tx, phone, user_id)
        if queries.select_taken_address(tx, email=None, phone=phone, user_id=user_id):
            return
    queries.restore_identity(tx, user_id=user_id, identity=restored)
    if phone:
        _give_back(tx, user_id, phone)


def _give_back(tx: Transaction, user_id: str, address: str) -> None:
    """Make an address the user's again. Raises `UniqueViolation` if another user has it."""
    kind = addresses.kind_of(address)
    queries.prove_address(tx, user_id=user_id, provider=kind, address=address, proof="undo")


def _free(tx: Transaction, address: str, owner_id: str) -> None:
    """Take an address from a user who has not proved it."""
    queries.delete_unused_holder(tx, address=address, owner_id=owner_id)
    holder = queries.select_unproved_holder(tx, address=address, owner_id=owner_id)
    if holder:
        kind = addresses.kind_of(address)
        queries.remove_ways_to_sign_in(tx, user_id=holder.id, ids=[], providers=[kind])
        email = None if kind == "email" else holder.email
        audit.record(tx, holder.id, email, [f"{kind}_changed"], ["user.updated"], old_address=address)
