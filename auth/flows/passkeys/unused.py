"""Passkeys that a browser made unasked, and that were not used yet (rule 51)."""

from typing import Literal

from auth.flows.facts import PersonFacts
from auth.rules.users import has_factor
from auth.web import audit
from sql import queries
from sql.acts import Act


def remove_made_without_factor(
    act: Act,
    user: PersonFacts,
    because: Literal["before_first_factor", "before_new_password"],
    kept_id: str | None = None,
) -> None:
    """Remove those of a locked user who has had no factor until now, but the one that becomes it.

    A password alone made them. The first use of a thief's would sign in at `aal2` after its owner has chosen
    another password, or beside the owner's factor, and add a factor without that (rule 13).
    """
    if has_factor(user):
        return
    for row in queries.remove_unused_passkeys(act, user_id=user.id, kept_id=kept_id):
        details = {"old_passkey": row.friendly_name, "because": because}
        audit.record(act, user.id, user.email, ["passkey_removed"], [], **details)
