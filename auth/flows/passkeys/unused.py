"""Passkeys that a browser made unasked, and that were not used yet (rule 51)."""

from auth.flows.facts import PersonFacts
from auth.rules.users import has_factor
from auth.web import audit
from sql import queries
from sql.acts import Act


def remove_before_first_factor(act: Act, user: PersonFacts, kept_id: str | None = None) -> None:
    """Remove those of a locked user who gets the first factor, but the one that becomes it.

    They were made with a password alone: the first use of a thief's would sign in at `aal2`, and add a factor
    without the user's (rule 13).
    """
    if has_factor(user):
        return
    for row in queries.remove_unused_passkeys(act, user_id=user.id, kept_id=kept_id):
        details = {"old_passkey": row.friendly_name, "because": "before_first_factor"}
        audit.record(act, user.id, user.email, ["passkey_removed"], [], **details)
