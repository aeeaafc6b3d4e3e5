"""Where a customer's provider is: on this machine, or elsewhere."""

from collections.abc import Callable
from typing import Protocol
from urllib.parse import urlsplit

from auth.core.net.networks import is_loopback, leads_to_loopback
from auth.core.net.webhook_urls import allowed_addresses
from auth.core.settings import Settings


class PlacedProvider(Protocol):
    """A row with what decides where a provider signs users in."""

    @property
    def issuer(self) -> str: ...
    @property
    def has_domain_by_command(self) -> bool: ...


def is_on_this_machine(issuer: str) -> bool:
    """Whether an issuer is this machine, in any spelling. `MachineDeadline` connects to the usual ones."""
    return leads_to_loopback(urlsplit(issuer).hostname or "")


def is_out_of_place(settings: Settings, provider: PlacedProvider) -> bool:
    """Whether a provider was set up on one machine, but other machines reach the service. It signs in nobody:
    elsewhere, another program may listen at its issuer, and another organization may own its domain.
    """
    is_of_machine = is_on_this_machine(provider.issuer) or provider.has_domain_by_command
    return is_of_machine and not settings.serves_this_machine


def allowed_addresses_of(
    settings: Settings, issuer: str, organization_id: str | None
) -> Callable[[str], bool]:
    """Return a check of a provider's addresses. Owners of organizations may use none in a private network.
    While other machines reach the service, nobody may use this machine's.
    """
    if is_on_this_machine(issuer):
        return is_loopback if settings.serves_this_machine else lambda _address: False
    private_networks = settings.webhook_private_networks and organization_id is None
    return allowed_addresses(issuer, private_networks)
