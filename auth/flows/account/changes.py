from dataclasses import dataclass, field

from auth.core.json_bodies import JsonObject
from auth.core.passwords.policy import check_strength
from auth.core.text.moments import iso_8601
from auth.flows import admission, ends, memberships, organizations
from auth.flows.account import pending_addresses, removal
from auth.flows.facts import PersonFacts
from auth.flows.messages import outgoing
from auth.flows.passkeys import unused
from auth.flows.sign_in.reauthentication import (
    WantedChange,
    admit_caller,
    give_proof,
)
from auth.flows.sign_up import first_address
from auth.rules.admission import Holder, Word
from auth.rules.proofs import Proof
from auth.rules.remaining import refusal_of_leaving
from auth.rules.users import ADDRESS_KINDS, AddressKind, is_anonymous
from auth.web import audit, callers
from auth.web.asked import Asked
from auth.web.errors import ApiError, unavailable
from sql import Runner, acts, queries


@dataclass(frozen=True)
class _Wish:
    """What a body changes of the caller, besides the metadata.

    `before` has the facts from before the act, `new` the addresses that the caller lacks, `kept` the kinds
    whose present address the body repeats, and `ids` those of the recent additions to remove.
    """

    before: PersonFacts
    changes: list[WantedChange]
    new: dict[AddressKind, str]
    kept: list[AddressKind]
    ids: list[str]


@dataclass
class _Costs:
    """What a request costs once, even if its change begins anew: a proof, and the quotas of its messages."""

    proof: Proof | None = None
    quotas: dict[str, outgoing.Counted] = field(default_factory=dict)


def change_user(
    asked: Asked, body: JsonObject, link: outgoing.TokenColumns = outgoing.NO_COLUMNS
) -> "queries.ChangeUser":
    """Apply a `UserChange` body to the caller, and return the user object as the caller's session sees it.
    `link` has columns of the link or code for a new address.
    """
    if not (body.keys() & {*ADDRESS_KINDS, "password"} or body.get("remove")):
        return _change_metadata(asked, body.get("data"))
    costs = _Costs()
    for _ in range(3):
        if user := _try_to_change(asked, body, link, costs):
            return user
    raise unavailable()


def _try_to_change(
    asked: Asked, body: JsonObject, link: outgoing.TokenColumns, costs: _Costs
) -> "queries.ChangeUser | None":
    """Return None if an address has changed meanwhile: the present address of the body is now a new one."""
    wish = _read(asked, body)
    email, phone = wish.new.get("email"), wish.new.get("phone")
    is_sign_up = bool(wish.new) and is_anonymous(wish.before)
    # With `AUTH_AUTOCONFIRM`, an anonymous user gets the address without a message.
    is_at_once = is_sign_up and asked.settings.autoconfirm
    holder: Holder = "anonymous" if is_sign_up else "permanent"
    word: Word = "proof"
    if is_sign_up and not is_at_once and admission.takes_invitation(asked, email, holder):
        # The answer does not tell whether there is one: without it, nothing is sent.
        word = "invitation"
    if wish.new:
        # This comes first, because a refusal must not cost a code.
        admission.check(asked, asked.caller.user_id, email, phone, holder, word)
    password_hash, is_same = _prove(asked, wish, body, costs)
    if is_at_once or not is_sign_up:
        # If another user takes the address later, its confirmation is refused.
        for address in wish.new.values():
            admission.check_free(asked.db, address, asked.caller.user_id)
    requested = [] if is_at_once else list(wish.new.values())
    for address in requested:
        if address not in costs.quotas:
            costs.quotas[address] = outgoing.admit(asked, address)

    def find(on: Runner) -> list[str | None]:
        # If a first address is taken, its holder gets the message.
        holders = [queries.find_holder(on, address=address).id for address in requested]
        return [asked.caller.user_id, *holders]

    with acts.on_found(asked.db, find) as (act, _):
        caller = admit_caller(asked, act, *wish.changes, proof=costs.proof)
        if (caller.email, caller.phone) == (wish.before.email, wish.before.phone):
            if wish.kept:
                pending_addresses.withdraw(act, caller, wish.kept)
            email_left = removal.take_away(asked, act, caller, ids=wish.ids) if wish.ids else caller.email
            if password_hash:
                # Another request has changed the password that this one checked.
                if caller.password_hash != wish.before.password_hash:
                    raise ApiError("session_not_found")
                if caller.method == "recovery":
                    ends.end_and_void(act, caller.id, asked.caller.session_id, "recovered", kept=asked.here)
                else:
                    ends.end_and_void(act, caller.id, asked.caller.session_id, "password_changed")
                unused.remove_made_without_factor(act, caller, "before_new_password")
                queries.set_password(
                    act,
                    user_id=caller.id,
                    password_hash=password_hash,
                    by_key=caller.is_session_by_key,
                )
                outgoing.notify(asked, act, caller, "password_changed")
            if is_at_once:
                first_address.set_addresses(asked, act, caller, email, phone)
                email = phone = None
            new = {"new_email": email, "new_phone": phone}
            user = queries.change_user(act, user_id=caller.id, user_metadata=body.get("data"), **new)
            for address in requested:
                is_sent = costs.quotas[address].refused_by is None
                first_address.request_address(
                    asked, act, caller, address, link, body.get("channel"), is_sent=is_sent
                )
            # This comes last: otherwise, failing changes would let a session guess the current password
            # uncounted.
            if is_same:
                raise ApiError("same_password", "password: must differ from the current one")
            entries = [
                "user_changed" if "data" in body else None,
                "password_changed" if password_hash else None,
                "email_change_requested" if email else None,
                "phone_change_requested" if phone else None,
            ]
            audit.record(act, caller.id, email_left, entries, ["user.updated"], **new)
            return _shown(asked, caller, user)
    return None


