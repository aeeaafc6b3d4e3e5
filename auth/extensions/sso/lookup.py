"""Finding the provider of a name, an id, or the domain of an address."""

import structlog

from auth.core.addresses import InvalidAddress, canonical_domain
from auth.core.providers.customers import CustomerProvider
from auth.core.text.names import PREFIX
from auth.core.tokens.derived_keys import CannotOpen
from auth.web.context import latchkey
from auth.web.errors import ApiError, unavailable
from auth.web.fields import is_uuid
from sql import Database, queries

log = structlog.get_logger()

IDENTIFIER = "custom:"
# The providers that this worker has loaded, with their cached documents and keys, by id.
_KEPT: dict[str, tuple[object, CustomerProvider]] = {}
_MOST_KEPT = 200


def find(name: str) -> CustomerProvider | None:
    """Return the provider of an identifier, or of its name in identities; None for other names.

    Refuse a disabled one.
    """
    if not name.startswith((IDENTIFIER, PREFIX)):
        return None
    row = select(latchkey.db, name.removeprefix(PREFIX))
    if row is None:
        return None
    if not row.enabled:
        raise ApiError("sso_provider_disabled")
    key = (row.version, latchkey.settings.base_url, row.domains)
    known, provider = _KEPT.get(row.id, (None, None))
    if provider is None or known != key:
        try:
            secret = latchkey.sealer.open(bytes(row.client_secret), row.id)
        except CannotOpen as error:
            log.error("provider_failed", provider=row.identifier, reason=f"its secret: {error}")
            raise unavailable("provider.service_unavailable") from None
        own, private_networks = latchkey.settings.base_url, latchkey.settings.webhook_private_networks
        provider = CustomerProvider(row, secret, own, private_networks=private_networks)
        while len(_KEPT) >= _MOST_KEPT:
            del _KEPT[next(iter(_KEPT))]
        _KEPT[row.id] = key, provider
    return provider


def select(db: Database, name: str) -> "queries.SelectIdentityProvider | None":
    """Return the row of an identifier or an id."""
    if "\0" in name:  # of a path, which Postgres refuses
        return None
    id = name if is_uuid(name) else None
    return queries.select_identity_provider(db, identifier=name, id=id)


def of_domain(domain: str) -> "queries.SelectProviderOfDomain | None":
    try:
        return queries.select_provider_of_domain(latchkey.db, domain=canonical_domain(domain))
    except InvalidAddress:
        return None


def provider_of(email: str) -> str | None:
    """Return the identifier of the provider that signs in an address, or None."""
    row = of_domain(email.rpartition("@")[2])
    return row.identifier if row and row.enabled else None
