"""Whose an address may become (rule 9): what settings, lists and rows say of it. The hook decides too."""

from typing import Protocol

from auth.rules.refusals import Refusal
from auth.rules.users import AddressKind, Person, gives_way


class Admission(Protocol):
    """The settings. Without `signup_domains` all are allowed, without `sms_countries` all numbers."""

    @property
    def email_enabled(self) -> bool: ...
    @property
    def offers_phone(self) -> bool: ...
    @property
    def signup_domains(self) -> frozenset[str]: ...
    @property
    def signup_blocked_domains(self) -> frozenset[str]: ...
    @property
    def sms_countries(self) -> tuple[str, ...]: ...


def refusal_of_address(
    email: str | None, phone: str | None, policy: Admission, *, is_possible_phone: bool, is_first: bool
) -> Refusal | None:
    """Refuse an address that settings and lists do not let a user get. Without one, the user is anonymous.

    `is_first` if it is the user's first address. A user with another one has passed the lists of domains with
    that, so a further phone is not held against them.
    """
    refusal = refusal_of_channel(email, phone, policy, is_possible_phone=is_possible_phone)
    if refusal is None and (email or is_first) and not is_listed(email, policy):
        return "email_address_not_authorized"
    return refusal


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


def is_listed(email: str | None, policy: Admission, *, is_proved: bool = True) -> bool:
    """Whether the lists of domains allow an email, or a user without one.

    A blocked domain blocks its subdomains. AUTH_SIGNUP_DOMAINS needs an email that a trusted provider has
    verified, or that will be proved.
    """
    labels = (email or "").rpartition("@")[2].split(".")
    domain, *parents = (".".join(labels[skipped:]) for skipped in range(len(labels)))
    is_allowed = not policy.signup_domains or (is_proved and domain in policy.signup_domains)
    return is_allowed and policy.signup_blocked_domains.isdisjoint((domain, *parents))


def refusal_of_holder(kind: AddressKind, holder: Person) -> Refusal | None:
    """Refuse an address that another user holds, unless that user gives way."""
    if gives_way(holder):
        return None
    return "email_exists" if kind == "email" else "phone_exists"
