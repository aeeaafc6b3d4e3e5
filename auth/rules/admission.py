"""Whose an address may become (rule 9): what settings, lists and rows say of it. The hook decides too."""

from typing import Literal, Protocol

from auth.rules.refusals import Refusal
from auth.rules.users import AddressKind, Person, gives_way, is_anonymous, is_only_requested

# Who gets an address: a new user, an anonymous one, for whom it is the first, or a permanent one.
Holder = Literal["new", "anonymous", "permanent"]
# What speaks for an email: nothing, or a proof, in this act or by the message that it leads to; the proof, in
# this act, of one with an open invitation; or the customer's provider that is on and signs in with it.
Word = Literal["none", "proof", "invitation", "customer"]


class Admission(Protocol):
    """The settings. Without `signup_domains` all are allowed, without `sms_countries` all numbers."""

    @property
    def email_enabled(self) -> bool: ...
    @property
    def offers_phone(self) -> bool: ...
    @property
    def disable_signup(self) -> bool: ...
    @property
    def signup_domains(self) -> frozenset[str]: ...
    @property
    def signup_blocked_domains(self) -> frozenset[str]: ...
    @property
    def sms_countries(self) -> tuple[str, ...]: ...


def refusal_of_address(
    email: str | None, policy: Admission, holder: Holder, word: Word = "proof"
) -> Refusal | None:
    """Refuse an email that settings and lists do not let a user get. Without one, the user is anonymous, or
    has a phone.

    An invitation or a customer's provider lets in, in spite of AUTH_DISABLE_SIGNUP and AUTH_SIGNUP_DOMAINS. A
    permanent user is in: only another email is held against the lists.
    """
    if holder == "permanent" and email is None:
        return None
    is_let_in = word in ("invitation", "customer") and holder != "permanent"
    if policy.disable_signup and holder == "new" and not is_let_in:
        return "signup_disabled"
    is_listed = not policy.signup_domains or (word != "none" and _domains(email)[0] in policy.signup_domains)
    if not is_listed and not is_let_in:
        return "email_address_not_authorized"
    # A blocked domain blocks its subdomains.
    is_blocked = not policy.signup_blocked_domains.isdisjoint(_domains(email))
    return "email_address_not_authorized" if is_blocked else None


def takes_invitation(email: str | None, policy: Admission, holder: Holder) -> bool:
    """Whether only an open invitation lets a user get an email. The email alone decides, not who has it."""
    if email is None or refusal_of_address(email, policy, holder) is None:
        return False
    return refusal_of_address(email, policy, holder, "invitation") is None


def holder_of(person: Person | None) -> Holder:
    """A user of whom there is only a request for a code is not in yet: who asked may be a stranger."""
    if person is None or is_only_requested(person):
        return "new"
    return "anonymous" if is_anonymous(person) else "permanent"


def refusal_of_first_proof(
    person: Person, email: str | None, policy: Admission, *, is_invited: bool
) -> Refusal | None:
    """Refuse the proof that would let a user in. A permanent user is in, whatever the settings say since."""
    holder = holder_of(person)
    word: Word = "invitation" if is_invited else "proof"
    return None if holder == "permanent" else refusal_of_address(email, policy, holder, word)


def refusal_of_kind(email: str | None, phone: str | None, policy: Admission) -> Refusal | None:
    """Refuse a disabled kind of address."""
    if email and not policy.email_enabled:
        return "email_provider_disabled"
    return "phone_provider_disabled" if phone and not policy.offers_phone else None


def refusal_of_channel(
    email: str | None, phone: str | None, policy: Admission, *, is_possible_phone: bool
) -> Refusal | None:
    """Refuse a disabled kind of address, and a number that SMS cannot reach.

    A user with such a number can still sign in with a password.
    """
    refusal = refusal_of_kind(email, phone, policy)
    if refusal is not None or not phone:
        return refusal
    if not is_possible_phone:
        return "phone.validation_failed"
    if policy.sms_countries and not phone.startswith(policy.sms_countries):
        return "country.validation_failed"
    return None


def refusal_of_holder(kind: AddressKind, holder: Person) -> Refusal | None:
    """Refuse an address that another user holds, unless that user gives way."""
    if gives_way(holder):
        return None
    return "email_exists" if kind == "email" else "phone_exists"


def _domains(email: str | None) -> list[str]:
    """Return the domain of an email, and those above it."""
    labels = (email or "").rpartition("@")[2].split(".")
    return [".".join(labels[skipped:]) for skipped in range(len(labels))]
