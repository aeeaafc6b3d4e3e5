"""OpenID Connect: discovery, the provider's keys, and the checks of an id_token."""

import hashlib
import hmac
import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import requests
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from auth.net.bounded_http import BoundedSession
from auth.providers import ProviderError, ProviderUnavailable

# Neither `none` nor HMAC: a public key must not serve as a shared secret (RFC 8725, section 2.1).
ALGORITHMS = [f"{family}{bits}" for family in ("RS", "PS", "ES") for bits in (256, 384, 512)]
ALGORITHMS += ["EdDSA", "Ed25519"]
_MALFORMED = (JoseError, ValueError, TypeError, KeyError, RecursionError)
# Seconds.
_CACHED_FOR = 3600
_ROTATION_PAUSE = 30
_LEEWAY = 60
_YEAR_10000 = 253_402_300_800
_TENANT = "{tenantid}"


class IdTokens:
    """The id_tokens of one issuer. Its metadata and keys are cached for an hour, longer while it is down."""

    def __init__(self, issuer: str, client_ids: Sequence[str], other_issuers: Sequence[str] = ()) -> None:
        self._issuer = issuer.rstrip("/")
        self._other_issuers = other_issuers
        self._client_ids = client_ids
        self._lock = threading.Lock()
        self._cache: dict[str, tuple[Any, float]] = {}  # document and expiry by URL
        self._keys_asked_at = float("-inf")

    def endpoint(self, name: str) -> str:
        url = self.optional_endpoint(name)
        if not url:
            raise ProviderUnavailable(f"the discovery document has no {name}")
        return url

    def optional_endpoint(self, name: str) -> str | None:
        url = self._discovered().get(name)
        # An https issuer must not lead to http endpoints.
        schemes = ("https://",) if self._issuer.startswith("https://") else ("https://", "http://")
        return url if isinstance(url, str) and url.startswith(schemes) else None

    def check_issuer(self, issuer: str | None) -> None:
        """Check the `iss` of an authorization response (RFC 9207). Raises `ProviderError`."""
        metadata = self._discovered()
        if issuer is None and metadata.get("authorization_response_iss_parameter_supported") is True:
            raise ProviderError("the response names no issuer")
        if issuer not in (None, metadata["issuer"]):
            raise ProviderError("the response comes from another issuer")

    def verify(self, id_token: str, nonce: str | None, *, may_be_hashed: bool = False) -> dict[str, Any]:
        """Return the claims (OpenID Connect Core, section 3.1.3.7). Raises `ProviderError`."""
        _unverified_claims(id_token)
        issuer, claims = self._discovered()["issuer"], self._decode(id_token)
        if _TENANT in issuer:
            tenant = str(claims.get("tid"))
            issuer = issuer.replace(_TENANT, tenant) if re.fullmatch(r"[0-9a-f-]{36}", tenant) else None
        if issuer is None or claims.get("iss") not in (issuer, *self._other_issuers):
            raise ProviderError("it is from another issuer")
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if not any(client_id in audiences for client_id in self._client_ids):
            raise ProviderError("it is for another client")
        if len(audiences) > 1 and claims.get("azp") not in self._client_ids:
            raise ProviderError("it was issued to another client")
        now = time.time()
        if _moment(claims, "exp") <= now - _LEEWAY:
            raise ProviderError("it has expired")
        if max(_moment(claims, "iat"), _moment({"nbf": 1} | claims, "nbf")) > now + _LEEWAY:
            raise ProviderError("it is not valid yet")
        if not is_subject(claims.get("sub")):
            raise ProviderError("it has no valid subject")
        _check_nonce(claims.get("nonce"), nonce, may_be_hashed)
        return claims

    def _decode(self, id_token: str) -> dict[str, Any]:
        for _ in range(2):
            with suppress(*_MALFORMED):
                keys: KeySet = self._cached(self.endpoint("jwks_uri"), self._fetch_keys)
                return jwt.decode(id_token, keys, algorithms=ALGORITHMS).claims
            if not self._may_refetch_keys():
                break
        raise ProviderError("no key of the issuer verifies its signature")

    def _may_refetch_keys(self) -> bool:
        """Expire the cached keys, unless they are fresh: forged tokens must not flood the issuer."""
        url = self.endpoint("jwks_uri")
        with self._lock:
            if time.monotonic() - self._keys_asked_at < _ROTATION_PAUSE:
                return False
            self._cache[url] = (self._cache.get(url, (None, 0.0))[0], 0.0)
            return True

    def _discovered(self) -> dict[str, Any]:
        return self._cached(f"{self._issuer}/.well-known/openid-configuration", self._fetch_metadata)

    def _cached(self, url: str, fetch: Callable[[str], Any]) -> Any:
        with self._lock:
            value, expires_at = self._cache.get(url, (None, 0.0))
            if time.monotonic() < expires_at:
                return value
            try:
                value = fetch(url)
            except ProviderUnavailable:
                if value is None:
                    raise
            self._cache[url] = (value, time.monotonic() + _CACHED_FOR)
            return value

    def _fetch_metadata(self, url: str) -> dict[str, Any]:
        metadata = _get(url)
        issuer = metadata.get("issuer")
        # Azure's document for all tenants has a placeholder for the tenant.
        if not isinstance(issuer, str) or (issuer.rstrip("/") != self._issuer and _TENANT not in issuer):
            raise ProviderUnavailable("the discovery document is another issuer's")
        return metadata

    def _fetch_keys(self, url: str) -> KeySet:
        """Return the usable keys. A key of an unknown type must not prevent the use of others."""
        self._keys_asked_at = time.monotonic()
        published, keys = _get(url).get("keys"), []
        for key in published if isinstance(published, list) else []:
            with suppress(*_MALFORMED, AttributeError):
                if key.get("kty") in ("RSA", "EC", "OKP") and key.get("use", "sig") == "sig":
                    keys += KeySet.import_key_set({"keys": [key]}).keys
        if not keys:
            raise ProviderUnavailable("the issuer publishes no usable key")
        return KeySet(keys)


