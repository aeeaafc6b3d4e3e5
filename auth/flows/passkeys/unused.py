"""Passkeys that a browser made unasked, and that were not used yet (rule 51)."""

from typing import Literal

from auth.flows.account import pending_addresses
from auth.flows.facts import PersonFacts
from auth.rules.users import ADDRESS_KINDS, has_factor
from auth.web import audit
from sql import queries
from sql.acts import Act


def remove_made_without_factor(
    act: Act,
    user: PersonFacts,
    because: Literal["before_first_factor", "before_new_password"],
    kept_id: str | None = None,
) -> None:
    """Remove the unused passkeys of a locked user without a factor, except `kept_id`, which becomes one.

    The password alone made them. Otherwise a thief's would sign in at `aal2` after its owner has chosen
    another password or added a factor, and would add another factor without that one (rule 13).
    """
    if has_factor(user):
        return
    for row in queries.remove_unused_passkeys(act, user_id=user.id, kept_id=kept_id):
        details = {"old_passkey": row.friendly_name, "because": because}
        audit.record(act, user.id, user.email, ["passkey_removed"], [], **details)


def clear_before_passkey(act: Act, user: PersonFacts, kept_id: str | None = None) -> None:
    """Before a passkey becomes the first factor of a locked user, remove what a thief of the password could
    use without it later: unused passkeys except `kept_id`, and pending changes of an address.
    """
    if has_factor(user):
        return
    pending_addresses.withdraw(act, user, ADDRESS_KINDS)
    remove_made_without_factor(act, user, "before_first_factor", kept_id=kept_id)
