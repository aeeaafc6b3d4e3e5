"""The OpenID provider of a customer: the checks of its settings, and the users whom it may sign in."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from auth.core import json_bodies, typed
from auth.core.net.dns_lookups import DnsDeadline
from auth.core.net.sockets import CUSTOMERS, Deadline
from auth.core.net.webhook_urls import allowed_addresses
from auth.core.providers import ProviderError
from auth.core.providers.client import ExternalIdentity, Provider, size_in_json
from auth.core.providers.id_tokens import IdTokens
from auth.core.settings import Settings
from auth.core.settings.presets import PRESETS
from auth.core.settings.providers import ProviderSettings
from auth.core.text.names import PREFIX
from sql import queries

# Parameters that we send ourselves, or that would return the code to another URI than ours.
RESERVED_PARAMETERS = {
    "client_id", "client_secret", "redirect_uri", "response_type", "response_mode", "state", "code_challenge",
    "code_challenge_method", "code_verifier", "nonce", "scope", "request", "request_uri",
}  # fmt: skip
_GOOGLE = PRESETS["google"].issuer
# Anyone can have an account at these, with any email.
_OF_EVERYBODY = {preset.issuer for preset in PRESETS.values() if preset.issuer} - {_GOOGLE}
# Microsoft's placeholders for a tenant; the last one is for personal accounts.
_NO_TENANT = {"common", "organizations", "consumers", "9188040d-6c67-4c5b-b112-36a304b66dad"}
# Bytes. A user's metadata may have 8 KiB, with the name of the member.
_MOST_CLAIMS = 2048
_MOST_METADATA = 8192 - 64
_LONGEST_ATTRIBUTE = 200


def in_one_spelling(issuer: str) -> str:
    """Return an issuer in its stored form. Discovery fails with another spelling."""
    return issuer.rstrip("/")


def problem_of_issuer(issuer: str) -> str | None:
    """Return why an issuer may not be a customer's, or None."""
    parts = urlsplit(issuer)
    tenant = parts.path.strip("/").partition("/")[0].lower()
    is_microsoft = re.search(
        r"(^|\.)(microsoftonline\.(com|us|de)|partner\.microsoftonline\.cn|windows\.net)$",
        parts.hostname or "",
    )
    if "{" in issuer or (is_microsoft and tenant in _NO_TENANT):
        return "must have the ID of the customer's tenant"
    if in_one_spelling(issuer) in _OF_EVERYBODY:
        return "must not be a provider at which everybody may have an account"
    return None


def reaches_private_networks(settings: Settings, organization_id: str | None) -> bool:
    """Whether a provider may be in a private network: never one that the owners of an organisation chose."""
    return settings.webhook_private_networks and organization_id is None


def problem_of_url(url: str) -> str | None:
    """Return the problem of a provider's URL, or None."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "must be an https URL"
    if parts.scheme not in ("https", "http") or not parts.hostname or "@" in parts.netloc:
        return "must be an https URL"
    return "must have no query and no fragment" if parts.query or parts.fragment else None


class CustomerProvider(Provider):
    """Signs in only addresses of its domains, and trusts no claim except `email`."""

    def __init__(
        self,
        row: "queries.SelectIdentityProvider | SimpleNamespace",
        secret: str,
        base_url: str,
        *,
        private_networks: bool,
    ) -> None:
        settings = ProviderSettings(
            client_ids=(row.client_id, *row.acceptable_client_ids),
            client_secret=secret,
            issuer=row.issuer,
            scopes=" ".join(row.scopes),
            title=row.name,
            link_by_email=True,
        )
        super().__init__(f"{PREFIX}{row.id}", settings, base_url)
        self.id = row.id
        self.domains = frozenset(row.domains)
        # Each provider has its own redirect URI, so that a code goes only to the provider that made it.
        self.callback_name = row.id
        self.redirect_uri = f"{base_url}/providers/{row.id}/callback"
        self._allows = allowed_addresses(row.issuer, private_networks)
        self._is_owners = row.organization_id is not None
        self._parameters = row.authorization_params
        self._mapping: Mapping[str, str] = row.attribute_mapping
        self._claims_kept: Collection[str] = row.custom_claims_allowlist
        self._id_tokens = IdTokens(
            row.issuer, settings.client_ids, discovery_url=row.discovery_url, has_one_tenant=True
        )

    def check(self) -> None:
        """Fetch the endpoints and the keys. Raises `ProviderError`."""
        with self._asking():
            self._id_tokens.check()

    @property
    def has_id_tokens(self) -> bool:
        # An owner may name a client whose ID tokens others keep, of their own visitors.
        return super().has_id_tokens and not self._is_owners

    def _deadline(self, seconds: float) -> Deadline:
        if self._is_owners:
            return DnsDeadline(seconds, self._allows)
        return Deadline(seconds, self._allows, CUSTOMERS)

    def _identity(self, info: Any) -> ExternalIdentity:
        verified = info.get("email_verified", True)
        if verified is not True and verified != "true":
            raise ProviderError("it says that the email is not verified")
        identity = super()._identity({**info, "email_verified": True})
        domain = (identity.email or "").rpartition("@")[2]
        if domain not in self.domains:
            raise ProviderError("its email is not of the domains of this provider")
        # 0.5.1 stored any spelling.
        if in_one_spelling(self._preset.issuer) == _GOOGLE and info.get("hd") != domain:
            raise ProviderError("its hd is not the domain of the email")
        data = {**identity.row["identity_data"], "provider_name": self.title}
        mapped: dict[str, Any] = {
            name: value
            for name, claim in self._mapping.items()
            if (value := typed.name(info.get(claim), _LONGEST_ATTRIBUTE))
            and size_in_json(value) <= _LONGEST_ATTRIBUTE
        }
        kept = {name: info[name] for name in self._claims_kept if name in info}
        metadata = identity.metadata | mapped
        if kept and _may_be_kept(kept, metadata):
            mapped["custom_claims"] = metadata["custom_claims"] = kept
        return replace(
            identity,
            row=identity.row | {"identity_data": data | mapped},
            metadata=metadata,
            customer=self.id,
            issuer=self._settings.issuer,
        )


def _may_be_kept(claims: Mapping[str, object], metadata: Mapping[str, object]) -> bool:
    """Whether claims fit beside the metadata, and are JSON that Postgres stores and clients may send back."""
    try:
        text = json.dumps(claims, ensure_ascii=False).encode()
        others = json.dumps(metadata, ensure_ascii=False).encode()
        if len(text) > _MOST_CLAIMS or len(text) + len(others) > _MOST_METADATA or rb"\u0000" in text:
            return False
        json_bodies.decode(text)
    except (ValueError, RecursionError, json_bodies.InvalidJson):  # a ValueError: half of a surrogate pair
        return False
    return True