def unverified_issuer(id_token: str) -> str:
    """Return the `iss` of a token whose signature is not checked. Raises `ProviderError`."""
    issuer = _unverified_claims(id_token).get("iss")
    if not isinstance(issuer, str):
        raise ProviderError("it names no issuer")
    return issuer[:255]


def _unverified_claims(id_token: str) -> dict[str, Any]:
    """Return the claims of a possible id_token, before anything is fetched for it."""
    with suppress(*_MALFORMED):
        token = jws.extract_compact(id_token.encode())
        claims = json.loads(token.payload)
        header = token.headers()
        # Access and logout tokens of the issuer name another type (RFC 9068, RFC 8725).
        is_of_type = str(header.get("typ", "JWT")).upper() == "JWT"
        if header.get("alg") in ALGORITHMS and is_of_type and isinstance(claims, dict):
            return claims
    raise ProviderError("it is not a signed JWT")


def auth_time(claims: dict[str, Any]) -> float | None:
    """Return when the issuer authenticated the user, or None. What is not a date proves nothing."""
    with suppress(ProviderError):
        return None if claims.get("auth_time") is None else _moment(claims, "auth_time")
    return 0


def is_subject(value: Any) -> bool:
    """Whether this is a valid `sub` (OpenID Connect Core, section 2) that Postgres can store."""
    return isinstance(value, str) and 0 < len(value) <= 255 and value.isprintable()


def _get(url: str) -> dict[str, Any]:
    try:
        with BoundedSession() as session:
            response = session.get(url, headers={"Accept": "application/json"})
        document = response.json() if response.status_code == 200 else None
    except (requests.RequestException, ValueError, RecursionError) as error:
        raise ProviderUnavailable(f"{type(error).__name__} at {url}") from error
    if not isinstance(document, dict):
        raise ProviderUnavailable(f"no document at {url}")
    return document


def _check_nonce(claimed: Any, nonce: str | None, may_be_hashed: bool) -> None:
    if claimed is None and nonce is None and may_be_hashed:
        return
    accepted = [nonce] if nonce else []
    # Native applications send the nonce's SHA-256 in hex to the provider.
    if nonce and may_be_hashed:
        accepted.append(hashlib.sha256(nonce.encode()).hexdigest())
    if not isinstance(claimed, str) or not any(
        hmac.compare_digest(claimed.encode(), value.encode()) for value in accepted
    ):
        raise ProviderError("its nonce is not the one that was sent")


def _moment(claims: dict[str, Any], name: str) -> float:
    value = claims.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < _YEAR_10000:
        raise ProviderError(f"its {name} is not a date")
    return value
