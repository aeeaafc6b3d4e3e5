from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from auth.core.passwords.policy import check_strength
from auth.flows import admission, ends
from auth.flows.account import removal
from auth.flows.messages import outgoing
from auth.flows.sign_in.reauthentication import (
    Act,
    add,
    admit_caller,
    change,
    give_proof,
    proof_needed,
    remove,
)
from auth.flows.sign_up import first_address
from auth.rules.ends import Reason
from auth.rules.proofs import Proof
from auth.rules.remaining import refusal_of_leaving
from auth.rules.users import AddressKind, is_anonymous
from auth.web import audit
from auth.web.asked import Asked
from auth.web.errors import ApiError
from auth.web.facts import Person
from sql import Runner, acts, queries


@dataclass
class _Wish:
    """The changes of a body: the parameters of `change_user`, and the additions and removals."""

    columns: dict[str, Any]
    acts: list[Act]
    known: Any = None
    added: list[AddressKind] = field(default_factory=list)
    kept: list[AddressKind] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    password_hash: str | None = None
    is_same_password: bool = False


def change_user(
    asked: Asked, body: dict[str, Any], link: Mapping[str, str | bytes | None] | None = None
) -> "queries.ChangeUser":
    """Apply a `UserChange` body to the caller. `link` has columns of the link or code for a new address."""
    wish = _read(asked, body)
    known, columns = wish.known, wish.columns
    is_sign_up = bool(wish.added) and is_anonymous(known)
    # With `AUTH_AUTOCONFIRM`, an anonymous user gets the address without a message.
    is_at_once = is_sign_up and asked.settings.autoconfirm
    new = {"email": columns["new_email"], "phone": columns["new_phone"]}
    # Not for the present address: setting it withdraws a pending change, even of a kind that is now disabled.
    admission.check_channel(asked, **new)
    if wish.added:
        # This comes first, because a refusal must not cost a code.
        admission.check(asked, asked.caller.user_id, **new, is_first=is_sign_up)
    given = _prove(asked, wish, body)
    if wish.added and (is_at_once or not is_sign_up):
        # If another user takes the address later, its confirmation is refused.
        for kind in wish.added:
            admission.check_free(asked.db, columns[f"new_{kind}"], asked.caller.user_id)
    requested = [] if is_at_once else [new[kind] for kind in wish.added]
    for address in requested:
        outgoing.take_quota(asked, address, is_new=True)

    def find(on: Runner) -> list[str | None]:
        # Of a first address that is taken, the holder gets the message.
        holders = [queries.find_holder(on, address=address).id for address in requested]
        return [asked.caller.user_id, *holders]

    with acts.on_found(asked.db, find) as (act, _):
        caller = admit_caller(asked, act, *wish.acts, given=given)
        if known is None or (caller.email, caller.phone) == (known.email, known.phone):
            if wish.kept:
                removal.withdraw_changes(act, caller, wish.kept)
            email = removal.take_away(asked, act, caller, ids=wish.ids) if wish.ids else caller.email
            if wish.password_hash:
                _set_password(asked, act, caller, known.password_hash, wish.password_hash)
            if is_at_once:
                first_address.set_addresses(asked, act, caller, **new)
                columns |= {"new_email": None, "new_phone": None}
            user = queries.change_user(act, user_id=caller.id, **columns)
            for address in requested:
                first_address.request_address(asked, act, caller, address, link or {}, body.get("channel"))
            # This comes last: otherwise, failing changes would let a session guess the current password
            # uncounted.
            if wish.is_same_password:
                raise ApiError("same_password", "password: must differ from the current one")
            _record(act, caller, email, wish)
            return user
    # A link or code has changed an address meanwhile: the present address of the body is now a new one.
    return change_user(asked, body, link)


def delete_caller(asked: Asked, body: dict[str, Any]) -> str:
    """Delete the caller, and return the time in ISO 8601. `body` contains a proof."""
    act = remove("account")
    given = give_proof(asked, asked.live_caller(), body, act) if body else None
    with acts.on(asked.db, asked.caller.user_id) as tx:
        caller = admit_caller(asked, tx, act, given=given)
        if caller.role == "admin":
            tx.lock_administrators()
            others = queries.count_other_administrators(tx, user_id=caller.id).total
            if refusal := refusal_of_leaving(caller, others):
                raise ApiError(refusal)
        row = queries.delete_user(tx, user_id=caller.id)
    return row.moment


def _read(asked: Asked, body: dict[str, Any]) -> _Wish:
    """Return the changes of a body."""
    columns = {"user_metadata": body.get("data"), "new_email": None, "new_phone": None}
    ids, sets_password = [way.lower() for way in body.get("remove", [])], body.get("password") is not None
    if not (sets_password or ids or any(kind in body for kind in removal.ADDRESSES)):
        return _Wish(columns, [change("metadata")])
    known = asked.live_caller()
    added = [kind for kind in removal.ADDRESSES if kind in body and body[kind] != getattr(known, kind)]
    kept = [kind for kind in removal.ADDRESSES if kind in body and kind not in added]
    columns |= {f"new_{kind}": body[kind] for kind in added}
    if sets_password and is_anonymous(known) and not (added and asked.settings.autoconfirm):
        raise ApiError("anonymous.validation_failed", "password: set it once an email or phone is confirmed")
    acts = [*map(add, added), *(remove(None, id) for id in ids)]
    acts += [change("password")] if sets_password else []
    acts += [change("metadata")] if body.get("data") is not None or kept or not acts else []
    return _Wish(columns, acts, known, added, kept, ids)


def _prove(asked: Asked, wish: _Wish, body: dict[str, Any]) -> Proof | None:
    """Return the kind of a body's proof, if one is needed, and hash the new password."""
    known = wish.known
    if body.get("password") is None:
        return give_proof(asked, known, body, *wish.acts) if known else None
    proof_needed(asked, *wish.acts)
    check_strength(asked.settings, body["password"], [known.email, known.phone], asked.parts.leaked_passwords)
    # A request that the queue refuses must not spend its code.
    with asked.parts.passwords.queue():
        given = give_proof(asked, known, body, *wish.acts)
        wish.is_same_password = known.password_hash is not None and asked.parts.passwords.check(
            body["password"], known.password_hash
        )
        wish.password_hash = asked.parts.passwords.hash(body["password"])
    return given


def _set_password(
    asked: Asked, act: acts.Act, caller: Person, checked_password_hash: str | None, new_hash: str
) -> None:
    # Another request has changed the password that this one checked.
    if caller.password_hash != checked_password_hash:
        raise ApiError("session_not_found")
    reason: Reason = "recovered" if caller.method == "recovery" else "password_changed"
    ends.end(act, caller.id, asked.caller.session_id, reason, voids=True)
    queries.set_password(act, user_id=caller.id, password_hash=new_hash)
    outgoing.notify(asked, act, caller, "password_changed")


def _record(act: acts.Act, caller: Person, email: str | None, wish: _Wish) -> None:
    columns = wish.columns
    acts = [
        "user_changed" if columns["user_metadata"] is not None else None,
        "password_changed" if wish.password_hash else None,
        "email_change_requested" if columns["new_email"] else None,
        "phone_change_requested" if columns["new_phone"] else None,
    ]
    details = {name: columns[name] for name in ("new_email", "new_phone")}
    audit.record(act, caller.id, email, acts, ["user.updated"], **details)
