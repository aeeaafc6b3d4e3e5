"""The first address of a user. It makes an anonymous user permanent, like an identity or a passkey.

As an anonymous user, the session may have begun to register a passkey without a proof: its challenge is void.
"""

from auth.core import addresses
from auth.core.providers.client import ExternalIdentity
from auth.flows import admission, ends
from auth.flows.facts import PersonFacts
from auth.flows.links.proving import person_of
from auth.flows.messages import outgoing
from auth.flows.messages.outgoing import TokenColumns, notify
from auth.rules.messages import message_of_first_address
from auth.rules.users import gives_way, is_anonymous, lacks_address
from auth.web import audit
from auth.web.asked import Asked
from sql import Runner, queries
from sql.acts import Act


def request_address(
    asked: Asked,
    act: Act,
    caller: PersonFacts,
    address: str,
    link: TokenColumns,
    channel: str | None,
    *,
    is_sent: bool,
) -> None:
    """Send the link or code that confirms an address. The caller has checked it, unless it is the first.

    Unless the message `is_sent`, the same statements write none.

    A taken first address runs the same statements: anyone can become an anonymous user, and must not learn
    which addresses have a user.
    """
    message, is_email = outgoing.Message(asked, address, channel=channel), addresses.is_email(address)
    columns = link if is_email else TokenColumns(browser_hash=link.get("browser_hash"))
    by_key = caller.is_session_by_key
    columns = columns | TokenColumns(session_id=asked.caller.session_id, by_key=by_key)
    purpose, owner = "email_change" if is_email else "phone_change", None
    if lacks_address(caller):
        holder_id = queries.find_holder(act, address=address).id
        owner = queries.select_person(act, user_id=holder_id, session_id=None)
    is_taken = owner is not None and not gives_way(owner)
    # The answer does not tell who is invited.
    is_out = is_anonymous(caller) and admission.refusal_of_first_proof(asked, act, caller, address)
    is_sent = is_sent and not is_out
    kind = message_of_first_address(is_mail=is_email, is_taken=is_taken) if is_sent else "none"
    recipient_id = owner.id if owner and is_taken else caller.id
    message.write_token(act, caller.id if is_sent and not is_taken else None, purpose, **columns)
    message.write(act, recipient_id, kind, redirect_to=columns.get("redirect_to"))


def set_addresses(asked: Asked, act: Act, caller: PersonFacts, email: str | None, phone: str | None) -> None:
    """Give the caller its first addresses at once, as a sign-up with `AUTH_AUTOCONFIRM` does."""
    for kind, address in (("email", email), ("phone", phone)):
        if address:
            queries.set_address(
                act,
                user_id=caller.id,
                kind=kind,
                address=address,
                is_confirmed=True,
                is_proved=False,
                by_key=caller.is_session_by_key,
            )
            audit.record(act, caller.id, email, [f"{kind}_changed"], [], new_address=address)
    queries.void_challenges(act, user_id=caller.id)
    ends.end(act, caller.id, asked.caller.session_id, "address_proved", kept=asked.here)


def finish(asked: Asked, act: Act, user_id: str, session_id: str | None) -> None:
    """End all sessions except the requesting one, and notify the owner of the address.

    The owner may have confirmed the address for a stranger, who keeps that session.
    """
    queries.void_challenges(act, user_id=user_id)
    ends.end_and_void(act, user_id, session_id, "address_proved", kept=asked.here)
    notify(asked, act, person_of(act, user_id), "address_added")


def free_email(on: Runner, email: str | None) -> str | None:
    """Return an email if no user has it."""
    return email if email and queries.find_holder(on, address=email).id is None else None


def finish_by_identity(
    asked: Asked, act: Act, user: PersonFacts, identity: ExternalIdentity, session_id: str
) -> bool:
    """Finish for a linked identity, like `finish`, and return whether the user got its email."""
    email = None if user.email else free_email(act, identity.email)
    is_proved = email is not None and identity.is_proved
    by_key = user.is_session_by_key
    queries.convert_by_identity(act, user_id=user.id, email=email, is_proved=is_proved, by_key=by_key)
    if email:
        queries.add_email_of_identity(act, user_id=user.id, email=email)
    queries.void_challenges(act, user_id=user.id)
    ends.end_and_void(act, user.id, session_id, "address_proved", kept=asked.here)
    notify(asked, act, person_of(act, user.id), "identity_linked", provider=identity.provider)
    return email is not None


def finish_by_passkey(asked: Asked, act: Act, user_id: str, session_id: str) -> None:
    admission.check_settings(asked, None, None, "anonymous")
    queries.convert_user(act, user_id=user_id)
    queries.void_challenges(act, user_id=user_id)
    ends.end(act, user_id, session_id, "address_proved", kept=asked.here)
