"""The first address of a user. It makes an anonymous user permanent, like an identity or a passkey."""

from collections.abc import Mapping
from typing import Any

from auth.core import addresses
from auth.core.providers.client import ExternalIdentity
from auth.flows.admission import is_listed
from auth.flows.messages import outgoing
from auth.flows.messages.outgoing import notify
from auth.rules.users import lacks_address
from auth.web import audit, facts
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import Transaction, queries


def is_without_address(user: Any) -> bool:
    """Whether the next address is the first. It may belong to a person unrelated to the user."""
    return user.is_anonymous or not (user.email or user.phone)


def request_address(
    asked: Asked,
    tx: Transaction,
    caller: "queries.SelectPerson",
    address: str,
    link: Mapping[str, str | bytes | None],
    channel: str | None = None,
) -> None:
    """Send the link or code that confirms an address. The caller has checked it, unless it is the first.

    A taken first address runs the same statements: anyone can become an anonymous user, and must not learn
    which addresses have a user.
    """
    message, is_email = outgoing.Message(asked, address, channel=channel), addresses.is_email(address)
    columns = dict(link) if is_email else {"browser_hash": link.get("browser_hash")}
    purpose = kind = "email_change" if is_email else "phone_change"
    user_id: str | None = caller.id
    recipient_id = caller.id
    is_first = lacks_address(facts.person_of(caller))
    owner = queries.select_address_owner(tx, address=address) if is_first else None
    if owner and not owner.gives_way:
        kind = "signup_attempt" if is_email else "none"
        user_id, recipient_id = None, owner.id
    message.write_token(tx, user_id, purpose, session_id=asked.caller.session_id, **columns)
    message.write(tx, recipient_id, kind, secret=user_id is not None, redirect_to=columns.get("redirect_to"))


def set_addresses(asked: Asked, tx: Transaction, caller: Any, email: str | None, phone: str | None) -> None:
    """Give the caller its first addresses at once, as a sign-up with `AUTH_AUTOCONFIRM` does."""
    for provider, address in (("email", email), ("phone", phone)):
        if address:
            queries.set_address(tx, user_id=caller.id, provider=provider, address=address, is_confirmed=True)
            audit.record(tx, caller.id, email, [f"{provider}_changed"], [], new_address=address)
    _end_other_sessions(tx, caller.id, asked.caller.session_id, voids=False)


def finish(asked: Asked, tx: Transaction, user_id: str, session_id: str | None) -> None:
    """End all sessions except the requesting one, and notify the owner of the address.

    The owner may have confirmed the address for a stranger, who keeps that session.
    """
    _end_other_sessions(tx, user_id, session_id, voids=True)
    notify(asked, tx, queries.lock_user(tx, user_id=user_id), "address_added")


def finish_by_identity(
    asked: Asked, tx: Transaction, user_id: str, identity: ExternalIdentity, session_id: str
) -> bool:
    """Do the same for a linked identity, and return whether the user got its email."""
    email, is_trusted = identity.email, identity.is_proved
    row = queries.convert_by_identity(tx, user_id=user_id, email=email, is_trusted=is_trusted)
    if row.has_email:
        queries.add_email_of_identity(tx, user_id=user_id, email=email)
    _end_other_sessions(tx, user_id, session_id, voids=True)
    user = queries.lock_user(tx, user_id=user_id)
    notify(asked, tx, user, "identity_linked", provider=identity.provider)
    return row.has_email


def finish_by_passkey(asked: Asked, tx: Transaction, user_id: str, session_id: str) -> None:
    if not is_listed(asked, None):
        raise ApiError("email_address_not_authorized")
    queries.convert_user(tx, user_id=user_id)
    _end_other_sessions(tx, user_id, session_id, voids=False)


def _end_other_sessions(tx: Transaction, user_id: str, kept: str | None, *, voids: bool) -> None:
    # As an anonymous user, the session may have begun to register a passkey without a proof.
    queries.void_challenges(tx, user_id=user_id)
    queries.end_access(tx, user_id=user_id, session_id=kept, reason="address_proved", voids=voids)
