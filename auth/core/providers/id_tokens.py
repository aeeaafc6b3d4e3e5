"""OpenID Connect: discovery, the provider's keys, and the checks of an id_token."""

import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import requests
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jwt import ClaimsOption, JWTClaimsRegistry

from auth.core.net.bounded_http import BoundedSession
from auth.core.net.networks import is_public_name
from auth.core.net.sockets import why
from auth.core.providers import Cause, ProviderError, ProviderUnavailable
from auth.core.tokens.jws import END_OF_CALENDAR

T = TypeVar("T")

# Neither `none` nor HMAC: a public key must not serve as a shared secret (RFC 8725, section 2.1).
ALGORITHMS = [f"{family}{bits}" for family in ("RS", "PS", "ES") for bits in (256, 384, 512)]
ALGORITHMS += ["EdDSA", "Ed25519"]
_MALFORMED = (JoseError, ValueError, TypeError, KeyError, RecursionError)
# Seconds.
_CACHED_FOR = 3600
_FAILED_FOR = 5
_ROTATION_PAUSE = 30
_LEEWAY = 60
_TENANT = "{tenantid}"
# The members of a public key (RFC 7517, RFC 7518). The import of a private one would look for its primes.
_PUBLIC_MEMBERS = ("kty", "use", "key_ops", "alg", "kid", "crv", "x", "y", "n", "e")
_MOST_KEYS = 30
_LONGEST_MEMBER = 1400  # characters: an RSA modulus of 8,192 bits
_LONGEST_URL = 2048
_LONGEST_NAMED = 200  # characters of an issuer
_CHARACTERS = re.compile(r"[!-~]+")


class _Failure(NamedTuple):
    """The parameters of a `ProviderUnavailable`."""

    message: str
    cause: Cause | None = None
    named: str = ""

    @classmethod
    def of(cls, error: ProviderUnavailable) -> "_Failure":
        return cls(str(error), error.cause, error.named)


_NOT_FETCHED = (_Failure(""), 0.0)


