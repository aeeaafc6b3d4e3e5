"""Asks whether a caller may do a change, and which proof it needs (ASVS 3.7.1).

auth/rules/proofs.py decides, also how old a proof may be; docs/security.md shows its table. A proof is an
authentication in the request or the session, by a factor if the user has one.
"""

from collections.abc import Sequence
from typing import NamedTuple

from auth.core import addresses
from auth.core.json_bodies import JsonObject
from auth.core.text.moments import iso_8601
from auth.flows import facts
from auth.flows.factors.factor_codes import check_totp
from auth.flows.facts import PersonFacts, ProofFacts
from auth.flows.links.finding import TypedCode, by_code, find, locked
from auth.flows.links.proving import person_of, record_mail_proof
from auth.flows.sessions import credentials
from auth.flows.sign_in.passwords import check_current_password
from auth.rules import proofs, users
from auth.rules.proofs import Kind, Proof, Verb
from auth.rules.refusals import Refusal
from auth.web import Level, audit, callers
from auth.web.asked import Asked
from auth.web.errors import ApiError, found
from sql import Runner, acts, queries

_CREDENTIALS = (
    "current_password, factor_code from an authenticator app, or nonce with the code that GET /reauthenticate"
    " sends"
)
_CODE, _FACTOR = "code.reauthentication_needed", "mfa.reauthentication_needed"
# The proofs that satisfy the refusals of changes, and the end of the message.
_WANTED = {
    "reauthentication_needed": (_CREDENTIALS, "this session is too old for this change"),
    _CODE: (
        "nonce with the code that GET /reauthenticate emails or latchkey create-admin prints",
        "the first factor of an administrator needs it",
    ),
    _FACTOR: (
        "factor_code from an authenticator app, a passkey, or verify a factor again",
        "a user with a factor needs one used in this session in the last 15 minutes",
    ),
}
# The members of a body that satisfy a refusal. The first one counts.
_ACCEPTED = {_CODE: ("nonce",), _FACTOR: ("factor_code",)}
_ANY = ("current_password", "factor_code", "nonce")


class WantedChange(NamedTuple):
    """A change of a credential, by its kind or id. The id of a verified one determines its kind."""

    verb: Verb
    kind: Kind | None
    id: str | None = None


def add(kind: Kind) -> WantedChange:
    return WantedChange("add", kind)


def remove(kind: Kind | None, id: str | None = None) -> WantedChange:
    return WantedChange("remove", kind, id)


def code_address(caller: PersonFacts) -> str | None:
    """Return the caller's confirmed address for codes of a proof, if any."""
    email, phone = caller.email_confirmed_at and caller.email, caller.phone_confirmed_at and caller.phone
    return email or phone or None


def has_proof(asked: Asked, caller: PersonFacts) -> bool:
    """Whether the caller's session has a recent proof."""
    session = facts.own_session_of(caller)
    return session is not None and proofs.has_proof(caller, session, asked.policy)


def proof_needed(
    asked: Asked, *wanted: WantedChange, level: Level | None = None, caller: "ProofFacts | None" = None
) -> str | None:
    """Return the key of the error if the caller must give a proof first. Raises other refusals. `caller` has
    the facts that the request has just read, if any.
    """
    caller = caller or found(callers.select(asked.db, asked.caller), "caller.user_not_found")
    refusal = _refusal(asked, asked.db, caller, wanted, level or asked.level, None)
    if refusal and refusal not in _WANTED:
        raise callers.error_of(refusal)
    return refusal


def require(asked: Asked, *wanted: WantedChange, caller: "ProofFacts | None" = None) -> None:
    """Refuse if the caller may not do this, or not without a proof."""
    if key := proof_needed(asked, *wanted, caller=caller):
        raise proof_refusal(key)


def give_proof(
    asked: Asked, body: JsonObject, *wanted: WantedChange, caller: "ProofFacts | None" = None
) -> Proof | None:
    """Check the current password or code of a body, and return the kind of proof. None, without a check, if
    the changes need none.
    """
    key = proof_needed(asked, *wanted, caller=caller)
    return check_credential(asked, body, key) if key else None


