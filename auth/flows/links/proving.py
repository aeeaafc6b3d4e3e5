"""Proofs of addresses: the first removes all else that the user holds. `person` is the locked user."""

from auth.flows import ends
from auth.flows.facts import PersonFacts
from auth.rules import counts, first_proof
from auth.rules.first_proof import ProvedBy
from auth.rules.users import AddressKind
from auth.web.errors import found
from sql import Runner, queries
from sql.acts import Act


def person_of(act: Act, user_id: str) -> PersonFacts:
    """Return the facts about a locked user. They change with each proof."""
    person = act.read(queries.select_person, user_id=user_id, session_id=None)
    return found(person, "user_not_found")


def holder_of(on: Runner, address: str, other_than: str) -> "PersonFacts | None":
    """Return the facts about the other user who holds an address, proved or not."""
    holder_id = queries.find_holder(on, address=address).id
    if holder_id is None or holder_id == other_than:
        return None
    return queries.select_person(on, user_id=holder_id, session_id=None)


def prove_address(
    act: Act, person: PersonFacts, kind: AddressKind, address: str, proof: ProvedBy, *, by_key: bool = False
) -> bool:
    """Give a user an address that is proved, and return whether this was its first proof.

    A stranger may have set whatever a first proof removes. `by_key` if an administrative key gave the proof.
    """
    is_first = first_proof.is_first_proof(person, kind, address, proof)
    if is_first:
        queries.remove_unproved(act, user_id=person.id, kind=kind)
        ends.end_and_void(act, person.id, None, "address_proved")
        queries.void_undo_links(act, user_id=person.id, moment=None)
        password_hash = person.password_hash if first_proof.keeps_password(person, proof) else None
        queries.set_password(act, user_id=person.id, password_hash=password_hash, by_key=by_key)
    queries.set_address(
        act,
        user_id=person.id,
        kind=kind,
        address=address,
        is_confirmed=True,
        is_proved=True,
        by_key=by_key,
    )
    return is_first


def record_mail_proof(act: Act, user_id: str, network: str) -> None:
    """Give a network where a mailed link or code was used tries of its own, unless three have them."""
    networks = queries.list_known_networks(act, user_id=user_id)
    if counts.records_mail_proof(networks, network, act.acted_at):
        queries.record_mail_proof(act, user_id=user_id, network=network)
