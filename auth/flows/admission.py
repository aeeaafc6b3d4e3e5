"""Decides who may get an address: by settings, lists of domains, and the operator's hook.

Nothing is read first: the hook is asked about a taken address as about a free one, and about an invited one
as about one that is not, so that neither the answer nor its time reveals which it is. Administrators vouch
for addresses, and ask only about new users.
"""

from typing import Literal

from auth.core.addresses import is_email, is_possible_phone
from auth.core.json_bodies import JsonObject
from auth.core.providers.client import ExternalIdentity
from auth.flows import organizations
from auth.flows.facts import PersonFacts
from auth.registry import Candidate
from auth.rules import admission
from auth.rules.admission import Holder, Word
from auth.rules.refusals import Refusal
from auth.rules.users import AddressKind
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import Runner, queries

# Whom a message may let in as a new user.
Admitted = Literal["anyone", "invited"]


def check(
    asked: Asked,
    user_id: str,
    email: str | None,
    phone: str | None,
    holder: Holder,
    word: Word = "proof",
) -> None:
    """Refuse addresses that a user may not get. Call it outside any transaction."""
    check_settings(asked, email, phone, holder, word)
    ask_hook(asked, user_id, email, phone)


def check_settings(
    asked: Asked,
    email: str | None,
    phone: str | None,
    holder: Holder,
    word: Word = "proof",
    *,
    doing: str = "Sign-in",
) -> None:
    """Refuse addresses that the settings and lists do not let a user get."""
    check_channel(asked, email, phone, doing=doing)
    refusal = admission.refusal_of_address(email, asked.settings, holder, word)
    if refusal:
        raise _error(asked, refusal, doing)


def takes_invitation(asked: Asked, email: str | None, holder: Holder) -> bool:
    """Whether a message to an email lets a user in only with an open invitation, whoever has it."""
    is_on = organizations.is_on(asked.settings)
    return is_on and admission.takes_invitation(email, asked.settings, holder)


def admitted(asked: Asked, email: str | None) -> Admitted | None:
    """Return at which emails a message may let a new user in, or None: not at this one."""
    if admission.refusal_of_address(email, asked.settings, "new") is None:
        return "anyone"
    return "invited" if takes_invitation(asked, email, "new") else None


def is_invited(on: Runner, email: str | None) -> bool:
    """Whether an email has an open invitation to an organization. Ask about each email alike."""
    return queries.select_invited(on, email=email).is_invited


def refusal_of_first_proof(asked: Asked, on: Runner, person: PersonFacts, address: str) -> Refusal | None:
    """Refuse the link or code that would let a user in, such as one whose invitation has ended since."""
    email, holder = address if is_email(address) else None, admission.holder_of(person)
    asks = takes_invitation(asked, email, holder)
    return admission.refusal_of_first_proof(
        person, email, asked.settings, is_invited=asks and is_invited(on, email)
    )


def refusal_of_identity(
    asked: Asked,
    on: Runner,
    person: "PersonFacts | None",
    identity: ExternalIdentity,
    *,
    is_customers: bool = False,
) -> Refusal | None:
    """Refuse an identity that would let a user in. The word of a trusted provider proves its email.

    `is_customers` if it comes from a customer's provider that is on.
    """
    email, holder = identity.told_email, admission.holder_of(person)
    if holder == "permanent":
        return None
    word: Word = "customer" if is_customers else "proof" if identity.is_proved else "none"
    # Another provider's word proves nothing, so its users must not learn of invitations.
    if word == "proof" and takes_invitation(asked, email, holder) and is_invited(on, email):
        word = "invitation"
    return admission.refusal_of_address(email, asked.settings, holder, word)


def ask_hook(
    asked: Asked,
    user_id: str,
    email: str | None,
    phone: str | None,
    *,
    data: JsonObject | None = None,
    provider: str | None = None,
) -> None:
    """Let the operator's hook refuse, like `check`, addresses that a provider or an administrator gives."""
    for ask in asked.parts.admission_hooks:
        ask(asked, Candidate(user_id, email, phone, data or {}, provider))


def check_free(on: Runner, address: str, user_id: str | None = None) -> None:
    """Refuse an address that another user has, unless that user gives way."""
    holder_id = queries.find_holder(on, address=address).id
    holder = queries.select_person(on, user_id=holder_id, session_id=None)
    if holder is None or holder.id == user_id:
        return
    kind: AddressKind = "email" if is_email(address) else "phone"
    if refusal := admission.refusal_of_holder(kind, holder):
        raise ApiError(refusal)


def check_channel(asked: Asked, email: str | None, phone: str | None, *, doing: str = "Sign-in") -> None:
    """Refuse a disabled kind of address, and a number that SMS cannot reach."""
    is_possible = phone is not None and is_possible_phone(phone)
    refusal = admission.refusal_of_channel(email, phone, asked.settings, is_possible_phone=is_possible)
    if refusal:
        raise _error(asked, refusal, doing)


def _error(asked: Asked, refusal: Refusal, doing: str) -> ApiError:
    details = {
        "phone.validation_failed": "phone: must be as long as the numbers of its country",
        "country.validation_failed": f"phone: must begin with {', '.join(asked.settings.sms_countries)}",
    }
    return ApiError(refusal, details.get(refusal), doing=doing)