def record_reauthentication(asked: Asked, body: JsonObject) -> tuple[str, str | None]:
    """Check a body's password or code, and record it in the session.

    Return the time in ISO 8601, and the new cookie of a browser.
    """
    proof = check_credential(asked, body)
    with acts.on(asked.db, asked.caller.user_id) as act:
        caller = admit_caller(asked, act)
        by = {"is_by_code": proof == "code", "is_by_factor": proof == "factor"}
        queries.record_reauthentication(act, session_id=asked.caller.session_id, **by)
        cookie = credentials.renew(asked, act, caller.id, asked.caller.session_id)
        if "nonce" not in body:
            # The statement that spends a code also records it.
            audit.record(act, caller.id, caller.email, ["reauthenticated"], [])
    return iso_8601(act.acted_at), cookie


def admit_caller(
    asked: Asked,
    act: acts.Act,
    *wanted: WantedChange,
    proof: Proof | None = None,
    accepted: str | None = None,
    level: Level | None = None,
) -> PersonFacts:
    """Return the facts about the caller, whom the act has locked. Refuse if the session has ended, or may not
    do what is wanted.

    `proof` is the result of `give_proof`, or `begun` if an earlier request asked for the proof; `accepted` is
    the proof that the error asks for; `level` is by default the route's.
    """
    caller = found(act.read(callers.select, asked.caller), "caller.user_not_found")
    if asked.is_browser and not credentials.is_current(asked, act):
        raise ApiError("session_not_found")
    refusal = _refusal(asked, act, caller, wanted, level or asked.level, proof)
    if refusal in _WANTED:
        raise proof_refusal(refusal, None if refusal == _FACTOR else accepted)
    if refusal:
        raise callers.error_of(refusal)
    return caller


def _refusal(
    asked: Asked,
    on: Runner,
    caller: ProofFacts,
    wanted: Sequence[WantedChange],
    level: Level,
    proof: Proof | None,
) -> Refusal | None:
    """Return why the caller gets no token now, or may not do what is wanted."""
    session = facts.own_session_of(caller)
    refusal = callers.refusal_of(caller, asked.caller, level, asked.policy)
    if refusal or session is None:
        return refusal or "session_not_found"
    removes = any(change.verb == "remove" for change in wanted)
    rows = queries.list_additions(on, user_id=asked.caller.user_id) if removes else []
    additions = facts.additions_of(rows)
    changes = [each for change in wanted for each in proofs.changes_on(*change, additions)]
    return proofs.refusal_of_changes(changes, caller, session, asked.caller.aal, proof, asked.policy)


def check_credential(asked: Asked, body: JsonObject, key: str = "reauthentication_needed") -> Proof:
    """Check the password or code of a body, and return `factor` for the code of an app, `code` for one from
    the mailbox, else `proof`. Refuse with `key` if the body has none that satisfies it.
    """
    name = next((each for each in _ACCEPTED.get(key, _ANY) if each in body), None)
    if name == "current_password":
        check_current_password(asked, body[name], asked.live_caller())
        return "proof"
    if name == "factor_code":
        if not check_totp(asked, asked.caller.user_id, body[name]):
            details = "factor_code: must be an unused code from an authenticator app"
            raise ApiError("reauthentication_not_valid", details)
        return "factor"
    if name is None:
        raise proof_refusal(key)
    address = code_address(asked.live_caller())
    proof = address and _spend(asked, by_code(asked, address, body[name], body.get("browser_hash")))
    if not proof:
        raise ApiError("reauthentication_not_valid", "nonce: must be the code that GET /reauthenticate sent")
    if proof != "code" and key == _CODE:
        raise proof_refusal(key)
    return proof


def _spend(asked: Asked, code: TypedCode) -> Proof | None:
    """Spend the caller's code, the `nonce` of a body, and return what it proves, or None for a wrong one."""
    lookup = find(asked, code, ["reauthentication"])
    if lookup is None:
        return None
    with locked(asked, lookup) as (act, link):
        if link is None or link.user_id != asked.caller.user_id or not queries.spend_link(act, id=link.id):
            return None
        person = person_of(act, link.user_id)
        record_mail_proof(act, person.id, asked.client["network"])
        audit.record(act, person.id, None, ["reauthenticated"], [])
        address, added_at = users.address_of(person, addresses.kind_of(link.target)), None
        if address and address.value == link.target:
            added_at = proofs.time_of_addition(address.added_at, person.created_at)
        return proofs.proof_of_code(
            is_of_session=link.session_id is not None, address_added_at=added_at, now=person.now
        )


def proof_refusal(key: str = "reauthentication_needed", accepted: str | None = None) -> ApiError:
    """Return the error that asks for a proof: `accepted`, or the one of the key."""
    what, why = _WANTED[key]
    return ApiError(key, f"give {accepted or what}: {why}")
