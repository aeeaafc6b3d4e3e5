"""Addresses that a user has asked for, and has not proved yet."""

from collections.abc import Sequence

from auth.flows.facts import PersonFacts
from auth.web import audit
from sql import queries
from sql.acts import Act


def withdraw(act: Act, user: PersonFacts, kinds: Sequence[str]) -> None:
    """Withdraw the pending changes of addresses of these kinds, and void their links and codes.

    This needs no proof, because it adds no way to sign in.
    """
    pending = {kind: address for kind in kinds if (address := getattr(user, f"new_{kind}"))}
    if pending:
        queries.withdraw_changes(act, user_id=user.id, purposes=[f"{kind}_change" for kind in pending])
        entries = [
            "email_change_withdrawn" if "email" in pending else None,
            "phone_change_withdrawn" if "phone" in pending else None,
        ]
        details = {f"new_{kind}": address for kind, address in pending.items()}
        audit.record(act, user.id, user.email, entries, [], **details)
