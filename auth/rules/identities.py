"""Customers' providers (rule 10): which users one may sign in, and what a change of one needs and ends.

The provider of an identity signs in the user who has its subject: a constraint decides that, and
`select_owner_of_identity` reads it.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Literal, Protocol

from auth.rules.organizations import OWNER, AddingProvider, Role, adds_member
from auth.rules.refusals import Refusal
from auth.rules.users import Person, User

# The entry of the audit log for a provider that is on or off now, None for another change.
Turned = Literal["provider_enabled", "provider_disabled"] | None


class IdentityProvider(Protocol):
    """A row with a customer's provider, which signs in addresses of its domains."""

    @property
    def enabled(self) -> bool: ...
    @property
    def is_blocked(self) -> bool: ...
    @property
    def domains(self) -> Collection[str]: ...


class JoinableProvider(AddingProvider, Protocol):
    """A row with an organization's provider, to which users of its domains may move."""

    @property
    def domains(self) -> Collection[str]: ...


class ClientOfIssuer(Protocol):
    """A row with what decides where the client secret goes, and for which client."""

    @property
    def issuer(self) -> str: ...
    @property
    def discovery_url(self) -> str: ...
    @property
    def client_id(self) -> str: ...


def refusal_of_customer(
    provider: IdentityProvider | None, email: str | None, *, is_test: bool = False
) -> Refusal | None:
    """Refuse an address that is not of the provider's domains.

    `provider` is None if it has another issuer now. One that is off signs in the owner who tests it
    (`is_test`), unless an operator has disabled it.
    """
    if provider is None or not (provider.enabled or (is_test and not provider.is_blocked)):
        return "sso_provider_disabled"
    return None if domain_of(email) in provider.domains else "customer.email_address_not_authorized"


def reader_of_cause(*, role: Role, is_trial: bool, is_signed: bool) -> Literal["owner", "employee"] | None:
    """Return which user reads why a sign-in with a customer's provider failed, or None.

    An owner (`role`) who tests the provider reads each reason. Other users, and an owner who moves, read only
    what is wrong with an identity that the provider signed (`is_signed`).
    """
    if is_trial and role == OWNER:
        return "owner"
    return "employee" if is_signed else None


def refusal_of_customers_user(
    person: Person, provider: IdentityProvider, *, is_linked: bool, is_adopted: bool
) -> Refusal | None:
    """Refuse an administrator, and a user who is not the customer's.

    A customer's provider signs in users whom it created (`is_linked`), whose addresses nobody has proved, or
    who moved to it, or were moved by an administrator (`is_adopted`). The data of a user with another proved
    address may be a stranger's.
    """
    if refusal := refusal_of_administrator(person):
        return refusal
    if is_linked:
        is_its_address = domain_of(person.email) in provider.domains
        return None if is_its_address else "customer.email_address_not_authorized"
    if is_adopted:
        return None
    return "user_sso_conflict" if person.email_proved or person.phone_proved else None


def refusal_of_adoption(user: User, domain: str, domains: Collection[str]) -> Refusal | None:
    """A provider signs in no administrator, and only addresses of its domains."""
    is_its_address = domain in domains
    return refusal_of_administrator(user) or (
        None if is_its_address else "customer.email_address_not_authorized"
    )


def refusal_of_administrator(user: User) -> Refusal | None:
    """A customer's provider signs in no administrator."""
    return "admin.user_sso_conflict" if user.role == "admin" else None


def may_rejoin(user: Person, providers: Iterable[JoinableProvider]) -> bool:
    """Whether a former member becomes a member again by moving to one of the organization's providers."""
    domain = domain_of(user.email if user.email_proved else None)
    joinable = filter(adds_member, providers)
    return any(refusal_of_adoption(user, domain, each.domains) is None for each in joinable)


def refusal_of_unlinking(*, has_left: bool, is_own_session: bool) -> Refusal | None:
    """A user removes the identity of an organization's provider after leaving, or without having joined
    (`has_left`), but not in a session that it opened: removing it would end that.
    """
    return None if has_left and not is_own_session else "customer.manual_linking_disabled"


def problem_without_secret(before: ClientOfIssuer, after: ClientOfIssuer) -> str | None:
    """Return why a change takes the client secret in the same act, or None.

    The stored secret goes to the token endpoint in the issuer's document, as that of the client.
    """
    for name in ("issuer", "discovery_url", "client_id"):
        if getattr(before, name) != getattr(after, name):
            return f"client_secret: is required with another {name}"
    return None


def problem_of_key(provider: IdentityProvider, changes: Mapping[str, object]) -> str | None:
    """Return why an administrative key may not change these members of a provider, or None (rule 6)."""
    if others := sorted(changes.keys() - {"name", "enabled"}):
        return f"{others[0]}: must be absent"
    if changes.get("enabled") and not provider.enabled:
        return "enabled: a provider that is off stays off"
    return None


def refusal_of_key(turned: Turned, *, has_administrators: bool) -> Refusal | None:
    """A key does nothing to administrators: turning a provider off ends what it opened for them (rule 6)."""
    return "target.insufficient_permissions" if turned and has_administrators else None


def turned(provider: IdentityProvider, *, is_enabled: bool, is_blocked: bool) -> Turned:
    """Whether a change turns a provider on or off. An operator also disables one that owners turned off."""
    if is_enabled:
        return None if provider.enabled else "provider_enabled"
    is_newly_blocked = is_blocked and not provider.is_blocked
    return "provider_disabled" if provider.enabled or is_newly_blocked else None


def domain_of(email: str | None) -> str:
    return (email or "").rpartition("@")[2]