def _change_metadata(asked: Asked, metadata: JsonObject | None) -> "queries.ChangeUser":
    with acts.on(asked.db, asked.caller.user_id) as act:
        caller = admit_caller(asked, act, WantedChange("change", "metadata"))
        user = queries.change_user(
            act, user_id=caller.id, user_metadata=metadata, new_email=None, new_phone=None
        )
        entries = ["user_changed" if metadata is not None else None]
        audit.record(act, caller.id, caller.email, entries, ["user.updated"])
        return _shown(asked, caller, user)


def _shown(asked: Asked, caller: PersonFacts, user: "queries.ChangeUser") -> "queries.ChangeUser":
    standing = callers.standing_of(caller, asked.caller)
    return user._replace(user_object=organizations.user_object_for(user, standing))


def delete_caller(asked: Asked, body: JsonObject) -> str:
    """Delete the caller, and return the time in ISO 8601. `body` contains a proof."""
    wanted = WantedChange("remove", "account")
    proof = give_proof(asked, body, wanted) if body else None
    with acts.on(asked.db, asked.caller.user_id) as act:
        caller = admit_caller(asked, act, wanted, proof=proof)
        if caller.role == "admin":
            act.lock_administrators()
            others = queries.count_administrators(act, without=caller.id).total
            if refusal := refusal_of_leaving(caller, others):
                raise ApiError(refusal)
        memberships.leave_all(asked, act, caller.id)
        queries.delete_user(act, user_id=caller.id, because=None)
    return iso_8601(act.acted_at)


def _read(asked: Asked, body: JsonObject) -> _Wish:
    """Return the changes of a body that has more than metadata."""
    caller, ids = asked.live_caller(), [id.lower() for id in body.get("remove", [])]
    kept = [kind for kind in ADDRESS_KINDS if kind in body and body[kind] == getattr(caller, kind)]
    new = {kind: body[kind] for kind in ADDRESS_KINDS if kind in body and kind not in kept}
    changes = [
        *(WantedChange("add", kind) for kind in new),
        *(WantedChange("remove", None, id) for id in ids),
    ]
    if "password" in body:
        if is_anonymous(caller) and not (new and asked.settings.autoconfirm):
            details = "password: set it once an email or phone is confirmed"
            raise ApiError("anonymous.validation_failed", details)
        changes.append(WantedChange("change", "password"))
    if "data" in body or kept:
        changes.append(WantedChange("change", "metadata"))
    return _Wish(caller, changes, new, kept, ids)


def _prove(asked: Asked, wish: _Wish, body: JsonObject, costs: _Costs) -> tuple[str | None, bool]:
    """Check a body's proof, if one is needed. Return the hash of its new password, and whether that is the
    current one.
    """
    before, password = wish.before, body.get("password")
    if password is None:
        costs.proof = costs.proof or give_proof(asked, body, *wish.changes, caller=before)
        return None, False
    check_strength(asked.settings, password, [before.email, before.phone], asked.parts.leaked_passwords)
    passwords, old_hash = asked.parts.passwords, before.password_hash
    # A request that the queue refuses must not spend its code. `before` is too old to decide: the request may
    # have waited for seconds.
    with passwords.queue():
        costs.proof = costs.proof or give_proof(asked, body, *wish.changes)
        is_same = old_hash is not None and passwords.check(password, old_hash)
        return passwords.hash(password), is_same
