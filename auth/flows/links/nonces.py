"""Codes that prove who a caller is: the `nonce` of a sensitive change."""

from auth.core import addresses
from auth.flows.links.finding import Code, find, locked
from auth.flows.links.proving import person_of, record_mail_proof
from auth.rules import proofs, users
from auth.web import audit
from auth.web.asked import Asked
from sql import queries


def spend(asked: Asked, code: Code) -> proofs.Proof | None:
    """Spend the caller's code, and return what it proves, or None for a wrong one."""
    found = find(asked, code, ["reauthentication"])
    if found is None:
        return None
    with locked(asked, found) as (act, row):
        if row is None or row.user_id != asked.caller.user_id or not queries.spend_link(act, id=row.id):
            return None
        person = person_of(act, row.user_id)
        record_mail_proof(act, person.id, asked.client["network"])
        audit.record(act, person.id, None, ["reauthenticated"], [])
        address = users.address_of(person, addresses.kind_of(row.target))
        is_own = address is not None and address.value == row.target
        added_at = proofs.added_at(address.added_at, person.created_at) if address and is_own else None
        return proofs.proof_of_code(
            is_of_session=row.session_id is not None, address_added_at=added_at, now=person.now
        )
