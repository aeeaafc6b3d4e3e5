"""Finding the provider of a name, an id, or the domain of an address."""

import structlog

from auth.core.addresses import InvalidAddress, canonical_domain
from auth.core.providers.customers import CustomerProvider
from auth.core.text.names import PREFIX
from auth.core.tokens.derived_keys import CannotOpen
from auth.flows import organizations
from auth.flows.admin.providers import IDENTIFIER, select
from auth.rules.identities import domain_of
from auth.web.context import Latchkey
from auth.web.errors import ApiError, unavailable
from sql import queries

log = structlog.get_logger()

# The providers that this worker has loaded, with their cached documents and keys, by id.
_KEPT: dict[str, tuple[object, CustomerProvider]] = {}
_MOST_KEPT = 200


def find(parts: Latchkey, name: str, *, is_test: bool = False) -> CustomerProvider | None:
    """Return the provider of an identifier, or of its name in identities; None for other names.

    Refuse a disabled one, unless an owner of its organization tests it while organizations are on. Every door
    asks here when a user comes back from the provider, whenever the flow began.
    """
    if not name.startswith((IDENTIFIER, PREFIX)):
        return None
    row = select(parts.db, name.removeprefix(PREFIX))
    if row is None:
        return None
    if not signs_in(parts, row, is_test=is_test):
        raise ApiError("sso_provider_disabled")
    key = (row.version, parts.settings.base_url, row.domains)
    loaded_key, provider = _KEPT.get(row.id, (None, None))
    if provider is None or loaded_key != key:
        try:
            secret = parts.sealer.open(bytes(row.client_secret), row.id)
        except CannotOpen as error:
            log.error("provider_failed", provider=row.identifier, reason=f"its secret: {error}")
            raise unavailable("provider.service_unavailable") from None
        provider = CustomerProvider(row, secret, parts.settings)
        while len(_KEPT) >= _MOST_KEPT:
            del _KEPT[next(iter(_KEPT))]
        _KEPT[row.id] = key, provider
    return provider


def signs_in(
    parts: Latchkey,
    row: "queries.SelectIdentityProvider | queries.SelectProviderOfDomain | queries.SelectProviderOfUser",
    *,
    is_test: bool = False,
) -> bool:
    """Whether a provider signs users in, or owners who test it (`is_test`).

    The settings may turn it off: `is_provider_off`.
    """
    if organizations.is_provider_off(parts.settings, row):
        return False
    return row.enabled or (is_test and row.organization_id is not None)


def of_domain(parts: Latchkey, domain: str) -> "queries.SelectProviderOfDomain | None":
    try:
        return queries.select_provider_of_domain(parts.db, domain=canonical_domain(domain))
    except InvalidAddress:
        return None


def of_address(parts: Latchkey, email: str) -> "queries.SelectProviderOfDomain | None":
    """Return the provider that signs in addresses of this domain, or None. It is not asked who has one."""
    row = of_domain(parts, domain_of(email))
    return row if row and signs_in(parts, row) else None