class IdTokens:
    """The id_tokens of one issuer. Its metadata and keys are cached for an hour, longer while it is down.

    Without them, a failure is cached for some seconds.
    """

    def __init__(
        self,
        issuer: str,
        client_ids: Sequence[str],
        other_issuers: Sequence[str] = (),
        *,
        discovery_url: str = "",
        has_one_tenant: bool = False,
    ) -> None:
        self._issuer = issuer.rstrip("/")
        self._discovery_url = discovery_url or f"{self._issuer}/.well-known/openid-configuration"
        self._has_one_tenant = has_one_tenant
        self._other_issuers = other_issuers
        self._client_ids = client_ids
        self._lock = threading.Lock()
        # The document or the error of its fetch, and the expiry, by URL.
        self._cache: dict[str, tuple[Any, float]] = {}
        self._keys_asked_at = float("-inf")

    def endpoint(self, name: str) -> str:
        """Return an endpoint. Raises `ProviderError`."""
        url = self.optional_endpoint(name)
        if not url:
            raise ProviderUnavailable(f"the discovery document has no {name}")
        return url

    def optional_endpoint(self, name: str) -> str:
        """Return an endpoint, or "" if it is missing. Raises `ProviderError`."""
        url = self._discovered().get(name)
        # An https issuer must not have http endpoints.
        schemes = ("https://",) if self._issuer.startswith("https://") else ("https://", "http://")
        if isinstance(url, str) and url.startswith(schemes) and _is_well_formed(url):
            return url
        return ""

    def check(self) -> None:
        """Fetch the endpoints and keys of a sign-in. Raises `ProviderError`."""
        for name in ("authorization_endpoint", "token_endpoint"):
            self.endpoint(name)
        self._cached(self.endpoint("jwks_uri"), self._fetch_keys)

    def check_issuer(self, issuer: str | None) -> None:
        """Check the `iss` of an authorization response (RFC 9207). Raises `ProviderError`."""
        metadata = self._discovered()
        if issuer is None and metadata.get("authorization_response_iss_parameter_supported") is True:
            raise ProviderError("the response names no issuer")
        if issuer not in (None, metadata["issuer"]):
            raise ProviderError("the response comes from another issuer")

    def verify(self, id_token: str, nonces: Sequence[str | None]) -> dict[str, Any]:
        """Return the claims (OpenID Connect Core, section 3.1.3.7). Raises `ProviderError`.

        The nonce must be one of `nonces`; None allows a token without a nonce.
        """
        issuer, claims = self._discovered()["issuer"], self._decode(id_token)
        if _TENANT in issuer:
            tenant = str(claims.get("tid"))
            issuer = issuer.replace(_TENANT, tenant) if re.fullmatch(r"[0-9a-f-]{36}", tenant) else None
        needed: ClaimsOption = {"essential": True}
        issuers: ClaimsOption = {"essential": True, "values": [issuer, *self._other_issuers]}
        clients: ClaimsOption = {"essential": True, "values": [*self._client_ids]}
        rules = JWTClaimsRegistry(
            leeway=_LEEWAY, iss=issuers, aud=clients, exp=needed, iat=needed, sub=needed
        )
        try:
            rules.validate(claims)
        except JoseError as error:
            raise ProviderError(f"its claims: {error}") from error
        audience = claims["aud"]
        if not isinstance(audience, str) and len(audience) > 1 and claims.get("azp") not in self._client_ids:
            raise ProviderError("it was issued to another client")
        if not is_date(claims["exp"]):
            raise ProviderError("its exp is not a date")
        if claims.get("nonce") not in nonces:
            raise ProviderError("its nonce is not the one that was sent")
        return claims

    def _decode(self, id_token: str) -> dict[str, Any]:
        for _ in range(2):
            with suppress(*_MALFORMED):
                keys: KeySet = self._cached(self.endpoint("jwks_uri"), self._fetch_keys)
                token = jwt.decode(id_token, keys, algorithms=ALGORITHMS)
                # Access and logout tokens of the issuer have another type (RFC 9068, RFC 8725).
                if str(token.header.get("typ", "JWT")).upper() == "JWT":
                    return token.claims
            if not self._may_refetch_keys():
                break
        raise ProviderError("it is not an id_token that a key of the issuer verifies")

    def _may_refetch_keys(self) -> bool:
        """Expire the cached keys, unless they are fresh: forged tokens must not flood the issuer."""
        url = self.endpoint("jwks_uri")
        with self._lock:
            if time.monotonic() - self._keys_asked_at < _ROTATION_PAUSE:
                return False
            self._cache[url] = (self._cache.get(url, _NOT_FETCHED)[0], 0.0)
            return True

    def _discovered(self) -> dict[str, Any]:
        return self._cached(self._discovery_url, self._fetch_metadata)

    def _cached(self, url: str, fetch: Callable[[str], T]) -> T:
        with self._lock:
            value, expires_at = self._cache.get(url, _NOT_FETCHED)
            if time.monotonic() >= expires_at:
                try:
                    value, ttl = fetch(url), _CACHED_FOR
                except ProviderUnavailable as error:
                    # Not every request must wait for a silent issuer until its deadline.
                    has_failed = isinstance(value, _Failure)
                    value, ttl = (_Failure.of(error), _FAILED_FOR) if has_failed else (value, _CACHED_FOR)
                self._cache[url] = (value, time.monotonic() + ttl)
        if isinstance(value, _Failure):
            raise ProviderUnavailable(*value)
        return value

    def _fetch_metadata(self, url: str) -> dict[str, Any]:
        metadata = _get(url)
        issuer = metadata.get("issuer")
        # Azure's document for all tenants has a placeholder for the tenant.
        is_of_all = not self._has_one_tenant and isinstance(issuer, str) and _TENANT in issuer
        if not isinstance(issuer, str) or (issuer.rstrip("/") != self._issuer and not is_of_all):
            named = issuer if isinstance(issuer, str) and _may_be_named(issuer) else ""
            cause: Cause | None = "issuer_elsewhere" if named else None
            raise ProviderUnavailable("the discovery document is another issuer's", cause, named)
        return {name: value for name, value in metadata.items() if _may_be_read(value, _LONGEST_URL)}

    def _fetch_keys(self, url: str) -> KeySet:
        """Return the usable keys. A key of an unknown type must not prevent the use of others."""
        self._keys_asked_at = time.monotonic()
        published, keys = _get(url).get("keys"), []
        for key in published[:_MOST_KEYS] if isinstance(published, list) else []:
            with suppress(*_MALFORMED, AttributeError):
                public = {name: key[name] for name in _PUBLIC_MEMBERS if name in key}
                is_short = all(_may_be_read(member, _LONGEST_MEMBER) for member in public.values())
                is_ours = key.get("kty") in ("RSA", "EC", "OKP") and key.get("use", "sig") == "sig"
                if is_short and is_ours:
                    keys += KeySet.import_key_set({"keys": [public]}).keys
        if not keys:
            raise ProviderUnavailable("the issuer publishes no usable key")
        return KeySet(keys)


def unverified_issuer(id_token: str) -> str:
    """Return the `iss` of a possible id_token, before anything is fetched for it. Raises `ProviderError`."""
    with suppress(*_MALFORMED):
        token = jws.extract_compact(id_token.encode())
        issuer = json.loads(token.payload)["iss"]
        if token.headers().get("alg") in ALGORITHMS and isinstance(issuer, str):
            return issuer[:255]
    raise ProviderError("it is not a signed JWT of an issuer")


def _is_well_formed(url: str) -> bool:
    try:
        return _CHARACTERS.fullmatch(url) is not None and urlsplit(url).port != 0
    except ValueError:
        return False


def _may_be_named(issuer: str) -> bool:
    """Whether an owner may read the issuer of a foreign document: a public https URL."""
    if len(issuer) > _LONGEST_NAMED or not issuer.startswith("https://") or not _is_well_formed(issuer):
        return False
    return is_public_name(urlsplit(issuer).hostname or "")


def _may_be_read(value: object, most: int) -> bool:
    """Whether a member of a foreign document has a size that nothing takes long for."""
    return len(str(value)) <= most


def is_date(value: object) -> bool:
    """Whether this is a NumericDate (RFC 7519, section 2) that Postgres can store."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < END_OF_CALENDAR


def _get(url: str) -> dict[str, Any]:
    try:
        with BoundedSession() as session:
            response = session.get(url, headers={"Accept": "application/json"})
        document = json.loads(response.content) if response.status_code == 200 else None
    except requests.RequestException as error:
        raise ProviderUnavailable(f"{url}: {why(error)}") from error
    except (ValueError, RecursionError) as error:
        raise ProviderUnavailable(f"no JSON at {url}") from error
    if not isinstance(document, dict):
        raise ProviderUnavailable(f"no document at {url}")
    return document
