"""A customer's OpenID provider, and the users whom it may sign in."""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from auth.core import json_bodies, normalize
from auth.core.net.dns_lookups import DnsDeadline, MachineDeadline
from auth.core.net.sockets import CUSTOMERS, Deadline
from auth.core.providers import ProviderError
from auth.core.providers.client import ExternalIdentity, Provider, size_in_json
from auth.core.providers.id_tokens import IdTokens
from auth.core.providers.places import allowed_addresses_of, is_on_this_machine
from auth.core.settings import Settings
from auth.core.settings.presets import PRESETS
from auth.core.settings.providers import ProviderSettings
from auth.core.text.names import PREFIX
from sql import queries

_GOOGLE = PRESETS["google"].issuer
# Bytes. A user's metadata may have 8 KiB, with the name of the member.
_MOST_CLAIMS = 2048
_MOST_METADATA = 8192 - 64
_LONGEST_ATTRIBUTE = 200


def in_one_spelling(issuer: str) -> str:
    """Return an issuer in its stored form. Discovery fails with another spelling."""
    return issuer.rstrip("/")


def typed_issuer(text: str) -> str:
    """Return an issuer without what people copy with it: spaces, and the path of its document."""
    return text.strip().partition("/.well-known/")[0]


def redirect_uri(base_url: str, id: str) -> str:
    """Return the redirect URI of a provider. Each has its own, so that a code goes only to the provider that
    made it.
    """
    return f"{base_url}/providers/{id}/callback"


def host_of(issuer: str) -> str:
    """Return the host where users sign in: the issuer's, since no page fetches the provider's document."""
    return urlsplit(issuer).netloc


class CustomerProvider(Provider):
    """Signs in only addresses of its domains, and trusts no claim except `email`."""

    def __init__(
        self, row: "queries.SelectIdentityProvider | SimpleNamespace", secret: str, service: Settings
    ) -> None:
        settings = ProviderSettings(
            client_ids=(row.client_id, *row.acceptable_client_ids),
            client_secret=secret,
            issuer=row.issuer,
            scopes=" ".join(row.scopes),
            title=row.name,
            link_by_email=True,
        )
        super().__init__(f"{PREFIX}{row.id}", settings, service.base_url)
        self.id, self._version = row.id, row.version
        self.domains = frozenset(row.domains)
        self.callback_name = row.id
        self.redirect_uri = redirect_uri(service.base_url, row.id)
        self._allows = allowed_addresses_of(service, row.issuer, row.organization_id)
        self._is_owners = row.organization_id is not None
        self._parameters = row.authorization_params
        self._mapping: Mapping[str, str] = row.attribute_mapping
        self._claims_kept: Collection[str] = row.custom_claims_allowlist
        self._id_tokens = IdTokens(
            row.issuer, settings.client_ids, discovery_url=row.discovery_url, has_one_tenant=True
        )

    def check(self) -> None:
        """Fetch the endpoints and the keys. Raises `ProviderError`.

        An operator reads its reason. Owners do not, so that of their provider is logged.
        """
        with self._asking(logs=self._is_owners):
            self._id_tokens.check()

    @property
    def has_id_tokens(self) -> bool:
        # An owner may name the client of another website, which has the ID tokens of its visitors.
        return super().has_id_tokens and not self._is_owners

    def _deadline(self, seconds: float) -> Deadline:
        if is_on_this_machine(self._settings.issuer):
            return MachineDeadline(seconds, self._allows)
        if self._is_owners:
            return DnsDeadline(seconds, self._allows)
        return Deadline(seconds, self._allows, CUSTOMERS)

    def _identity(self, info: Any) -> ExternalIdentity:
        verified = info.get("email_verified", True)
        identity = super()._identity({**info, "email_verified": True})
        if not identity.email:
            raise ProviderError("it has no email", "email_missing")
        if verified is not True and verified != "true":
            raise ProviderError("it says that the email is not verified", "email_unverified")
        domain = identity.email.rpartition("@")[2]
        if domain not in self.domains:
            reason = "its email is not of the domains of this provider"
            raise ProviderError(reason, "email_elsewhere", domain)
        # 0.5.1 stored any spelling.
        if in_one_spelling(self._preset.issuer) == _GOOGLE and info.get("hd") != domain:
            raise ProviderError("its hd is not the domain of the email", "workspace_elsewhere", domain)
        data = {**identity.row["identity_data"], "provider_name": self.title}
        mapped: dict[str, Any] = {
            name: value
            for name, claim in self._mapping.items()
            if (value := normalize.name(info.get(claim), _LONGEST_ATTRIBUTE))
            and size_in_json(value) <= _LONGEST_ATTRIBUTE
        }
        claims = {name: info[name] for name in self._claims_kept if name in info}
        metadata = identity.metadata | mapped
        if claims and _may_be_kept(claims, metadata):
            mapped["custom_claims"] = metadata["custom_claims"] = claims
        return replace(
            identity,
            row=identity.row | {"identity_data": data | mapped},
            metadata=metadata,
            customers_provider_id=self.id,
            issuer=self._settings.issuer,
            version=self._version,
        )


def _may_be_kept(claims: Mapping[str, object], metadata: Mapping[str, object]) -> bool:
    """Whether claims fit beside the metadata, and are JSON that Postgres stores and clients may send back."""
    try:
        text = json.dumps(claims, ensure_ascii=False).encode()
        rest = json.dumps(metadata, ensure_ascii=False).encode()
        if len(text) > _MOST_CLAIMS or len(text) + len(rest) > _MOST_METADATA or rb"\u0000" in text:
            return False
        json_bodies.decode(text)
    except (ValueError, RecursionError, json_bodies.InvalidJson):  # a ValueError: half of a surrogate pair
        return False
    return True
