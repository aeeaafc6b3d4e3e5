"""Notices of changes, with a link that undoes the change and what was added since."""

from typing import Any

from auth.context import latchkey
from auth.messages.outgoing import Message, notify
from auth.tokens import one_time
from sql import Transaction


def tell(
    tx: Transaction,
    user: Any,
    kind: str,
    session_id: str | None,
    *,
    restored: str | None = None,
    restored_factor: str | None = None,
    **others: Any,
) -> None:
    """Write the notice of a change, with a link that undoes it, to the previous address.

    Call it before the change. `restored` is the provider of the identity that the change replaces or removes,
    `restored_factor` the id of a factor; `others` are variables of the template.
    """
    target = notice_address(user)
    if target is None:
        return
    message = Message(target, code=False, lifetime=one_time.UNDO_LIFETIME, sms_link=True)
    kept = {"restored": restored, "restored_factor": restored_factor}
    message.write_undo_token(tx, user.id, session_id, **kept)
    message.write(tx, user.id, kind, **others)


def tell_of_identity(tx: Transaction, user: Any, kind: str, provider: str, session_id: str | None) -> None:
    """Write the notice of a linked or unlinked identity, without a link if the user's email is not proved."""
    if notice_address(user):
        restored = provider if kind == "identity_unlinked" else None
        tell(tx, user, kind, session_id, restored=restored, provider=provider)
    elif user.email:
        notify(tx, user.id, user.email, kind, provider=provider)


def notice_address(user: Any) -> str | None:
    """Return the proved address to which notices with a link go, if any."""
    if user.email_proved:
        return user.email
    return user.phone if user.phone_proved and latchkey.settings.offers_phone else None
